//! Dynamic resource allocation: classes of devices, the devices that drivers offer, their
//! taints, and claims.
//!
//! `v1beta1` has what a device is in `basic`, and what is asked for in the request itself; both are
//! read here.

mod allocation;
mod claim;
mod class;
mod readiness;
mod slice;
mod taint;
mod taint_rule;

pub use allocation::{AllocatedDevice, Allocation, Consumer};
pub use claim::{
    AskedCount, ClaimConstraint, ClaimContents, ClaimRequest, ConstraintRule, DeviceAsked,
    ResourceClaim, ResourceClaimTemplate,
};
pub use class::DeviceClass;
pub use readiness::{DeviceCondition, DeviceStatus, Readiness};
pub use slice::{
    BindingConditions, CounterSet, DeviceAttribute, DeviceCapacity, DevicePool, DeviceReach,
    OfferedDevice, RequestPolicy, RequestRange, ResourceSlice,
};
pub use taint::{DeviceTaint, DeviceToleration, TaintEffectOfDevice};
pub use taint_rule::{DeviceTaintRule, DeviceTaintSelector};

use std::collections::BTreeMap;

use dovetail_model::Quantity;
use serde::Deserialize;

use super::json::{DeviceQuantity, nullable};

#[derive(Default, Deserialize)]
#[serde(default)]
struct SelectorJson {
    cel: Option<CelJson>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CelJson {
    #[serde(deserialize_with = "nullable")]
    expression: String,
}

/// The CEL expressions of selectors, all of which a device must meet; empty where one is of another
/// kind.
fn expressions(selectors: Vec<SelectorJson>) -> Vec<String> {
    let expression = |selector: SelectorJson| selector.cel.unwrap_or_default().expression;
    selectors.into_iter().map(expression).collect()
}

/// Amounts by name; without those that have none.
fn amounts(
    amounts: impl Iterator<Item = (Box<str>, Option<DeviceQuantity>)>,
) -> BTreeMap<Box<str>, Quantity> {
    amounts.filter_map(|(name, of)| Some((name, of?.0))).collect()
}
