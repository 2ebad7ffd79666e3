//! Names of images, each kept once: nodes mostly have the same ones.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_model::{ImageName, Images};

/// Fewer names are never looked through.
const FEW: usize = 1024;

/// The names in use, and some that were.
#[derive(Debug, Default)]
pub(crate) struct ImageNames {
    names: BTreeSet<ImageName>,
    in_use: usize,
}

impl ImageNames {
    /// The images of a node with names that others have, too; the list from before if it is the
    /// same.
    pub(crate) fn share(&mut self, images: &Images, before: Option<&Images>) -> Images {
        if let Some(before) = before.filter(|before| *before == images) {
            return before.clone();
        }
        if self.names.len() >= 2 * self.in_use.max(FEW) {
            self.names.retain(|name| Arc::strong_count(name) > 1);
            self.in_use = self.names.len();
        }
        Images::new(images.iter().map(|(name, size_bytes)| (self.name(name), size_bytes)))
    }

    fn name(&mut self, name: &ImageName) -> ImageName {
        if let Some(known) = self.names.get(name) {
            return Arc::clone(known);
        }
        self.names.insert(Arc::clone(name));
        Arc::clone(name)
    }
}
