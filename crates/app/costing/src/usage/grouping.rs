//! What a row of the report is about.

use clap::ValueEnum;
use dovetail_metrics::exporter::{DeviceHolder, ObservedDevice};

/// One row per value of this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Grouping {
    /// Namespace of the pod that has the GPU.
    Namespace,
    /// Pods of one owner, recognized by the pod name without its generated suffix.
    Workload,
    /// The pod that has the GPU.
    Pod,
    /// The node.
    Node,
    /// The GPU model.
    Model,
}

/// Time that nobody held, in groupings by holder.
pub(crate) const NOBODY: &str = "(free)";
/// Rows of what nobody knows.
pub const UNKNOWN: &str = "(unknown)";

impl Grouping {
    /// Name in outputs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Namespace => "namespace",
            Self::Workload => "workload",
            Self::Pod => "pod",
            Self::Node => "node",
            Self::Model => "model",
        }
    }

    /// The row of some device-time.
    pub fn key(self, device: &ObservedDevice, holder: Option<&DeviceHolder>) -> String {
        let of = |holder: Option<&DeviceHolder>, text: fn(&DeviceHolder) -> String| {
            holder.map_or_else(|| NOBODY.to_owned(), text)
        };
        match self {
            Self::Node => device.node.clone(),
            Self::Model => device.model.clone().unwrap_or_else(|| UNKNOWN.to_owned()),
            Self::Namespace => of(holder, |holder| match holder.namespace.as_str() {
                "" => UNKNOWN.to_owned(),
                namespace => namespace.to_owned(),
            }),
            Self::Pod => of(holder, |holder| format!("{}/{}", holder.namespace, holder.pod)),
            Self::Workload => {
                of(holder, |holder| format!("{}/{}", holder.namespace, owner_name(&holder.pod)))
            }
        }
    }
}

/// The name of a pod without what its controllers append: an ordinal (StatefulSet, indexed Job),
/// five letters (Job, DaemonSet), or ten and five (Deployment).
pub(crate) fn owner_name(pod: &str) -> &str {
    // What Kubernetes draws from: no vowels, and no digits that look like them.
    let is_drawn =
        |text: &str| text.bytes().all(|byte| b"bcdfghjklmnpqrstvwxz2456789".contains(&byte));
    let Some((rest, last)) = pod.rsplit_once('-') else { return pod };
    let is_ordinal = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
    if last.len() == 5 && is_drawn(last) {
        let of_job = rest.rsplit_once('-').filter(|(_, part)| {
            let is_hash = (8..=10).contains(&part.len()) && is_drawn(part);
            let is_index =
                !part.is_empty() && part.len() < 6 && part.bytes().all(|b| b.is_ascii_digit());
            is_hash || is_index
        });
        return of_job.map_or(rest, |(owner, _)| owner);
    }
    if is_ordinal { rest } else { pod }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_controllers_append_is_left_out() {
        for (pod, owner) in [
            ("serve-7d9fbc6d8b-x2x9k", "serve"),
            ("serve-v2-7d9fbc6d8-x2x9k", "serve-v2"),
            ("train-x2x9k", "train"),
            ("train-3-x2x9k", "train"),
            ("db-0", "db"),
            ("db-12", "db"),
            ("notebook", "notebook"),
            ("my-notebook", "my-notebook"),
            ("llama-70b", "llama-70b"),
            ("-", "-"),
            ("", ""),
        ] {
            assert_eq!(owner_name(pod), owner, "{pod}");
        }
    }
}
