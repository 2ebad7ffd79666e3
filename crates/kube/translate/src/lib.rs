//! API objects in the words of the engine: pure functions of an object and of what it refers to.
//!
//! The rules are those of kube-scheduler 1.37's default filter plugins; each file names the plugin
//! it follows. What depends on other pods stands in a requirement as a rule over a counter, and
//! [`counting`] says which pods each counter counts.

mod checkpoints;
pub mod counting;
mod devices;
mod disks;
mod extended;
pub mod gang;
pub mod levels;
mod node;
mod not_yet;
mod pod;
pub mod ports;
mod preemption;
mod preferences;
mod receipt;
mod referred;
mod run_time;
mod said;
mod sharing;
mod time_limit;
mod unbound;
mod volumes;

use dovetail_objects::labels;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use checkpoints::said_checkpoint_ms;
pub use devices::{devices_not_counted, whole_devices};
pub use extended::device_requests;
pub use node::{NodeSetting, devices_label, node, twice_offered};
pub use not_yet::NotYet;
pub use pod::{PodHoldings, held, kept_away_by, pod, pod_with_devices};
pub use preemption::preemption_rules;
pub use receipt::Receipt;
pub use referred::{Offers, ReferredObjects};
pub use run_time::{said_run_time, started_ms, unreadable_run_time};
pub use said::{JobDeclaration, how_ended};
pub use sharing::{REPLICAS_AS_GPUS, SharedAs, offers_replicas_as_gpus};
pub use time_limit::time_limit_ms;

/// The resource whose units are whole GPUs, unless another is set.
pub const DEVICE_RESOURCE: &str = labels::NVIDIA_GPU;

/// What is the same for every translation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rules {
    /// The extended resource whose units are devices of a node, each given whole to one pod. All
    /// others are plain counts.
    pub device_resource: String,
    /// Labels that a node must have for pods of ours to be placed there, as if each pod asked for
    /// them.
    pub node_selector: BTreeMap<String, String>,
    /// A declared time to write a checkpoint or to restart counts as no longer than this: nobody
    /// escapes preemption by declaring days. `None`: it counts as declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_declared_loss_ms: Option<u64>,
    /// Whether a queue borrows that does not say: where borrowed quota is reclaimed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub queues_borrow: bool,
    /// Whether any pods may share GPUs, as every other scheduler lets them: what is judged by this
    /// may have been placed by another.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mixes_shared_gpus: bool,
}

impl Rules {
    /// Whether pods of ours may be placed on a node with these labels, as far as
    /// [`Rules::node_selector`] says.
    pub fn selects<'l>(&self, label: impl Fn(&str) -> Option<&'l str>) -> bool {
        self.node_selector.iter().all(|(key, value)| label(key) == Some(value))
    }

    /// [`Rules::node_selector`] as kubectl writes it.
    pub fn selector(&self) -> String {
        let labels = self.node_selector.iter().map(|(key, value)| format!("{key}={value}"));
        labels.collect::<Vec<_>>().join(",")
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            device_resource: DEVICE_RESOURCE.to_owned(),
            node_selector: BTreeMap::new(),
            max_declared_loss_ms: None,
            queues_borrow: false,
            mixes_shared_gpus: false,
        }
    }
}
