//! How much of the reserved room of a job others are in.
//!
//! Pods beyond the smallest size of a job that runs there count like all others. Of a job that
//! waits for those that are preempted for it, its smallest size counts, as it may start anywhere;
//! it starts with no more pods than may be lent.

use dovetail_model::JobId;

use super::bound::{OnNodes, gpus_of, held_gpus, inside, is_within_share};
use super::lent::LentRooms;
use crate::engine::{Books, JobRecord};
use crate::gang::PlacedPod;

/// GPUs of jobs in the room of `lender`, but of one, in milli-GPU.
pub(super) fn lent_milli(books: &Books, lent: &LentRooms, (lender, but): (JobId, JobId)) -> i64 {
    let others = lent.by(lender).filter(|job| *job != but);
    let mut others = others.filter_map(|job| books.jobs.records.get(&job)).peekable();
    // Most lend nothing by now, and may have reserved many places.
    if others.peek().is_none() {
        return 0;
    }
    let reserved = reserved_for(books, lender);
    others.map(|record| held_inside(books, record, &reserved)).sum()
}

/// Whether a job with these places would be in more of the room of `lender` than may be lent beside
/// what is.
pub(super) fn exceeds_share(
    books: &Books,
    (lent, percent): (&LentRooms, u32),
    lender: JobId,
    (job, placed): (JobId, &[PlacedPod]),
) -> bool {
    let records = &books.jobs.records;
    let own_milli = records.get(&lender).map_or(0, |record| record.job.min_gpu_milli());
    let placed = of_placed(books, &records[&job], placed);
    let inside_milli = inside(&placed, &reserved_for(books, lender));
    let lent_milli = lent_milli(books, lent, (lender, job));
    inside_milli > 0 && !is_within_share(lent_milli + inside_milli, own_milli, percent)
}

/// Running jobs that are in the room of `lender` beyond what may be lent: it is in other places
/// than when they were let in, and they were running when these were chosen.
pub(super) fn beyond_share(
    books: &Books,
    (lent, percent): (&LentRooms, u32),
    lender: JobId,
) -> Vec<JobId> {
    let Some(record) = books.jobs.records.get(&lender) else { return Vec::new() };
    let (own_milli, reserved) = (record.job.min_gpu_milli(), reserved_for(books, lender));
    let all = lent.by(lender).filter_map(|job| books.jobs.records.get(&job));
    let (waiting, running): (Vec<&JobRecord>, Vec<&JobRecord>) =
        all.partition(|record| record.place.is_some());
    let mut lent_milli: i64 = waiting.iter().map(|record| record.job.min_gpu_milli()).sum();
    let mut beyond = Vec::new();
    for record in running {
        let inside_milli = held_inside(books, record, &reserved);
        if is_within_share(lent_milli + inside_milli, own_milli, percent) {
            lent_milli += inside_milli;
        } else {
            beyond.push(record.job.id);
        }
    }
    beyond
}

fn reserved_for(books: &Books, job: JobId) -> OnNodes {
    let claim = books.kept.reserved.get(job);
    let Some((claim, record)) = claim.zip(books.jobs.records.get(&job)) else {
        return OnNodes::new();
    };
    let state = &books.placement.state;
    let places = claim.places.iter();
    let places =
        places.filter_map(|place| Some((place.pod.pod_set, state.nodes.find(&place.node)?)));
    gpus_of(state, &record.gang, places)
}

/// What a job holds of what is reserved, or might.
fn held_inside(books: &Books, record: &JobRecord, reserved: &OnNodes) -> i64 {
    if record.place.is_some() {
        return record.job.min_gpu_milli();
    }
    inside(&held_gpus(&books.placement.state, &record.gang, &record.holdings), reserved)
}

/// GPUs of placed pods of a job.
pub(super) fn of_placed(books: &Books, record: &JobRecord, placed: &[PlacedPod]) -> OnNodes {
    let pods = placed.iter().map(|pod| (pod.pod.pod_set, pod.node));
    gpus_of(&books.placement.state, &record.gang, pods)
}

/// How many pods a job may start with, of which each beyond the first `smallest` may be left out:
/// the most that exceed nothing.
pub(super) fn most_pods(
    placed: &[PlacedPod],
    smallest: usize,
    exceeds: impl Fn(&[PlacedPod]) -> bool,
) -> usize {
    let mut most = placed.len();
    let mut least = smallest.min(most);
    // Fewer pods take less.
    while least < most {
        let middle = most - (most - least) / 2;
        match exceeds(&placed[..middle]) {
            true => most = middle - 1,
            false => least = middle,
        }
    }
    least
}
