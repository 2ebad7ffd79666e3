//! Gangs, as people ask about them.

use crate::object::Pod;
use crate::queues::shown_name;
use crate::translate::NotYet;
use crate::translate::gang::{Described, GangName, Terms, terms};
use crate::world::World;

/// A gang as it stands.
#[derive(Clone, Debug)]
pub struct GangLook<'w> {
    /// Its name.
    pub name: &'w GangName,
    /// On what terms it starts, or why it cannot.
    pub terms: Result<Terms, NotYet>,
    /// Its pods that are not over, oldest first.
    pub members: Vec<MemberLook<'w>>,
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
    /// The gang of this name, or the one that the pod of this name is in; `None` if there is none, or none of
    /// its pods is left.
    pub fn look_at_gang(&self, namespace: &str, name: &str) -> Option<GangLook<'_>> {
        let of_pod = self.gang_of(namespace, name);
        let is_meant = |gang: &&GangName| *gang.namespace == *namespace && *gang.name == *name;
        let named = || self.gangs.by_name.keys().map(|gang| &**gang).find(is_meant);
        let name = of_pod.or_else(named)?;
        let gang = self.gangs.get(name)?;
        let pods = self.live_members(gang);
        if pods.is_empty() {
            return None;
        }
        let group = self.gangs.groups.get(name);
        let described = Described { group, workload: self.gangs.workload_of(name) };
        let terms = terms(name, described, &pods, self.network.known());
        let entries = gang.members.values().map(|slot| self.pods.get(*slot));
        let live = entries.filter(|entry| !entry.pod.is_over() && !entry.pod.meta.deleting);
        let members = live.map(|entry| MemberLook {
            pod: &entry.pod,
            node: match (&*entry.pod.node, &entry.assumed) {
                ("", None) => None,
                ("", Some(node)) => Some(node),
                (node, _) => Some(node),
            },
            refused: entry.refused.as_ref(),
        });
        Some(GangLook { name, terms, members: members.collect() })
    }

    /// The queue of a pod, by the name that people know.
    pub fn queue_of_pod(&self, namespace: &str, name: &str) -> Option<String> {
        let queue = self.queue_of(self.pods.find(namespace, name)?);
        Some(shown_name(&queue).to_owned())
    }
}
