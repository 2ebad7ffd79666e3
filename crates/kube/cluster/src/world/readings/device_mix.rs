//! The most devices that pods of several kinds get on a node together: of all mixes of them that
//! the allocator serves at once.

use dovetail_devices::{AllocationOutcome, Reached};
use dovetail_objects::ResourceClaim;

use crate::world::objects::surveys::PodKind;

/// Mixes that are tried on a node before it counts as one where no kind leaves another less.
const TRIALS: u32 = 256;
/// States that are looked at for one mix. One that is not decided within them counts as served: the
/// bound never keeps pods off that fit.
const STEPS: u64 = 2_000;

/// The most devices that the units of some kinds count as which a node serves together.
pub(crate) fn most_together(reached: &Reached<'_>, kinds: &[PodKind]) -> u32 {
    let alone = vec![0; kinds.len()];
    let mut search = MixSearch { reached, kinds, alone, trials: TRIALS, is_spent: false, best: 0 };
    search.alone = (0..kinds.len()).map(|kind| search.most_alone(kind)).collect();
    let all = search.alone.clone();
    let devices = search.devices(&all);
    if search.is_served(&all) {
        return devices;
    }
    search.improve(0, &mut vec![0; kinds.len()]);
    if !search.is_spent {
        return search.best;
    }
    let most: Vec<u32> = kinds.iter().map(|kind| kind.most).collect();
    search.devices(&most)
}

struct MixSearch<'k, 'o> {
    reached: &'k Reached<'o>,
    kinds: &'k [PodKind],
    /// Units of each kind that the node serves without the others.
    alone: Vec<u32>,
    /// Mixes that may still be tried.
    trials: u32,
    is_spent: bool,
    /// The most devices of a mix that is served.
    best: u32,
}

impl MixSearch<'_, '_> {
    fn most_alone(&mut self, kind: usize) -> u32 {
        let mut units = vec![0; self.kinds.len()];
        while units[kind] < self.kinds[kind].most {
            units[kind] += 1;
            if !self.is_served(&units) {
                return units[kind] - 1;
            }
        }
        units[kind]
    }

    /// Devices that so many units of the first kinds count as.
    fn devices(&self, units: &[u32]) -> u32 {
        let of_kinds = self.kinds.iter().zip(units);
        of_kinds.fold(0, |sum: u32, (kind, units)| {
            sum.saturating_add(kind.devices.saturating_mul(*units))
        })
    }

    /// Looks for better mixes with these units of the kinds before `at`, the most of a kind first.
    fn improve(&mut self, at: usize, units: &mut [u32]) {
        if at + 1 == self.kinds.len() {
            return self.improve_last(units);
        }
        for of_kind in (0..=self.alone[at]).rev() {
            let mut hoped = self.alone.clone();
            hoped[..at].copy_from_slice(&units[..at]);
            hoped[at] = of_kind;
            if self.is_spent || self.devices(&hoped) <= self.best {
                break;
            }
            units[at] = of_kind;
            self.improve(at + 1, units);
        }
        units[at] = 0;
    }

    /// The same where all but the last kind have their units.
    fn improve_last(&mut self, units: &mut [u32]) {
        let last = units.len() - 1;
        let (devices, each) = (self.devices(&units[..last]), self.kinds[last].devices.max(1));
        let least = match self.best.checked_sub(devices) {
            Some(short) if self.best > 0 => short / each + 1,
            _ => 0,
        };
        for of_kind in least..=self.alone[last] {
            units[last] = of_kind;
            if !self.is_served(units) {
                break;
            }
            self.best = self.best.max(self.devices(units));
        }
        units[last] = 0;
    }

    /// Whether the node serves so many units of each kind together, as far as is known.
    fn is_served(&mut self, units: &[u32]) -> bool {
        let Some(left) = self.trials.checked_sub(1) else {
            self.is_spent = true;
            return false;
        };
        self.trials = left;
        let of_kinds = self.kinds.iter().zip(units);
        let claims: Vec<&ResourceClaim> =
            of_kinds.flat_map(|(kind, units)| (0..*units).flat_map(move |_| &kind.unit)).collect();
        if claims.is_empty() {
            return true;
        }
        !matches!(self.reached.allocate(&claims, STEPS), AllocationOutcome::No(_))
    }
}
