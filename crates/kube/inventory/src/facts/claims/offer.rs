//! The GPUs of a node by what its drivers offer: each physical one counts once, however many parts
//! of it are offered.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::Units;
use dovetail_gpus::{is_of_shares, slice_of};
use dovetail_model::{GpuFraction, GpuParts, Layout, MigTable};

use super::driver::GpuDriver;
use super::slice::{ClaimableDevice, DeviceKey};

/// What a node has of GPUs by claims.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ClaimOffer {
    /// Physical GPUs.
    pub(super) gpus: i64,
    pub(super) model: Option<String>,
    /// Whether not all of them are of that model.
    pub(super) has_other_models: bool,
    /// Units by the resource they are counted as.
    pub(super) units: BTreeMap<String, Offered>,
    /// Whole GPUs that are shared, cut or given unseen, by the resource that they would be counted
    /// as.
    pub(super) set_apart: BTreeMap<String, i64>,
    /// How much was given to claims whose pods are not seen on the node, in milli-GPU.
    pub(super) unseen_milli: i64,
}

/// Units of one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offered {
    pub(super) slice: GpuFraction,
    pub(super) built_in: i64,
    /// Those that a claim can be given, or was.
    pub(super) usable: i64,
}

/// How a device is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// By one pod, as a whole.
    Alone,
    /// By so many pods together, or as far as they take it.
    Shared(i64),
    /// By a claim whose pods have no node yet, are over or were not read: nobody can be given it,
    /// and what it does is unknown.
    Unseen,
}

/// A physical GPU: the devices that are all of it, and those that are parts of it.
#[derive(Default)]
struct Gpu<'d> {
    wholes: Vec<(&'d DeviceKey, &'d ClaimableDevice)>,
    parts: Vec<(&'d DeviceKey, &'d ClaimableDevice)>,
}

impl ClaimOffer {
    /// Of these devices of one node, of which some are held.
    pub(super) fn of(
        devices: &[(&DeviceKey, &ClaimableDevice)],
        held: &BTreeMap<&DeviceKey, Hold>,
        label: Option<&str>,
    ) -> Self {
        let gpus = physical(devices);
        let models: BTreeSet<&str> =
            devices.iter().filter_map(|(_, device)| device.model.as_deref()).collect();
        let model = label.or_else(|| models.first().copied()).map(str::to_owned);
        let mut offer = Self {
            gpus: gpus.len() as i64,
            has_other_models: models.len() > 1,
            model,
            units: BTreeMap::new(),
            set_apart: BTreeMap::new(),
            unseen_milli: 0,
        };
        let mut shared = BTreeMap::new();
        for gpu in gpus.values() {
            if let Some(resource) = gpu.set_apart(held) {
                *offer.set_apart.entry(resource.to_owned()).or_default() += 1;
            }
            for (key, device) in gpu.counted(held) {
                match held.get(key) {
                    Some(Hold::Unseen) => {
                        offer.unseen_milli += offer.unit(device, gpu).1.milli(1);
                    }
                    Some(Hold::Shared(users)) => offer.share(device, gpu, *users, &mut shared),
                    hold => offer.count(device, gpu, hold.is_some() || !gpu.is_tainted(device)),
                }
            }
        }
        offer
    }

    fn count(&mut self, device: &ClaimableDevice, gpu: &Gpu<'_>, is_usable: bool) {
        let (resource, slice) = self.unit(device, gpu);
        let none = Offered { slice, built_in: 0, usable: 0 };
        let offered = self.units.entry(resource).or_insert(none);
        offered.built_in += 1;
        offered.usable += i64::from(is_usable);
    }

    /// Counts a device once for each pod that has a share of it; together these units are the
    /// devices.
    fn share(
        &mut self,
        device: &ClaimableDevice,
        gpu: &Gpu<'_>,
        users: i64,
        devices_milli: &mut BTreeMap<String, i64>,
    ) {
        let (_, slice) = self.unit(device, gpu);
        let resource = device.driver.shared();
        let all = devices_milli.entry(resource.clone()).or_default();
        *all += slice.milli(1);
        let none = Offered { slice, built_in: 0, usable: 0 };
        let offered = self.units.entry(resource).or_insert(none);
        offered.built_in += users;
        offered.usable += users;
        offered.slice = GpuFraction { part: *all, of: 1000 * offered.built_in };
    }

    /// What a device is counted as, and how much of a GPU it is.
    fn unit(&self, device: &ClaimableDevice, gpu: &Gpu<'_>) -> (String, GpuFraction) {
        let Some(profile) = &device.part else {
            return (device.driver.resource.to_owned(), GpuFraction { part: 1, of: 1 });
        };
        let resource = device.driver.part(profile);
        let slice = match device.driver.name {
            "gpu.nvidia.com" => {
                let model = self.model.as_deref();
                gpu.by_layout(profile, model).unwrap_or_else(|| slice_of(&resource, 1, model))
            }
            // Whatever cuts a GPU into equal parts.
            _ => GpuFraction { part: 1, of: (gpu.parts.len() as i64).max(1) },
        };
        (resource, slice)
    }

    /// What is not counted among whole GPUs by a device plugin that counts `counted`: of GPUs of
    /// one node that pods share, hold parts of, or were given unseen. `None` if there are none.
    pub(super) fn beside_plugin(
        devices: &[(&DeviceKey, &ClaimableDevice)],
        held: &BTreeMap<&DeviceKey, Hold>,
        label: Option<&str>,
        counted: impl Fn(&str) -> bool,
    ) -> Option<Self> {
        let is_apart =
            |(key, device): &(&DeviceKey, &ClaimableDevice)| match (held.get(*key), &device.part) {
                (None, _) | (Some(Hold::Alone), None) => false,
                // Parts that the plugin counts are no whole GPUs of it.
                (Some(_), Some(profile)) => !counted(&device.driver.part(profile)),
                (Some(_), None) => true,
            };
        let mut apart = Vec::new();
        for gpu in physical(devices).values() {
            let all = gpu.wholes.iter().chain(&gpu.parts);
            if all.clone().any(is_apart) {
                apart.extend(all.copied());
            }
        }
        (!apart.is_empty()).then(|| Self::of(&apart, held, label))
    }

    /// How much of a GPU each of these devices of one node is, in milli-GPU. `label` is the model
    /// by the node's label.
    pub(super) fn milli_of_each<'d>(
        devices: &[(&'d DeviceKey, &'d ClaimableDevice)],
        label: Option<&str>,
    ) -> BTreeMap<&'d DeviceKey, i64> {
        let offer = Self::of(devices, &BTreeMap::new(), label);
        let mut milli = BTreeMap::new();
        for gpu in physical(devices).values() {
            for (key, device) in gpu.wholes.iter().chain(&gpu.parts) {
                milli.insert(*key, offer.unit(device, gpu).1.milli(1));
            }
        }
        milli
    }

    /// Parts that GPUs among these devices of one node can be cut into, by resource, with that of
    /// the whole ones.
    pub(super) fn cuttable(
        devices: &[(&DeviceKey, &ClaimableDevice)],
    ) -> impl Iterator<Item = (String, &'static str)> + use<> {
        let whole_and_cut = physical(devices).into_values().filter(|gpu| !gpu.wholes.is_empty());
        let parts = whole_and_cut.flat_map(|gpu| gpu.parts);
        let parts: BTreeMap<String, &'static str> = parts
            .filter_map(|(_, device)| {
                let GpuDriver { resource, .. } = device.driver;
                Some((device.driver.part(device.part.as_deref()?), *resource))
            })
            .collect();
        parts.into_iter()
    }

    /// How much of its GPUs a claim cannot be given, in milli-GPU.
    pub(super) fn unusable_milli(&self) -> i64 {
        let units = self.units.values();
        units
            .map(|of| of.slice.nearest_milli(of.built_in) - of.slice.nearest_milli(of.usable))
            .sum()
    }

    /// Its units as the audit counts them.
    pub(super) fn audit_units(&self) -> impl Iterator<Item = Units> {
        self.units.iter().map(|(resource, of)| Units {
            resource: resource.clone(),
            count: of.usable,
            parts: GpuParts::Equal(of.slice),
            is_shared: is_of_shares(resource),
            unknown: 0,
        })
    }

    /// Whether it has GPUs of a vendor (`nvidia.com`).
    pub(super) fn is_of(&self, vendor: &str) -> bool {
        self.units.keys().any(|resource| {
            resource.split_once('/').is_some_and(|(of_resource, _)| of_resource == vendor)
        })
    }
}

impl<'d> Gpu<'d> {
    /// What a part is of a GPU that is offered in parts alone, by the layout that these make.
    fn by_layout(&self, profile: &str, model: Option<&str>) -> Option<GpuFraction> {
        let table = MigTable::of_model(model?).filter(|_| self.wholes.is_empty())?;
        let mut layout: Layout = vec![0; table.profiles.len()];
        for (_, part) in &self.parts {
            layout[table.profile(part.part.as_deref()?)?] += 1;
        }
        let all = table.compute_of(&layout) as i64 + i64::from(table.left_over(&layout)?);
        let own = &table.profiles[table.profile(profile)?];
        Some(GpuFraction { part: i64::from(own.compute_slices), of: all })
    }

    /// The devices that it stands for: all of it as one, or its parts. Where both are offered, it
    /// is cut as soon as a part is held; what could still be cut from it is no device yet.
    fn counted(
        &self,
        held: &BTreeMap<&DeviceKey, Hold>,
    ) -> Vec<(&'d DeviceKey, &'d ClaimableDevice)> {
        let is_held = |(key, _): &&(&DeviceKey, &ClaimableDevice)| held.contains_key(*key);
        if self.wholes.is_empty() {
            return self.parts.clone();
        }
        let parts: Vec<_> = self.parts.iter().filter(is_held).copied().collect();
        if !parts.is_empty() {
            return parts;
        }
        // The same GPU may be offered in several ways, of which one at a time is given away.
        let one = self.wholes.iter().find(is_held).or(self.wholes.first());
        one.copied().into_iter().collect()
    }

    /// The resource that it would be counted as, if it is offered as a whole and is not counted so.
    fn set_apart(&self, held: &BTreeMap<&DeviceKey, Hold>) -> Option<&'static str> {
        let (_, whole) = self.wholes.first()?;
        let is_apart = self.counted(held).into_iter().any(|(key, device)| {
            device.part.is_some() || held.get(key).is_some_and(|hold| *hold != Hold::Alone)
        });
        is_apart.then_some(whole.driver.resource)
    }

    /// Whether no way is left to be given it.
    fn is_tainted(&self, device: &ClaimableDevice) -> bool {
        match device.part {
            Some(_) => device.is_tainted,
            None => self.wholes.iter().all(|(_, device)| device.is_tainted),
        }
    }
}

/// The physical GPUs among devices, by what tells them apart: the bus address, else the UUID, else
/// the name, which is of a device in its pool.
fn physical<'d>(
    devices: &[(&'d DeviceKey, &'d ClaimableDevice)],
) -> BTreeMap<(&'static str, Box<str>), Gpu<'d>> {
    let place = |(_, pool, name): &DeviceKey, device: &ClaimableDevice| -> Box<str> {
        let own = device.bus.clone().or_else(|| device.uuid.clone());
        own.unwrap_or_else(|| format!("{pool}/{name}").into())
    };
    let wholes = devices.iter().filter(|(_, device)| device.part.is_none());
    let by_uuid: BTreeMap<&str, Box<str>> = wholes
        .filter_map(|(key, device)| Some((device.uuid.as_deref()?, place(key, device))))
        .collect();
    let mut gpus: BTreeMap<(&'static str, Box<str>), Gpu<'d>> = BTreeMap::new();
    for (key, device) in devices {
        let GpuDriver { name, .. } = device.driver;
        if device.part.is_none() {
            gpus.entry((name, place(key, device))).or_default().wholes.push((*key, *device));
            continue;
        }
        // A part stands on its GPU, as far as it says which.
        let of_parent = device
            .parent
            .as_ref()
            .map(|parent| by_uuid.get(&**parent).cloned().unwrap_or_else(|| parent.clone()));
        let own = match &device.parent {
            Some(parent) if by_uuid.contains_key(&**parent) => of_parent,
            _ => device.bus.clone().or(of_parent),
        };
        let own = own.unwrap_or_else(|| place(key, device));
        gpus.entry((name, own)).or_default().parts.push((*key, *device));
    }
    gpus
}
