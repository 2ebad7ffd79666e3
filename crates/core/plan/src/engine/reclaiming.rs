//! Which job is tried in the stead of one with which its queue would hold more than it should.
//!
//! The order compares jobs by their priority, or queues by the first job of each. The job that goes
//! first may bring its queue beyond what it should have, while another, of lower priority or behind
//! the first of its queue, stays within what its own should have. If the former took that room, the
//! latter would get it back at once: the former would be preempted in the instant in which it
//! starts, or an older and larger one of its queue instead.

use dovetail_model::JobId;

use super::Books;
use super::relations;
use crate::preemption::might_reclaim;
use dovetail_order::book::TurnBook;

/// The job to try, with its class, where this one is next.
pub(super) fn in_its_stead(next: (JobId, usize), books: &mut Books) -> (JobId, usize) {
    first_that_would_reclaim(next.0, books).unwrap_or(next)
}

/// The first job in the order that would get back from the queue of another what that takes.
fn first_that_would_reclaim(job: JobId, books: &mut Books) -> Option<(JobId, usize)> {
    let reclaims = books.preempts && books.turns.as_ref().is_some_and(TurnBook::reclaims);
    if !reclaims {
        return None;
    }
    let mut known = books.known.take(&books.quota, &books.kept.claims);
    let record = &books.jobs.records[&job];
    let (queue, takes) = (&record.job.queue, record.gang.largest(&books.placement.state));
    let mut all: Vec<(JobId, usize)> = Vec::new();
    for (other, mut awake) in books.jobs.pending.awake_in_queues() {
        // Awake jobs are many: those of a queue are asked only if it might get anything back.
        if !known.has_left(&books.quota, other)
            || !might_reclaim(&books.quota, other, queue, &takes)
        {
            continue;
        }
        all.extend(awake.find(|(job, _)| {
            let other = &books.jobs.records[job];
            let may = !other.job.preemption.never_preempts;
            may && relations::beside(&*books, other, &mut known).would_reclaim(queue, &takes)
        }));
    }
    books.known = known;
    let turns = all.into_iter().map(|other| (books.turn_of(other.0), other));
    turns.min().map(|(_, other)| other)
}
