//! Mixes of profiles: which sizes pods ask for.

use dovetail_model::MigTable;

/// A mix by name: the weight of each size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// Name for the command line.
    pub name: &'static str,
    pub about: &'static str,
    /// Weights of instances with 1, 2, 3, 4 and 7 compute slices.
    weights: [f64; 5],
}

/// Compute slices of the sizes that mixes weigh.
const SIZES: [u8; 5] = [1, 2, 3, 4, 7];

const fn mix(name: &'static str, about: &'static str, weights: [f64; 5]) -> Mix {
    Mix { name, about, weights }
}

/// The mixes that are known.
pub const MIXES: [Mix; 5] = [
    mix("uniform", "Every size equally likely", [0.2, 0.2, 0.2, 0.2, 0.2]),
    mix("small", "Half 1g, a quarter 2g, few large ones", [0.5, 0.25, 0.15, 0.06, 0.04]),
    mix("big", "A third 7g, few small ones", [0.06, 0.1, 0.2, 0.28, 0.36]),
    mix("bimodal", "Mostly 1g and 7g", [0.4, 0.08, 0.04, 0.08, 0.4]),
    mix("inference", "1g to 4g, no whole GPU", [0.45, 0.25, 0.2, 0.1, 0.0]),
];

impl Mix {
    /// A mix by its name.
    pub fn named(name: &str) -> Option<Self> {
        MIXES.into_iter().find(|mix| mix.name == name)
    }

    /// Profiles of a GPU, by their places in its table, with their weights: for each size the
    /// profile with the least memory and without media engines. Sizes that the GPU does not have
    /// are left out.
    pub fn profiles(&self, table: &MigTable) -> Vec<(usize, f64)> {
        let of_size = |size: u8| {
            let places = table.profiles.iter().enumerate();
            let fitting = places.filter(|(_, p)| p.compute_slices == size && !p.has_media());
            fitting.min_by_key(|(_, profile)| profile.memory_slices).map(|(place, _)| place)
        };
        let sizes = SIZES.into_iter().zip(self.weights).filter(|(_, weight)| *weight > 0.0);
        sizes.filter_map(|(size, weight)| Some((of_size(size)?, weight))).collect()
    }
}
