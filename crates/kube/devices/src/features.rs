//! Which parts of the API are in use, by the feature gates of Kubernetes 1.37.

/// Parts of the API that can be switched off. What is off is treated as upstream's allocator treats
/// it; features in alpha (compatibility groups, lists as attributes, derived attributes) are always
/// off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// `DRAAdminAccess`.
    pub admin_access: bool,
    /// `DRADeviceBindingConditions`.
    pub binding_conditions: bool,
    /// `DRAConsumableCapacity`.
    pub consumable_capacity: bool,
    /// `DRADeviceTaints`.
    pub device_taints: bool,
    /// `DRAFractionalCapacityRange`.
    pub fractional_ranges: bool,
    /// `DRAPartitionableDevices`.
    pub partitionable_devices: bool,
    /// `DRAPrioritizedList`.
    pub prioritized_lists: bool,
}

impl Features {
    /// All of them.
    pub const ALL: Self = Self {
        admin_access: true,
        binding_conditions: true,
        consumable_capacity: true,
        device_taints: true,
        fractional_ranges: true,
        partitionable_devices: true,
        prioritized_lists: true,
    };
    /// None of them.
    pub const NONE: Self = Self {
        admin_access: false,
        binding_conditions: false,
        consumable_capacity: false,
        device_taints: false,
        fractional_ranges: false,
        partitionable_devices: false,
        prioritized_lists: false,
    };
}
