//! Claims of devices and their templates: what is asked for, what was allocated, and for which
//! pods.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{SelectorJson, expressions, units};
use crate::json::{Amount, nullable};
use crate::meta::Meta;

/// A claim of devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "ClaimJson")]
pub struct ResourceClaim {
    /// Name and identity.
    pub meta: Meta,
    pub requests: Vec<DeviceAsked>,
    /// Devices that were allocated to it; `None` until any are.
    pub allocated: Option<Vec<AllocatedDevice>>,
    /// Names of the pods that it is reserved for.
    pub pods: Vec<Box<str>>,
}

/// From which claims are made for pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "TemplateJson")]
pub struct ResourceClaimTemplate {
    /// Name and identity.
    pub meta: Meta,
    pub requests: Vec<DeviceAsked>,
}

/// What is asked for; of alternatives the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceAsked {
    /// Name of the device class.
    pub class: Box<str>,
    /// CEL expressions that the devices meet, beside those of the class.
    pub selectors: Vec<String>,
    /// How many devices; `None` is all that there are.
    pub count: Option<i64>,
    /// Whether it only looks on while others use the device.
    pub is_admin: bool,
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
    /// How much of it, by capacity and in whole units, where several claims may have it.
    pub consumed: BTreeMap<Box<str>, i64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClaimJson {
    #[serde(deserialize_with = "nullable")]
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: SpecJson,
    #[serde(deserialize_with = "nullable")]
    status: StatusJson,
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
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RequestJson {
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
    device_class_name: Box<str>,
    #[serde(deserialize_with = "nullable")]
    allocation_mode: Box<str>,
    count: Option<i64>,
    #[serde(deserialize_with = "nullable")]
    admin_access: bool,
    #[serde(deserialize_with = "nullable")]
    selectors: Vec<SelectorJson>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct StatusJson {
    allocation: Option<AllocationJson>,
    #[serde(deserialize_with = "nullable")]
    reserved_for: Vec<ConsumerJson>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ConsumerJson {
    #[serde(deserialize_with = "nullable")]
    resource: Box<str>,
    #[serde(deserialize_with = "nullable")]
    name: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AllocationJson {
    #[serde(deserialize_with = "nullable")]
    devices: ResultsJson,
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
    consumed_capacity: BTreeMap<Box<str>, Option<Amount>>,
}

impl From<ClaimJson> for ResourceClaim {
    fn from(ClaimJson { metadata, spec, status }: ClaimJson) -> Self {
        let pods = status.reserved_for.into_iter().filter(|of| &*of.resource == "pods");
        let results = |of: AllocationJson| of.devices.results.into_iter().map(ResultJson::read);
        Self {
            meta: metadata,
            requests: spec.requests(),
            allocated: status.allocation.map(|allocation| results(allocation).collect()),
            pods: pods.map(|consumer| consumer.name).collect(),
        }
    }
}

impl From<TemplateJson> for ResourceClaimTemplate {
    fn from(TemplateJson { metadata, spec }: TemplateJson) -> Self {
        Self { meta: metadata, requests: spec.spec.requests() }
    }
}

impl SpecJson {
    fn requests(self) -> Vec<DeviceAsked> {
        let first = |request: RequestJson| {
            let RequestJson { exactly, first_available, own } = request;
            let own = Some(own).filter(|own| !own.device_class_name.is_empty());
            let asked = exactly.or(first_available.into_iter().next()).or(own)?;
            Some(DeviceAsked {
                class: asked.device_class_name,
                selectors: expressions(asked.selectors),
                count: (&*asked.allocation_mode != "All").then(|| asked.count.unwrap_or(1)),
                is_admin: asked.admin_access,
            })
        };
        self.devices.requests.into_iter().filter_map(first).collect()
    }
}

impl ResultJson {
    fn read(self) -> AllocatedDevice {
        AllocatedDevice {
            driver: self.driver,
            pool: self.pool,
            device: self.device,
            is_admin: self.admin_access,
            consumed: units(self.consumed_capacity),
        }
    }
}
