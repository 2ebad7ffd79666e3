//! How many pods a workload makes, and by which templates. The scheduler counts the pods of a gang
//! by it, the audit adds up what pods that are not there yet would ask for.

use serde::de::{Deserialize, Deserializer, IgnoredAny};

/// Pods that a workload makes of one template.
#[derive(Clone, Copy, Debug)]
pub struct PodsMade<'s, T> {
    /// The role or the part that they are.
    pub name: &'s str,
    /// Parts of that name, such as Jobs of a JobSet.
    pub parts: u32,
    /// Pods of each part.
    pub pods_each: u32,
    /// Their template, as it was read.
    pub template: &'s T,
}

/// A template that is passed over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unread;

impl<'de> Deserialize<'de> for Unread {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(input).map(|_| Self)
    }
}
