//! GPUs that can be cut into MIG instances, with what each device draws from its GPU: by go-nvml's
//! `a100.go`, and for the H100 by what `nvidia-smi mig -lgip` prints and NVIDIA's MIG user guide.
//!
//! The tables are written here once more on purpose: what is tested has its own.

use std::collections::BTreeMap;

/// A kind of GPU that the driver offers in parts.
#[derive(Clone, Copy, Debug)]
pub struct DraGpu {
    pub(super) product: &'static str,
    pub(super) architecture: &'static str,
    pub(super) compute_capability: &'static str,
    memory_slices: u8,
    /// Whether the GPU as a whole is offered, too. Ampere needs a reset to leave MIG mode, so that
    /// the driver offers only the parts of such a GPU.
    is_offered_whole: bool,
    profiles: &'static [Profile],
}

/// What the driver calls the amounts of a device; the counters have the same names with hyphens.
pub(super) const AMOUNTS: [(&str, &str); 7] = [
    ("multiprocessors", "multiprocessors"),
    ("memory", "memory"),
    ("copyEngines", "copy-engines"),
    ("decoders", "decoders"),
    ("encoders", "encoders"),
    ("jpegEngines", "jpeg-engines"),
    ("ofaEngines", "ofa-engines"),
];

const MIB: u64 = 1 << 20;

#[derive(Debug)]
struct Profile {
    name: &'static str,
    /// NVIDIA's number of the profile, which is part of the names of devices.
    number: u8,
    memory_slices: u8,
    starts: &'static [u8],
    multiprocessors: u64,
    memory_mib: u64,
    /// Copy engines, decoders, JPEG engines, optical flow engines.
    engines: [u64; 4],
}

/// A device that the driver offers of a GPU.
#[derive(Clone, Debug)]
pub(super) struct Offered {
    pub(super) name: String,
    /// `None`: the whole GPU.
    pub(super) profile: Option<&'static str>,
    /// In the order of [`AMOUNTS`].
    pub(super) amounts: [u64; 7],
    memory: std::ops::Range<u8>,
}

const SINGLE: &[u8] = &[0, 1, 2, 3, 4, 5, 6];

const fn profile(
    (name, number): (&'static str, u8),
    (memory_slices, starts): (u8, &'static [u8]),
    (multiprocessors, memory_mib): (u64, u64),
    engines: [u64; 4],
) -> Profile {
    Profile { name, number, memory_slices, starts, multiprocessors, memory_mib, engines }
}

const A100: &[Profile] = &[
    profile(("1g.5gb", 19), (1, SINGLE), (14, 4_864), [1, 0, 0, 0]),
    profile(("1g.5gb+me", 20), (1, SINGLE), (14, 4_864), [1, 1, 1, 1]),
    profile(("1g.10gb", 15), (2, &[0, 2, 4, 6]), (14, 9_856), [1, 1, 0, 0]),
    profile(("2g.10gb", 14), (2, &[0, 2, 4]), (28, 9_856), [2, 1, 0, 0]),
    profile(("3g.20gb", 9), (4, &[0, 4]), (42, 19_968), [3, 2, 0, 0]),
    profile(("4g.20gb", 5), (4, &[0]), (56, 19_968), [4, 2, 0, 0]),
    profile(("7g.40gb", 0), (8, &[0]), (98, 40_192), [7, 5, 1, 1]),
];

const H100: &[Profile] = &[
    profile(("1g.10gb", 19), (1, SINGLE), (16, 9_984), [1, 1, 1, 0]),
    profile(("1g.10gb+me", 20), (1, SINGLE), (16, 9_984), [1, 1, 1, 1]),
    profile(("1g.20gb", 15), (2, &[0, 2, 4, 6]), (26, 20_096), [1, 1, 1, 0]),
    profile(("2g.20gb", 14), (2, &[0, 2, 4]), (32, 20_096), [2, 2, 2, 0]),
    profile(("3g.40gb", 9), (4, &[0, 4]), (60, 40_448), [3, 3, 3, 0]),
    profile(("4g.40gb", 5), (4, &[0]), (64, 40_448), [4, 4, 4, 0]),
    profile(("7g.80gb", 0), (8, &[0]), (132, 80_896), [8, 7, 7, 1]),
];

impl DraGpu {
    /// An A100 with 40 GB in MIG mode: only its parts are offered.
    pub const A100_40GB: Self = Self {
        product: "NVIDIA A100-SXM4-40GB",
        architecture: "Ampere",
        compute_capability: "8.0.0",
        memory_slices: 8,
        is_offered_whole: false,
        profiles: A100,
    };

    /// An H100 with 80 GB: offered whole and in parts.
    pub const H100: Self = Self {
        product: "NVIDIA H100 80GB HBM3",
        architecture: "Hopper",
        compute_capability: "9.0.0",
        memory_slices: 8,
        is_offered_whole: true,
        profiles: H100,
    };

    /// The most of each amount that a profile has: what the GPU has of it.
    fn amounts(&self) -> [u64; 7] {
        let mut most = [0; 7];
        for profile in self.profiles {
            for (most, amount) in most.iter_mut().zip(profile.amounts()) {
                *most = amount.max(*most);
            }
        }
        most
    }

    /// All that can be drawn from a GPU, by counter.
    pub(super) fn counters(&self) -> BTreeMap<String, u64> {
        counters(self.amounts(), 0..self.memory_slices)
    }

    /// The devices of the GPU with this number on its node, by name.
    pub(super) fn devices(&self, number: usize) -> Vec<Offered> {
        let mut devices = Vec::new();
        if self.is_offered_whole {
            let (name, amounts) = (format!("gpu-{number}"), self.amounts());
            devices.push(Offered { name, profile: None, amounts, memory: 0..self.memory_slices });
        }
        for profile in self.profiles {
            let written = profile.name.replace('.', "").replace('+', "-");
            for start in profile.starts {
                devices.push(Offered {
                    name: format!("gpu-{number}-mig-{written}-{}-{start}", profile.number),
                    profile: Some(profile.name),
                    amounts: profile.amounts(),
                    memory: *start..start + profile.memory_slices,
                });
            }
        }
        devices.sort_by(|one, other| one.name.cmp(&other.name));
        devices
    }
}

impl Profile {
    fn amounts(&self) -> [u64; 7] {
        let [copy, decoders, jpeg, ofa] = self.engines;
        [self.multiprocessors, self.memory_mib * MIB, copy, decoders, 0, jpeg, ofa]
    }
}

impl Offered {
    /// What the device draws from its GPU, by counter.
    pub(super) fn draws(&self) -> BTreeMap<String, u64> {
        counters(self.amounts, self.memory.clone())
    }
}

/// Amounts by the names of counters, and one of each memory slice.
fn counters(amounts: [u64; 7], memory: std::ops::Range<u8>) -> BTreeMap<String, u64> {
    let named = AMOUNTS.iter().map(|(_, counter)| (*counter).to_owned()).zip(amounts);
    named.chain(memory.map(|slice| (format!("memory-slice-{slice}"), 1))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_profile_is_offered_at_each_place_under_the_name_of_the_driver() {
        let whole = DraGpu::H100.devices(1);
        let names: Vec<&str> = whole.iter().map(|device| &*device.name).collect();
        assert_eq!(names.len(), 26);
        assert!(names.is_sorted());
        for name in ["gpu-1", "gpu-1-mig-1g10gb-19-6", "gpu-1-mig-1g10gb-me-20-0"] {
            assert!(names.contains(&name), "{name}");
        }
        assert_eq!(DraGpu::A100_40GB.devices(0).len(), 25);
        assert_eq!(whole[0].draws(), DraGpu::H100.counters());
    }
}
