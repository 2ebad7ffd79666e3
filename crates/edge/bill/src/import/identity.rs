//! Which machine a line of a bill is about.

use std::collections::BTreeMap;

/// Machines by the names that bills have for them.
#[derive(Clone, Debug, Default)]
pub struct BilledMachines {
    by_name: BTreeMap<String, usize>,
}

impl BilledMachines {
    /// Machines by `spec.providerID`, each with its number; what has none may have another name
    /// that bills know.
    pub fn new<'a>(provider_ids: impl IntoIterator<Item = (&'a str, usize)>) -> Self {
        let mut by_name = BTreeMap::new();
        for (id, number) in provider_ids {
            by_name.extend(names(id).map(|name| (name, number)));
        }
        Self { by_name }
    }

    /// The machine of a line, by its resource.
    pub fn of(&self, resource: &str) -> Option<usize> {
        self.by_name.get(&plain(resource)).copied()
    }
}

/// How a bill may name the machine: for AWS the instance, for Google Cloud the path of the
/// instance, for Azure the whole path; for others all behind the scheme. A name without a scheme is
/// the name.
fn names(provider_id: &str) -> Option<String> {
    let id = provider_id.trim().to_lowercase();
    let (scheme, path) = id.split_once("://").unwrap_or(("", &id));
    let path = path.trim_matches('/').to_owned();
    let parts: Vec<&str> = path.split('/').collect();
    let name = match (scheme, parts.as_slice()) {
        (_, [] | [""]) => return None,
        ("aws", [.., instance]) => (*instance).to_owned(),
        ("gce", [project, zone, instance]) => {
            format!("projects/{project}/zones/{zone}/instances/{instance}")
        }
        _ => path.clone(),
    };
    Some(name)
}

/// The resource of a line without what comes before the name of the machine. Tools that take their
/// bill from the cluster, this one too, write the whole `spec.providerID`.
fn plain(resource: &str) -> String {
    let text = resource.trim().to_lowercase();
    if text.contains("://") {
        return names(&text).unwrap_or_default();
    }
    if text.starts_with("arn:") {
        return text.rsplit('/').next().unwrap_or_default().to_owned();
    }
    let text = text.strip_prefix("//compute.googleapis.com/").unwrap_or(&text);
    text.trim_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_machine_is_found_by_every_name_of_it() {
        let azure = "azure:///subscriptions/S/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/gpu/virtualMachines/0";
        let machines = BilledMachines::new([
            ("aws:///us-east-1a/i-0AbC", 0),
            ("gce://shop/us-central1-a/gpu-1", 1),
            (azure, 2),
            ("kind://docker/kind/worker", 3),
            ("", 4),
            ("aws://", 5),
            ("Rack7-3", 6),
        ]);
        for (id, number) in [
            ("aws:///us-east-1a/i-0AbC", 0),
            ("gce://shop/us-central1-a/gpu-1", 1),
            (azure, 2),
            ("kind://docker/kind/worker", 3),
            ("docker/kind/worker", 3),
            ("rack7-3", 6),
        ] {
            assert_eq!(machines.of(id), Some(number), "{id}");
        }
        assert_eq!([machines.of("aws://"), machines.of("gce://gpu-1")], [None; 2]);
        assert_eq!(machines.of("i-0abc"), Some(0));
        assert_eq!(machines.of("arn:aws:ec2:us-east-1:123:instance/i-0abc"), Some(0));
        let gce = "//compute.googleapis.com/projects/shop/zones/us-central1-a/instances/gpu-1";
        assert_eq!(machines.of(gce), Some(1));
        assert_eq!(machines.of("gpu-1"), None);
        assert_eq!(machines.of(&azure["azure://".len()..].to_uppercase()), Some(2));
        // The number of an instance alone is that of many.
        assert_eq!(machines.of("0"), None);
        assert_eq!(machines.of(""), None);
    }
}
