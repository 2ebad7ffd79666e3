//! What pods refer to: claims, volumes, classes, drivers, room for volumes.

use dovetail_objects::labels;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_objects::{
    CsiDriver, DeviceClass, PersistentVolume, StorageCapacity, StorageClass, VolumeClaim,
};

/// Namespace and name.
type Key = (Box<str>, Box<str>);

/// The objects that decide about a pod besides itself, by name.
#[derive(Clone, Debug, Default)]
pub struct ReferredObjects {
    claims: BTreeMap<Box<str>, BTreeMap<Box<str>, VolumeClaim>>,
    /// Claims (namespace, name) by the volume they name.
    claims_by_volume: BTreeMap<Box<str>, BTreeSet<Key>>,
    volumes: BTreeMap<Box<str>, PersistentVolume>,
    volumes_by_class: BTreeMap<Box<str>, BTreeSet<Box<str>>>,
    classes: BTreeMap<Box<str>, StorageClass>,
    drivers: BTreeMap<Box<str>, CsiDriver>,
    /// By storage class, then by namespace and name.
    capacities: BTreeMap<Box<str>, BTreeMap<Key, StorageCapacity>>,
    device_classes: BTreeMap<Box<str>, DeviceClass>,
    /// Extended resources that nodes offer by device plugin, and
    /// [`REPLICAS_AS_GPUS`](super::REPLICAS_AS_GPUS).
    pub offers: Offers,
}

impl ReferredObjects {
    /// A claim.
    pub fn claim(&self, namespace: &str, name: &str) -> Option<&VolumeClaim> {
        self.claims.get(namespace)?.get(name)
    }

    /// Claims that name a volume, bound to it or not.
    pub fn claims_of(&self, volume: &str) -> impl Iterator<Item = &VolumeClaim> {
        let keys = self.claims_by_volume.get(volume).into_iter().flatten();
        keys.filter_map(|(namespace, name)| self.claim(namespace, name))
    }

    /// Adds or replaces a claim.
    pub fn set_claim(&mut self, claim: VolumeClaim) -> Option<VolumeClaim> {
        let (namespace, name) = (claim.meta.namespace.clone(), claim.meta.name.clone());
        let old = self.remove_claim(&namespace, &name);
        if !claim.volume.is_empty() {
            let of_volume = self.claims_by_volume.entry(claim.volume.clone()).or_default();
            of_volume.insert((namespace.clone(), name.clone()));
        }
        self.claims.entry(namespace).or_default().insert(name, claim);
        old
    }

    /// Forgets a claim.
    pub fn remove_claim(&mut self, namespace: &str, name: &str) -> Option<VolumeClaim> {
        let of_namespace = self.claims.get_mut(namespace)?;
        let removed = of_namespace.remove(name)?;
        if of_namespace.is_empty() {
            self.claims.remove(namespace);
        }
        if let Some(of_volume) = self.claims_by_volume.get_mut(&removed.volume) {
            of_volume.remove(&(removed.meta.namespace.clone(), removed.meta.name.clone()));
            if of_volume.is_empty() {
                self.claims_by_volume.remove(&removed.volume);
            }
        }
        Some(removed)
    }

    /// Every claim.
    pub fn claims(&self) -> impl Iterator<Item = &VolumeClaim> {
        self.claims.values().flat_map(BTreeMap::values)
    }

    /// A volume.
    pub fn volume(&self, name: &str) -> Option<&PersistentVolume> {
        self.volumes.get(name)
    }

    /// Every volume.
    pub fn volumes(&self) -> impl Iterator<Item = &PersistentVolume> {
        self.volumes.values()
    }

    /// Volumes of a storage class, by name.
    pub fn volumes_of(&self, class: &str) -> impl Iterator<Item = &PersistentVolume> {
        let names = self.volumes_by_class.get(class).into_iter().flatten();
        names.filter_map(|name| self.volumes.get(name))
    }

    /// Adds or replaces a volume.
    pub fn set_volume(&mut self, volume: PersistentVolume) -> Option<PersistentVolume> {
        let old = self.remove_volume(&volume.meta.name);
        let of_class = self.volumes_by_class.entry(volume.class.clone()).or_default();
        of_class.insert(volume.meta.name.clone());
        self.volumes.insert(volume.meta.name.clone(), volume);
        old
    }

    /// Forgets a volume.
    pub fn remove_volume(&mut self, name: &str) -> Option<PersistentVolume> {
        let old = self.volumes.remove(name)?;
        if let Some(of_class) = self.volumes_by_class.get_mut(&old.class) {
            of_class.remove(name);
            if of_class.is_empty() {
                self.volumes_by_class.remove(&old.class);
            }
        }
        Some(old)
    }

    /// A storage class.
    pub fn class(&self, name: &str) -> Option<&StorageClass> {
        self.classes.get(name)
    }

    /// Every storage class.
    pub fn classes(&self) -> impl Iterator<Item = &StorageClass> {
        self.classes.values()
    }

    /// Adds or replaces a storage class.
    pub fn set_class(&mut self, class: StorageClass) -> Option<StorageClass> {
        self.classes.insert(class.meta.name.clone(), class)
    }

    /// Forgets a storage class.
    pub fn remove_class(&mut self, name: &str) -> Option<StorageClass> {
        self.classes.remove(name)
    }

    /// A CSI driver.
    pub fn driver(&self, name: &str) -> Option<&CsiDriver> {
        self.drivers.get(name)
    }

    /// Every CSI driver.
    pub fn drivers(&self) -> impl Iterator<Item = &CsiDriver> {
        self.drivers.values()
    }

    /// Adds or replaces a CSI driver.
    pub fn set_driver(&mut self, driver: CsiDriver) -> Option<CsiDriver> {
        self.drivers.insert(driver.meta.name.clone(), driver)
    }

    /// Forgets a CSI driver.
    pub fn remove_driver(&mut self, name: &str) -> Option<CsiDriver> {
        self.drivers.remove(name)
    }

    /// Where a storage class has room.
    pub fn capacities_of(&self, class: &str) -> impl Iterator<Item = &StorageCapacity> {
        self.capacities.get(class).into_iter().flat_map(BTreeMap::values)
    }

    /// An account of room.
    pub fn capacity(&self, namespace: &str, name: &str) -> Option<&StorageCapacity> {
        let key = (Box::from(namespace), Box::from(name));
        self.capacities.values().find_map(|of_class| of_class.get(&key))
    }

    /// Every account of room.
    pub fn capacities(&self) -> impl Iterator<Item = &StorageCapacity> {
        self.capacities.values().flat_map(BTreeMap::values)
    }

    /// Adds or replaces an account of room.
    pub fn set_capacity(&mut self, capacity: StorageCapacity) -> Option<StorageCapacity> {
        let (namespace, name) = (capacity.meta.namespace.clone(), capacity.meta.name.clone());
        let old = self.remove_capacity(&namespace, &name);
        let of_class = self.capacities.entry(capacity.class.clone()).or_default();
        of_class.insert((namespace, name), capacity);
        old
    }

    /// Forgets an account of room.
    pub fn remove_capacity(&mut self, namespace: &str, name: &str) -> Option<StorageCapacity> {
        let key = (Box::from(namespace), Box::from(name));
        let mut classes = self.capacities.iter_mut();
        let (class, removed) =
            classes.find_map(|(class, of_class)| Some((class.clone(), of_class.remove(&key)?)))?;
        if self.capacities.get(&class).is_some_and(BTreeMap::is_empty) {
            self.capacities.remove(&class);
        }
        Some(removed)
    }

    /// A device class.
    pub fn device_class(&self, name: &str) -> Option<&DeviceClass> {
        self.device_classes.get(name)
    }

    /// Every device class.
    pub fn device_classes(&self) -> impl Iterator<Item = &DeviceClass> {
        self.device_classes.values()
    }

    /// The device class that gives an extended resource, if there is one.
    pub fn device_class_for(&self, resource: &str) -> Option<&DeviceClass> {
        if let Some(name) = resource.strip_prefix(labels::DEVICE_CLASS_RESOURCE) {
            return self.device_classes.get(name);
        }
        // Of several the newest, as in kube-scheduler: so one class can take over from another.
        let mapped = self.device_classes.values();
        let mapped = mapped.filter(|class| &*class.extended_resource == resource);
        mapped.min_by_key(|class| (Reverse(class.meta.created_ms), class.meta.name.clone()))
    }

    /// Extended resources that device classes name, each once.
    pub fn resources_of_classes(&self) -> BTreeSet<&str> {
        let names = self.device_classes.values().map(|class| &*class.extended_resource);
        names.filter(|name| !name.is_empty()).collect()
    }

    /// Adds or replaces a device class.
    pub fn set_device_class(&mut self, class: DeviceClass) -> Option<DeviceClass> {
        self.device_classes.insert(class.meta.name.clone(), class)
    }

    /// Forgets a device class.
    pub fn remove_device_class(&mut self, name: &str) -> Option<DeviceClass> {
        self.device_classes.remove(name)
    }
}

/// How many nodes offer each extended resource by device plugin.
#[derive(Clone, Debug, Default)]
pub struct Offers(BTreeMap<Box<str>, usize>);

impl Offers {
    /// Whether any node offers the resource.
    pub fn has(&self, resource: &str) -> bool {
        self.0.contains_key(resource)
    }

    /// One more node offers the resource; true if it is the first.
    pub fn add(&mut self, resource: &str) -> bool {
        let count = self.0.entry(resource.into()).or_default();
        *count += 1;
        *count == 1
    }

    /// One node less offers the resource; true if it was the last.
    pub fn remove(&mut self, resource: &str) -> bool {
        let Some(count) = self.0.get_mut(resource) else { return false };
        *count -= 1;
        let was_last = *count == 0;
        if was_last {
            self.0.remove(resource);
        }
        was_last
    }
}
