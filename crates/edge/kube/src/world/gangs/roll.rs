//! Roll call: what the members of a gang are up to.

use super::Gang;
use crate::object::{Phase, Pod};
use crate::world::World;
use crate::world::pods::Slot;
use crate::world::standing::Told;

/// The members of a gang by what they are up to. Those that are over without success, or about to go, or
/// held up for reasons of their own, are in none of these.
#[derive(Debug, Default)]
pub(super) struct Roll {
    /// They could take a node.
    pub(super) wishing: Vec<Slot>,
    /// They have one, by the watch or by a decision.
    pub(super) placed: Vec<Slot>,
    /// How many of these have it by the watch.
    pub(super) seen: u32,
    /// How many went well to their end.
    pub(super) succeeded: u32,
}

impl Roll {
    /// Members that need no node any more, or have one.
    pub(super) fn settled(&self) -> u32 {
        self.placed.len() as u32 + self.succeeded
    }
}

impl World {
    pub(super) fn roll(&self, gang: &Gang) -> Roll {
        let mut roll = Roll::default();
        for slot in gang.members.values().copied() {
            let entry = self.pods.get(slot);
            let pod = &entry.pod;
            if pod.phase == Phase::Succeeded {
                roll.succeeded += 1;
                continue;
            }
            if pod.meta.deleting || pod.is_over() {
                continue;
            }
            let is_seen = match entry.told {
                Told::Running { .. } => true,
                // Bound by somebody else, to a node that is there.
                Told::Foreign { .. } => self.nodes.is_there(&pod.node),
                _ => false,
            };
            if is_seen {
                roll.seen += 1;
                roll.placed.push(slot);
            } else if matches!(entry.told, Told::Assumed { .. }) {
                roll.placed.push(slot);
            } else if entry.wish.is_some() {
                roll.wishing.push(slot);
            }
        }
        roll
    }

    /// Members that are not over and not about to go, oldest first.
    pub(super) fn live_members(&self, gang: &Gang) -> Vec<&Pod> {
        let pods = gang.members.values().map(|slot| &*self.pods.get(*slot).pod);
        pods.filter(|pod| !pod.is_over() && !pod.meta.deleting).collect()
    }
}
