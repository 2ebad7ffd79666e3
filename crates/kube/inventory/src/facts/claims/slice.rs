//! Devices that drivers offer: resource slices, of each pool those of its newest generation.

use std::collections::BTreeMap;

use dovetail_objects::{OfferedDevice, ResourceSlice};

use super::driver::GpuDriver;

/// The bus address of a physical device, by the name that all drivers share.
const BUS: &str = "resource.kubernetes.io/pciBusID";

/// Devices of one driver and one pool.
pub(super) struct SliceFacts {
    driver: &'static GpuDriver,
    pool: Box<str>,
    generation: i64,
    /// Slices of the pool in this generation.
    of: i64,
    devices: Vec<ClaimableDevice>,
}

/// A device as its driver offers it.
#[derive(Clone, Debug)]
pub(super) struct ClaimableDevice {
    pub(super) driver: &'static GpuDriver,
    pub(super) name: Box<str>,
    /// The node it is in; empty if several nodes reach it.
    pub(super) node: Box<str>,
    pub(super) model: Option<Box<str>>,
    pub(super) uuid: Option<Box<str>>,
    /// UUID of the GPU that it is a part of.
    pub(super) parent: Option<Box<str>>,
    pub(super) bus: Option<Box<str>>,
    /// Which part of a GPU it is; `None` for a whole one.
    pub(super) part: Option<Box<str>>,
    pub(super) capacity: BTreeMap<Box<str>, i64>,
    /// Whether several claims may have it at a time.
    pub(super) is_for_several: bool,
    /// Whether a taint of its own keeps it from being given away.
    pub(super) is_tainted: bool,
}

/// A device by driver, pool and name: what an allocation names.
pub(super) type DeviceKey = (&'static str, Box<str>, Box<str>);

/// What a slice offers; `None` where its driver offers no GPUs.
pub(super) fn offered(slice: ResourceSlice) -> Option<SliceFacts> {
    let driver = GpuDriver::named(&slice.driver)?;
    let devices = slice.devices.into_iter().map(|device| ClaimableDevice::of(device, driver));
    Some(SliceFacts {
        driver,
        pool: slice.pool.name,
        generation: slice.pool.generation,
        of: slice.pool.slices,
        devices: devices.collect(),
    })
}

/// The devices of all pools, and what is missing of them in words.
pub(super) fn newest(
    slices: impl Iterator<Item = SliceFacts>,
) -> (BTreeMap<DeviceKey, ClaimableDevice>, Vec<String>) {
    let mut pools: BTreeMap<(&'static str, Box<str>), Vec<SliceFacts>> = BTreeMap::new();
    for slice in slices {
        let of_pool = pools.entry((slice.driver.name, slice.pool.clone())).or_default();
        let newest = of_pool.first().map_or(slice.generation, |first| first.generation);
        match slice.generation.cmp(&newest) {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => of_pool.push(slice),
            std::cmp::Ordering::Greater => *of_pool = vec![slice],
        }
    }
    let (mut devices, mut doubts) = (BTreeMap::new(), Vec::new());
    for ((driver, pool), slices) in pools {
        let (seen, of) = (slices.len() as i64, slices.iter().map(|slice| slice.of).max());
        if let Some(of) = of.filter(|of| *of > seen) {
            doubts.push(format!(
                "of pool {pool} of driver {driver}, {seen} of {of} resource slices were read: there may be more GPUs"
            ));
        }
        let of_no_node = slices.iter().flat_map(|slice| &slice.devices);
        let of_no_node = of_no_node.filter(|device| device.node.is_empty()).count();
        if of_no_node > 0 {
            doubts.push(format!(
                "{of_no_node} devices in pool {pool} of driver {driver} belong to no single node: they are not \
                 counted"
            ));
        }
        for device in slices.into_iter().flat_map(|slice| slice.devices) {
            devices.insert((driver, pool.clone(), device.name.clone()), device);
        }
    }
    (devices, doubts)
}

impl ClaimableDevice {
    fn of(device: OfferedDevice, driver: &'static GpuDriver) -> Self {
        let attributes: BTreeMap<&str, &str> =
            device.texts().map(|(name, text)| (driver.plain(name), text)).collect();
        let text = |name: &str| attributes.get(name).map(|text| Box::from(*text));
        let units = device.capacity.iter();
        let units = units.map(|(name, of)| (driver.plain(name).into(), of.value.to_units()));
        let capacity: BTreeMap<Box<str>, i64> = units.collect();
        let is_part = attributes.get("type").is_some_and(|kind| driver.is_part(kind));
        // AMD's driver also offers all parts of a GPU as one device, and says of how many it is.
        let is_part = is_part && !capacity.contains_key("partitions");
        Self {
            driver,
            // As the labels of nodes write models.
            model: text(driver.model).map(|model: Box<str>| model.replace(' ', "-").into()),
            uuid: text("uuid"),
            parent: text("parentUUID"),
            bus: text(BUS),
            part: is_part.then(|| text(driver.profile).unwrap_or_default()),
            is_for_several: device.is_for_several,
            is_tainted: device.is_tainted(),
            node: device.node,
            name: device.name,
            capacity,
        }
    }
}
