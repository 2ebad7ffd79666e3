//! What truly happened to one member, second by second.

use dovetail_phases::job_phases::{PHASES, Phase};

pub(crate) const QUANTITIES: usize = 12;

/// What a device and its host have of themselves at each moment. Shares from 0 to 1, power in
/// watts, CPUs in numbers, rates in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    Engine,
    Util,
    Sm,
    Tensor,
    Dram,
    Nvlink,
    Power,
    Cpus,
    Read,
    Written,
    Received,
    Sent,
}

/// The quantities of one moment, or their means over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Levels(pub(crate) [f64; QUANTITIES]);

impl Levels {
    /// With one more.
    pub(crate) fn with(mut self, quantity: Quantity, value: f64) -> Self {
        self.0[quantity as usize] = value;
        self
    }

    pub(crate) fn get(&self, quantity: Quantity) -> f64 {
        self.0[quantity as usize]
    }
}

/// One member's time from the begin of the job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tape {
    seconds: Vec<Second>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Second {
    truth_ms: [u16; PHASES],
    levels: Levels,
}

/// How a board draws power.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Board {
    pub(crate) idle_watts: f64,
    pub(crate) full_watts: f64,
    /// What runs draws so much of the difference, whatever it does.
    pub(crate) spin_part: f64,
    /// What tensor cores that always work, and memory that always works, draw of it.
    pub(crate) tensor_part: f64,
    pub(crate) dram_part: f64,
    /// Time constant of what is reported.
    pub(crate) lag_s: f64,
}

impl Tape {
    /// Adds some time in which nothing changed.
    pub(crate) fn add(&mut self, from_ms: u64, to_ms: u64, phase: Phase, levels: &Levels) {
        let mut at_ms = from_ms;
        while at_ms < to_ms {
            let second = (at_ms / 1000) as usize;
            let end_ms = to_ms.min((at_ms / 1000 + 1) * 1000);
            if self.seconds.len() <= second {
                self.seconds.resize(second + 1, Second::default());
            }
            let Second { truth_ms, levels: sums } = &mut self.seconds[second];
            truth_ms[phase as usize] += (end_ms - at_ms) as u16;
            let part = (end_ms - at_ms) as f64 / 1000.0;
            sums.0.iter_mut().zip(levels.0).for_each(|(sum, level)| *sum += part * level);
            at_ms = end_ms;
        }
    }

    /// Gives what was done in whole seconds another name.
    pub(crate) fn rename(&mut self, from_ms: u64, to_ms: u64, from: &[Phase], to: Phase) {
        let last = (to_ms / 1000) as usize;
        let seconds = self.seconds.iter_mut().take(last).skip((from_ms / 1000) as usize);
        for second in seconds {
            for phase in from {
                let moved_ms = std::mem::take(&mut second.truth_ms[*phase as usize]);
                second.truth_ms[to as usize] += moved_ms;
            }
        }
    }

    /// Fills in the power that follows from everything else, with its lag.
    pub(crate) fn draw_power(&mut self, board: &Board) {
        let keep = libm::exp(-1.0 / board.lag_s);
        let mut watts = board.idle_watts;
        for second in &mut self.seconds {
            let levels = &second.levels;
            let load = board.spin_part * levels.get(Quantity::Engine)
                + board.tensor_part * levels.get(Quantity::Tensor)
                + board.dram_part * levels.get(Quantity::Dram);
            let wanted = board.idle_watts + (board.full_watts - board.idle_watts) * load.min(1.0);
            watts = keep * watts + (1.0 - keep) * wanted;
            second.levels.0[Quantity::Power as usize] = watts;
        }
    }

    /// Sums over all seconds before each, for means over any window.
    pub(crate) fn sums(&self) -> Vec<Levels> {
        let mut sums = vec![Levels::default()];
        for second in &self.seconds {
            let mut next = sums[sums.len() - 1];
            next.0.iter_mut().zip(second.levels.0).for_each(|(sum, level)| *sum += level);
            sums.push(next);
        }
        sums
    }

    /// What truly happened in some whole seconds, in ms.
    pub(crate) fn truth_ms(&self, from_s: usize, to_s: usize) -> [u64; PHASES] {
        let mut truth_ms = [0; PHASES];
        for second in self.seconds.iter().take(to_s).skip(from_s) {
            truth_ms.iter_mut().zip(second.truth_ms).for_each(|(sum, ms)| *sum += u64::from(ms));
        }
        truth_ms
    }
}
