//! A member's held time cut where samples begin and where events happened.

use std::collections::BTreeSet;

use dovetail_account::device_time::Span;

use super::attempt::Attempt;
use super::phase::{PHASES, Phase};
use super::record::{Member, RunEnd};

/// What events say about a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceState {
    /// Its container did not run yet, or not yet again.
    Down,
    /// Its container ran for the last time.
    Gone,
    /// It ran, another rank did not.
    Alone,
    /// It ran on after others had completed.
    Last,
    /// All ranks ran: the number of the attempt.
    Together(usize),
}

/// A piece of one sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) span: Span,
    /// Number of the sample.
    pub(super) step: usize,
    pub(super) state: PieceState,
    /// Time by phase; together the piece.
    pub(super) parts: [u64; PHASES],
    /// Idle time in which the host did nothing that is known, within `parts`.
    pub(super) calm_ms: u64,
    /// Time in which kernels spun or nothing ran, within `parts`.
    pub(super) waiting_ms: u64,
}

impl Piece {
    pub(super) fn length_ms(&self) -> u64 {
        self.span.to_ms - self.span.from_ms
    }

    pub(super) fn set(&mut self, phase: Phase) {
        self.parts = [0; PHASES];
        self.parts[phase as usize] = self.length_ms();
    }

    /// Moves up to `length_ms` of a phase to another, and says how much was moved.
    pub(super) fn shift(&mut self, from: Phase, to: Phase, length_ms: u64) -> u64 {
        let moved_ms = length_ms.min(self.parts[from as usize]);
        self.parts[from as usize] -= moved_ms;
        self.parts[to as usize] += moved_ms;
        moved_ms
    }

    pub(super) fn rename(&mut self, from: Phase, to: Phase) {
        self.shift(from, to, u64::MAX);
    }
}

/// The pieces of one member, without phases.
pub(super) fn pieces(
    member: &Member,
    attempts: &[Attempt],
    from_ms: u64,
    step_ms: u64,
) -> Vec<Piece> {
    let Span { from_ms: held_ms, to_ms } = member.held;
    let mut cuts = BTreeSet::from([held_ms, to_ms]);
    let runs = member.runs.iter().map(|run| run.span);
    for span in runs.chain(attempts.iter().map(|attempt| attempt.span)) {
        cuts.extend([span.from_ms, span.to_ms]);
    }
    let first = (held_ms - from_ms) / step_ms;
    let steps = (first + 1..).map(|step| from_ms + step * step_ms);
    cuts.extend(steps.take_while(|at_ms| *at_ms < to_ms));
    let cuts: Vec<u64> = cuts.range(held_ms..=to_ms).copied().collect();
    let piece = |pair: &[u64]| Piece {
        span: Span { from_ms: pair[0], to_ms: pair[1] },
        step: ((pair[0] - from_ms) / step_ms) as usize,
        state: state(member, attempts, pair[0]),
        parts: [0; PHASES],
        calm_ms: 0,
        waiting_ms: 0,
    };
    cuts.windows(2).map(piece).collect()
}

fn state(member: &Member, attempts: &[Attempt], at_ms: u64) -> PieceState {
    let holds = |span: &Span| span.from_ms <= at_ms && at_ms < span.to_ms;
    let next = attempts.partition_point(|attempt| attempt.span.from_ms <= at_ms);
    if !member.runs.iter().any(|run| holds(&run.span)) {
        let is_over = member.runs.last().is_some_and(|run| run.span.to_ms <= at_ms);
        return if is_over { PieceState::Gone } else { PieceState::Down };
    }
    let Some(last) = next.checked_sub(1) else { return PieceState::Alone };
    match attempts[last] {
        attempt if holds(&attempt.span) => PieceState::Together(last),
        attempt if attempt.end == RunEnd::Completed && next == attempts.len() => PieceState::Last,
        _ => PieceState::Alone,
    }
}
