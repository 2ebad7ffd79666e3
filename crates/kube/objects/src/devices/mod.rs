//! Dynamic resource allocation: classes of devices, the devices that drivers offer, and claims.
//!
//! `v1beta1` has what a device is in `basic`, and what is asked for in the request itself; both are
//! read here.

mod claim;
mod class;
mod slice;

pub use claim::{AllocatedDevice, DeviceAsked, ResourceClaim, ResourceClaimTemplate};
pub use class::DeviceClass;
pub use slice::{DevicePool, OfferedDevice, ResourceSlice};

use std::collections::BTreeMap;

use serde::Deserialize;

use super::json::{Amount, nullable};

#[derive(Default, Deserialize)]
#[serde(default)]
struct SelectorJson {
    #[serde(deserialize_with = "nullable")]
    cel: CelJson,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CelJson {
    #[serde(deserialize_with = "nullable")]
    expression: String,
}

/// The CEL expressions of selectors, all of which a device must meet.
fn expressions(selectors: Vec<SelectorJson>) -> Vec<String> {
    selectors.into_iter().map(|selector| selector.cel.expression).collect()
}

/// Amounts in whole units, by name; without those that have none.
fn units<'n>(
    amounts: impl IntoIterator<Item = (Box<str>, Option<Amount>)> + 'n,
) -> BTreeMap<Box<str>, i64> {
    let known = amounts.into_iter().filter_map(|(name, of)| Some((name, of?.0.to_units())));
    known.collect()
}
