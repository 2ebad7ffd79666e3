//! Claims of devices and their templates: what is asked for, what was allocated, and for which
//! pods.

use std::collections::BTreeMap;

use dovetail_model::Quantity;
use serde::Deserialize;
use serde_json::Value;

use super::allocation::{Allocation, Consumer, StatusJson};
use super::readiness::DeviceStatus;
use super::taint::DeviceToleration;
use super::{SelectorJson, amounts, expressions};
use crate::json::{DeviceQuantity, nullable};
use crate::meta::Meta;

/// A claim of devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "ClaimJson")]
pub struct ResourceClaim {
    pub meta: Meta,
    pub finalizers: Vec<Box<str>>,
    pub asked: ClaimContents,
    /// What was allocated to it; `None` until anything is.
    pub allocation: Option<Allocation>,
    /// Who it is reserved for.
    pub reserved_for: Vec<Consumer>,
    /// What drivers say of its devices.
    pub devices: Vec<DeviceStatus>,
}

/// From which claims are made for pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "TemplateJson")]
pub struct ResourceClaimTemplate {
    pub meta: Meta,
    pub asked: ClaimContents,
}

/// All that a claim asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimContents {
    pub requests: Vec<ClaimRequest>,
    pub constraints: Vec<ClaimConstraint>,
    /// What drivers are told of its devices, as it is written.
    pub config: Vec<Value>,
}

/// A request of a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimRequest {
    /// Its name, unique in the claim.
    pub name: Box<str>,
    /// What it asks for, the best first: exactly one is served.
    pub alternatives: Vec<DeviceAsked>,
    /// Whether it has alternatives, even if it is one.
    pub is_list: bool,
}

/// Devices of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceAsked {
    /// Its name among the alternatives of its request; empty where there are none.
    pub name: Box<str>,
    pub class: Box<str>,
    /// CEL expressions that the devices meet, beside those of the class; empty where a selector is
    /// of another kind.
    pub selectors: Vec<String>,
    pub count: AskedCount,
    /// Whether it only looks on while others use the device; `None` where it does not say.
    pub admin_access: Option<bool>,
    /// How much of each device, by capacity; `None` where it does not say.
    pub capacity: Option<BTreeMap<Box<str>, Quantity>>,
    pub tolerations: Vec<DeviceToleration>,
    /// Fields that are not known.
    pub unknown: Vec<Box<str>>,
}

/// How many devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskedCount {
    Exactly(i64),
    All,
    /// In a way that is not known.
    Other(Box<str>),
}

/// What devices of a claim must have in common, or must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimConstraint {
    /// Names of requests, or of alternatives after their request and a slash; none is all.
    pub requests: Vec<Box<str>>,
    pub rule: ConstraintRule,
}

/// A rule about an attribute of several devices, by its full name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConstraintRule {
    /// All have the same value.
    Match(Box<str>),
    /// No two have the same value.
    Distinct(Box<str>),
    /// One that is not known.
    Other,
}

impl Default for AskedCount {
    fn default() -> Self {
        Self::Exactly(1)
    }
}

impl DeviceAsked {
    /// Whether it only looks on while others use the device.
    pub fn is_admin(&self) -> bool {
        self.admin_access == Some(true)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClaimJson {
    #[serde(deserialize_with = "nullable")]
    metadata: ClaimMetaJson,
    #[serde(deserialize_with = "nullable")]
    spec: SpecJson,
    #[serde(deserialize_with = "nullable")]
    status: StatusJson,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClaimMetaJson {
    #[serde(deserialize_with = "nullable")]
    finalizers: Vec<Box<str>>,
    #[serde(flatten)]
    meta: Meta,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TemplateJson {
    #[serde(deserialize_with = "nullable")]
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: TemplateSpecJson,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TemplateSpecJson {
    #[serde(deserialize_with = "nullable")]
    spec: SpecJson,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SpecJson {
    #[serde(deserialize_with = "nullable")]
    devices: AskedJson,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AskedJson {
    #[serde(deserialize_with = "nullable")]
    requests: Vec<RequestJson>,
    #[serde(deserialize_with = "nullable")]
    constraints: Vec<ConstraintJson>,
    #[serde(deserialize_with = "nullable")]
    config: Vec<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RequestJson {
    #[serde(deserialize_with = "nullable")]
    name: Box<str>,
    exactly: Option<ExactJson>,
    #[serde(deserialize_with = "nullable")]
    first_available: Vec<ExactJson>,
    /// What is asked for, in `v1beta1`.
    #[serde(flatten)]
    own: ExactJson,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ExactJson {
    #[serde(deserialize_with = "nullable")]
    name: Box<str>,
    #[serde(deserialize_with = "nullable")]
    device_class_name: Box<str>,
    #[serde(deserialize_with = "nullable")]
    allocation_mode: Box<str>,
    count: Option<i64>,
    admin_access: Option<bool>,
    #[serde(deserialize_with = "nullable")]
    selectors: Vec<SelectorJson>,
    capacity: Option<CapacityJson>,
    #[serde(deserialize_with = "nullable")]
    tolerations: Vec<DeviceToleration>,
    #[serde(flatten)]
    unknown: BTreeMap<Box<str>, Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CapacityJson {
    #[serde(deserialize_with = "nullable")]
    requests: BTreeMap<Box<str>, Option<DeviceQuantity>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ConstraintJson {
    #[serde(deserialize_with = "nullable")]
    requests: Vec<Box<str>>,
    match_attribute: Option<Box<str>>,
    distinct_attribute: Option<Box<str>>,
}

impl From<ClaimJson> for ResourceClaim {
    fn from(ClaimJson { metadata, spec, status }: ClaimJson) -> Self {
        let ClaimMetaJson { finalizers, meta } = metadata;
        let (allocation, reserved_for, devices) = status.read();
        Self { meta, finalizers, asked: spec.devices.read(), allocation, reserved_for, devices }
    }
}

impl From<TemplateJson> for ResourceClaimTemplate {
    fn from(TemplateJson { metadata, spec }: TemplateJson) -> Self {
        Self { meta: metadata, asked: spec.spec.devices.read() }
    }
}

impl AskedJson {
    fn read(self) -> ClaimContents {
        let constraint = |constraint: ConstraintJson| ClaimConstraint {
            requests: constraint.requests,
            rule: match (constraint.match_attribute, constraint.distinct_attribute) {
                (Some(attribute), _) => ConstraintRule::Match(attribute),
                (None, Some(attribute)) => ConstraintRule::Distinct(attribute),
                (None, None) => ConstraintRule::Other,
            },
        };
        ClaimContents {
            requests: self.requests.into_iter().map(RequestJson::read).collect(),
            constraints: self.constraints.into_iter().map(constraint).collect(),
            config: self.config,
        }
    }
}

impl RequestJson {
    fn read(self) -> ClaimRequest {
        let is_list = !self.first_available.is_empty();
        let alternatives = match (is_list, self.exactly) {
            (true, _) => self.first_available.into_iter().map(ExactJson::read).collect(),
            (false, exactly) => {
                vec![DeviceAsked { name: Box::default(), ..exactly.unwrap_or(self.own).read() }]
            }
        };
        ClaimRequest { name: self.name, alternatives, is_list }
    }
}

impl ExactJson {
    fn read(self) -> DeviceAsked {
        DeviceAsked {
            name: self.name,
            class: self.device_class_name,
            selectors: expressions(self.selectors),
            count: match &*self.allocation_mode {
                "" | "ExactCount" => AskedCount::Exactly(self.count.unwrap_or(1)),
                "All" => AskedCount::All,
                _ => AskedCount::Other(self.allocation_mode),
            },
            admin_access: self.admin_access,
            capacity: self.capacity.map(|capacity| amounts(capacity.requests.into_iter())),
            tolerations: self.tolerations,
            unknown: self.unknown.into_keys().collect(),
        }
    }
}
