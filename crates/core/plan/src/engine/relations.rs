//! Who might make place for a waiting job, from what is known of all.

use std::borrow::Cow;

use dovetail_model::{JobId, Queue};

use super::{Books, JobRecord};
use crate::preemption::{KeptQuota, Preemptor, Relation, exceeds_kept, reclaims};
use dovetail_order::book::TurnBook;
use dovetail_order::queues::quota::Beside;

/// Whether a job, one of many, might make room for itself; cheap, and never wrong when it says no.
pub(crate) fn might_preempt(books: &Books, record: &JobRecord, known: &mut KeptQuota) -> bool {
    let priority = record.job.priority;
    let may = books.preempts && !record.job.preemption.never_preempts;
    let is_lower = |lowest: &(i32, JobId)| books.by_priority && lowest.0 < priority;
    may && (books.jobs.running.first().is_some_and(is_lower)
        || known.may_take_claim(&books.kept.claims, &books.jobs, priority)
        || books.kept.foreign.has_room_below(priority)
        || may_reclaim(books, record, known)
        || has_open(books) && takes_by_order(books, record, beside(books, record, known).preemptor))
}

/// Whether others may have to give back to one of the queues of a job.
pub(crate) fn may_reclaim(books: &Books, record: &JobRecord, known: &mut KeptQuota) -> bool {
    let [reclaims, _] = reclaimed_by(books, record, known);
    reclaims != 0
}

/// Whether anybody might make place for the standing of a job; cheap, and never wrong when it says
/// no.
pub(super) fn might_take_by_order(books: &Books, record: &JobRecord) -> bool {
    let may = books.preempts && !record.job.preemption.never_preempts;
    may && takes_by_order(books, record, books.relation(record).preemptor)
}

/// The same of a job that may preempt others. Who waits behind it is looked up only where that
/// counts.
fn takes_by_order(books: &Books, record: &JobRecord, preemptor: Preemptor) -> bool {
    books.turns.as_ref().is_some_and(|turns| {
        preemptor.might_take_by_order(turns)
            && preemptor.before(record, others_behind(books, record)).might_take_by_order(turns)
    })
}

/// Whether any job might make place for the standing of another.
pub(crate) fn has_open(books: &Books) -> bool {
    books.turns.as_ref().is_some_and(TurnBook::has_open)
}

/// A waiting job, to be held against those that might make place for it, with those known that wait
/// behind it.
pub(crate) fn known<'b>(books: &'b Books, record: &'b JobRecord) -> Relation<'b> {
    let relation = books.relation(record);
    if !has_open(books) {
        return relation;
    }
    let preemptor = relation.preemptor.before(record, others_behind(books, record));
    Relation { preemptor, ..relation }
}

/// A waiting job, one of many, to be held against those that might make place for it.
pub(crate) fn beside<'b>(
    books: &'b Books,
    record: &'b JobRecord,
    known: &mut KeptQuota,
) -> Relation<'b> {
    let (turns, quota, queue) = (books.turns.as_ref(), &books.quota, &record.job.queue);
    let reclaimed = reclaimed_by(books, record, known);
    // None of those behind it has a better standing, or was submitted later than the latest.
    let latest_ms = books.jobs.pending.line.latest_submit_ms();
    let least = |standing: u64| turns.map_or(0, |turns| turns.size_of(standing, latest_ms));
    let exceeds = turns.is_some_and(TurnBook::reclaims)
        && exceeds_kept(quota, queue, || record.gang.smallest(&books.placement.state));
    let preemptor = Preemptor::of(record, least, reclaimed, exceeds);
    let (by_priority, now_ms) = (books.by_priority, books.placement.now_ms);
    let spared = &books.kept.bookings.spared;
    let sides = Default::default();
    Relation { preemptor, queue, turns, quota, by_priority, now_ms, spared, sides }
}

/// The queues for which a job may reclaim, and those within their quotas, bit by bit.
fn reclaimed_by(books: &Books, record: &JobRecord, known: &mut KeptQuota) -> [u32; 2] {
    let (quota, queue) = (&books.quota, &record.job.queue);
    let do_queues = books.turns.as_ref().is_some_and(TurnBook::reclaims);
    if !do_queues || !known.has_left(quota, queue) {
        return [0, 0];
    }
    let asked = record.gang.smallest(&books.placement.state);
    let of = |kept: &Beside| {
        let entitled = |queue| quota.entitled(queue);
        let within = match quota.shares.is_some() {
            true => reclaims(quota, queue, (&asked, kept), |queue: &Queue| {
                Cow::Borrowed(&queue.guaranteed)
            }),
            false => 0,
        };
        [reclaims(quota, queue, (&asked, kept), entitled), within]
    };
    // What is kept for others leaves less: most queues have nothing left even without.
    match of(&Beside::default()) {
        [0, 0] => [0, 0],
        _ => of(&known.of(record, &books.bounded())),
    }
}

/// Those that wait behind a job and would use what it leaves of others' GPUs, with their GPUs in
/// thousandths and the GPU time that is expected of them. They ask for as many GPUs at least: where
/// it finds no room, they do not either.
fn others_behind(books: &Books, record: &JobRecord) -> impl Iterator<Item = (u64, u64)> {
    let others = books.turns.as_ref().zip(record.place).map(|(turns, (place, _))| {
        let gpu_milli = record.job.min_gpu_milli();
        let others = books.jobs.pending.line.behind(place, gpu_milli);
        others.into_iter().map(|((_, standing, job), gpu_milli)| {
            let submit_ms = books.jobs.records[&job].job.submit_ms;
            (gpu_milli.unsigned_abs(), turns.size_of(standing, submit_ms))
        })
    });
    others.into_iter().flatten()
}
