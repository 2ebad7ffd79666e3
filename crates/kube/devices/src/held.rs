//! What is allocated, whoever has it.

use std::collections::BTreeMap;

use dovetail_objects::{AllocatedDevice, Allocation};

/// A device by driver, pool and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceKey {
    pub driver: Box<str>,
    pub pool: Box<str>,
    /// Its name in the pool.
    pub device: Box<str>,
}

/// Devices that claims have, by driver, pool and name. Who only looks on has nothing.
#[derive(Clone, Debug, Default)]
pub struct ClaimedDevices(BTreeMap<Box<str>, BTreeMap<Box<str>, HeldPool>>);

/// Devices of a pool that claims have, by name.
pub(crate) type HeldPool = BTreeMap<Box<str>, HeldDevice>;

/// Who has a device, and how much of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldDevice {
    /// Claims that have it for themselves; more than one by a fault of others.
    pub(crate) alone: u32,
    /// Shares of it that claims have.
    pub(crate) shares: u32,
    /// What these take, by capacity, in billionths.
    pub(crate) consumed: BTreeMap<Box<str>, i128>,
}

impl DeviceKey {
    /// What an allocation names.
    pub fn of(device: &AllocatedDevice) -> Self {
        let AllocatedDevice { driver, pool, device, .. } = device;
        Self { driver: driver.clone(), pool: pool.clone(), device: device.clone() }
    }
}

impl ClaimedDevices {
    /// A claim has these devices.
    pub fn add(&mut self, allocation: &Allocation) {
        for device in allocation.devices.iter().filter(|device| !device.is_admin) {
            let pools = self.0.entry(device.driver.clone()).or_default();
            let pool = pools.entry(device.pool.clone()).or_default();
            let held = pool.entry(device.device.clone()).or_default();
            match is_share(device) {
                true => held.shares += 1,
                false => held.alone += 1,
            }
            for (name, amount) in &device.consumed {
                *held.consumed.entry(name.clone()).or_default() += amount.to_billionths();
            }
        }
    }

    /// A claim that had these devices has them no more.
    pub fn remove(&mut self, allocation: &Allocation) {
        for device in allocation.devices.iter().filter(|device| !device.is_admin) {
            let pool = self.0.get_mut(&device.driver).and_then(|of| of.get_mut(&device.pool));
            let Some(pool) = pool else { continue };
            let Some(held) = pool.get_mut(&device.device) else { continue };
            match is_share(device) {
                true => held.shares = held.shares.saturating_sub(1),
                false => held.alone = held.alone.saturating_sub(1),
            }
            for (name, amount) in &device.consumed {
                *held.consumed.entry(name.clone()).or_default() -= amount.to_billionths();
            }
            if held.alone == 0 && held.shares == 0 {
                pool.remove(&device.device);
            }
        }
    }

    /// Who has each of these devices, to be compared.
    pub fn of(&self, devices: &[DeviceKey]) -> Vec<Option<HeldDevice>> {
        let held = |key: &DeviceKey| self.pool(&key.driver, &key.pool)?.get(&key.device).cloned();
        devices.iter().map(held).collect()
    }

    pub(crate) fn pool(&self, driver: &str, pool: &str) -> Option<&HeldPool> {
        self.0.get(driver)?.get(pool)
    }
}

fn is_share(device: &AllocatedDevice) -> bool {
    device.is_share || !device.consumed.is_empty()
}
