//! Groups of pods by what patches ask about: those of one owner, and those that rules between pods
//! may be about. A large cluster has thousands of each, and nearly all of them are in other
//! namespaces and without rules.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::ObjectRef;
use dovetail_inventory::reach::{Apart, PodGroup};

/// Groups of pods with their places.
pub(super) struct GroupIndex<'r> {
    pub(super) groups: &'r [PodGroup],
    of_owners: BTreeMap<&'r ObjectRef, Vec<usize>>,
    /// By namespace of the pods.
    of_namespaces: BTreeMap<&'r str, Vec<usize>>,
    /// Those that may keep others off their nodes.
    with_rules: Vec<usize>,
}

impl<'r> GroupIndex<'r> {
    pub(super) fn of(groups: &'r [PodGroup]) -> Self {
        let mut index = Self {
            groups,
            of_owners: BTreeMap::new(),
            of_namespaces: BTreeMap::new(),
            with_rules: Vec::new(),
        };
        for (place, group) in groups.iter().enumerate() {
            index.of_owners.entry(&group.owner).or_default().push(place);
            index.of_namespaces.entry(group.apart.namespace()).or_default().push(place);
            if group.apart.has_rules() {
                index.with_rules.push(place);
            }
        }
        index
    }

    /// The groups of an owner, ascending.
    pub(super) fn of_owner(&self, owner: &ObjectRef) -> &[usize] {
        self.of_owners.get(owner).map(Vec::as_slice).unwrap_or_default()
    }

    /// All groups that these pods keep off their nodes, or that keep these off theirs; among a few
    /// others.
    pub(super) fn perhaps_apart(&self, apart: &Apart) -> BTreeSet<usize> {
        let Some(namespaces) = apart.namespaces_of_others() else {
            return (0..self.groups.len()).collect();
        };
        let meant = namespaces.into_iter().filter_map(|name| self.of_namespaces.get(name));
        meant.flatten().chain(&self.with_rules).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use dovetail_objects::{
        HostPort, InterPodAffinity, LabelSelector, LabelTerm, LabelTest, Pod, PodSelection, PodTerm,
    };

    use super::*;

    /// Numbers that look random and are the same every time.
    struct Draws(u64);

    impl Draws {
        fn below(&mut self, end: u64) -> u64 {
            // Knuth's MMIX.
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) % end
        }

        fn one_of(&mut self, names: &[&'static str]) -> &'static str {
            names[self.below(names.len() as u64) as usize]
        }

        fn term(&mut self) -> PodTerm {
            let label = LabelTerm {
                key: "app".into(),
                test: LabelTest::In([self.one_of(&APPS).into()].into()),
            };
            let namespace_selector = match self.below(8) {
                0 => LabelSelector::of(Vec::new()),
                _ => LabelSelector::Nothing,
            };
            let namespaces = (0..self.below(3)).map(|_| self.one_of(&NAMESPACES).into());
            let pods = PodSelection {
                namespaces: namespaces.collect(),
                namespace_selector,
                selector: LabelSelector::of(vec![label]),
            };
            PodTerm { pods, topology_key: "zone".into() }
        }

        fn group(&mut self) -> PodGroup {
            let mut pod = Pod::default();
            pod.meta.namespace = self.one_of(&NAMESPACES).into();
            pod.meta.labels = [("app", self.one_of(&APPS))].into_iter().collect();
            if self.below(3) == 0 {
                let anti_affinity = (0..self.below(3)).map(|_| self.term()).collect();
                let terms = InterPodAffinity { anti_affinity, ..InterPodAffinity::default() };
                pod.between_pods = Some(Box::new(terms));
            }
            if self.below(6) == 0 {
                let port = 80 + self.below(2) as u32;
                let address = self.one_of(&["0.0.0.0", "10.0.0.1"]).into();
                pod.ports = [HostPort { protocol: "TCP".into(), port, address }].into();
            }
            PodGroup {
                owner: ObjectRef::new("Deployment", &pod.meta.namespace, "a"),
                containers: Vec::new(),
                apart: Apart::of(&pod),
                pod,
                pods: Vec::new(),
                confined: BTreeMap::new(),
                is_bound_by_name: false,
                has_claims: false,
                is_daemon: false,
                has_neighbors: false,
                has_host_path: false,
            }
        }
    }

    const APPS: [&str; 3] = ["web", "store", "train"];
    const NAMESPACES: [&str; 4] = ["a", "b", "c", "d"];

    #[test]
    fn no_group_that_keeps_others_apart_is_missed() {
        let mut draws = Draws(7);
        for _ in 0..100 {
            let groups: Vec<PodGroup> = (0..12).map(|_| draws.group()).collect();
            let index = GroupIndex::of(&groups);
            for group in &groups {
                let found = index.perhaps_apart(&group.apart);
                let (one, own) = (&group.apart, index.of_owner(&group.owner));
                for (place, other) in groups.iter().enumerate() {
                    let are_apart =
                        !one.from(&other.apart).is_empty() || !other.apart.from(one).is_empty();
                    assert!(!are_apart || found.contains(&place));
                    assert_eq!(own.contains(&place), other.owner == group.owner);
                }
            }
        }
    }
}
