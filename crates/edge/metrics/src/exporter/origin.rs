//! The labels of a series: which device it is about, and who held it.
//!
//! Exporters rename labels between generations, and Prometheus renames those that clash with its own: where
//! it does not honour an exporter's labels, the holder's are `exported_pod` and so on, and `pod` is the
//! exporter itself. So what `pod` means is decided once for all series together ([`PodLabels`]).

use serde::Serialize;

use crate::prometheus::Labels;

/// Names of one thing, by generation and vendor; the first that is there counts.
const NODE: [&str; 5] = ["Hostname", "hostname", "node", "kubernetes_node", "nodename"];
const DEVICE: [&str; 4] = ["UUID", "uuid", "gpu_uuid", "serial_number"];
const INDEX: [&str; 3] = ["gpu", "gpu_id", "device"];
const MODEL: [&str; 4] = ["modelName", "model_name", "card_model", "dev_name"];
/// Pods of exporters are named after what they are.
const EXPORTER: &str = "exporter";

/// Where a series comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Node, or the address that was scraped where no label names it.
    pub node: String,
    /// Identity of the device, unique on its node.
    pub device: String,
    /// Model, as the exporter writes it.
    pub model: Option<String>,
    /// The MIG slice, if it is about one.
    pub slice: Option<Slice>,
    /// Who held it; `None` if nobody, or nobody knows.
    pub holder: Option<Holder>,
}

/// A MIG slice of a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slice {
    /// Number on the device.
    pub id: String,
    /// Profile, such as `1g.10gb`.
    pub profile: String,
}

/// Who holds a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Holder {
    /// Namespace; empty where no label says it.
    pub namespace: String,
    /// Pod.
    pub pod: String,
    /// Container; empty where no label says it.
    pub container: String,
}

/// Which labels name the holder, in one set of series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodLabels {
    /// `exported_pod`; `pod` is the exporter's.
    Exported,
    /// `pod_name`, of exporters before 2020.
    Old,
    /// `pod`, unless it names an exporter: on a free device Prometheus puts the scraped pod there.
    Plain,
}

impl PodLabels {
    /// What the labels of all series together say.
    pub fn of<'a>(series: impl IntoIterator<Item = &'a Labels>) -> Self {
        let mut found = Self::Plain;
        for labels in series {
            if labels.contains_key("exported_pod") {
                return Self::Exported;
            }
            if labels.contains_key("pod_name") {
                found = Self::Old;
            }
        }
        found
    }

    /// Labels of namespace, pod and container.
    pub(crate) fn names(self) -> [&'static str; 3] {
        match self {
            Self::Exported => ["exported_namespace", "exported_pod", "exported_container"],
            Self::Old => ["pod_namespace", "pod_name", "container_name"],
            Self::Plain => ["namespace", "pod", "container"],
        }
    }

    fn holder(self, labels: &Labels) -> Option<Holder> {
        let text = |name: &str| labels.get(name).filter(|value| !value.is_empty()).cloned();
        let [namespace, pod, container] = self.names().map(text);
        let pod = pod?;
        let container = container.unwrap_or_default();
        let is_exporter =
            self == Self::Plain && (pod.contains(EXPORTER) || container.contains(EXPORTER));
        (!is_exporter).then(|| Holder { namespace: namespace.unwrap_or_default(), pod, container })
    }
}

impl Origin {
    /// Reads the labels; `None` if they name no device.
    pub fn of(labels: &Labels, pods: PodLabels) -> Option<Self> {
        let first = |names: &[&str]| {
            let found = names.iter().find_map(|name| labels.get(*name));
            found.filter(|value| !value.is_empty()).cloned()
        };
        let device = first(&DEVICE).or_else(|| first(&INDEX))?;
        let address = || labels.get("instance").map(|address| host(address).to_owned());
        let node = first(&NODE).or_else(address)?;
        let slice = labels.get("GPU_I_ID").zip(labels.get("GPU_I_PROFILE"));
        let slice = slice.filter(|(id, _)| !id.is_empty());
        let slice = slice.map(|(id, profile)| Slice { id: id.clone(), profile: profile.clone() });
        Some(Self { node, device, model: first(&MODEL), slice, holder: pods.holder(labels) })
    }
}

/// An address without its port.
pub fn host(address: &str) -> &str {
    match address.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn holder(pairs: &[&[(&str, &str)]], of: usize) -> Option<String> {
        let series: Vec<Labels> = pairs.iter().map(|pairs| labels(pairs)).collect();
        let pods = PodLabels::of(&series);
        let holder = Origin::of(&series[of], pods).unwrap().holder?;
        Some(format!("{}/{}/{}", holder.namespace, holder.pod, holder.container))
    }

    #[test]
    fn all_generations_of_labels_name_the_same_device() {
        for (node, device, model) in [
            ("Hostname", "UUID", "modelName"),
            ("hostname", "uuid", "modelName"),
            ("node", "gpu_uuid", "model_name"),
            ("hostname", "serial_number", "card_model"),
            ("instance", "gpu", "dev_name"),
            ("hostname", "gpu_id", "card_model"),
        ] {
            let found = labels(&[(node, "n1"), (device, "d1"), (model, "M"), ("gpu", "d1")]);
            let origin = Origin::of(&found, PodLabels::Plain).unwrap();
            let read = (origin.node.as_str(), origin.device.as_str(), origin.model.as_deref());
            assert_eq!(read, ("n1", "d1", Some("M")), "{node}");
        }
        let scraped = labels(&[("instance", "10.0.0.7:9400"), ("gpu", "3")]);
        assert_eq!(Origin::of(&scraped, PodLabels::Plain).unwrap().node, "10.0.0.7");
        assert_eq!(Origin::of(&labels(&[("Hostname", "n1")]), PodLabels::Plain), None);
    }

    #[test]
    fn the_pod_that_was_scraped_never_holds_a_device() {
        let of_target =
            [("pod", "dcgm-exporter-x7"), ("namespace", "gpu-operator"), ("container", "exporter")];
        let device = [("Hostname", "n1"), ("UUID", "d1")];
        let free: Vec<(&str, &str)> = device.into_iter().chain(of_target).collect();
        let exported = [
            ("exported_pod", "train-0"),
            ("exported_namespace", "ml"),
            ("exported_container", "c"),
        ];
        let held: Vec<(&str, &str)> = free.iter().copied().chain(exported).collect();
        // Labels are not honoured: `pod` is the target on both.
        assert_eq!(holder(&[&free, &held], 1).as_deref(), Some("ml/train-0/c"));
        assert_eq!(holder(&[&free, &held], 0), None);
        // Any name of the target: where `exported_pod` is in use, `pod` says nothing.
        let odd = [("Hostname", "n1"), ("UUID", "d2"), ("pod", "telemetry-1")];
        assert_eq!(holder(&[&odd, &held], 0), None);
        // Labels are honoured: on a free device the target's remain.
        let honoured =
            [("Hostname", "n1"), ("UUID", "d3"), ("pod", "train-0"), ("namespace", "ml")];
        assert_eq!(holder(&[&free, &honoured], 0), None);
        assert_eq!(holder(&[&free, &honoured], 1).as_deref(), Some("ml/train-0/"));
        let old = [
            ("Hostname", "n1"),
            ("UUID", "d4"),
            ("pod_name", "p"),
            ("pod_namespace", "s"),
            ("container_name", "c"),
        ];
        assert_eq!(holder(&[&old], 0).as_deref(), Some("s/p/c"));
        let empty = [("Hostname", "n1"), ("UUID", "d5"), ("pod", "")];
        assert_eq!(holder(&[&empty], 0), None);
    }
}
