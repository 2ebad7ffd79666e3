//! How well phases are told: what was said of each second beside what it was.

use dovetail_phases::job_phases::{MemberPhases, PHASES, Phase};

use crate::scrape::{BEGIN_MS, Collected};
use crate::tape::Tape;

/// Time by what it was (first) and what was said (second), in ms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confusion {
    /// By number of [`Phase`].
    pub time_ms: [[u64; PHASES]; PHASES],
}

impl Confusion {
    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        for (row, more) in self.time_ms.iter_mut().zip(&other.time_ms) {
            row.iter_mut().zip(more).for_each(|(sum, ms)| *sum += ms);
        }
    }

    /// Share of all time that was this.
    pub fn share(&self, phase: Phase) -> f64 {
        let all: u64 = self.time_ms.iter().flatten().sum();
        self.truth_ms(phase) as f64 / all.max(1) as f64
    }

    /// Of what was said to be this, the part that was.
    pub fn precision(&self, phase: Phase) -> f64 {
        let said: u64 = self.time_ms.iter().map(|row| row[phase as usize]).sum();
        self.right_ms(phase) as f64 / said.max(1) as f64
    }

    /// Of what was this, the part that was said to be.
    pub fn recall(&self, phase: Phase) -> f64 {
        self.right_ms(phase) as f64 / self.truth_ms(phase).max(1) as f64
    }

    fn right_ms(&self, phase: Phase) -> u64 {
        self.time_ms[phase as usize][phase as usize]
    }

    fn truth_ms(&self, phase: Phase) -> u64 {
        self.time_ms[phase as usize].iter().sum()
    }

    /// Compares one member's time in blocks of two samples: shorter phases have no place, so that
    /// only how long they were counts within a block. What was missed is set against what was said
    /// too much, in proportion.
    pub(crate) fn compare(&mut self, truth: &Tape, said: &MemberPhases, rule: &Truth) {
        let block_s = (2 * rule.step_ms / 1000) as usize;
        let held = said.stretches.first().zip(said.stretches.last());
        let Some((first, last)) = held else { return };
        let (from_ms, to_ms) = (first.span.from_ms - BEGIN_MS, last.span.to_ms - BEGIN_MS);
        let blocks = from_ms / 1000 / block_s as u64..=to_ms / 1000 / block_s as u64;
        let mut said_blocks = vec![[0.0; PHASES]; *blocks.end() as usize + 1];
        for stretch in &said.stretches {
            let length_ms = stretch.span.to_ms - stretch.span.from_ms;
            let mut at_ms = stretch.span.from_ms - BEGIN_MS;
            while at_ms < stretch.span.to_ms - BEGIN_MS {
                let block = at_ms / (1000 * block_s as u64);
                let end_ms =
                    ((block + 1) * 1000 * block_s as u64).min(stretch.span.to_ms - BEGIN_MS);
                for part in &stretch.parts {
                    let share = part.length_ms as f64 / length_ms as f64;
                    said_blocks[block as usize][part.phase as usize] +=
                        share * (end_ms - at_ms) as f64;
                }
                at_ms = end_ms;
            }
        }
        for block in blocks {
            let from_s = block as usize * block_s;
            let truth = rule.expected(truth.truth_ms(from_s, from_s + block_s));
            self.compare_block(&truth, &said_blocks[block as usize]);
        }
    }

    fn compare_block(&mut self, truth: &[u64; PHASES], said: &[f64; PHASES]) {
        let said = said.map(|ms| (ms + 0.5) as u64);
        let mut missed = [0; PHASES];
        let mut extra = [0; PHASES];
        for phase in 0..PHASES {
            let right_ms = truth[phase].min(said[phase]);
            self.time_ms[phase][phase] += right_ms;
            missed[phase] = truth[phase] - right_ms;
            extra[phase] = said[phase] - right_ms;
        }
        let extra_ms: u64 = extra.iter().sum();
        for (was, missed_ms) in missed.into_iter().enumerate() {
            for (other, other_ms) in extra.into_iter().enumerate() {
                self.time_ms[was][other] += missed_ms * other_ms / extra_ms.max(1);
            }
        }
    }
}

/// What counts as right.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Truth {
    pub(crate) step_ms: u64,
    pub(crate) collected: Collected,
    pub(crate) ranks: usize,
    /// It waits in a collective while another rank writes a checkpoint.
    pub(crate) spins_while_saving: bool,
}

impl Truth {
    /// What these signals can tell of what happened: what they cannot separate is right when it is
    /// said to be unknown.
    fn expected(&self, truth: [u64; PHASES]) -> [u64; PHASES] {
        if self.collected != Collected::UtilOnly {
            return truth;
        }
        let mut expected = [0; PHASES];
        for phase in Phase::ALL {
            let told = match phase {
                Phase::Compute if self.ranks == 1 => phase,
                Phase::Compute | Phase::Synchronisation => Phase::BusyNotSeparable,
                // It is not told from the work that was lost before it.
                Phase::Hang => Phase::Repeated,
                Phase::CheckpointSave if self.spins_while_saving => Phase::BusyNotSeparable,
                Phase::DataLoading | Phase::ShortGap | Phase::CheckpointSave => Phase::Unknown,
                // Nothing says that something was read.
                Phase::CheckpointRestore => Phase::ImageAndStart,
                phase => phase,
            };
            expected[told as usize] += truth[phase as usize];
        }
        expected
    }
}
