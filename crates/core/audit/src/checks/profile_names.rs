//! Under which names the GPUs of nodes offer their MIG profiles, by the rule that the plan of
//! `dovetail partition` applies, too.

use std::collections::BTreeMap;

use dovetail_facts::{Facts, Node};
use dovetail_model::{
    MigTable, ShownProfiles, gpu_model, labels, memory_label, mig_profile_name, with_memory_size,
};

/// The tables of all nodes whose GPUs can be cut, and the names of their profiles.
pub(super) struct ProfileNames<'f> {
    tables: Vec<MigTable>,
    /// By labels of a model, its name and how its GPUs are cut; those that cannot be are left out.
    models: BTreeMap<ModelLabels<'f>, (&'static str, MigTable)>,
    shown: ShownProfiles,
}

impl<'f> ProfileNames<'f> {
    pub(super) fn of(facts: &'f Facts) -> Self {
        let mut models: BTreeMap<ModelLabels<'f>, (&'static str, MigTable)> = BTreeMap::new();
        let mut shown = ShownProfiles::default();
        for node in &facts.nodes {
            let Some(labels) = model_of(node) else { continue };
            let model = match models.get(&labels) {
                Some((model, _)) => *model,
                None => {
                    let Some((model, table)) = known_model(labels) else { continue };
                    models.insert(labels, (model, table));
                    model
                }
            };
            let of_node = (&*node.node.name, model);
            shown_on(node).for_each(|(name, count)| shown.see(of_node, name, count));
        }
        Self { tables: MigTable::all().collect(), models, shown }
    }

    /// The model of a node's GPUs; `None` if they cannot be cut.
    pub(super) fn model(&self, node: &Node) -> Option<&'static str> {
        self.models.get(&model_of(node)?).map(|(model, _)| *model)
    }

    /// How the GPUs of a node can be cut; `None` if they cannot be.
    pub(super) fn table<'s>(&'s self, node: &'s Node) -> Option<&'s MigTable> {
        self.models.get(&model_of(node)?).map(|(_, table)| table)
    }

    /// The place of the profile that a node offers, or would offer, under a name; `None` if it has
    /// no such name.
    pub(super) fn offered_at(&self, node: &Node, name: &str) -> Option<usize> {
        let (model, table) = self.models.get(&model_of(node)?)?;
        self.shown.requested((&*node.node.name, *model), table, name)
    }

    /// The same where a new layout of the node's GPUs has instances under this name. A node that
    /// shows a profile under two names gets new instances of it under one of them only.
    pub(super) fn created_at(&self, node: &Node, name: &str) -> Option<usize> {
        let place = self.offered_at(node, name)?;
        let is_it = mig_profile_name(name).as_deref() == self.name_at(node, place);
        is_it.then_some(place)
    }

    /// The name under which a node offers, or would offer, the profile that a pod means by another
    /// one; `None` if it has no such profile.
    pub(super) fn instead<'s>(&'s self, node: &'s Node, name: &str) -> Option<&'s str> {
        let place = self.table(node)?.named(name, &self.tables)?;
        let offered = self.name_at(node, place)?;
        (mig_profile_name(name).as_deref() != Some(offered)).then_some(offered)
    }

    /// A layout in words, with the names that the node's pods request.
    pub(super) fn words(&self, node: &Node, layout: &[u16]) -> String {
        let counts = layout.iter().enumerate().filter(|(_, count)| **count > 0);
        let texts = counts
            .filter_map(|(place, count)| Some(format!("{count} × {}", self.name_at(node, place)?)));
        texts.collect::<Vec<_>>().join(", ")
    }

    /// The name of the profile at a place of the table of a node's GPUs.
    pub(super) fn name_at<'s>(&'s self, node: &'s Node, place: usize) -> Option<&'s str> {
        let (model, table) = self.models.get(&model_of(node)?)?;
        Some(self.shown.offered((&*node.node.name, *model), table, place))
    }
}

/// What labels of a node say of its GPUs: their model, and their memory.
type ModelLabels<'n> = (&'n str, Option<&'n str>);

fn model_of(node: &Node) -> Option<ModelLabels<'_>> {
    let model = node.gpus.values().find_map(|gpus| gpus.model.as_deref())?;
    let label = |key: &str| node.node.labels.get(key).map(String::as_str);
    Some((model, memory_label(label)))
}

/// How the GPUs of a node can be cut; `None` if they cannot be.
pub(super) fn table_of(node: &Node) -> Option<MigTable> {
    known_model(model_of(node)?).map(|(_, table)| table)
}

/// Whether the GPUs of a node are of one of several models that differ by their memory size, and
/// nothing states it: nobody knows how they can be cut.
pub(super) fn lacks_memory_size(node: &Node) -> bool {
    let sized = model_of(node).map(|(model, memory_mib)| with_memory_size(model, memory_mib));
    sized.is_some_and(|sized| dovetail_model::lacks_memory_size(&sized))
}

/// The name of a model, and how its GPUs are cut; `None` if they cannot be.
fn known_model((model, memory_mib): ModelLabels<'_>) -> Option<(&'static str, MigTable)> {
    let sized = with_memory_size(model, memory_mib);
    gpu_model(&sized).zip(MigTable::of_model(&sized))
}

/// The names of the profiles that a node shows, with how many instances it has of each.
fn shown_on(node: &Node) -> impl Iterator<Item = (&str, i64)> {
    node.gpus.iter().filter_map(|(resource, gpus)| {
        let name = resource.strip_prefix(labels::NVIDIA_MIG)?;
        Some((name, gpus.built_in))
    })
}
