//! Under which names the GPUs of a cluster offer their profiles. Pods request a profile by the
//! name that the driver of a node gives it, and start nowhere else.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{MigTable, ShownProfiles, mig_profile_name};
use dovetail_partition::{Change, Gpu};

use crate::fleet::Fleet;
use crate::together::node_of_gpu;
use crate::waiting::SeveralInstances;

/// Gives GPUs that offer their profiles under other names than those of their table a table with
/// these names.
pub(crate) fn rename(shown: &ShownProfiles, fleet: &mut Fleet) {
    let mut known: BTreeMap<(usize, Vec<String>), usize> = BTreeMap::new();
    let mut first = 0;
    while first < fleet.names.len() {
        // All GPUs of a node are of one model.
        let (node, model) = (&fleet.names[first].0, &fleet.models[first]);
        let gpus = fleet.names[first..].iter().take_while(|(name, _)| name == node).count();
        let of_tables = fleet.world.gpus[first].table;
        let table = &fleet.world.tables[of_tables];
        let offered = |place| shown.offered((node, model), table, place).to_owned();
        let names: Vec<String> = (0..table.profiles.len()).map(offered).collect();
        let is_own = table.profiles.iter().zip(&names).all(|(profile, name)| profile.name == *name);
        if !is_own {
            let renamed = match known.entry((of_tables, names)) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    let mut table = table.clone();
                    for (profile, name) in table.profiles.iter_mut().zip(&new.key().1) {
                        profile.name.clone_from(name);
                    }
                    let renamed = fleet.world.tables.len();
                    fleet.world.tables.push(table);
                    fleet.renamed.insert(renamed, of_tables);
                    *new.insert(renamed)
                }
            };
            let of_node = &mut fleet.world.gpus[first..first + gpus];
            of_node.iter_mut().for_each(|gpu| gpu.table = renamed);
        }
        first += gpus;
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
    /// The place of the table of the GPUs of each node, by the node's place.
    of_nodes: Vec<usize>,
    shown: ShownProfiles,
}

impl<'t> Profiles<'t> {
    /// `shown`: what the nodes show.
    pub(crate) fn of(fleet: &Fleet, tables: &'t [MigTable], shown: ShownProfiles) -> Self {
        let of_gpus: BTreeSet<usize> = fleet.world.gpus.iter().map(|gpu| gpu.table).collect();
        let profiles = of_gpus.iter().flat_map(|place| &fleet.world.tables[*place].profiles);
        let names = profiles.map(|profile| profile.name.clone()).collect();
        // All GPUs of a node are of one model.
        let by_node: BTreeMap<usize, usize> = node_of_gpu(fleet)
            .into_iter()
            .zip(fleet.world.gpus.iter().map(|gpu| gpu.table))
            .collect();
        Self { tables, of_gpus, names, of_nodes: by_node.into_values().collect(), shown }
    }

    /// The name under which GPUs offer what a pod requests.
    ///
    /// # Errors
    /// No GPU offers it: the reason, with the name that GPUs have for the profile, if they do.
    pub(crate) fn requested(&self, fleet: &Fleet, name: &str) -> Result<String, String> {
        if let Some(asked) = mig_profile_name(name)
            && self.names.contains(&asked)
        {
            return Ok(asked);
        }
        Err(match self.of_gpus.iter().find_map(|place| self.instead(fleet, *place, name)) {
            Some(instead) if self.shown.has(name) => format!(
                "a node offers the profile `{name}` under this name, but GPUs that can be planned \
                 provide it only as `{instead}`: request `{instead}`"
            ),
            Some(instead) => format!(
                "no GPU of the cluster offers the profile `{name}` under this name: request \
                 `{instead}`"
            ),
            None => format!("no GPU of the cluster has a profile `{name}`"),
        })
    }

    /// The name that GPUs with a table of the world have for a profile that a pod means.
    fn instead<'f>(&self, fleet: &'f Fleet, place: usize, name: &str) -> Option<&'f str> {
        let known = &self.tables[fleet.known_table(place)];
        let profile = known.named(name, self.tables)?;
        Some(&fleet.world.tables[place].profiles[profile].name)
    }

    /// A pod as it is, if for each of its profiles a node that it may use has GPUs that offer it.
    ///
    /// # Errors
    /// None of these nodes does: the reason, with the name that their GPUs have for the profile, if
    /// they do.
    pub(crate) fn on_nodes(
        &self,
        fleet: &Fleet,
        wanted: SeveralInstances,
    ) -> Result<SeveralInstances, String> {
        let places: BTreeSet<usize> = self
            .of_nodes
            .iter()
            .zip(&wanted.nodes)
            .filter(|(_, may_go)| **may_go)
            .map(|(place, _)| *place)
            .collect();
        let offers = |place: usize, name: &str| {
            fleet.world.tables[place].profiles.iter().any(|profile| profile.name == name)
        };
        let is_nowhere = |name: &&String| !places.iter().any(|place| offers(*place, name));
        let Some(name) = wanted.instances.keys().find(is_nowhere) else { return Ok(wanted) };
        Err(match places.iter().find_map(|place| self.instead(fleet, *place, name)) {
            Some(instead) => format!(
                "the nodes that the pod may use offer the profile `{name}` under the name \
                 `{instead}`"
            ),
            None => format!("no node that the pod may use has a profile `{name}`"),
        })
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

/// The name that GPUs have for a profile which others of the same table offer under the name that
/// pods request, if an instance of it is idle there or they may change. `nodes`: where the pods may
/// go.
pub(crate) fn other_name<'f>(fleet: &'f Fleet, nodes: &[bool], profile: &str) -> Option<&'f str> {
    if fleet.renamed.is_empty() {
        return None;
    }
    let gpus = fleet.world.gpus.iter().zip(node_of_gpu(fleet));
    let gpus = gpus.filter(|(_, node)| nodes.get(*node) == Some(&true));
    let gpus: Vec<&Gpu> = gpus.map(|(gpu, _)| gpu).collect();
    let profiles = |table: usize| &fleet.world.tables[table].profiles;
    let tables: BTreeSet<usize> = gpus.iter().map(|gpu| gpu.table).collect();
    let meant = tables.into_iter().filter_map(|table| {
        let place = profiles(table).iter().position(|known| known.name == profile)?;
        Some((fleet.known_table(table), place))
    });
    let meant: BTreeSet<(usize, usize)> = meant.collect();
    meant.into_iter().find_map(|(known, place)| {
        let has_other = |gpu: &&&Gpu| {
            let is_there = gpu.idle.iter().any(|one| one.profile == place);
            fleet.known_table(gpu.table) == known
                && profiles(gpu.table)[place].name != profile
                && (is_there || gpu.change != Change::Never)
        };
        gpus.iter().find(has_other).map(|gpu| profiles(gpu.table)[place].name.as_str())
    })
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

/// Whether a node has so many idle instances of a profile.
pub(crate) fn are_idle(idle: &IdleOn, node: usize, profile: &str, count: u32) -> bool {
    idle.get(profile).and_then(|on| on.get(&node)).is_some_and(|there| *there >= count)
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
        let profiles = Profiles::of(&fleet, &tables, ShownProfiles::default());
        for name in ["3g.40gb", "3g.39gb"] {
            assert_eq!(profiles.requested(&fleet, name).as_deref(), Ok(name));
        }
        let listed = profiles.listed(&fleet, &["3g.40gb".to_owned()]);
        assert_eq!(listed.map(|names| names.len()), Some(2));
        assert!(idle_on(&fleet, &[0, 1])["3g.39gb"].contains_key(&1));
    }
}
