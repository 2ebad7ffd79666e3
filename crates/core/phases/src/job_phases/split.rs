//! One piece of time split into phases, by what events, its own sample and the other members say.

use dovetail_model::in_proportion;

use super::mixture::Mixture;
use super::phase::Phase;
use super::piece::{Piece, PieceState};
use super::scene::{JobScene, MemberScene};

/// What a split looks at.
pub(super) struct Splitter<'a> {
    pub(super) scene: &'a JobScene,
    pub(super) member: &'a MemberScene,
    pub(super) step_ms: u64,
    /// By sample: the part of it in which a checkpoint was read or written at the full rate.
    pub(super) read_part: &'a [f64],
    pub(super) write_part: &'a [f64],
    /// A checkpoint existed before the first attempt.
    pub(super) starts_from_checkpoint: bool,
}

/// Work, spinning, idling, busy and unknown of a piece, in ms.
struct Base {
    spin_ms: u64,
    idle_ms: u64,
    busy_ms: u64,
}

/// So much work while others do not run is work: the job can do without them.
const ELASTIC: f64 = 0.3;

impl Splitter<'_> {
    /// Splits all pieces of the member.
    pub(super) fn split(&self, pieces: &mut [Piece]) {
        pieces.iter_mut().for_each(|piece| self.split_one(piece));
    }

    fn split_one(&self, piece: &mut Piece) {
        let mixture = self.mixture(piece.step);
        let alone = match piece.state {
            PieceState::Down => return piece.set(Phase::ImageAndStart),
            PieceState::Gone => return piece.set(Phase::Tail),
            PieceState::Together(attempt) => {
                return self.by_signals(piece, &mixture, Some(attempt));
            }
            PieceState::Alone => Phase::GangWait,
            PieceState::Last => Phase::Tail,
        };
        let length_ms = piece.length_ms() as f64;
        let before_ms = self.step_ms as f64 - length_ms;
        let work_ms = (mixture.work + mixture.busy) * self.step_ms as f64 - before_ms;
        match work_ms > ELASTIC * length_ms && mixture.work > ELASTIC {
            true => self.by_signals(piece, &mixture, None),
            false => piece.set(alone),
        }
    }

    fn mixture(&self, step: usize) -> Mixture {
        let nothing = Mixture { unknown: 1.0, ..Mixture::default() };
        self.member.mixtures.get(step).copied().unwrap_or(nothing)
    }

    fn by_signals(&self, piece: &mut Piece, mixture: &Mixture, attempt: Option<usize>) {
        let base = self.base(piece, mixture);
        piece.waiting_ms = base.spin_ms + base.idle_ms;
        let first = attempt.and_then(|attempt| self.scene.first_work[attempt]);
        let starts = attempt.is_some_and(|attempt| !self.scene.underway[attempt]);
        let is_opening = starts && first.is_none_or(|first| piece.step <= first);
        let last = attempt.and_then(|attempt| self.member.closes[attempt]);
        if is_opening {
            self.opening(piece, mixture, &base, attempt.unwrap_or(0));
        } else if last.is_some_and(|last| piece.step >= last) {
            self.closing(piece, mixture, &base, last == Some(piece.step));
        } else {
            self.ordinary(piece, mixture, &base);
        }
    }

    /// Sets work and unknown, and says what else there is. What events explain of the sample was
    /// without work and is taken off first.
    fn base(&self, piece: &mut Piece, mixture: &Mixture) -> Base {
        let length_ms = piece.length_ms();
        let outside = 1.0 - length_ms as f64 / self.step_ms as f64;
        let idle = (mixture.idle - outside).max(0.0);
        let shares = [mixture.work, mixture.spin, idle, mixture.busy, mixture.unknown];
        let weights = shares.map(|share| (share * 1e6) as i128);
        let parts = match weights.iter().sum::<i128>() {
            0 => vec![0, 0, i128::from(length_ms), 0, 0],
            _ => in_proportion(i128::from(length_ms), &weights),
        };
        let part = |number: usize| parts[number] as u64;
        piece.parts[Phase::Compute as usize] = part(0);
        piece.parts[Phase::Unknown as usize] = part(4);
        Base { spin_ms: part(1), idle_ms: part(2), busy_ms: part(3) }
    }

    /// Up to the first work of an attempt.
    fn opening(&self, piece: &mut Piece, mixture: &Mixture, base: &Base, attempt: usize) {
        let wait_ms = base.spin_ms + base.idle_ms;
        let is_first_work = self.scene.first_work[attempt] == Some(piece.step);
        // Kernels before the first work set up the collectives.
        let busy = if is_first_work { Phase::BusyNotSeparable } else { Phase::ImageAndStart };
        piece.parts[busy as usize] += base.busy_ms;
        piece.parts[Phase::ImageAndStart as usize] += wait_ms;
        let restores = attempt > 0 || self.starts_from_checkpoint;
        if restores {
            let restore_ms = self.read_part[piece.step] * self.step_ms as f64;
            let (from, to) = (Phase::ImageAndStart, Phase::CheckpointRestore);
            piece.shift(from, to, wait_ms.min(restore_ms as u64));
        }
        if mixture.host.is_known && !mixture.host.feeds() {
            piece.calm_ms = base.idle_ms.min(piece.parts[Phase::ImageAndStart as usize]);
        }
    }

    /// From the last work of a member that completed.
    fn closing(&self, piece: &mut Piece, mixture: &Mixture, base: &Base, is_last: bool) {
        let step = &self.scene.steps[piece.step];
        if !is_last && base.spin_ms > base.idle_ms && step.work > ELASTIC {
            return self.ordinary(piece, mixture, base);
        }
        piece.parts[Phase::BusyNotSeparable as usize] += base.busy_ms;
        piece.parts[Phase::Tail as usize] += base.spin_ms + base.idle_ms;
        piece.shift(Phase::Tail, Phase::CheckpointSave, self.write_ms(piece.step));
    }

    /// Time of a sample in which a checkpoint was written at the full rate.
    fn write_ms(&self, step: usize) -> u64 {
        (self.write_part[step] * self.step_ms as f64) as u64
    }

    fn ordinary(&self, piece: &mut Piece, mixture: &Mixture, base: &Base) {
        let length_ms = piece.length_ms();
        piece.parts[Phase::BusyNotSeparable as usize] += base.busy_ms;
        piece.parts[Phase::Synchronisation as usize] += base.spin_ms;
        let host = mixture.host;
        let (idle_phase, is_calm) = match host.is_known {
            false => (Phase::Unknown, true),
            true if host.feeds() => (Phase::DataLoading, false),
            true => (Phase::ShortGap, true),
        };
        piece.parts[idle_phase as usize] += base.idle_ms;
        if idle_phase == Phase::DataLoading && self.member.is_slack(piece.step) {
            // The usual part of the idling is still that of loading.
            let usual_ms = (self.member.usual_idle * length_ms as f64) as u64;
            let gap_ms = base.idle_ms.saturating_sub(usual_ms);
            piece.calm_ms = piece.shift(Phase::DataLoading, Phase::ShortGap, gap_ms);
        }
        if is_calm {
            piece.calm_ms = base.idle_ms;
        }
        if self.scene.steps[piece.step].outwards.is_some() {
            let excess_ms = self.member.excess(mixture.waiting()) * length_ms as f64;
            let mut left_ms = (excess_ms as u64).min(self.write_ms(piece.step));
            for from in [Phase::Synchronisation, idle_phase, Phase::ShortGap] {
                left_ms -= piece.shift(from, Phase::CheckpointSave, left_ms);
            }
            piece.calm_ms = 0;
        }
    }
}
