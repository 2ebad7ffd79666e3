//! Classes of devices: which devices they select, and the extended resources by which pods may ask
//! for one of them.

use dovetail_objects::{DeviceClass, labels};
use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::claim::selected;
use super::selector::Selected;

/// Before the name of a class in the name of the extended resource that every class has (KEP-5004).
pub(crate) const BY_NAME: &str = labels::DEVICE_CLASS_RESOURCE;

pub(super) struct ClassFacts {
    pub(super) selected: Selected,
    /// `spec.extendedResourceName`; empty if it has none.
    resource: Box<str>,
    created_ms: u64,
    /// Its place in the order in which classes came.
    place: usize,
}

/// All classes by name.
#[derive(Default)]
pub(super) struct Classes {
    by_name: BTreeMap<Box<str>, ClassFacts>,
}

impl Classes {
    /// Takes a class of this name.
    pub(super) fn add(&mut self, name: &str, class: DeviceClass) {
        let class = ClassFacts {
            selected: selected(&class.selectors),
            resource: class.extended_resource,
            created_ms: class.meta.created_ms,
            place: self.by_name.len(),
        };
        self.by_name.insert(name.into(), class);
    }

    pub(super) fn named(&self, name: &str) -> Option<&ClassFacts> {
        self.by_name.get(name)
    }

    /// The class whose devices serve an extended resource, read or not: the one that it names, else
    /// the one that names it. Of several the last that was made, else the first by name
    /// (`DeviceClassSpec.extendedResourceName`). Servers list by name, so that is the one that came
    /// first, also where names were made unreadable.
    pub(super) fn serving<'n>(&'n self, resource: &'n str) -> Option<&'n str> {
        if let Some(name) = resource.strip_prefix(BY_NAME) {
            return Some(name);
        }
        let of_it = self.by_name.iter().filter(|(_, class)| &*class.resource == resource);
        of_it
            .max_by_key(|(_, class)| (class.created_ms, Reverse(class.place)))
            .map(|(name, _)| &**name)
    }
}
