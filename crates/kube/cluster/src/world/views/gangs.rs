//! Gangs, as people ask about them.

use dovetail_model::JobId;
use dovetail_objects::{Kind, Pod, PodGroup};

use crate::world::gangs::ShortLook;
use crate::world::index::Index;
use crate::world::readings::gang::{GangReading, terms_of};
use crate::world::readings::roll::roll;
use dovetail_translate::NotYet;
use dovetail_translate::gang::{GangName, GangSource, GangTerms};

/// A gang as it is now.
#[derive(Clone, Debug)]
pub struct GangLook<'w> {
    pub name: &'w GangName,
    /// On what terms it starts, or why it cannot.
    pub terms: Result<GangTerms, NotYet>,
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

/// A pod of a gang.
#[derive(Clone, Debug)]
pub struct MemberLook<'w> {
    pub pod: &'w Pod,
    /// The node that it is on, or that is decided for it.
    pub node: Option<&'w str>,
    /// Why it is left untouched, if it is.
    pub refused: Option<&'w NotYet>,
}

/// Questions about gangs.
#[derive(Clone, Copy, Debug)]
pub struct GangView<'w> {
    pub(crate) index: &'w Index,
}

impl<'w> GangView<'w> {
    /// The gang of this name, or the one that the pod of this name is in; `None` if there is none,
    /// or none of its pods is left.
    pub fn look_at_gang(self, namespace: &str, name: &str) -> Option<GangLook<'w>> {
        let objects = &self.index.objects;
        let pod = objects.pods.find(namespace, name);
        let of_pod = pod.and_then(|slot| objects.pods.get(slot).gang.as_deref());
        let is_meant = |gang: &&GangName| *gang.namespace == *namespace && *gang.name == *name;
        let named = || objects.members.names().map(|gang| &**gang).find(is_meant);
        self.look(of_pod.or_else(named)?)
    }

    /// The gangs whose pods wait for other pods of theirs: they have fewer than start together.
    pub fn short_gangs(self) -> Vec<GangLook<'w>> {
        let objects = &self.index.objects;
        let looks = objects.members.names().filter_map(|name| self.look(name));
        let is_short = |look: &GangLook<'_>| {
            let waits = |member: &MemberLook<'_>| {
                member.node.is_none() && member.refused.is_none() && objects.is_ours(member.pod)
            };
            let min = look.terms.as_ref().map_or(0, |terms| terms.min);
            // Gates hold up a gang that has not begun.
            let is_held = look.gated > 0 && look.members.iter().all(|member| member.node.is_none());
            (look.present < min || is_held) && look.members.iter().any(waits)
        };
        looks.filter(is_short).collect()
    }

    fn look(self, name: &'w GangName) -> Option<GangLook<'w>> {
        let Index { objects, gangs, .. } = self.index;
        let terms = terms_of(objects, name)?;
        let entries = objects.members.of(name).map(|slot| objects.pods.get(slot));
        let live = entries.filter(|entry| !entry.pod.is_over() && !entry.pod.meta.is_deleting());
        let members = live.map(|entry| MemberLook {
            pod: &entry.pod,
            node: match &*entry.pod.node {
                "" => objects.pods.decision_of(entry).map(|decision| &*decision.bind.node),
                node => Some(node),
            },
            refused: entry.refused.as_ref(),
        });
        let members = members.collect();
        let roll = roll(objects, name);
        let gang = |terms| GangReading { objects, name, terms };
        let present = terms.as_ref().map_or(0, |terms| gang(terms).present(&roll));
        let short = terms.as_ref().ok().and_then(|terms| gangs.short_look(&gang(terms)));
        let (gated, refused, retried) = (roll.gated, roll.refused, roll.retried);
        Some(GangLook { name, terms, present, gated, refused, retried, short, members })
    }

    /// The native group whose pods a job is about, if it is one's.
    pub fn group_of_job(self, job: JobId) -> Option<&'w PodGroup> {
        let objects = &self.index.objects;
        let slot = objects.pods.of_job(job).next()?;
        let gang = objects.pods.get(slot).gang.as_ref();
        objects.descriptions.group_of(gang.filter(|gang| gang.source == GangSource::Native)?)
    }

    /// A native group of pods.
    pub fn native_group(self, namespace: &str, name: &str) -> Option<&'w PodGroup> {
        self.index.objects.descriptions.group(Kind::PodGroup, namespace, name)
    }

    /// Under which names room is kept, and for which gangs.
    pub fn reservations(self) -> impl Iterator<Item = (String, String)> + use<'w> {
        self.index.feed.rooms.names()
    }
}
