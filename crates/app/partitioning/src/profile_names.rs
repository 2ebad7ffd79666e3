//! Under which names the GPUs of a cluster offer their profiles. Pods request a profile by the
//! name that the driver of a node gives it, and start nowhere else.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{MigTable, mig_profile_name};

use crate::fleet::Fleet;

/// Names of profiles, by their places in a table.
type Names = BTreeMap<usize, String>;

/// Names that nodes are seen to offer.
#[derive(Default)]
pub(crate) struct Spellings {
    of_node: BTreeMap<String, Names>,
    /// Of all nodes with GPUs of a model and a table.
    of_model: BTreeMap<(String, usize), BTreeMap<usize, BTreeSet<String>>>,
    /// Whether some are not those of the tables.
    has_others: bool,
}

impl Spellings {
    /// A node offers the profile at a place of its table under a name.
    pub(crate) fn see(
        &mut self,
        (node, model): (&str, &str),
        (number, table): (usize, &MigTable),
        (place, name): (usize, &str),
    ) {
        let Some(name) = mig_profile_name(name) else { return };
        self.has_others |= table.profiles[place].name != name;
        let of_node = self.of_node.entry(node.to_owned()).or_default();
        of_node.entry(place).or_insert_with(|| name.clone());
        let of_model = self.of_model.entry((model.to_owned(), number)).or_default();
        of_model.entry(place).or_default().insert(name);
    }

    /// Gives GPUs whose profiles have other names than in their table a table with these names.
    pub(crate) fn rename(&self, fleet: &mut Fleet) {
        if !self.has_others {
            return;
        }
        let mut known: BTreeMap<(usize, Names), usize> = BTreeMap::new();
        for number in 0..fleet.world.gpus.len() {
            let of_tables = fleet.world.gpus[number].table;
            let (node, model) = (&fleet.names[number].0, &fleet.models[number]);
            let names = self.names(node, (model, of_tables), &fleet.world.tables[of_tables]);
            if names.is_empty() {
                continue;
            }
            fleet.world.gpus[number].table = match known.entry((of_tables, names)) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    let mut table = fleet.world.tables[of_tables].clone();
                    for (place, name) in &new.key().1 {
                        table.profiles[*place].name.clone_from(name);
                    }
                    let renamed = fleet.world.tables.len();
                    fleet.world.tables.push(table);
                    fleet.renamed.insert(renamed, of_tables);
                    *new.insert(renamed)
                }
            };
        }
    }

    /// The names of a node's profiles that are not those of its table: what it offers it has
    /// named; the others have the names that other nodes with such GPUs show.
    fn names(&self, node: &str, (model, number): (&str, usize), table: &MigTable) -> Names {
        let of_node = self.of_node.get(node);
        let of_model = self.of_model.get(&(model.to_owned(), number));
        let name_at = |(place, own): (usize, &str)| {
            let others = || {
                let all = of_model?.get(&place)?;
                if all.contains(own) { None } else { all.first() }
            };
            let name = of_node.and_then(|names| names.get(&place)).or_else(others)?;
            (name != own).then(|| (place, name.clone()))
        };
        let owns = table.profiles.iter().map(|profile| profile.name.as_str());
        owns.enumerate().filter_map(name_at).collect()
    }
}

/// The profiles of the GPUs of a fleet.
pub(crate) struct Profiles<'t> {
    /// All known tables.
    tables: &'t [MigTable],
    /// Places of the tables of its GPUs in its world.
    of_gpus: BTreeSet<usize>,
    /// Names under which its GPUs offer profiles.
    names: BTreeSet<String>,
    /// Places of the tables of its GPUs among all known ones.
    known: BTreeSet<usize>,
}

impl<'t> Profiles<'t> {
    pub(crate) fn of(fleet: &Fleet, tables: &'t [MigTable]) -> Self {
        let of_gpus: BTreeSet<usize> = fleet.world.gpus.iter().map(|gpu| gpu.table).collect();
        let profiles = of_gpus.iter().flat_map(|place| &fleet.world.tables[*place].profiles);
        let names = profiles.map(|profile| profile.name.clone()).collect();
        let known = of_gpus.iter().map(|place| fleet.known_table(*place)).collect();
        Self { tables, of_gpus, names, known }
    }

    /// The name under which GPUs offer what a pod requests. A name that no known GPU has is another
    /// spelling of the one that is nearest.
    pub(crate) fn requested(&self, name: &str) -> Option<String> {
        let asked = mig_profile_name(name)?;
        if self.names.contains(&asked) {
            return Some(asked);
        }
        let near = |place: &usize| {
            let table = &self.tables[*place];
            let profile = table.named(name, self.tables)?;
            Some(table.profiles[profile].name.clone())
        };
        self.known.iter().filter_map(near).find(|name| self.names.contains(name))
    }

    /// The names of the profiles that a policy lists; `None` if it lists none, so that all may be
    /// created.
    pub(crate) fn listed(&self, fleet: &Fleet, list: &[String]) -> Option<BTreeSet<String>> {
        if list.is_empty() {
            return None;
        }
        let mut names = BTreeSet::new();
        for place in &self.of_gpus {
            let profiles = &fleet.world.tables[*place].profiles;
            let known = &self.tables[fleet.known_table(*place)];
            for name in list {
                let own = mig_profile_name(name);
                let is_own = |one: &dovetail_model::MigProfile| Some(&one.name) == own.as_ref();
                let profile =
                    profiles.iter().position(is_own).or_else(|| known.named(name, self.tables));
                names.extend(profile.map(|profile| profiles[profile].name.clone()));
            }
        }
        Some(names)
    }
}

/// How many instances of each profile are idle, by node.
pub(crate) type IdleOn = BTreeMap<String, BTreeMap<usize, u32>>;

/// On which nodes of a fleet how many instances of each profile are idle; `nodes`: the node of each
/// GPU.
pub(crate) fn idle_on(fleet: &Fleet, nodes: &[usize]) -> IdleOn {
    let mut idle = IdleOn::new();
    for (gpu, node) in fleet.world.gpus.iter().zip(nodes) {
        for one in &gpu.idle {
            let name = &fleet.world.tables[gpu.table].profiles[one.profile].name;
            *idle.entry(name.clone()).or_default().entry(*node).or_default() += 1;
        }
    }
    idle
}

#[cfg(test)]
mod tests {
    use dovetail_sharing::{NodeLayout, PolicySpec};
    use serde_json::json;

    use super::*;
    use crate::changes::present;
    use crate::cluster::{Age, fleet};
    use crate::objects::{Objects, SeenNode};

    /// Layouts have the names of the tables, in which a node's state is read, too.
    #[test]
    fn gpus_offer_the_names_of_their_driver_and_layouts_keep_those_of_the_tables() {
        let node = |name: &str, resource: &str| {
            let labels = json!({"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
                "nvidia.com/gpu.count": "1", "nvidia.com/gpu.memory": "81920"});
            (name.to_owned(), SeenNode::example(name, &[labels], &json!({(resource): "2"})))
        };
        let nodes = [node("new", "nvidia.com/mig-3g.40gb"), node("old", "nvidia.com/mig-3g.39gb")];
        let objects = Objects { nodes: nodes.into_iter().collect(), ..Objects::default() };
        let tables: Vec<MigTable> = MigTable::all().collect();
        let age = Age { now_ms: 0, young_ms: 0 };
        let fleet = fleet(&objects, &PolicySpec::default(), &tables, age);
        let words: Vec<String> = present(&fleet).values().map(NodeLayout::words).collect();
        assert_eq!(words, ["1 × [3g.40gb][3g.40gb]"; 2]);
        let profiles = Profiles::of(&fleet, &tables);
        for name in ["3g.40gb", "3g.39gb"] {
            assert_eq!(profiles.requested(name).as_deref(), Some(name));
        }
        let listed = profiles.listed(&fleet, &["3g.40gb".to_owned()]);
        assert_eq!(listed.map(|names| names.len()), Some(2));
        assert!(idle_on(&fleet, &[0, 1])["3g.39gb"].contains_key(&1));
    }
}
