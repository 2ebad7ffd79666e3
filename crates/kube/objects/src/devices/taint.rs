//! Taints of devices, and what tolerates them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::json::nullable;

/// A taint of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default)]
pub struct DeviceTaint {
    #[serde(deserialize_with = "nullable")]
    pub key: Box<str>,
    #[serde(deserialize_with = "nullable")]
    pub value: Box<str>,
    pub effect: TaintEffectOfDevice,
}

/// What a taint of a device does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum TaintEffectOfDevice {
    /// No claim gets the device that does not tolerate it.
    NoSchedule,
    /// The same, and pods that have it are evicted.
    NoExecute,
    #[default]
    #[serde(other)]
    None,
}

impl fmt::Display for DeviceTaint {
    /// As kubectl writes taints: `key=value:effect`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.key)?;
        if !self.value.is_empty() {
            write!(out, "={}", self.value)?;
        }
        write!(out, ":{:?}", self.effect)
    }
}

/// What a request accepts of taints of devices, as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeviceToleration {
    /// Empty is every key.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "str::is_empty")]
    pub key: Box<str>,
    /// `Exists`, or `Equal` where it does not say.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "str::is_empty")]
    pub operator: Box<str>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "str::is_empty")]
    pub value: Box<str>,
    /// Empty is every effect.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "str::is_empty")]
    pub effect: Box<str>,
    /// Seconds for which a taint that evicts is tolerated; `None` is for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

impl DeviceToleration {
    /// Whether it accepts a taint.
    pub fn accepts(&self, taint: &DeviceTaint) -> bool {
        let effect = match taint.effect {
            TaintEffectOfDevice::NoSchedule => "NoSchedule",
            TaintEffectOfDevice::NoExecute => "NoExecute",
            TaintEffectOfDevice::None => return true,
        };
        let is_for = (self.effect.is_empty() || &*self.effect == effect)
            && (self.key.is_empty() || self.key == taint.key);
        is_for
            && match &*self.operator {
                "" | "Equal" => self.value == taint.value,
                "Exists" => true,
                _ => false,
            }
    }
}
