//! Workloads as flags name them.

use std::fmt;
use std::str::FromStr;

use dovetail_sharing::ObjectName;

/// Namespace, kind and name of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadName {
    pub namespace: String,
    /// The kind as Kubernetes writes it where it is known, else as it was written.
    pub kind: String,
    pub name: String,
}

/// A workload whose pods are to ask for another resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedChange {
    pub workload: WorkloadName,
    /// The resource, such as `nvidia.com/mig-1g.10gb`.
    pub resource: String,
}

/// Kinds whose templates can be changed, with their plural.
const KINDS: [(&str, &str); 2] = [("Deployment", "deployments"), ("StatefulSet", "statefulsets")];

impl WorkloadName {
    pub(crate) fn of(object: &ObjectName) -> Self {
        let ObjectName { namespace, kind, name, .. } = object.clone();
        Self { namespace, kind, name }
    }

    /// Where the API server has it.
    pub(crate) fn path(&self) -> String {
        let plural = KINDS.iter().find(|(kind, _)| *kind == self.kind).map_or("", |known| known.1);
        format!("/apis/apps/v1/namespaces/{}/{plural}/{}", self.namespace, self.name)
    }

    /// Why objects of its kind cannot be changed; `None` if they can.
    pub(crate) fn other_kind(&self) -> Option<String> {
        let is_known = KINDS.iter().any(|(kind, _)| *kind == self.kind);
        (!is_known).then(|| {
            format!(
                "only a Deployment or a StatefulSet can be changed, not a {}: change its manifest",
                self.kind
            )
        })
    }
}

impl FromStr for WorkloadName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // What a path would take for something else is in no name.
        let is_name = |part: &str| {
            let is_plain =
                |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.');
            part.chars().all(is_plain) && part.starts_with(|one: char| one.is_ascii_alphanumeric())
        };
        match text.split('/').collect::<Vec<_>>()[..] {
            [namespace, kind, name] if [namespace, kind, name].into_iter().all(is_name) => {
                let known = KINDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(kind));
                let kind = known.map_or(kind, |(known, _)| known).to_owned();
                Ok(Self { namespace: namespace.to_owned(), kind, name: name.to_owned() })
            }
            _ => Err("write NAMESPACE/KIND/NAME, such as prod/Deployment/chat".to_owned()),
        }
    }
}

impl FromStr for AskedChange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "write NAMESPACE/KIND/NAME=RESOURCE, such as \
             prod/Deployment/chat=nvidia.com/mig-1g.10gb"
                .to_owned()
        };
        let (workload, resource) = text.split_once('=').ok_or_else(wrong)?;
        if resource.is_empty() {
            return Err(wrong());
        }
        let workload = workload.parse().map_err(|_| wrong())?;
        Ok(Self { workload, resource: resource.to_owned() })
    }
}

impl fmt::Display for WorkloadName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}/{}", self.namespace, self.kind, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_names_a_workload_and_a_typo_is_refused() {
        let asked: AskedChange = "prod/deployment/chat=nvidia.com/gpu.shared".parse().expect("one");
        assert_eq!(asked.workload.to_string(), "prod/Deployment/chat");
        assert_eq!(asked.workload.path(), "/apis/apps/v1/namespaces/prod/deployments/chat");
        assert_eq!(asked.resource, "nvidia.com/gpu.shared");
        let job: AskedChange = "prod/Job/train=nvidia.com/gpu".parse().expect("one");
        assert!(job.workload.other_kind().is_some_and(|why| why.contains("not a Job")));
        for wrong in [
            "chat=nvidia.com/gpu",
            "a/Deployment/b",
            "a/Deployment/../b=x",
            "a/Deployment/b?=x",
            "a/Deployment/=x",
            "a/Deployment/b=",
        ] {
            let told = wrong.parse::<AskedChange>().expect_err(wrong);
            assert!(told.starts_with("write NAMESPACE/KIND/NAME=RESOURCE"), "{told}");
        }
    }
}
