//! Which pods are in which gang.

use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_objects::{Meta, WorkloadKind};

use super::numbered::Numbered;
use super::pods::Slot;
use dovetail_translate::gang::{GangName, GangSource};

/// The pods of all gangs. A gang that has lost all of them is known until it is forgotten.
#[derive(Debug, Default)]
pub(crate) struct Members(BTreeMap<Arc<GangName>, OfGang>);

/// The pods of a gang.
#[derive(Debug, Default)]
struct OfGang {
    /// Oldest first, then by name: the pod with the highest number is the last.
    pods: BTreeMap<(u64, Numbered), Slot>,
    /// When one last appeared.
    appeared_ms: u64,
}

impl Members {
    pub(crate) fn names(&self) -> impl Iterator<Item = &Arc<GangName>> {
        self.0.keys()
    }

    /// The one name that is kept of a gang.
    pub(crate) fn name(&self, gang: &GangName) -> Option<&Arc<GangName>> {
        self.0.get_key_value(gang).map(|(name, _)| name)
    }

    /// The gangs whose pods a workload makes.
    pub(crate) fn gangs_of(
        &self,
        kind: WorkloadKind,
        namespace: &str,
        name: &str,
    ) -> Vec<Arc<GangName>> {
        let source = GangSource::Workload(kind);
        let (namespace, name, part) = (namespace.into(), name.into(), Box::default());
        let first = GangName { namespace, source, name, part };
        let is_of_it = |gang: &GangName| {
            (&gang.namespace, gang.source, &gang.name)
                == (&first.namespace, first.source, &first.name)
        };
        let gangs = self.0.range::<GangName, _>(&first..).map(|(gang, _)| gang);
        gangs.take_while(|gang| is_of_it(gang)).map(Arc::clone).collect()
    }

    /// The pods of a gang, oldest first.
    pub(crate) fn of<'m>(&'m self, gang: &GangName) -> impl Iterator<Item = Slot> + use<'m> {
        self.0.get(gang).into_iter().flat_map(|gang| gang.pods.values()).copied()
    }

    /// When a pod of a gang last appeared.
    pub(crate) fn appeared_ms(&self, gang: &GangName) -> u64 {
        self.0.get(gang).map_or(0, |gang| gang.appeared_ms)
    }

    /// A pod is in a gang from a time on; the name of the gang, and whether it is new.
    pub(crate) fn join(
        &mut self,
        gang: GangName,
        (slot, meta): (Slot, &Meta),
        appeared_ms: u64,
    ) -> (Arc<GangName>, bool) {
        let known = self.name(&gang).map(Arc::clone);
        let is_new = known.is_none();
        let name = known.unwrap_or_else(|| Arc::new(gang));
        let gang = self.0.entry(Arc::clone(&name)).or_default();
        gang.pods.insert((meta.created_ms, Numbered(meta.name.clone())), slot);
        gang.appeared_ms = gang.appeared_ms.max(appeared_ms);
        (name, is_new)
    }

    /// A pod is in a gang no more.
    pub(crate) fn leave(&mut self, gang: &GangName, slot: Slot) {
        if let Some(gang) = self.0.get_mut(gang) {
            gang.pods.retain(|_, member| *member != slot);
        }
    }

    /// Forgets a gang without pods.
    pub(crate) fn forget(&mut self, gang: &GangName) {
        self.0.remove(gang);
    }
}
