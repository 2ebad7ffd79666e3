//! Rules by which an administrator taints devices.

use serde::Deserialize;

use super::taint::DeviceTaint;
use crate::json::nullable;
use crate::meta::Meta;

/// A taint of all devices that a selector matches, beside those that drivers state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "RuleJson")]
pub struct DeviceTaintRule {
    pub meta: Meta,
    /// Which devices it taints; `None` is none of them.
    pub selector: Option<DeviceTaintSelector>,
    pub taint: DeviceTaint,
}

/// What a tainted device has in common with others. `None` is any.
///
/// `v1alpha3` could also name a class or CEL expressions. They are not read: such a rule taints
/// every device that the other fields match, so that no device is used that it should keep free.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DeviceTaintSelector {
    pub driver: Option<Box<str>>,
    pub pool: Option<Box<str>>,
    /// The name of the device in its pool.
    pub device: Option<Box<str>>,
}

impl DeviceTaintSelector {
    /// Whether any device of a pool can match.
    pub fn is_for_pool(&self, driver: &str, pool: &str) -> bool {
        is_for(self.driver.as_deref(), driver) && is_for(self.pool.as_deref(), pool)
    }

    /// Whether a device matches, if its pool does.
    pub fn is_for_device(&self, device: &str) -> bool {
        is_for(self.device.as_deref(), device)
    }
}

fn is_for(wanted: Option<&str>, name: &str) -> bool {
    wanted.is_none_or(|wanted| wanted == name)
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RuleJson {
    #[serde(deserialize_with = "nullable")]
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: SpecJson,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SpecJson {
    device_selector: Option<DeviceTaintSelector>,
    #[serde(deserialize_with = "nullable")]
    taint: DeviceTaint,
}

impl From<RuleJson> for DeviceTaintRule {
    fn from(RuleJson { metadata, spec }: RuleJson) -> Self {
        Self { meta: metadata, selector: spec.device_selector, taint: spec.taint }
    }
}
