//! Drivers whose devices are GPUs, and what their devices are called elsewhere.

use dovetail_objects::labels;

/// A driver, and the words in which it speaks of its devices.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GpuDriver {
    /// Its name in slices and allocations.
    pub(crate) name: &'static str,
    /// What the vendor's device plugin calls a whole device: under this name devices are counted,
    /// so that a cluster reads the same whichever way its GPUs are offered.
    pub(super) resource: &'static str,
    /// The attribute that names the model.
    pub(super) model: &'static str,
    /// Values of the attribute `type` of devices that are parts of a GPU.
    part_types: &'static [&'static str],
    /// The attribute that says which part of a GPU it is, and what stands before its value in the
    /// plugin's name for it.
    pub(super) profile: &'static str,
    part_prefix: &'static str,
    /// Device classes that come with the driver.
    classes: &'static [&'static str],
    /// Those of them that select parts.
    part_classes: &'static [&'static str],
}

/// NVIDIA's attributes and classes are those of kubernetes-sigs/dra-driver-nvidia-gpu, AMD's of
/// ROCm/k8s-gpu-dra-driver (`docs/driver-attributes.md`), Intel's of
/// intel/intel-resource-drivers-for-kubernetes.
pub(super) const DRIVERS: [GpuDriver; 3] = [
    GpuDriver {
        name: "gpu.nvidia.com",
        resource: labels::NVIDIA_GPU,
        model: "productName",
        part_types: &["mig"],
        profile: "profile",
        part_prefix: labels::NVIDIA_MIG,
        classes: &["gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com"],
        part_classes: &["mig.nvidia.com"],
    },
    GpuDriver {
        name: "gpu.amd.com",
        resource: labels::AMD_GPU,
        model: "productName",
        part_types: &["amdgpu-partition"],
        profile: "partitionProfile",
        part_prefix: "amd.com/",
        classes: &["gpu.amd.com"],
        part_classes: &[],
    },
    GpuDriver {
        name: "gpu.intel.com",
        resource: "gpu.intel.com/xe",
        model: "model",
        part_types: &[],
        profile: "",
        part_prefix: "",
        classes: &["gpu.intel.com"],
        part_classes: &[],
    },
];

impl GpuDriver {
    /// The driver of that name, if its devices are GPUs.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        DRIVERS.iter().find(|driver| driver.name == name)
    }

    /// The driver that a device class comes with.
    pub(crate) fn of_class(class: &str) -> Option<&'static Self> {
        DRIVERS.iter().find(|driver| driver.classes.contains(&class))
    }

    /// Whether a class that comes with it selects parts of GPUs.
    pub(super) fn is_class_of_parts(&self, class: &str) -> bool {
        self.part_classes.contains(&class)
    }

    /// Whether devices of a type are parts of GPUs.
    pub(super) fn is_part(&self, kind: &str) -> bool {
        self.part_types.contains(&kind)
    }

    /// What the vendor's device plugin calls such a part.
    pub(super) fn part(&self, profile: &str) -> String {
        // Profiles with attributes are named with a dot, since names of resources have no plus.
        format!("{}{}", self.part_prefix, profile.replace('+', "."))
    }

    /// Whether its devices, or parts of them, are counted under that name.
    pub(super) fn calls(&self, resource: &str) -> bool {
        let is_part = !self.part_prefix.is_empty() && resource.starts_with(self.part_prefix);
        resource == self.resource || is_part
    }

    /// Devices that several pods share are counted apart: what is free of one is no device that
    /// others could ask for.
    pub(super) fn shared(&self) -> String {
        format!("{}.shared", self.resource)
    }

    /// Name of an attribute or a capacity without the driver's domain, which may be left out.
    pub(super) fn plain<'a>(&self, name: &'a str) -> &'a str {
        match name.split_once('/') {
            Some((domain, plain)) if domain == self.name => plain,
            _ => name,
        }
    }
}
