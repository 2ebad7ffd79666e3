//! Pieces joined into stretches, with evidence and confidence.

use dovetail_account::device_time::Span;

use super::mixture::Mixture;
use super::outcome::{Confidence, PhasePart, Stretch};
use super::phase::{PHASES, Phase};
use super::piece::{Piece, PieceState};
use super::reading::evidence;
use super::repeated::Lost;
use super::scene::MemberScene;

/// A phase with so much of a piece fills it.
const FILLS: f64 = 0.9;

/// What makes pieces one stretch.
type Likeness = (PieceState, usize, bool);

pub(super) fn stretches(
    pieces: &[Piece],
    member: &MemberScene,
    lost: &[Option<Lost>],
    step_ms: u64,
) -> Vec<Stretch> {
    let joined = pieces.chunk_by(|one, next| likeness(one) == likeness(next));
    joined.map(|pieces| stretch(pieces, member, lost, step_ms)).collect()
}

/// The state, the phase with most of it, and whether that fills it.
fn likeness(piece: &Piece) -> Likeness {
    let most = (0..PHASES).max_by_key(|phase| (piece.parts[*phase], PHASES - phase)).unwrap_or(0);
    (piece.state, most, piece.parts[most] as f64 >= FILLS * piece.length_ms() as f64)
}

fn stretch(pieces: &[Piece], member: &MemberScene, lost: &[Option<Lost>], step_ms: u64) -> Stretch {
    let (first, last) = (&pieces[0], &pieces[pieces.len() - 1]);
    let span = Span { from_ms: first.span.from_ms, to_ms: last.span.to_ms };
    let length_ms = span.to_ms - span.from_ms;
    let (_, _, fills) = likeness(first);
    let is_place = fills && (length_ms >= 2 * step_ms || by_events(first));
    let within = |all: usize| first.step.min(all)..(last.step + 1).min(all);
    let mixtures = &member.mixtures[within(member.mixtures.len())];
    let is_lost = |attempt: usize| lost.get(attempt).copied().flatten();
    let confidence = |phase: Phase| match (phase, first.state) {
        (Phase::Unknown | Phase::BusyNotSeparable, _) => Confidence::Low,
        (Phase::Repeated, PieceState::Together(attempt)) => {
            is_lost(attempt).map_or(Confidence::Low, |lost| lost.confidence)
        }
        _ if by_events(first) => Confidence::High,
        _ => by_witnesses(phase, mixtures, is_place),
    };
    let mut parts = Vec::new();
    for phase in Phase::ALL {
        let length_ms = pieces.iter().map(|piece| piece.parts[phase as usize]).sum();
        let is_main = phase as usize == likeness(first).1;
        if length_ms > 0 {
            let is_place = is_place && is_main;
            parts.push(PhasePart { phase, length_ms, confidence: confidence(phase), is_place });
        }
    }
    parts.sort_by_key(|part| (std::cmp::Reverse(part.length_ms), part.phase));
    let readings = &member.readings[within(member.readings.len())];
    Stretch { span, parts, evidence: evidence(readings) }
}

/// Its phase follows from events alone.
fn by_events(piece: &Piece) -> bool {
    let phase = match piece.state {
        PieceState::Down => Phase::ImageAndStart,
        PieceState::Alone => Phase::GangWait,
        PieceState::Last | PieceState::Gone => Phase::Tail,
        PieceState::Together(_) => return false,
    };
    piece.parts[phase as usize] == piece.length_ms()
}

/// A place is as sure as its witnesses are many; a share is one less.
fn by_witnesses(phase: Phase, mixtures: &[Mixture], is_place: bool) -> Confidence {
    let by_host = [
        Phase::DataLoading,
        Phase::ShortGap,
        Phase::LongPause,
        Phase::CheckpointSave,
        Phase::CheckpointRestore,
    ];
    let count = |mixture: &Mixture| match by_host.contains(&phase) {
        true => 1 + u8::from(mixture.host.is_known),
        false => mixture.witnesses,
    };
    let known = mixtures.iter().filter(|mixture| mixture.unknown < 1.0);
    let least = known.map(count).min().unwrap_or(0);
    match least.saturating_sub(u8::from(!is_place)) {
        0 => Confidence::Low,
        1 => Confidence::Medium,
        _ => Confidence::High,
    }
}
