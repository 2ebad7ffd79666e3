//! The method `job-phases-1`: where the allocated time of one job went.
//!
//! [`job_phases`] takes the samples of a job's members with the events of their pods, and splits
//! the time for which each member was held into [`Phase`]s. All parts together are that time, to
//! the millisecond.
//!
//! 1. Events say when a container did not run, and when not all ranks ran.
//! 2. Each sample is a mixture of work, spinning and idling. A rank that waits in a collective
//!    looks busy, so work is told from spinning by tensor cores and memory traffic, in comparison
//!    with the job's own level of work; where neither is read by the share of multiprocessors, then
//!    by power. Without any of these the time is *busy, not separable*.
//! 3. Spinning is synchronisation, or a hang where no member works for ten minutes. Idling is told
//!    by what the host did: data loading, checkpoint, gap or pause; where the host is not known,
//!    nobody knows, but for pauses, which are told by their length.
//! 4. What an attempt did after its last checkpoint was for nothing where the attempt was lost.
//!
//! A phase shorter than two samples is a share of a stretch and has no place in it. What every
//! iteration of a balanced job has in common (transfers, gaps between kernels) is not told apart
//! from work.
//!
//! | module | what |
//! |---|---|
//! | `record` | what goes in |
//! | `phase`, `outcome` | what comes out |
//! | `attempt`, `piece` | time cut by events |
//! | `reading`, `level`, `mixture` | one sample |
//! | `scene` | all members at one sample |
//! | `split`, `calm`, `repeated` | phases |
//! | `stretch` | pieces joined, with evidence and confidence |
//! | `ranks` | which devices of a job took over from each other |
//! | `rows` | phases as rows of a bill |

mod attempt;
mod calm;
mod level;
mod mixture;
mod outcome;
mod phase;
mod piece;
mod ranks;
mod reading;
mod record;
mod repeated;
mod rows;
mod scene;
mod split;
mod stretch;
#[cfg(test)]
mod tests;

pub use calm::PhaseRule;
pub use outcome::{Confidence, Evidence, JobPhases, METHOD, MemberPhases, PhasePart, Stretch};
pub use phase::{PHASES, Phase};
pub use ranks::{Ranks, ranks};
pub use record::{ContainerRun, DeviceSample, JobRecord, JobRecordError, Member, RunEnd};
pub use rows::{BilledMember, PhaseRow, phase_rows};

use scene::JobScene;
use split::Splitter;

/// Splits the time of a job.
///
/// # Errors
/// A record whose times contradict each other; see [`JobRecordError`].
pub fn job_phases(record: &JobRecord, rule: &PhaseRule) -> Result<JobPhases, JobRecordError> {
    record.check()?;
    let attempts = attempt::attempts(record);
    let scene = JobScene::of(record, &attempts);
    let hung = calm::hung_steps(&scene, rule, record.step_ms);
    let lost = repeated::lost(record, &attempts, &scene);
    let count = scene.steps.len();
    let read_part = parts(count, &scene.reads(), |step| scene.steps[step].inwards);
    let mut writes = scene.writes();
    // One job writes its checkpoints to one place: a short one shows less than the rate.
    let rate = scene.write_rate(&writes);
    writes.iter_mut().for_each(|row| row.2 = rate);
    let write_part = parts(count, &writes, |step| scene.steps[step].outwards);
    let first_ms = attempts.first().map_or(0, |attempt| attempt.span.from_ms);
    let starts_from_checkpoint = record.checkpoints_ms.iter().any(|at_ms| *at_ms <= first_ms);
    let phases = |(member, scene_of): (&Member, &scene::MemberScene)| {
        let mut pieces = piece::pieces(member, &attempts, record.from_ms, record.step_ms);
        let splitter = Splitter {
            scene: &scene,
            member: scene_of,
            step_ms: record.step_ms,
            read_part: &read_part,
            write_part: &write_part,
            starts_from_checkpoint,
        };
        splitter.split(&mut pieces);
        calm::name_pauses(&mut pieces, rule);
        calm::name_hangs(&mut pieces, &hung);
        repeated::name_repeated(&mut pieces, &lost);
        let stretches = stretch::stretches(&pieces, scene_of, &lost, record.step_ms);
        MemberPhases { gpu_milli: member.gpu_milli, stretches }
    };
    Ok(JobPhases { members: record.members.iter().zip(&scene.members).map(phases).collect() })
}

/// By sample: which part of it lies within a row of transfers. At both ends that is its rate by the
/// highest.
fn parts(
    count: usize,
    rows: &[(usize, usize, f64)],
    rate: impl Fn(usize) -> Option<f64>,
) -> Vec<f64> {
    let mut parts = vec![0.0; count];
    for (first, last, peak) in rows {
        for (step, part) in parts.iter_mut().enumerate().take(*last + 1).skip(*first) {
            let is_edge = step == *first || step == *last;
            *part =
                if is_edge { rate(step).map_or(0.0, |rate| (rate / peak).min(1.0)) } else { 1.0 };
        }
    }
    parts
}
