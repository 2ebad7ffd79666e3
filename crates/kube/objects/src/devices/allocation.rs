//! What was allocated to a claim, and who may use it.

use std::collections::BTreeMap;

use dovetail_model::{Quantity, SelectorTerm};
use serde::Deserialize;

use super::amounts;
use super::readiness::DeviceStatus;
use super::slice::BindingConditions;
use crate::affinity::NodeTermsJson;
use crate::json::{DeviceQuantity, nullable, time_ms};

/// What was allocated to a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocation {
    pub devices: Vec<AllocatedDevice>,
    /// When it was allocated, in milliseconds since 1970; 0 where it does not say.
    pub since_ms: u64,
    /// Alternatives of terms that nodes satisfy which reach the devices; `None` is every node.
    pub nodes: Option<Vec<Vec<SelectorTerm>>>,
}

/// A device that was allocated to a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllocatedDevice {
    pub driver: Box<str>,
    pub pool: Box<str>,
    /// Its name in the pool.
    pub device: Box<str>,
    /// Whether the claim only looks on while others use it.
    pub is_admin: bool,
    /// How much of it, by capacity, where several claims may have it.
    pub consumed: BTreeMap<Box<str>, Quantity>,
    /// Whether several claims may have it: it has a share of it.
    pub is_share: bool,
    /// Which share it has, where several claims may have the device; empty if it has it alone.
    pub share: Box<str>,
    /// What must come true of it before its pod is bound.
    pub binding: BindingConditions,
}

/// Who a claim is reserved for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Consumer {
    #[serde(deserialize_with = "nullable")]
    pub api_group: Box<str>,
    /// Kind, in the plural and in small letters.
    #[serde(deserialize_with = "nullable")]
    pub resource: Box<str>,
    #[serde(deserialize_with = "nullable")]
    pub name: Box<str>,
    #[serde(deserialize_with = "nullable")]
    pub uid: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct StatusJson {
    allocation: Option<AllocationJson>,
    #[serde(deserialize_with = "nullable")]
    reserved_for: Vec<Consumer>,
    #[serde(deserialize_with = "nullable")]
    devices: Vec<DeviceStatus>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AllocationJson {
    #[serde(rename = "allocationTimestamp", deserialize_with = "time_ms")]
    since_ms: u64,
    #[serde(deserialize_with = "nullable")]
    devices: ResultsJson,
    node_selector: Option<NodeTermsJson>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResultsJson {
    #[serde(deserialize_with = "nullable")]
    results: Vec<ResultJson>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ResultJson {
    #[serde(deserialize_with = "nullable")]
    driver: Box<str>,
    #[serde(deserialize_with = "nullable")]
    pool: Box<str>,
    #[serde(deserialize_with = "nullable")]
    device: Box<str>,
    #[serde(deserialize_with = "nullable")]
    admin_access: bool,
    #[serde(deserialize_with = "nullable")]
    consumed_capacity: BTreeMap<Box<str>, Option<DeviceQuantity>>,
    #[serde(rename = "shareID", deserialize_with = "nullable")]
    share: Box<str>,
    #[serde(deserialize_with = "nullable")]
    binding_conditions: Vec<Box<str>>,
    #[serde(deserialize_with = "nullable")]
    binding_failure_conditions: Vec<Box<str>>,
}

impl StatusJson {
    pub(super) fn read(self) -> (Option<Allocation>, Vec<Consumer>, Vec<DeviceStatus>) {
        let allocation = self.allocation.map(|allocation| Allocation {
            since_ms: allocation.since_ms,
            devices: allocation.devices.results.into_iter().map(ResultJson::read).collect(),
            nodes: allocation.node_selector.map(NodeTermsJson::read),
        });
        (allocation, self.reserved_for, self.devices)
    }
}

impl ResultJson {
    fn read(self) -> AllocatedDevice {
        AllocatedDevice {
            driver: self.driver,
            pool: self.pool,
            device: self.device,
            is_admin: self.admin_access,
            consumed: amounts(self.consumed_capacity.into_iter()),
            is_share: !self.share.is_empty(),
            share: self.share,
            binding: BindingConditions {
                awaited: self.binding_conditions,
                failures: self.binding_failure_conditions,
            },
        }
    }
}
