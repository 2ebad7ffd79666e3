//! Classes of devices: which devices they select, and the extended resources by which pods may ask
//! for one of them.

use dovetail_objects::labels;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use dovetail_objects::json::nullable;
use serde::Deserialize;

use super::claim::{SelectorJson, selected};
use super::selector::Selected;
use crate::dump::{RawObject, Skipped};
use crate::facts::detail::Moment;
use crate::facts::inventory::lenient;

/// Before the name of a class in the name of the extended resource that every class has (KEP-5004).
pub(crate) const BY_NAME: &str = labels::DEVICE_CLASS_RESOURCE;

/// A class.
pub(super) struct Class {
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
    by_name: BTreeMap<Box<str>, Class>,
}

impl Classes {
    /// Takes a class.
    pub(super) fn add(&mut self, raw: &RawObject<'_>) -> Result<(), Skipped> {
        let ClassJson { metadata, spec } = lenient(raw)?;
        let place = self.by_name.len();
        let class = Class {
            selected: selected(&spec.selectors),
            resource: spec.extended_resource_name,
            created_ms: metadata.creation_timestamp.0.unwrap_or(0),
            place,
        };
        self.by_name.insert(raw.name.into(), class);
        Ok(())
    }

    pub(super) fn named(&self, name: &str) -> Option<&Class> {
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

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClassJson {
    #[serde(deserialize_with = "nullable")]
    metadata: MetaJson,
    #[serde(deserialize_with = "nullable")]
    spec: SpecJson,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MetaJson {
    creation_timestamp: Moment,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SpecJson {
    #[serde(deserialize_with = "nullable")]
    extended_resource_name: Box<str>,
    #[serde(deserialize_with = "nullable")]
    selectors: Vec<SelectorJson>,
}
