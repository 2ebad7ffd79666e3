//! How AMD's Instinct GPUs are partitioned: a compute mode and a memory mode, the same for all GPUs
//! of a node.
//!
//! A mode is written as AMD's device plugin and node labeller write it, for example `cpx_nps4`.

use std::fmt;

use dovetail_model::labels::AMD_GPU;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Begin of the resources under which AMD's device plugin offers partitions by their mode.
const NAMED: &str = "amd.com/";

/// Into how many devices a GPU with eight compute dies is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Compute {
    Spx = 1,
    Dpx = 2,
    Qpx = 4,
    Cpx = 8,
}

const COMPUTE: [(&str, Compute); 4] =
    [("spx", Compute::Spx), ("dpx", Compute::Dpx), ("qpx", Compute::Qpx), ("cpx", Compute::Cpx)];
/// Into how many memory partitions it may be divided.
const MEMORY: [u8; 3] = [1, 2, 4];

/// What AMD documents of a model (docs/internals/sharing.md names the pages).
struct Model {
    name: &'static str,
    /// Whether it has other compute modes than SPX.
    has_modes: bool,
    /// Memory modes besides NPS1, each for one compute mode.
    more: &'static [(Compute, u8)],
}

const MODELS: [Model; 5] = [
    Model { name: "MI300A", has_modes: false, more: &[] },
    Model { name: "MI300X", has_modes: true, more: &[(Compute::Dpx, 2), (Compute::Cpx, 4)] },
    Model { name: "MI325X", has_modes: true, more: &[] },
    Model { name: "MI350X", has_modes: true, more: &[(Compute::Dpx, 2)] },
    Model { name: "MI355X", has_modes: true, more: &[(Compute::Dpx, 2)] },
];

/// How each GPU of a node is partitioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Partition {
    compute: Compute,
    memory: u8,
}

impl Partition {
    /// Whole GPUs.
    pub const WHOLE: Self = Self { compute: Compute::Spx, memory: 1 };

    /// The partition of this name, such as `cpx_nps4`.
    pub fn named(name: &str) -> Option<Self> {
        let (compute, memory) = name.split_once("_nps")?;
        let compute = COMPUTE.into_iter().find(|(word, _)| *word == compute)?.1;
        let memory = MEMORY.into_iter().find(|count| count.to_string() == memory)?;
        Some(Self { compute, memory })
    }

    /// Devices that pods get of each GPU.
    pub fn per_gpu(self) -> i64 {
        self.compute as i64
    }

    /// The partitions that AMD documents for a model; empty for a model without partitions.
    pub fn of_model(model: &str) -> Vec<Self> {
        let Some(model) = MODELS.iter().find(|known| known.name == model) else {
            return Vec::new();
        };
        let modes = COMPUTE.iter().map(|(_, compute)| *compute);
        let modes = modes.filter(|compute| model.has_modes || *compute == Compute::Spx);
        let plain = modes.map(|compute| Self { compute, memory: 1 });
        let more =
            model.more.iter().map(|(compute, memory)| Self { compute: *compute, memory: *memory });
        plain.chain(more).collect()
    }

    /// The resource of its devices: its own, or that of whole GPUs.
    pub fn resource(self, is_named: bool) -> String {
        if is_named { format!("{NAMED}{self}") } else { AMD_GPU.to_owned() }
    }

    /// The partition that a resource names; `None` for other resources.
    pub fn of_resource(resource: &str) -> Option<Self> {
        Self::named(resource.strip_prefix(NAMED)?)
    }

    /// The profile as Device Config Manager reads it, for a node with so many GPUs.
    pub(crate) fn profile(self, gpus: usize) -> Value {
        let text = self.to_string().to_uppercase();
        let (compute, memory) = text.split_once('_').unwrap_or_default();
        json!({
            "skippedGPUs": {"ids": []},
            "profiles": [{
                "computePartition": compute, "memoryPartition": memory, "numGPUsAssigned": gpus,
            }],
        })
    }

    /// A name of the profile that follows from what it is.
    pub(crate) fn profile_name(self, gpus: usize) -> String {
        format!("dovetail-{self}-{gpus}").replace('_', "-")
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = COMPUTE.iter().find(|(_, compute)| *compute == self.compute);
        write!(to, "{}_nps{}", word.map_or("", |(word, _)| word), self.memory)
    }
}

impl From<Partition> for String {
    fn from(partition: Partition) -> Self {
        partition.to_string()
    }
}

impl TryFrom<String> for Partition {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::named(&name).ok_or_else(|| {
            format!(
                "unknown partition `{name}`: write a compute mode (spx, dpx, qpx, cpx) and a memory \
                 mode (nps1, nps2, nps4), such as cpx_nps4"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_model_has_the_partitions_that_amd_documents() {
        let of = |model: &str| -> Vec<String> {
            Partition::of_model(model).iter().map(ToString::to_string).collect()
        };
        let plain = ["spx_nps1", "dpx_nps1", "qpx_nps1", "cpx_nps1"];
        assert_eq!(of("MI300X"), [&plain[..], &["dpx_nps2", "cpx_nps4"]].concat());
        assert_eq!(of("MI300A"), ["spx_nps1"]);
        assert_eq!(of("MI325X"), plain);
        assert_eq!(of("MI355X"), [&plain[..], &["dpx_nps2"]].concat());
        assert!(of("MI250X").is_empty());
    }

    #[test]
    fn a_partition_is_spelled_as_the_device_plugin_spells_it() {
        let cpx = Partition::named("cpx_nps4").expect("a partition");
        assert_eq!((cpx.per_gpu(), &*cpx.to_string()), (8, "cpx_nps4"));
        assert_eq!(cpx.resource(true), "amd.com/cpx_nps4");
        assert_eq!(cpx.resource(false), "amd.com/gpu");
        assert_eq!(Partition::of_resource("amd.com/cpx_nps4"), Some(cpx));
        for other in ["amd.com/gpu", "amd.com/nic", "cpx_nps4", "amd.com/cpx_nps3", "amd.com/cpx"] {
            assert_eq!(Partition::of_resource(other), None, "{other}");
        }
        let entry = &cpx.profile(8)["profiles"][0];
        let expected =
            json!({"computePartition": "CPX", "memoryPartition": "NPS4", "numGPUsAssigned": 8});
        assert_eq!(*entry, expected);
        let unknown = serde_json::from_value::<Partition>(json!("CPX")).expect_err("a name");
        assert!(unknown.to_string().contains("such as cpx_nps4"), "{unknown}");
    }
}
