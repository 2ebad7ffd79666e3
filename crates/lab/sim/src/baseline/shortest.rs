//! Shortest remaining time and shortest remaining service first.

use super::{BaselineCluster, BaselineError, replay::Replay, room::FreeGpus};

/// What makes a job short.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shortness {
    RemainingTime,
    RemainingService,
}

/// A job that has arrived and not ended.
struct RemainingJob {
    key: u128,
    job: u32,
    num_gpu: u32,
}

/// At every event all jobs are sorted by shortness and placed first-fit from an empty cluster; what
/// does not fit is skipped. The sort is stable over the previous event's order, and arrivals join
/// at the end of it, so of two equally short jobs the one that stood ahead stays ahead.
pub(super) fn run(
    replay: &mut Replay<'_>,
    cluster: &BaselineCluster,
    shortness: Shortness,
) -> Result<(), BaselineError> {
    let mut room = FreeGpus::new(cluster);
    let mut order: Vec<RemainingJob> = Vec::new();
    while let Some(time_us) = replay.next_event_us() {
        replay.advance_to(time_us);
        order.retain(|waiting| !replay.has_ended(waiting.job));
        for waiting in &mut order {
            if replay.is_running(waiting.job) {
                waiting.key = shortness.key(replay, waiting.job);
            }
        }
        for job in replay.take_arrivals() {
            let key = shortness.key(replay, job);
            order.push(RemainingJob { key, job, num_gpu: replay.num_gpu(job) });
        }
        order.sort_by_key(|waiting| waiting.key);
        replay.run_only(choose(&order, &mut room))?;
    }
    Ok(())
}

fn choose(order: &[RemainingJob], room: &mut FreeGpus<'_>) -> Vec<u32> {
    room.clear();
    let mut chosen = Vec::new();
    for waiting in order {
        if room.is_full() {
            break;
        }
        if room.place(waiting.num_gpu) {
            chosen.push(waiting.job);
        }
    }
    chosen
}

impl Shortness {
    fn key(self, replay: &Replay<'_>, job: u32) -> u128 {
        let remaining_us = u128::from(replay.remaining_us(job));
        match self {
            Self::RemainingTime => remaining_us,
            Self::RemainingService => remaining_us * u128::from(replay.num_gpu(job)),
        }
    }
}
