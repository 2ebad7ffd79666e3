//! Drivers whose devices are GPUs, and what their devices are called elsewhere.

/// A driver, and the words in which it speaks of its devices.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GpuDriver {
    /// Its name in slices and allocations.
    pub(crate) name: &'static str,
    /// What the vendor's device plugin calls a whole device: under this name devices are counted, so that a cluster
    /// reads the same whichever way its GPUs are offered.
    pub(super) resource: &'static str,
    /// The attribute that names the model.
    pub(super) model: &'static str,
    /// Values of the attribute `type` of devices that are parts of a GPU.
    part_types: &'static [&'static str],
    /// The attribute that says which part of a GPU it is, and what stands before its value in the plugin's name for it.
    pub(super) profile: &'static str,
    part_prefix: &'static str,
    /// Device classes that come with the driver.
    classes: &'static [&'static str],
    /// Those of them that select parts.
    part_classes: &'static [&'static str],
}

/// NVIDIA's attributes and classes are those of kubernetes-sigs/dra-driver-nvidia-gpu, AMD's of ROCm/k8s-gpu-dra-driver
/// (`docs/driver-attributes.md`), Intel's of intel/intel-resource-drivers-for-kubernetes.
const DRIVERS: [GpuDriver; 3] = [
    GpuDriver {
        name: "gpu.nvidia.com",
        resource: "nvidia.com/gpu",
        model: "productName",
        part_types: &["mig"],
        profile: "profile",
        part_prefix: "nvidia.com/mig-",
        classes: &["gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com"],
        part_classes: &["mig.nvidia.com"],
    },
    GpuDriver {
        name: "gpu.amd.com",
        resource: "amd.com/gpu",
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

    /// Devices that several pods share are counted apart: what is free of one is no device that others could ask for.
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

/// What a selector says as far as it is understood: texts in quotation marks that name a driver or a part of a GPU. It
/// is a CEL expression, which nobody evaluates here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selected {
    pub(super) driver: Option<&'static GpuDriver>,
    pub(super) profile: Option<Box<str>>,
    /// Whether it is about parts of GPUs, whichever.
    pub(super) is_part: bool,
}

impl Selected {
    /// What one expression says.
    pub(super) fn by(expression: &str) -> Self {
        let mut selected = Self::default();
        for quoted in expression.split(['"', '\'']).skip(1).step_by(2) {
            selected.driver = selected.driver.or_else(|| GpuDriver::named(quoted));
            selected.is_part |= DRIVERS.iter().any(|driver| driver.is_part(quoted));
            if selected.profile.is_none() && is_profile(quoted) {
                selected.profile = Some(quoted.into());
            }
        }
        selected
    }

    /// With what another one says beside it.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            driver: self.driver.or(other.driver),
            profile: self.profile.or(other.profile),
            is_part: self.is_part || other.is_part,
        }
    }
}

/// Whether a text is the profile of a MIG device: `1g.10gb`, `1c.3g.40gb`, `1g.10gb+me`.
fn is_profile(text: &str) -> bool {
    let plain = text.split_once('+').map_or(text, |(plain, _)| plain);
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = plain.rsplit('.');
    let memory = parts.next().and_then(|part| part.strip_suffix("gb")).is_some_and(digits);
    let compute = parts.next().and_then(|part| part.strip_suffix('g')).is_some_and(digits);
    let shape = |c: char| c.is_ascii_alphanumeric() || ".+-".contains(c);
    memory && compute && text.len() <= 32 && text.chars().all(shape)
}

/// Of a selector that which is understood, as one that says only this; anything else in it may be somebody's name.
pub(crate) fn reduced(expression: &str) -> String {
    let Selected { driver, profile, is_part } = Selected::by(expression);
    let driver = driver.map(|driver| format!("device.driver == '{}'", driver.name));
    let profile = profile.map(|profile| format!("profile == '{profile}'"));
    let part = is_part.then(|| "type == 'mig'".to_owned());
    let told: Vec<String> = [driver, part, profile].into_iter().flatten().collect();
    told.join(" && ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_say_which_driver_and_which_slice_and_nothing_else_is_kept_of_them() {
        let of = |text: &str| {
            let Selected { driver, profile, is_part } = Selected::by(text);
            (driver.map(|driver| driver.name), profile.as_deref().map(str::to_owned), is_part)
        };
        let mig = "device.driver == \"gpu.nvidia.com\" && device.attributes['gpu.nvidia.com'].type == 'mig'";
        assert_eq!(of(mig), (Some("gpu.nvidia.com"), None, true));
        let one = "device.attributes['gpu.nvidia.com'].profile == '1g.10gb' && secret == 'canary'";
        assert_eq!(of(one), (Some("gpu.nvidia.com"), Some("1g.10gb".to_owned()), false));
        assert_eq!(of("device.driver == 'net.example.com'"), (None, None, false));
        for text in [mig, one, "", "x == 'a.gb'", "'1g.10gb"] {
            assert_eq!(of(&reduced(text)), of(text), "{text}");
            assert!(!reduced(text).contains("canary"));
        }
        for no in ["g.10gb", "1g.gb", "10gb", "1g.10gb+me canary"] {
            assert!(!is_profile(no), "{no}");
        }
        assert!(is_profile("1g.10gb+me") && is_profile("1c.3g.40gb"));
    }
}
