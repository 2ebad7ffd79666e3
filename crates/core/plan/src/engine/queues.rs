//! What the whole cluster has.

use std::collections::BTreeMap;

use dovetail_model::{Charge, Node};

use dovetail_state::State;

/// The sum over all nodes, added up when any of them changed.
#[derive(Debug, Default)]
pub(crate) struct Capacity {
    seen: Option<u64>,
    total: Charge,
}

impl Capacity {
    /// Adds up again if there is reason to.
    pub(crate) fn refresh(&mut self, state: &State) {
        let versions = state.nodes.static_versions();
        if self.seen.replace(versions) != Some(versions) {
            self.total = sum(state);
        }
    }

    pub(crate) fn total(&self) -> &Charge {
        &self.total
    }
}

/// The GPUs of a node, by model.
fn by_model(node: &Node) -> BTreeMap<String, i64> {
    let mut all = BTreeMap::new();
    for device in node.devices.iter().filter(|device| !device.model.is_empty()) {
        *all.entry(device.model.clone()).or_default() += 1_000;
    }
    all
}

/// Nodes that take nothing at the moment count as well: shares do not jump when a node is drained.
fn sum(state: &State) -> Charge {
    let mut total = Charge::default();
    for (_, node) in state.nodes.present() {
        let all = &node.allocatable;
        let each = Charge {
            gpu_milli: node.devices.len() as i64 * 1_000,
            cpu_milli: all.cpu_milli,
            memory_bytes: all.memory_bytes,
            extended: all.extended.clone(),
            by_model: by_model(node),
        };
        total.add_times(&each, 1);
    }
    total
}
