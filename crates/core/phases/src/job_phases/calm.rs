//! What is known by its length alone: long pauses and hangs.

use super::level::JobLevels;
use super::phase::Phase;
use super::piece::{Piece, PieceState};
use super::reading::Channel;
use super::scene::{CombinedSample, JobScene, MemberScene};

/// From when on calm time has another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseRule {
    /// Idle time of device and host from this length on is a long pause.
    pub pause_ms: u64,
    /// Time in which all members wait for each other is a hang from this length on.
    pub hang_ms: u64,
}

impl Default for PhaseRule {
    /// 15 and 10 minutes.
    fn default() -> Self {
        Self { pause_ms: 15 * 60_000, hang_ms: 10 * 60_000 }
    }
}

/// Inside a pause, no piece has more activity than this.
const CALM: f64 = 0.9;
/// Inside a hang, no member works more than this.
const NO_WORK: f64 = 0.1;
/// Inside a hang, some member spins at least so much.
const SPINS: f64 = 0.6;
/// Kernels that spin draw at most so much of the power that work draws above idle.
const NEAR_IDLE: f64 = 0.4;

/// Names the long pauses of a member.
pub(super) fn name_pauses(pieces: &mut [Piece], rule: &PhaseRule) {
    let is_calm = |piece: &Piece| {
        piece.calm_ms as f64 >= CALM * piece.length_ms() as f64 && piece.length_ms() > 0
    };
    let mut next = 0;
    while next < pieces.len() {
        if !is_calm(&pieces[next]) {
            next += 1;
            continue;
        }
        let until = (next..pieces.len()).find(|at| !is_calm(&pieces[*at])).unwrap_or(pieces.len());
        // With the calm parts of the pieces at both ends, in which it began and ended.
        let range = next.saturating_sub(1)..(until + 1).min(pieces.len());
        let calm_ms: u64 = pieces[range.clone()].iter().map(|piece| piece.calm_ms).sum();
        if calm_ms >= rule.pause_ms {
            for piece in &mut pieces[range] {
                let mut left_ms = piece.calm_ms;
                for from in [Phase::ShortGap, Phase::Unknown, Phase::ImageAndStart] {
                    left_ms -= piece.shift(from, Phase::LongPause, left_ms);
                }
            }
        }
        next = until;
    }
}

/// By sample: whether the job hung.
pub(super) fn hung_steps(scene: &JobScene, rule: &PhaseRule, step_ms: u64) -> Vec<bool> {
    let mut hung: Vec<bool> =
        (0..scene.steps.len()).map(|number| looks_hung(scene, number)).collect();
    let mut next = 0;
    while next < hung.len() {
        let until = (next..hung.len()).find(|at| hung[*at] != hung[next]).unwrap_or(hung.len());
        let length_ms = (until - next) as u64 * step_ms;
        if hung[next] && length_ms < rule.hang_ms {
            hung[next..until].fill(false);
        }
        next = until;
    }
    hung
}

fn looks_hung(scene: &JobScene, number: usize) -> bool {
    let CombinedSample { work, spin, busy, outwards, inwards, is_fed, known } = scene.steps[number];
    let is_quiet = outwards.is_none() && inwards.is_none() && !is_fed;
    let spins = work < NO_WORK && spin >= SPINS && busy == 0.0;
    known > 0
        && is_quiet
        && spins
        && scene.members.iter().all(|member| is_near_idle(member, &scene.levels, number))
}

/// No power that says otherwise.
fn is_near_idle(member: &MemberScene, levels: &JobLevels, number: usize) -> bool {
    let power = member.readings.get(number).and_then(|reading| reading.get(Channel::Power));
    match (power, levels.power_idle, levels.power_work) {
        (Some(power), Some(idle), Some(work)) if work > 1.5 * idle => {
            power < idle + NEAR_IDLE * (work - idle)
        }
        _ => true,
    }
}

/// Names the hangs of a member.
pub(super) fn name_hangs(pieces: &mut [Piece], hung: &[bool]) {
    let is_hung = |step: usize| hung.get(step).copied().unwrap_or(false);
    for piece in pieces.iter_mut().filter(|piece| matches!(piece.state, PieceState::Together(_))) {
        let beside = is_hung(piece.step + 1) || piece.step > 0 && is_hung(piece.step - 1);
        if is_hung(piece.step) {
            let waits = [Phase::Synchronisation, Phase::ShortGap, Phase::LongPause, Phase::Unknown];
            waits.into_iter().for_each(|from| piece.rename(from, Phase::Hang));
        } else if beside {
            piece.rename(Phase::Synchronisation, Phase::Hang);
        }
    }
}
