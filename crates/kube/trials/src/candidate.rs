//! A patch that is tried, with what it changes of pods: that is read once, and asked for several
//! times.

use std::cell::OnceCell;

use dovetail_inventory::facts::Replaced;
use dovetail_patches::Patch;

use super::group_index::GroupIndex;
use super::template::{TemplateChange, changes};

/// A patch that may be written.
pub(super) struct PatchCandidate {
    pub(super) patch: Patch,
    /// What it changes of the templates of its object.
    pub(super) templates: Vec<TemplateChange>,
    /// Places of the groups of pods that are made from a template, and the place of the template.
    made_from: Vec<(usize, usize)>,
    /// The pods that it replaces, once somebody asked what they take of quotas.
    pub(super) replaced: OnceCell<Vec<Replaced>>,
}

impl PatchCandidate {
    pub(super) fn of(patch: Patch, index: &GroupIndex<'_>) -> Self {
        let edited = patch.edited.as_ref();
        let templates = edited.map(|edited| changes(&patch, edited)).unwrap_or_default();
        let mut made_from = Vec::new();
        for (number, change) in templates.iter().enumerate() {
            let is_made_from = |place: &&usize| {
                let group = &index.groups[**place];
                change.containers.iter().all(|name| group.containers.contains(name))
            };
            let places = index.of_owner(&patch.object).iter().filter(is_made_from);
            made_from.extend(places.map(|place| (*place, number)));
        }
        Self { patch, templates, made_from, replaced: OnceCell::new() }
    }

    /// Groups of pods, and what changes of the template that they are made from.
    pub(super) fn changes(&self) -> impl Iterator<Item = (usize, &TemplateChange)> {
        self.made_from.iter().map(|(place, number)| (*place, &self.templates[*number]))
    }
}
