//! GPUs with names: what a plan is made for, and how its rows are called.

use std::collections::BTreeMap;

use dovetail_model::{MigTable, gpu_model};
use dovetail_partition::World;

/// Tables of GPU models, those of the settings first.
pub type Tables = Vec<MigTable>;

/// A GPU model by its usual name, and its table; `None` if no table says how it is cut.
pub fn model_of<'t>(tables: &'t [MigTable], label: &str) -> Option<(String, &'t MigTable)> {
    let named = |name: &str| tables.iter().find(|table| table.name.eq_ignore_ascii_case(name));
    if let Some(table) = named(label) {
        return Some((gpu_model(label).unwrap_or(&table.name).to_owned(), table));
    }
    let table = named(&MigTable::of_model(label)?.name)?;
    Some((gpu_model(label)?.to_owned(), table))
}

/// A world, with the names of its GPUs and what is to be said about it.
#[derive(Debug, Default)]
pub struct Fleet {
    pub world: World,
    /// Node and number on the node of each GPU of the world.
    pub names: Vec<(String, usize)>,
    /// Model of each GPU.
    pub models: Vec<String>,
    /// Free GPUs of each table that stay whole.
    pub keep_whole: BTreeMap<String, u32>,
    /// Whether it is known at which memory slices the instances of each GPU start.
    pub starts_known: Vec<bool>,
    /// Nodes of which something stays as it is, each with the first reason.
    pub stays: BTreeMap<String, String>,
    /// GPUs of all nodes, those that cannot be cut among them.
    pub gpus: usize,
    /// Why GPUs or nodes are left as they are, with how many.
    pub left_alone: BTreeMap<String, usize>,
    /// Why pending pods are not planned for, with how many.
    pub not_planned: BTreeMap<String, usize>,
}
