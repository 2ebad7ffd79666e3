//! What every object carries.

use crate::labels;
use std::num::NonZeroU64;

use serde::Deserialize;

use super::json::{nullable, time_or_never};
use super::label_set::{Labels, read_where};

/// Name, identity and marks of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Meta {
    /// Namespace; empty for objects of the whole cluster.
    #[serde(deserialize_with = "nullable")]
    pub namespace: Box<str>,
    /// Name, unique in its namespace.
    #[serde(deserialize_with = "nullable")]
    pub name: Box<str>,
    /// Identity: another object of the same name has another.
    #[serde(deserialize_with = "nullable")]
    pub uid: Box<str>,
    /// Version of the object; within one identity a greater number is newer.
    #[serde(deserialize_with = "nullable")]
    pub resource_version: Box<str>,
    /// When it was created, in milliseconds since 1970; 0 when it does not say.
    #[serde(rename = "creationTimestamp", deserialize_with = "milliseconds")]
    pub created_ms: u64,
    /// When it is to be gone by, its grace period included, if its deletion has begun: in
    /// milliseconds since 1970, the end of time if it does not say when.
    #[serde(rename = "deletionTimestamp", deserialize_with = "time_or_never")]
    pub gone_by_ms: Option<NonZeroU64>,
    #[serde(deserialize_with = "nullable")]
    pub labels: Labels,
    /// The annotations that mean something to dovetail.
    #[serde(deserialize_with = "known_annotations")]
    pub annotations: Labels,
    /// The object that controls it.
    #[serde(rename = "ownerReferences", deserialize_with = "controller")]
    pub controller: Controller,
}

/// The object that controls another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Controller {
    /// Its identity; empty if there is none.
    pub uid: Box<str>,
    pub is_daemon_set: bool,
}

impl Meta {
    /// Whether its deletion has begun.
    pub fn is_deleting(&self) -> bool {
        self.gone_by_ms.is_some()
    }

    /// The resource version as a number; `None` if the server writes something else.
    pub fn version(&self) -> Option<u64> {
        self.resource_version.parse().ok()
    }
}

/// Annotations that are kept: those of claims and CSI nodes that the storage rules read, those by
/// which a pod asks for a fraction of a device, those with the GPUs that HAMi or Volcano allocates,
/// those by which it belongs to a gang, the time limit of slurm-bridge, the one of claims that are
/// made for extended resources, and the one that says it is static.
fn known_annotations<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Labels, D::Error> {
    read_where(input, |key| {
        labels::FRACTION.contains(&key)
            || labels::VGPUS_HELD.contains(&key)
            || key == labels::HAMI_REGISTER
            || key == labels::VOLCANO_REGISTER
            || labels::OF_GANGS.contains(&key)
            || key.starts_with("dovetail.dev/")
            || key.starts_with("pv.kubernetes.io/")
            || key.starts_with("volume.kubernetes.io/")
            || key.starts_with("volume.beta.kubernetes.io/")
            || key == labels::MIGRATED_PLUGINS
            || key == labels::SLINKY_TIME_LIMIT
            || key == labels::EXTENDED_RESOURCE_CLAIM
            || key == labels::MIRROR
    })
}

fn milliseconds<'de, D: serde::Deserializer<'de>>(input: D) -> Result<u64, D::Error> {
    let time = Option::<jiff::Timestamp>::deserialize(input)?;
    Ok(time.map_or(0, |time| time.as_millisecond().max(0).cast_unsigned()))
}

fn controller<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Controller, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Owner {
        #[serde(deserialize_with = "nullable")]
        uid: Box<str>,
        #[serde(deserialize_with = "nullable")]
        controller: bool,
        #[serde(deserialize_with = "nullable")]
        kind: Box<str>,
    }
    let owners: Vec<Owner> = nullable(input)?;
    let controller = owners.into_iter().find(|owner| owner.controller);
    let read =
        |owner: Owner| Controller { uid: owner.uid, is_daemon_set: &*owner.kind == "DaemonSet" };
    Ok(controller.map(read).unwrap_or_default())
}
