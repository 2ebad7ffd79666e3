//! One of the two layouts of a change, with its name in the ConfigMap of the component that makes
//! it.

use std::collections::BTreeMap;

use dovetail_model::labels::NVIDIA_GPU;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::amd::Partition;
use crate::component::Component;
use crate::layout::NodeLayout;
use crate::replicas::{Replicas, name, settings, shared_resource};
use dovetail_objects::yaml;

/// A layout before or after a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// Its name in the ConfigMap.
    pub config: String,
    pub layout: NodeLayout,
    /// How pods share its whole GPUs; `None` if they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<Replicas>,
    /// How its GPUs are partitioned, if they are AMD's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amd: Option<AmdDevices>,
}

/// What AMD's device plugin offers of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AmdDevices {
    pub partition: Partition,
    /// Whether the resource names the partition (naming strategy `mixed`).
    pub is_named: bool,
}

impl Side {
    /// A MIG layout under its own name.
    pub fn of(layout: NodeLayout) -> Self {
        Self { config: layout.name(), layout, replicas: None, amd: None }
    }

    /// So many whole GPUs, each offered as replicas or not, under its own name.
    pub fn whole(gpus: usize, replicas: Option<Replicas>) -> Self {
        let layout = NodeLayout(vec![None; gpus]);
        Self { config: name(replicas), layout, replicas, amd: None }
    }

    /// So many GPUs of AMD, each partitioned in this way, under its own name.
    pub fn partitioned(gpus: usize, amd: AmdDevices) -> Self {
        let config = amd.partition.profile_name(gpus);
        Self { config, layout: NodeLayout(vec![None; gpus]), replicas: None, amd: Some(amd) }
    }

    /// Whether some GPU has the same layout on another side.
    pub fn keeps_gpus(&self, to: &Self) -> bool {
        self.layout.0.iter().zip(&to.layout.0).any(|(from, to)| from == to)
    }

    /// A name that follows from the layout alone.
    pub(crate) fn own_name(&self, by: Component) -> String {
        match by {
            Component::MigManager => self.layout.name(),
            Component::DevicePlugin => name(self.replicas),
            Component::DeviceConfigManager => self.partition().profile_name(self.layout.0.len()),
        }
    }

    /// The same layout under a second name: a component does nothing where a label stays the same.
    pub(crate) fn second_name(&self, by: Component) -> String {
        format!("{}-again", self.own_name(by))
    }

    /// A name of the layout that is not the present one.
    pub(crate) fn name_besides(&self, by: Component, present: Option<&str>) -> String {
        if present == Some(&*self.config) { self.second_name(by) } else { self.config.clone() }
    }

    /// The layout as its component reads it.
    pub(crate) fn content(&self, by: Component) -> Value {
        match by {
            Component::MigManager => self.layout.entries(),
            Component::DevicePlugin => Value::String(yaml(&settings(self.replicas))),
            Component::DeviceConfigManager => self.partition().profile(self.layout.0.len()),
        }
    }

    fn partition(&self) -> Partition {
        self.amd.map_or(Partition::WHOLE, |amd| amd.partition)
    }

    /// What the device plugin offers once it is there, by resource.
    pub fn offers(&self) -> BTreeMap<String, i64> {
        if let Some(AmdDevices { partition, is_named }) = self.amd {
            let devices = self.layout.0.len() as i64 * partition.per_gpu();
            return BTreeMap::from([(partition.resource(is_named), devices)]);
        }
        let mut offers = self.layout.offers();
        if let Some(replicas) = self.replicas {
            let gpus = offers.remove(NVIDIA_GPU).unwrap_or(0);
            offers.insert(shared_resource(), gpus * i64::from(replicas.count));
        }
        offers
    }

    /// The layout in words, equal GPUs together.
    pub fn words(&self) -> String {
        let gpus = self.layout.0.len();
        match (self.replicas, self.amd) {
            (_, Some(amd)) => format!("{gpus} × {}", amd.partition),
            (None, None) => self.layout.words(),
            (Some(replicas), None) => format!("{gpus} × {}", replicas.words()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replicas::Method;

    #[test]
    fn replicas_have_their_own_name_and_a_pod_gets_one_at_most() {
        let replicas = Replicas { method: Method::TimeSlicing, count: 4 };
        let side = Side::whole(2, Some(replicas));
        assert_eq!(side.config, "dovetail-time-slicing-4");
        assert_eq!(side.words(), "2 × 4 replicas (time-slicing)");
        assert_eq!(side.offers(), BTreeMap::from([("nvidia.com/gpu.shared".to_owned(), 8)]));
        let content = side.content(Component::DevicePlugin);
        let expected = "version: v1\nflags:\n  migStrategy: mixed\nsharing:\n  timeSlicing:\n    \
                        renameByDefault: true\n    failRequestsGreaterThanOne: true\n    resources:\n    \
                        - name: nvidia.com/gpu\n      replicas: 4\n";
        let read = |text: &str| -> Value { serde_saphyr::from_str(text).expect("YAML") };
        assert_eq!(read(content.as_str().expect("a text")), read(expected));
        assert_eq!(Side::whole(2, None).words(), "2 × whole");
        assert_eq!(
            side.name_besides(Component::DevicePlugin, Some("dovetail-time-slicing-4")),
            "dovetail-time-slicing-4-again"
        );
    }

    #[test]
    fn a_partitioned_node_offers_devices_under_the_name_of_its_strategy() {
        let partition = Partition::named("cpx_nps4").expect("a partition");
        let side = Side::partitioned(8, AmdDevices { partition, is_named: false });
        assert_eq!((&*side.config, &*side.words()), ("dovetail-cpx-nps4-8", "8 × cpx_nps4"));
        assert_eq!(side.offers(), BTreeMap::from([("amd.com/gpu".to_owned(), 64)]));
        let named = Side::partitioned(8, AmdDevices { partition, is_named: true });
        assert_eq!(named.offers(), BTreeMap::from([("amd.com/cpx_nps4".to_owned(), 64)]));
        let by = Component::DeviceConfigManager;
        assert_eq!(named.content(by), side.content(by));
        assert_eq!(side.content(by)["profiles"][0]["numGPUsAssigned"], 8);
        let read: Side = serde_json::from_value(serde_json::json!(named)).expect("a side");
        assert_eq!(read, named);
    }
}
