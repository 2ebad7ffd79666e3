//! GPUs with names: what a plan is made for, and how its rows are called.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_console::app::App;
use dovetail_gpus::{model_label, model_of_product, node_gpus, sized_model};
use dovetail_model::labels::NVIDIA_MIG;
use dovetail_model::{MigTable, canonical_gpu_model, gpu_model, lacks_memory_size};
use dovetail_partition::{Change, Instance, PartitionInput, Rules, WorldError};
use dovetail_settings::errors::BadInput;

use crate::objects::SeenNode;
use crate::waiting::{PinnedPods, SeveralInstances, WaitingGang, WaitingPods};

/// Tables of GPU models, those of the settings first.
pub type Tables = Vec<MigTable>;

/// The tables of the settings before the built-in ones, with a note for each that takes the place
/// of a built-in one: it also holds for other models that are cut alike.
pub fn tables(app: &App) -> Tables {
    let own = &app.settings.mig_tables;
    let (_, file) = &app.settings.scheduler;
    for table in own {
        let is_same = |built_in: MigTable| built_in.name.eq_ignore_ascii_case(&table.name);
        if MigTable::all().any(is_same) || MigTable::of_model(&table.name).is_some() {
            app.note(&format!(
                "{}: mig.table: `{}` replaces the built-in MIG table of this GPU model",
                file.display(),
                table.name
            ));
        }
    }
    own.iter().cloned().chain(MigTable::all()).collect()
}

/// A GPU model by its usual name, and its table; `None` if no table says how it is cut.
pub fn model_of<'t>(tables: &'t [MigTable], label: &str) -> Option<(String, &'t MigTable)> {
    let named = |name: &str| tables.iter().find(|table| table.name.eq_ignore_ascii_case(name));
    if let Some(table) = named(label) {
        let model = gpu_model(label).filter(|_| !lacks_memory_size(label));
        return Some((model.unwrap_or(&table.name).to_owned(), table));
    }
    if let Some(built_in) = MigTable::of_model(label) {
        return Some((gpu_model(label)?.to_owned(), named(&built_in.name)?));
    }
    // Without a built-in table, the spellings of a model are one name: Tesla-T4 is T4. A name
    // without a memory size is not that of the model that prices mean by it.
    let model = canonical_gpu_model(label);
    let lacks_size = lacks_memory_size(label);
    let is_it = |table: &&MigTable| {
        canonical_gpu_model(&table.name) == model && lacks_memory_size(&table.name) == lacks_size
    };
    Some((model.clone(), tables.iter().find(is_it)?))
}

/// The model of the GPUs of a node of a cluster, and their table; `None` if no table says how they
/// are cut.
pub(crate) fn model_of_node<'t>(
    tables: &'t [MigTable],
    seen: &SeenNode,
) -> Option<(String, &'t MigTable)> {
    let product = product_of(seen)?;
    // A table for this product alone has its name.
    match tables.iter().any(|table| table.name.eq_ignore_ascii_case(product)) {
        true => model_of(tables, product),
        false => model_of(tables, &sized_model(&seen.node.meta.labels)?),
    }
}

/// The product of the GPUs of a node, as its label states it. Products that are cut alike, and have
/// one usual name, can differ in other ways: pods select nodes by this label.
pub(crate) fn product_of(seen: &SeenNode) -> Option<&str> {
    model_label(&seen.node.meta.labels).map(model_of_product)
}

/// The table of the GPUs of a node of a cluster; `None` if they cannot be cut.
pub(crate) fn table_of<'t>(tables: &'t [MigTable], seen: &SeenNode) -> Option<&'t MigTable> {
    node_gpus(&seen.node, seen.hami())?;
    model_of_node(tables, seen).map(|(_, table)| table)
}

/// The name of a node's GPU model in answers: the usual one if it has one.
pub(crate) fn shown_model(tables: &[MigTable], seen: &SeenNode) -> Option<String> {
    if let Some((model, _)) = model_of_node(tables, seen) {
        return Some(model);
    }
    let label = sized_model(&seen.node.meta.labels)?;
    let known = gpu_model(&label).filter(|_| !lacks_memory_size(&label));
    Some(known.unwrap_or(&label).to_owned())
}

/// A world, with the names of its GPUs and what is to be said about it.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    pub world: PartitionInput,
    /// Node and number on the node of each GPU of the world.
    pub names: Vec<(String, usize)>,
    /// Model of each GPU.
    pub models: Vec<String>,
    /// Seconds that a change takes by those that were made; `None` if too few were.
    pub change_s: Option<i64>,
    /// Whole GPUs that pending pods request, and those that the policy keeps: of a node whose pods
    /// leave, so many stay whole.
    pub(crate) keep_whole: u32,
    /// Whether it is known at which memory slices the instances of each GPU start.
    pub starts_known: Vec<bool>,
    /// Nodes of which something stays as it is, each with the first reason.
    pub stays: BTreeMap<String, String>,
    /// Nodes that could change if no pod used their GPUs.
    pub in_use: BTreeSet<String>,
    /// GPUs of all nodes, those that cannot be cut among them.
    pub gpus: usize,
    /// Why GPUs or nodes are left as they are, with how many.
    pub left_alone: BTreeMap<String, usize>,
    /// Why pending pods are not planned for, with how many.
    pub not_planned: BTreeMap<String, usize>,
    /// Pending pods with how many there are: the demand of the world, in its order.
    pub(crate) waiting: Vec<(WaitingPods, u32)>,
    /// Pending pods that ask for several instances and are not planned for yet.
    pub(crate) several: Vec<SeveralInstances>,
    /// Those that the plan serves.
    pub(crate) pinned: PinnedPods,
    /// Gangs of pending pods that have not started, in the order in which they are planned for.
    pub(crate) gangs: Vec<WaitingGang>,
    /// Whether pods are not planned for because others take the rest of their quota.
    pub(crate) is_short_of_quota: bool,
    /// CPU, memory, disk and pod slots that each node with GPUs has free, in the order of `names`,
    /// and what pods request beside instances.
    pub(crate) free: Vec<Vec<i64>>,
    /// Names of the profiles that may be created; `None`: all.
    pub(crate) created: Option<BTreeSet<String>>,
    /// Places of tables of the world that name profiles as the drivers of some nodes do, each with
    /// the place of the table from which it is made.
    pub(crate) renamed: BTreeMap<usize, usize>,
}

/// A world that cannot be is bad input.
pub(crate) fn bad_world(error: WorldError) -> anyhow::Error {
    BadInput(error.to_string()).into()
}

impl Fleet {
    /// The rules of a plan for it.
    pub(crate) fn rules(&self) -> Rules {
        let usual = Rules::default();
        Rules {
            created: self.created.clone(),
            change_s: self.change_s.unwrap_or(usual.change_s),
            ..usual
        }
    }

    /// Notes why so many GPUs of a node stay as they are.
    pub(crate) fn leave(&mut self, node: &str, why: &str, gpus: usize) {
        self.stays.entry(node.to_owned()).or_insert_with(|| why.to_owned());
        *self.left_alone.entry(why.to_owned()).or_default() += gpus;
    }

    /// Leaves GPUs whole, and notes why.
    pub(crate) fn leave_whole(&mut self, gpus: Vec<usize>, why: &str) {
        for gpu in gpus {
            self.world.gpus[gpu].change = Change::Never;
            let (node, _) = self.names[gpu].clone();
            self.leave(&node, why, 1);
        }
    }

    /// Whether instances of a profile may be created.
    pub(crate) fn may_create(&self, profile: &str) -> bool {
        self.created.as_ref().is_none_or(|created| created.contains(profile))
    }

    /// The place of a table of the world among the known ones.
    pub(crate) fn known_table(&self, place: usize) -> usize {
        self.renamed.get(&place).copied().unwrap_or(place)
    }

    /// The table whose names the layouts of a GPU have, whatever its driver calls the profiles.
    pub(crate) fn layout_table(&self, number: usize) -> &MigTable {
        &self.world.tables[self.known_table(self.world.gpus[number].table)]
    }

    /// The table of the GPUs of a node; `None` if it has none that can be cut.
    fn table_of(&self, node: &str) -> Option<&MigTable> {
        let number = self.names.iter().position(|(name, _)| name == node)?;
        Some(&self.world.tables[self.world.gpus[number].table])
    }

    /// Compute slices of a GPU of a node.
    pub(crate) fn slices_of_gpu(&self, node: &str) -> i64 {
        self.table_of(node).map_or(1, |table| i64::from(table.compute_slices))
    }

    /// Compute slices of a profile.
    pub(crate) fn slices(&self, name: &str) -> i64 {
        let mut profiles = self.world.tables.iter().flat_map(|table| &table.profiles);
        let profile = profiles.find(|profile| profile.name == name);
        profile.map_or(0, |profile| i64::from(profile.compute_slices))
    }

    /// The profile that a resource counts on a node, as its table spells it.
    pub(crate) fn profile_of(&self, node: &str, resource: &str) -> Option<String> {
        let table = self.table_of(node)?;
        let place = table.profile(resource.strip_prefix(NVIDIA_MIG)?)?;
        Some(table.profiles[place].name.clone())
    }

    /// An idle instance of a node is used from now on.
    pub(crate) fn hold(&mut self, node: &str, profile: &str) {
        let tables = &self.world.tables;
        let of_node = self.names.iter().zip(&mut self.world.gpus);
        for (_, gpu) in of_node.filter(|((name, _), _)| name == node) {
            let is_of = |one: &Instance| tables[gpu.table].profiles[one.profile].name == profile;
            if let Some(place) = gpu.idle.iter().position(is_of) {
                gpu.held.push(gpu.idle.remove(place));
                return;
            }
        }
    }
}
