//! How much of each GPU model is in use.
//!
//! Free compute is counted by model as nodes change. Scores read published shares alone, so that a
//! decision depends on nothing that happens between two submissions.

use std::collections::BTreeMap;

use dovetail_model::{NodeAvailability, NodeId};

use crate::learn::ONE;
use dovetail_state::State;
use dovetail_state::log::Cursor;

/// Shares are published when one moved this far: a sixteenth. Smaller steps make more versions, and
/// each costs a look at every node.
const PUBLISH_FROM: i64 = ONE / 16;

/// Compute of the nodes that take pods, by model, followed node by node.
#[derive(Clone, Debug, Default)]
pub(crate) struct InUse {
    /// Up to where the change log was read; `None` before the first time.
    cursor: Option<Cursor>,
    /// By interned model.
    models: Vec<Compute>,
    /// The multiset of devices that was counted, by slot of the node.
    counted: Vec<Option<u32>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Compute {
    all_milli: i64,
    free_milli: i64,
}

/// Whether the shares in use differ enough from the published ones.
pub(crate) fn is_other_use(now: &BTreeMap<String, i64>, published: &BTreeMap<String, i64>) -> bool {
    let moved = |(model, share): (&String, &i64)| {
        published.get(model).is_none_or(|before| (share - before).abs() >= PUBLISH_FROM)
    };
    now.len() != published.len() || now.iter().any(moved)
}

impl InUse {
    /// The share of each model in use, in 2^-20. A device in MIG slices counts as in use.
    pub(crate) fn shares(&mut self, state: &State) -> BTreeMap<String, i64> {
        self.follow(state);
        let models = self.models.iter().zip(0..).filter(|(compute, _)| compute.all_milli > 0);
        let share = |(compute, model): (&Compute, u32)| {
            let used_milli = compute.all_milli - compute.free_milli;
            (state.names.models.get(model).clone(), used_milli * ONE / compute.all_milli)
        };
        models.map(share).collect()
    }

    fn follow(&mut self, state: &State) {
        let end = state.log.end();
        let since = self.cursor.replace(end);
        match since.and_then(|cursor| state.log.touched_since(cursor)) {
            Some(nodes) => nodes.for_each(|node| self.count(state, node)),
            None => {
                let slots = 0..state.nodes.slots() as u32;
                slots.for_each(|slot| self.count(state, NodeId(slot)));
            }
        }
    }

    fn count(&mut self, state: &State, node: NodeId) {
        let hot = state.nodes.hot(node);
        let takes_pods =
            hot.is_present() && state.nodes.cold(node).node.condition == NodeAvailability::Ready;
        let now = takes_pods.then_some(hot.set);
        if self.counted.len() <= node.index() {
            self.counted.resize(node.index() + 1, None);
        }
        let before = std::mem::replace(&mut self.counted[node.index()], now);
        if before != now {
            before.into_iter().for_each(|set| self.add(state, set, -1));
            now.into_iter().for_each(|set| self.add(state, set, 1));
        }
    }

    fn add(&mut self, state: &State, set: u32, sign: i64) {
        for cell in state.devices.set(set) {
            self.of(state.devices.model_of(*cell)).all_milli += sign * 1000;
        }
        for group in state.devices.alike(set) {
            self.of(group.model).free_milli += sign * group.left_milli * group.count;
        }
    }

    fn of(&mut self, model: u32) -> &mut Compute {
        let place = model as usize;
        if self.models.len() <= place {
            self.models.resize(place + 1, Compute::default());
        }
        &mut self.models[place]
    }
}
