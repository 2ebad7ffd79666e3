//! The labels of a series: which device it is about, and who held it.

use serde::Serialize;

use super::pod_labels::PodLabels;
use crate::prometheus::Labels;

/// Names of one thing, by generation and vendor; the first that is there counts.
const NODE: [&str; 5] = ["Hostname", "hostname", "node", "kubernetes_node", "nodename"];
const DEVICE: [&str; 4] = ["UUID", "uuid", "gpu_uuid", "serial_number"];
const INDEX: [&str; 3] = ["gpu", "gpu_id", "device"];
const MODEL: [&str; 4] = ["modelName", "model_name", "card_model", "dev_name"];

/// Where a series comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesOrigin {
    /// Node, or the address that was scraped where no label names it.
    pub node: String,
    /// Identity of the device, unique on its node.
    pub device: String,
    /// Model, as the exporter writes it.
    pub model: Option<String>,
    pub slice: Option<MigSlice>,
    /// Who held it; `None` if nobody, or nobody knows.
    pub holder: Option<DeviceHolder>,
}

/// A MIG slice of a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MigSlice {
    /// Number on the device.
    pub id: String,
    /// Profile, such as `1g.10gb`.
    pub profile: String,
}

/// Who holds a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct DeviceHolder {
    /// Namespace; empty where no label says it.
    pub namespace: String,
    pub pod: String,
    /// Container; empty where no label says it.
    pub container: String,
    /// Which of the pods that had this name one after the other, counted from 0; exporters do not
    /// say it.
    #[serde(skip)]
    pub turn: u32,
}

impl SeriesOrigin {
    /// Reads the labels; `None` if they name no device.
    pub fn of(labels: &Labels, pods: &PodLabels) -> Option<Self> {
        let first = |names: &[&str]| {
            let found = names.iter().find_map(|name| labels.get(*name));
            found.filter(|value| !value.is_empty()).cloned()
        };
        let device = first(&DEVICE).or_else(|| first(&INDEX))?;
        let address = || labels.get("instance").map(|address| host(address).to_owned());
        let node = first(&NODE).or_else(address)?;
        let slice = labels.get("GPU_I_ID").zip(labels.get("GPU_I_PROFILE"));
        let slice = slice.filter(|(id, _)| !id.is_empty());
        let slice =
            slice.map(|(id, profile)| MigSlice { id: id.clone(), profile: profile.clone() });
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
            let origin = SeriesOrigin::of(&found, &PodLabels::default()).unwrap();
            let read = (origin.node.as_str(), origin.device.as_str(), origin.model.as_deref());
            assert_eq!(read, ("n1", "d1", Some("M")), "{node}");
        }
        let scraped = labels(&[("instance", "10.0.0.7:9400"), ("gpu", "3")]);
        assert_eq!(SeriesOrigin::of(&scraped, &PodLabels::default()).unwrap().node, "10.0.0.7");
        assert_eq!(SeriesOrigin::of(&labels(&[("Hostname", "n1")]), &PodLabels::default()), None);
    }
}
