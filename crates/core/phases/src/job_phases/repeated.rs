//! Work that was lost: from the last checkpoint before the end of an attempt to that end.

use dovetail_account::device_time::Span;

use super::attempt::Attempt;
use super::outcome::Confidence;
use super::phase::Phase;
use super::piece::{Piece, PieceState};
use super::record::{JobRecord, RunEnd};
use super::scene::JobScene;

/// Time that was lost, and how its begin is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lost {
    pub(super) span: Span,
    pub(super) confidence: Confidence,
}

pub(super) fn lost(
    record: &JobRecord,
    attempts: &[Attempt],
    scene: &JobScene,
) -> Vec<Option<Lost>> {
    let seen_ms = seen_checkpoints(record, scene);
    let of = |attempt: &Attempt| {
        if attempt.end != RunEnd::Lost {
            return None;
        }
        let Span { from_ms, to_ms } = attempt.span;
        let (checkpoints_ms, confidence) = match record.checkpoints_ms.is_empty() {
            false => (&record.checkpoints_ms, Confidence::High),
            true if seen_ms.is_empty() => (&seen_ms, Confidence::Low),
            true => (&seen_ms, Confidence::Medium),
        };
        let before = checkpoints_ms.iter().filter(|at_ms| (from_ms..to_ms).contains(*at_ms));
        let since_ms = before.max().copied().unwrap_or(from_ms);
        Some(Lost { span: Span { from_ms: since_ms, to_ms }, confidence })
    };
    attempts.iter().map(of).collect()
}

/// When what was written was complete, as far as samples tell. What was still being written at the
/// end of an attempt is no checkpoint, which the end of its row of samples says by itself: it lies
/// behind that end.
fn seen_checkpoints(record: &JobRecord, scene: &JobScene) -> Vec<u64> {
    let end_ms = |(first, last, peak): (usize, usize, f64)| {
        let rate = scene.steps[last].outwards.unwrap_or(peak);
        let part = if first < last { (rate / peak).min(1.0) } else { 1.0 };
        let step_ms = record.step_ms;
        record.from_ms + last as u64 * step_ms + (part * step_ms as f64) as u64
    };
    scene.writes().into_iter().map(end_ms).collect()
}

/// Names the repeated time of a member. Start, pauses and hangs keep their names: they are no work.
pub(super) fn name_repeated(pieces: &mut [Piece], lost: &[Option<Lost>]) {
    const REDONE: [Phase; 5] = [
        Phase::Compute,
        Phase::Synchronisation,
        Phase::DataLoading,
        Phase::ShortGap,
        Phase::BusyNotSeparable,
    ];
    for piece in pieces {
        let PieceState::Together(attempt) = piece.state else { continue };
        let Some(Lost { span, .. }) = lost[attempt] else { continue };
        let from_ms = span.from_ms.max(piece.span.from_ms);
        if from_ms >= piece.span.to_ms {
            continue;
        }
        // A sample has no places in it: what was lost comes last.
        let mut left_ms = piece.span.to_ms - from_ms;
        for from in REDONE {
            left_ms -= piece.shift(from, Phase::Repeated, left_ms);
        }
    }
}
