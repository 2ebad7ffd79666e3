//! On whose ends reservations count. Such jobs are not preempted for others; when a reservation
//! ends or counts on others, those on whom none counts any more may be preempted again, and classes
//! that sleep are told so.

use std::collections::BTreeSet;

use dovetail_model::{JobId, Owner, PreemptionReservation};

use crate::engine::Books;

/// Jobs on whose ends what is reserved for a job counts.
pub(crate) fn awaited_jobs(books: &Books, job: JobId) -> BTreeSet<JobId> {
    books.kept.reserved.get(job).into_iter().flat_map(jobs_of).collect()
}

/// What is reserved for a job is free. Every reservation that ends before its job starts, and in
/// whose stead nothing is reserved, ends here.
pub(crate) fn end_reservation(job: JobId, books: &mut Books) {
    let awaited = awaited_jobs(books, job);
    let Books { placement, kept, survey, .. } = &mut *books;
    kept.release(&mut placement.state, survey, job);
    note_no_longer_awaited(&awaited, books);
}

/// Of the jobs on whose ends a reservation counted, those may be preempted for others by now on
/// whose ends nothing reserved counts any more.
pub(crate) fn note_no_longer_awaited(before: &BTreeSet<JobId>, books: &mut Books) {
    if before.is_empty() || !books.preempts {
        return;
    }
    let Books { placement, jobs, kept, .. } = books;
    let mut left: BTreeSet<JobId> = before.difference(&kept.bookings.spared).copied().collect();
    for job in kept.reserved.iter().flat_map(jobs_of) {
        left.remove(&job);
    }
    for job in left {
        if jobs.records.contains_key(&job) {
            jobs.note_others_of(&mut placement.state, job);
        }
    }
}

fn jobs_of(claim: &PreemptionReservation) -> impl Iterator<Item = JobId> {
    claim.awaited.iter().filter_map(|owner| match owner {
        Owner::Pod(pod) => Some(pod.job),
        Owner::Foreign(_) | Owner::Reservation => None,
    })
}
