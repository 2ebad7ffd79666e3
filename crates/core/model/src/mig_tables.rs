//! The MIG profiles of each GPU model that can be cut, with the memory slices at which an instance
//! may start. Facts restated from NVIDIA's Multi-Instance GPU user guide, its mig-parted and
//! go-nvml (NOTICE).

use crate::device::{MigProfile, MigTable};
use crate::gpu_model::{gpu_model, lacks_memory_size};

/// Models that are cut alike, with the memory in the names of their profiles, in GB: of an instance
/// with one memory slice, with two, with half of the GPU and with all of it.
struct Alike {
    name: &'static str,
    models: &'static [&'static str],
    gb: [u16; 4],
}

const fn alike(name: &'static str, models: &'static [&'static str], gb: [u16; 4]) -> Alike {
    Alike { name, models, gb }
}

/// GPUs with seven compute and eight memory slices.
const SEVEN: [Alike; 10] = [
    alike("A100-40GB", &["A100-40GB", "A800-40GB"], [5, 10, 20, 40]),
    alike("A100-80GB", &["A100-80GB", "A800-80GB", "H100", "H800"], [10, 20, 40, 80]),
    alike("H100-NVL", &["H100-NVL"], [12, 24, 47, 94]),
    alike("GH200", &["GH200", "H20"], [12, 24, 48, 96]),
    alike("GH200-144GB", &["GH200-144GB"], [18, 36, 72, 144]),
    alike("H200", &["H200", "H200-NVL"], [18, 35, 71, 141]),
    alike("B200", &["B200"], [23, 45, 90, 180]),
    alike("GB200", &["GB200"], [23, 47, 93, 186]),
    alike("B300", &["B300"], [34, 67, 135, 269]),
    alike("GB300", &["GB300"], [35, 70, 139, 278]),
];

/// GPUs with four compute and four memory slices: here two memory slices are half of the GPU.
const FOUR: [Alike; 2] = [
    alike("A30", &["A30"], [6, 12, 12, 24]),
    alike("RTX-PRO-6000", &["RTX-PRO-6000"], [24, 48, 48, 96]),
];

/// What follows the name of a profile whose instance has the media engines.
const WITH_MEDIA: &str = "+me";

impl MigTable {
    /// How a GPU is cut whose label names this model; `None` where the tables do not say it, and
    /// where the label names several models ([`lacks_memory_size`]).
    pub fn of_model(label: &str) -> Option<Self> {
        if lacks_memory_size(label) {
            return None;
        }
        let model = gpu_model(label)?;
        let of =
            |tables: &'static [Alike]| tables.iter().find(|alike| alike.models.contains(&model));
        of(&SEVEN).map(seven).or_else(|| of(&FOUR).map(four))
    }

    /// All tables, each once.
    pub fn all() -> impl Iterator<Item = Self> {
        SEVEN.iter().map(seven).chain(FOUR.iter().map(four))
    }
}

impl MigProfile {
    /// Whether its instance has the media engines, of which a GPU has one set.
    pub fn has_media(&self) -> bool {
        self.name.ends_with(WITH_MEDIA)
    }
}

fn seven(of: &Alike) -> MigTable {
    let [one, two, half, all] = of.gb;
    let starts = |starts: &[u8]| starts.to_vec();
    let single = starts(&[0, 1, 2, 3, 4, 5, 6]);
    MigTable {
        name: of.name.to_owned(),
        memory_slices: 8,
        compute_slices: 7,
        profiles: vec![
            profile(1, one, "", 1, single.clone()),
            profile(1, two, "", 2, starts(&[0, 2, 4, 6])),
            profile(2, two, "", 2, starts(&[0, 2, 4])),
            profile(3, half, "", 4, starts(&[0, 4])),
            profile(4, half, "", 4, starts(&[0])),
            profile(7, all, "", 8, starts(&[0])),
            profile(1, one, WITH_MEDIA, 1, single),
        ],
    }
}

fn four(of: &Alike) -> MigTable {
    let [one, two, _, all] = of.gb;
    let mut profiles = vec![
        profile(1, one, "", 1, vec![0, 1, 2, 3]),
        profile(2, two, "", 2, vec![0, 2]),
        profile(4, all, "", 4, vec![0]),
    ];
    // Where on the newer GPU an instance with media engines may start is not stated.
    if of.name == "A30" {
        profiles.push(profile(1, one, WITH_MEDIA, 1, vec![0, 1, 2, 3]));
        profiles.push(profile(2, two, WITH_MEDIA, 2, vec![0, 2]));
    }
    MigTable { name: of.name.to_owned(), memory_slices: 4, compute_slices: 4, profiles }
}

fn profile(compute: u8, gb: u16, engines: &str, memory: u8, starts: Vec<u8>) -> MigProfile {
    MigProfile {
        name: format!("{compute}g.{gb}gb{engines}"),
        compute_slices: compute,
        memory_slices: memory,
        starts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_profiles_are_found_by_the_names_that_drivers_use() {
        let profile = |model: &str, name: &str| {
            let table = MigTable::of_model(model)?;
            let place = table.profile(name)?;
            Some(table.profiles[place].name.clone())
        };
        let named = |name: &str| Some(name.to_owned());
        assert_eq!(profile("NVIDIA-A100-SXM4-80GB", "3g.39gb"), named("3g.40gb"));
        assert_eq!(profile("NVIDIA-A100-SXM4-80GB", "7g.79gb"), named("7g.80gb"));
        assert_eq!(profile("NVIDIA-A100-SXM4-80GB", "1g.10gb.me"), named("1g.10gb+me"));
        assert_eq!(profile("NVIDIA-GB200", "7g.189gb"), named("7g.186gb"));
        assert_eq!(profile("NVIDIA-A30", "2g.12gb"), named("2g.12gb"));
        // Another GPU's profiles, engines that nobody states, no profile.
        let large = "1g.9999999999999999999gb";
        for strange in ["1g.20gb", "1g.5gb+gfx", "2g", "x.5gb", large, ""] {
            assert_eq!(profile("NVIDIA-A100-PCIE-40GB", strange), None, "{strange}");
        }
        assert_eq!(MigTable::of_model("Tesla-T4"), None);
        // Of two memory sizes, with other profiles each.
        assert_eq!(MigTable::of_model("NVIDIA-A100"), None);
        assert_eq!(profile("nvidia-tesla-a100", "1g.5gb"), named("1g.5gb"));
    }

    /// What NVML of driver 580.159 reports on an H100 80GB HBM3 and on an H200: names, and starts
    /// with their sizes in memory slices (`nvmlDeviceGetGpuInstancePossiblePlacements_v2`).
    #[test]
    fn tables_are_those_that_a_driver_reports() {
        let reported = [
            ("NVIDIA H100 80GB HBM3", ["1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb"]),
            ("NVIDIA H200", ["1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb"]),
        ];
        let starts: [(&[u8], u8); 5] = [
            (&[0, 1, 2, 3, 4, 5, 6], 1),
            (&[0, 2, 4, 6], 2),
            (&[0, 2, 4], 2),
            (&[0, 4], 4),
            (&[0], 4),
        ];
        for (model, names) in reported {
            let table = MigTable::of_model(model).expect(model);
            let ours = table.profiles.iter().take(5);
            let ours = ours.map(|p| (p.name.as_str(), (p.starts.as_slice(), p.memory_slices)));
            assert!(ours.eq(names.into_iter().zip(starts)), "{model}");
            let whole = if model.ends_with("H200") { "7g.141gb" } else { "7g.80gb" };
            assert_eq!(table.profiles[5].name, whole);
            assert_eq!(table.profiles[5].memory_slices, 8);
            assert_eq!(table.profiles[6].name, format!("{}+me", names[0]));
            assert_eq!(table.profiles[6].starts, table.profiles[0].starts);
        }
    }
}
