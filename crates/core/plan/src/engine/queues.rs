//! What the whole cluster has.

use dovetail_model::Charge;

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
            ..Charge::default()
        };
        total.add_times(&each, 1);
    }
    total
}
