//! Gangs, as people ask about them.

use dovetail_objects::Pod;

use crate::queues::shown_name;
use crate::translate::NotYet;
use crate::translate::gang::{GangName, Terms};
use crate::world::World;

/// A gang as it stands.
#[derive(Clone, Debug)]
pub struct GangLook<'w> {
    /// Its name.
    pub name: &'w GangName,
    /// On what terms it starts, or why it cannot.
    pub terms: Result<Terms, NotYet>,
    /// Its pods that have a node or could take one, as far as they count for its smallest size: by
    /// their roles.
    pub present: u32,
    /// Its pods that scheduling gates hold.
    pub gated: u32,
    /// Its pods that are left untouched.
    pub refused: u32,
    /// Its pods that were to start, could not, and are tried again.
    pub retried: u32,
    /// What a gang lacks of which some pods have nodes; `None` if that is nothing, or none has one.
    pub short: Option<ShortLook>,
    /// Its pods that are not over, oldest first.
    pub members: Vec<MemberLook<'w>>,
}

/// A gang that has fewer pods on nodes than start together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortLook {
    /// How many pods fewer.
    pub pods: u32,
    /// For so long room is kept for a member that is lost.
    pub keep_for_ms: u64,
    /// Its pods are deleted when it has been short for so long; `None` if it waits on.
    pub given_up_after_ms: Option<u64>,
}

/// A pod of a gang.
#[derive(Clone, Debug)]
pub struct MemberLook<'w> {
    /// The pod.
    pub pod: &'w Pod,
    /// The node that it is on, or that is decided for it.
    pub node: Option<&'w str>,
    /// Why it is left untouched, if it is.
    pub refused: Option<&'w NotYet>,
}

impl World {
    /// The gang of this name, or the one that the pod of this name is in; `None` if there is none,
    /// or none of its pods is left.
    pub fn look_at_gang(&self, namespace: &str, name: &str) -> Option<GangLook<'_>> {
        let of_pod = self.gang_of(namespace, name);
        let is_meant = |gang: &&GangName| *gang.namespace == *namespace && *gang.name == *name;
        let named = || self.gangs.by_name.keys().map(|gang| &**gang).find(is_meant);
        self.gang_look(of_pod.or_else(named)?)
    }

    /// The gangs whose pods wait for other pods of theirs: they have fewer than start together.
    pub fn short_gangs(&self) -> Vec<GangLook<'_>> {
        let looks = self.gangs.by_name.keys().filter_map(|name| self.gang_look(name));
        let is_short = |look: &GangLook<'_>| {
            let waits = |member: &MemberLook<'_>| {
                member.node.is_none() && member.refused.is_none() && self.is_ours(member.pod)
            };
            let min = look.terms.as_ref().map_or(0, |terms| terms.min);
            // Gates hold up a gang that has not begun.
            let is_held = look.gated > 0 && look.members.iter().all(|member| member.node.is_none());
            (look.present < min || is_held) && look.members.iter().any(waits)
        };
        looks.filter(is_short).collect()
    }

    fn gang_look<'w>(&'w self, name: &'w GangName) -> Option<GangLook<'w>> {
        let gang = self.gangs.get(name)?;
        let terms = self.terms_of(name)?;
        let entries = gang.members.values().map(|slot| self.pods.get(*slot));
        let live = entries.filter(|entry| !entry.pod.is_over() && !entry.pod.meta.is_deleting());
        let members = live.map(|entry| MemberLook {
            pod: &entry.pod,
            node: match (&*entry.pod.node, &entry.assumed) {
                ("", None) => None,
                ("", Some(node)) => Some(node),
                (node, _) => Some(node),
            },
            refused: entry.refused.as_ref(),
        });
        let roll = self.roll(gang);
        let there = roll.settled().chain(roll.wishing.iter().copied());
        let present = terms
            .as_ref()
            .map_or(0, |terms| terms.min.saturating_sub(self.lack(name, terms, there).pods));
        let (gated, refused, retried) = (roll.gated, roll.refused, roll.retried);
        let short = terms.as_ref().ok().and_then(|terms| self.short_look(name, terms));
        let members = members.collect();
        Some(GangLook { name, terms, present, gated, refused, retried, short, members })
    }

    /// The queue of a pod, by the name that people know.
    pub fn queue_of_pod(&self, namespace: &str, name: &str) -> Option<String> {
        let queue = self.queue_of(self.pods.find(namespace, name)?);
        Some(shown_name(&queue).to_owned())
    }
}
