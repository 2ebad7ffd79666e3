//! Roll call: what the members of a gang are up to, and how many are missing.

use dovetail_objects::{Pod, PodPhase};

use crate::world::objects::Objects;
use crate::world::objects::pods::Slot;
use crate::world::objects::reported::Reported;
use dovetail_translate::gang::GangName;

/// The members of a gang by what they are up to. Those that are over without success, or about to
/// go, or held up for reasons of their own, are in none of these.
#[derive(Debug, Default)]
pub(crate) struct Roll {
    /// They could take a node.
    pub(crate) pending: Vec<Slot>,
    /// They have one, by the watch or by a decision.
    pub(crate) placed: Vec<Slot>,
    /// Those of them that have it by the watch.
    pub(crate) seen: Vec<Slot>,
    /// They are about to be evicted, and have not begun to end.
    pub(crate) victims: Vec<Slot>,
    /// They went well to their end.
    pub(crate) succeeded: Vec<Slot>,
    /// Scheduling gates hold them.
    pub(crate) gated: u32,
    /// They are left untouched, and not because their owner holds them back.
    pub(crate) refused: u32,
    /// They were to start, could not, and are tried again.
    pub(crate) retried: u32,
}

impl Roll {
    /// Members that need no node any more, or have one.
    pub(crate) fn settled(&self) -> impl Iterator<Item = Slot> {
        self.placed.iter().chain(&self.succeeded).copied()
    }

    /// These, and members that could take a node.
    pub(crate) fn there(&self) -> impl Iterator<Item = Slot> {
        self.settled().chain(self.pending.iter().copied())
    }
}

/// What a gang lacks of its smallest size.
#[derive(Debug, Default)]
pub(crate) struct Lack {
    pub(crate) pods: u32,
    /// How many of them must have one of the roles that its terms name, in their order.
    pub(crate) of_roles: Vec<u32>,
}

impl Lack {
    /// Whether one of this role, if any of those that are named, is one of what it lacks.
    pub(crate) fn is_less_by(&self, role: Option<usize>) -> bool {
        self.of_any_role() > 0 || role.is_some_and(|role| self.of_roles[role] > 0)
    }

    /// How many of the pods that it lacks may have any role.
    pub(crate) fn of_any_role(&self) -> u32 {
        self.of_roles.iter().fold(self.pods, |pods, lack| pods.saturating_sub(*lack))
    }

    /// How many of the pods that it lacks these would be, by their roles.
    pub(crate) fn met_by(&self, roles: impl Iterator<Item = Option<usize>>) -> u32 {
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
    pub(crate) fn is_none(&self) -> bool {
        self.pods == 0
    }
}

/// What the members of a gang are up to, oldest first.
pub(crate) fn roll(objects: &Objects, gang: &GangName) -> Roll {
    let mut roll = Roll::default();
    for slot in objects.members.of(gang) {
        let entry = objects.pods.get(slot);
        let pod = &entry.pod;
        if pod.phase == PodPhase::Succeeded {
            roll.succeeded.push(slot);
            continue;
        }
        if pod.meta.is_deleting() || pod.is_over() {
            continue;
        }
        // All victims of a decision are marked before the first is deleted. What is made in place
        // of that one must not start beside others that go in a moment.
        if pod.preemption.is_own_target && objects.is_ours(pod) {
            roll.victims.push(slot);
            continue;
        }
        let is_seen = match entry.reported {
            Reported::Running { .. } => true,
            // Bound by another scheduler, to a node that is there.
            Reported::Foreign { .. } => objects.nodes.is_there(&pod.node),
            _ => false,
        };
        if is_seen {
            roll.seen.push(slot);
            roll.placed.push(slot);
        } else if matches!(entry.reported, Reported::Assumed { .. }) {
            roll.placed.push(slot);
        } else if entry.wish.is_some() {
            roll.pending.push(slot);
        } else if pod.gated && pod.node.is_empty() && objects.is_ours(pod) {
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

/// Members of a gang that are not over and not about to go, oldest first.
pub(crate) fn live_members<'o>(objects: &'o Objects, gang: &GangName) -> Vec<&'o Pod> {
    let pods = objects.members.of(gang).map(|slot| &*objects.pods.get(slot).pod);
    pods.filter(|pod| !pod.is_over() && !pod.meta.is_deleting()).collect()
}

/// The smallest size of each set, of which the role and the number of pods are given: the largest
/// can do without first, but no role falls below what it needs.
pub(crate) fn smallest(sets: &[(Option<usize>, u32)], lack: &Lack) -> Vec<u32> {
    let mut smallest: Vec<u32> = sets.iter().map(|(_, pods)| *pods).collect();
    let mut surplus = smallest.iter().sum::<u32>().saturating_sub(lack.pods);
    let of_role = |role: usize| {
        let sets = sets.iter().filter(|(of, _)| *of == Some(role));
        sets.map(|(_, pods)| *pods).sum::<u32>()
    };
    let needed = lack.of_roles.iter().enumerate();
    let mut spare: Vec<u32> =
        needed.map(|(role, needed)| of_role(role).saturating_sub(*needed)).collect();
    let mut largest_first: Vec<usize> = (0..smallest.len()).collect();
    largest_first.sort_by_key(|set| std::cmp::Reverse(smallest[*set]));
    for set in largest_first {
        let of_role = sets[set].0.map(|role| &mut spare[role]);
        let spared = surplus.min(smallest[set]);
        let spared = of_role.as_ref().map_or(spared, |spare| spared.min(**spare));
        if let Some(spare) = of_role {
            *spare -= spared;
        }
        smallest[set] -= spared;
        surplus -= spared;
    }
    smallest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_set_does_without_first() {
        let of = |counts: &[u32], pods: u32| {
            let sets: Vec<_> = counts.iter().map(|count| (None, *count)).collect();
            smallest(&sets, &Lack { pods, of_roles: Vec::new() })
        };
        assert_eq!(of(&[1, 4, 2], 7), [1, 4, 2]);
        assert_eq!(of(&[1, 4, 2], 5), [1, 2, 2]);
        assert_eq!(of(&[1, 4, 2], 2), [1, 0, 1]);
    }

    #[test]
    fn no_role_falls_below_what_it_needs() {
        let sets = [(Some(0), 1), (Some(1), 3), (Some(1), 2), (None, 2)];
        let lack = |pods: u32, of_roles: &[u32]| Lack { pods, of_roles: of_roles.to_vec() };
        assert_eq!(smallest(&sets, &lack(3, &[1, 2])), [1, 0, 2, 0]);
        assert_eq!(smallest(&sets, &lack(5, &[1, 4])), [1, 2, 2, 0]);
        assert_eq!(smallest(&sets, &lack(6, &[0, 0])), [1, 1, 2, 2]);
    }
}
