//! Whether the devices of a claim are ready for a pod, by the conditions that their drivers set.

use serde::Deserialize;

use super::allocation::AllocatedDevice;
use super::claim::ResourceClaim;
use crate::json::nullable;

/// What a driver says of a device that was allocated to a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DeviceStatus {
    #[serde(deserialize_with = "nullable")]
    pub driver: Box<str>,
    #[serde(deserialize_with = "nullable")]
    pub pool: Box<str>,
    #[serde(deserialize_with = "nullable")]
    pub device: Box<str>,
    /// Which share of the device it is about; empty where that has none.
    #[serde(rename = "shareID", deserialize_with = "nullable")]
    pub share: Box<str>,
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<DeviceCondition>,
}

/// A condition of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DeviceCondition {
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub kind: Box<str>,
    /// `True`, `False` or `Unknown`.
    #[serde(deserialize_with = "nullable")]
    pub status: Box<str>,
    #[serde(deserialize_with = "nullable")]
    pub message: Box<str>,
}

/// Whether a pod may be bound that uses a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    /// These devices, as `driver/pool/device`, do not have all conditions yet that they need.
    Waits(Vec<String>),
    /// A device says that it will not be ready.
    Failed {
        /// As `driver/pool/device`.
        device: String,
        /// The condition that says so, with what it says.
        condition: String,
    },
}

impl ResourceClaim {
    /// Whether its devices are ready. Those without binding conditions always are.
    pub fn readiness(&self) -> Readiness {
        let devices = self.allocation.iter().flat_map(|has| &has.devices);
        let awaiting = devices.filter(|device| !device.binding.awaited.is_empty());
        let mut waits = Vec::new();
        for device in awaiting {
            let name = format!("{}/{}/{}", device.driver, device.pool, device.device);
            let status = self.devices.iter().find(|status| status.is_of(device));
            let find = |kind: &str| {
                let mut conditions = status.iter().flat_map(|status| &status.conditions);
                conditions.find(|one| *one.kind == *kind && &*one.status == "True")
            };
            if let Some(failure) = device.binding.failures.iter().find_map(|kind| find(kind)) {
                let condition = match &*failure.message {
                    "" => failure.kind.to_string(),
                    message => format!("{}: {message}", failure.kind),
                };
                return Readiness::Failed { device: name, condition };
            }
            if !device.binding.awaited.iter().all(|kind| find(kind).is_some()) {
                waits.push(name);
            }
        }
        match waits.is_empty() {
            true => Readiness::Ready,
            false => Readiness::Waits(waits),
        }
    }
}

impl DeviceStatus {
    fn is_of(&self, device: &AllocatedDevice) -> bool {
        (&self.driver, &self.pool, &self.device, &self.share)
            == (&device.driver, &device.pool, &device.device, &device.share)
    }
}
