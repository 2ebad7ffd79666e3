//! A GPU with some instances on it: what is taken, what still fits.

use dovetail_model::{MigProfile, MigTable};

/// What is taken of one GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GpuCut {
    /// Taken memory slices, one bit each.
    pub(crate) mask: u16,
    /// Taken compute slices.
    pub(crate) compute: u8,
    /// The media engines are taken.
    pub(crate) media: bool,
}

impl GpuCut {
    /// The same with one instance more; `None` if it does not fit there.
    pub fn with(self, table: &MigTable, profile: &MigProfile, start: u8) -> Option<Self> {
        let mask = profile.mask_at(start);
        let compute = self.compute + profile.compute_slices;
        let fits = self.mask & mask == 0
            && compute <= table.compute_slices
            && !(self.media && profile.has_media());
        let media = self.media || profile.has_media();
        fits.then_some(Self { mask: self.mask | mask, compute, media })
    }

    /// The same without an instance that is there.
    #[must_use]
    pub fn without(self, profile: &MigProfile, start: u8) -> Self {
        Self {
            mask: self.mask & !profile.mask_at(start),
            compute: self.compute - profile.compute_slices,
            media: self.media && !profile.has_media(),
        }
    }

    /// Compute slices that are not taken.
    pub fn compute_left(self, table: &MigTable) -> u8 {
        table.compute_slices - self.compute
    }

    /// How many instances of a profile fit beside what is taken. Instances of one profile have one
    /// length, so taking the lowest free start again and again is the most.
    fn fitting(self, table: &MigTable, profile: &MigProfile) -> i64 {
        let by_compute = self.compute_left(table) / profile.compute_slices.max(1);
        let most = if profile.has_media() { by_compute.min(1) } else { by_compute };
        let mut taken = self.mask;
        let mut count = 0;
        if self.media && profile.has_media() {
            return 0;
        }
        for start in &profile.starts {
            let mask = profile.mask_at(*start);
            if count < most && taken & mask == 0 {
                taken |= mask;
                count += 1;
            }
        }
        i64::from(count)
    }

    /// Room for a mix of profiles: Σ weight × compute slices × how many would fit of it alone. An
    /// idle instance is room for its own profile.
    pub fn room(self, table: &MigTable, weights: &[i64], idle: &[u8]) -> i64 {
        let of = |place: usize| {
            let profile = &table.profiles[place];
            let count = self.fitting(table, profile) + i64::from(idle[place]);
            weights[place] * i64::from(profile.compute_slices) * count
        };
        (0..table.profiles.len()).filter(|place| weights[*place] > 0).map(of).sum()
    }
}
