//! Roll call: what the members of a gang are up to, and how many are missing.

use dovetail_objects::{Phase, Pod};

use super::Gang;
use crate::translate::gang::{GangName, Terms};
use crate::world::World;
use crate::world::pods::Slot;
use crate::world::standing::Told;

/// The members of a gang by what they are up to. Those that are over without success, or about to
/// go, or held up for reasons of their own, are in none of these.
#[derive(Debug, Default)]
pub(super) struct Roll {
    /// They could take a node.
    pub(super) wishing: Vec<Slot>,
    /// They have one, by the watch or by a decision.
    pub(super) placed: Vec<Slot>,
    /// Those of them that have it by the watch.
    pub(super) seen: Vec<Slot>,
    /// They went well to their end.
    pub(super) succeeded: Vec<Slot>,
    /// Scheduling gates hold them.
    pub(super) gated: u32,
    /// They are left untouched, and not because their owner holds them back.
    pub(super) refused: u32,
    /// They were to start, could not, and are tried again.
    pub(super) retried: u32,
}

impl Roll {
    /// Members that need no node any more, or have one.
    pub(super) fn settled(&self) -> impl Iterator<Item = Slot> {
        self.placed.iter().chain(&self.succeeded).copied()
    }
}

/// What a gang lacks of its smallest size.
#[derive(Debug, Default)]
pub(super) struct Lack {
    /// Pods.
    pub(super) pods: u32,
    /// How many of them must have one of the roles that its terms name, in their order.
    pub(super) of_roles: Vec<u32>,
}

impl Lack {
    /// Whether one of this role, if any of those that are named, is one of what it lacks.
    pub(super) fn is_less_by(&self, role: Option<usize>) -> bool {
        self.of_any_role() > 0 || role.is_some_and(|role| self.of_roles[role] > 0)
    }

    /// How many of the pods that it lacks may have any role.
    pub(super) fn of_any_role(&self) -> u32 {
        self.of_roles.iter().fold(self.pods, |pods, lack| pods.saturating_sub(*lack))
    }

    /// How many of the pods that it lacks these would be, by their roles.
    pub(super) fn met_by(&self, roles: impl Iterator<Item = Option<usize>>) -> u32 {
        let (mut of_roles, mut of_any) = (self.of_roles.clone(), self.of_any_role());
        let lacks = |lack: &mut u32| {
            let is_lacking = *lack > 0;
            *lack = lack.saturating_sub(1);
            is_lacking
        };
        let met = roles.filter(|role| {
            role.is_some_and(|role| lacks(&mut of_roles[role])) || lacks(&mut of_any)
        });
        met.count() as u32
    }

    /// Whether it lacks nothing.
    pub(super) fn is_none(&self) -> bool {
        self.pods == 0
    }
}

impl World {
    pub(super) fn roll(&self, gang: &Gang) -> Roll {
        let mut roll = Roll::default();
        for slot in gang.members.values().copied() {
            let entry = self.pods.get(slot);
            let pod = &entry.pod;
            if pod.phase == Phase::Succeeded {
                roll.succeeded.push(slot);
                continue;
            }
            if pod.meta.is_deleting() || pod.is_over() {
                continue;
            }
            let is_seen = match entry.told {
                Told::Running { .. } => true,
                // Bound by somebody else, to a node that is there.
                Told::Foreign { .. } => self.nodes.is_there(&pod.node),
                _ => false,
            };
            if is_seen {
                roll.seen.push(slot);
                roll.placed.push(slot);
            } else if matches!(entry.told, Told::Assumed { .. }) {
                roll.placed.push(slot);
            } else if entry.wish.is_some() {
                roll.wishing.push(slot);
            } else if pod.gated && pod.node.is_empty() && self.is_ours(pod) {
                roll.gated += 1;
            } else if let Some(why) = entry.refused.as_ref().filter(|_| entry.waits()) {
                match why {
                    _ if why.is_held_back() => {}
                    _ if why.is_tried_again() => roll.retried += 1,
                    _ => roll.refused += 1,
                }
            }
        }
        roll
    }

    /// Members that are not over and not about to go, oldest first.
    pub(super) fn live_members(&self, gang: &Gang) -> Vec<&Pod> {
        let pods = gang.members.values().map(|slot| &*self.pods.get(*slot).pod);
        pods.filter(|pod| !pod.is_over() && !pod.meta.is_deleting()).collect()
    }

    /// What a gang lacks if it has these members.
    pub(super) fn lack(
        &self,
        name: &GangName,
        terms: &Terms,
        members: impl Iterator<Item = Slot>,
    ) -> Lack {
        let mut of_roles: Vec<u32> = terms.roles.iter().map(|role| role.min).collect();
        let mut pods = terms.min;
        for slot in members {
            pods = pods.saturating_sub(1);
            if let Some(role) = self.role_in(name, terms, slot) {
                of_roles[role] = of_roles[role].saturating_sub(1);
            }
        }
        let of_all_roles = of_roles.iter().fold(0_u32, |sum, lack| sum.saturating_add(*lack));
        Lack { pods: pods.max(of_all_roles), of_roles }
    }

    /// Which of the roles that a gang's terms name a member has.
    pub(super) fn role_in(&self, name: &GangName, terms: &Terms, slot: Slot) -> Option<usize> {
        if terms.roles.is_empty() {
            return None;
        }
        let role = terms.parts.role_of(name.source, &self.pods.get(slot).pod);
        terms.roles.iter().position(|known| *known.name == *role)
    }
}
