//! The workloads, and which gangs each of them describes.

use std::sync::Arc;

use super::Gangs;
use crate::object::{Workload, WorkloadKind};
use crate::translate::gang::{GangName, Source};
use crate::world::World;
use crate::world::listing::Key;

impl Gangs {
    /// A workload.
    pub(in crate::world) fn workload(
        &self,
        kind: WorkloadKind,
        namespace: &str,
        name: &str,
    ) -> Option<&Workload> {
        self.workloads.get(&kind)?.get(namespace)?.get(name)
    }

    /// Namespaces and names of all workloads of a kind.
    pub(in crate::world) fn workload_names(
        &self,
        kind: WorkloadKind,
    ) -> impl Iterator<Item = Key> + '_ {
        let of_kind = self.workloads.get(&kind).into_iter().flatten();
        of_kind.flat_map(|(namespace, all)| {
            all.keys().map(move |name| (namespace.clone(), name.clone()))
        })
    }

    /// The workload whose pods a gang has.
    pub(super) fn workload_of(&self, gang: &GangName) -> Option<&Workload> {
        match gang.source {
            Source::Workload(kind) => self.workload(kind, &gang.namespace, &gang.name),
            _ => None,
        }
    }
}

impl World {
    /// A workload is there or different.
    pub(in crate::world) fn put_workload(&mut self, kind: WorkloadKind, workload: Workload) {
        let (namespace, name) = (workload.meta.namespace.clone(), workload.meta.name.clone());
        self.mark_gangs_of(kind, &namespace, &name);
        let of_kind = self.gangs.workloads.entry(kind).or_default();
        of_kind.entry(namespace).or_default().insert(name, workload);
    }

    /// A workload is gone.
    pub(in crate::world) fn remove_workload(
        &mut self,
        kind: WorkloadKind,
        namespace: &str,
        name: &str,
    ) {
        self.mark_gangs_of(kind, namespace, name);
        let Some(of_kind) = self.gangs.workloads.get_mut(&kind) else { return };
        let Some(of_namespace) = of_kind.get_mut(namespace) else { return };
        of_namespace.remove(name);
        if of_namespace.is_empty() {
            of_kind.remove(namespace);
        }
    }

    fn mark_gangs_of(&mut self, kind: WorkloadKind, namespace: &str, name: &str) {
        let first = GangName {
            namespace: namespace.into(),
            source: Source::Workload(kind),
            name: name.into(),
            part: Box::default(),
        };
        let is_of_it = |gang: &GangName| {
            (&gang.namespace, gang.source, &gang.name)
                == (&first.namespace, first.source, &first.name)
        };
        let gangs = self.gangs.by_name.range::<GangName, _>(&first..);
        let gangs = gangs.map(|(gang, _)| gang).take_while(|gang| is_of_it(gang));
        let gangs: Vec<Arc<GangName>> = gangs.map(Arc::clone).collect();
        for gang in &gangs {
            // A label of the workload may name their queue.
            self.dirty.pods.extend(self.gangs.get_mut(gang).members.values());
        }
        self.dirty.gangs.extend(gangs);
    }
}
