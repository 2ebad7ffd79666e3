//! Which jobs get a reservation, and when it is searched for again.

use std::collections::BTreeSet;

use dovetail_model::{Claim, JobId, Owner, PendingReason, Plan};

use super::search::{Found, Search, without_end};
use crate::cause::Help;
use crate::engine::Books;
use crate::preemption::FIRST_OF_RESERVED;
use crate::queue::OrderKey;

/// Classes that are looked at for the first job of each queue.
const MAX_CLASSES: usize = 64;

/// At the start of a cycle: what is reserved follows what has happened. `raised` says that expected
/// ends were.
pub(crate) fn settle(books: &mut Books, raised: bool, plan: &mut Plan) {
    if !books.reserved.is_on() {
        return;
    }
    books.reserved.is_unsettled = true;
    books.reserved.operations_left = books.reserved.config.max_operations;
    let freed_until_ms = std::mem::take(&mut books.reserved.freed_until_ms);
    let helped = books.placement.state.helped;
    if helped.meets(Help::NODES) {
        books.reserved.hopeless.clear();
    }
    for job in reserved_jobs(books) {
        let until_ms = books.reserved.get(job).map_or(0, |claim| claim.until_ms);
        let is_stale = raised && counts_on_raised(books, job)
            || until_ms <= books.placement.now_ms
            || helped.meets(Help::NODES) && !has_its_nodes(books, job);
        if is_stale {
            search_again(books, job, u64::MAX, plan);
        } else if freed_until_ms >= until_ms || helped.meets(Help::NODES) && helped != Help::ALL {
            // Nothing else can let it start earlier than at this time.
            search_again(books, job, until_ms, plan);
        }
    }
    if helped != Help::NONE || raised {
        keep_all(books);
    }
}

/// Before a job at a place in the order is tried: whoever is first in a queue and sleeps gets a
/// reservation.
pub(crate) fn before(books: &mut Books, place: Option<OrderKey>, plan: &mut Plan) {
    if !books.reserved.is_on() || !books.reserved.is_unsettled {
        return;
    }
    let heads = heads(books);
    for job in reserved_jobs(books) {
        if !heads.contains(&job) {
            end(books, job, plan);
        }
    }
    let mut all_settled = true;
    for job in heads {
        let Some((own, class)) = books.jobs.records[&job].place else { continue };
        if books.reserved.get(job).is_some() {
            continue;
        }
        match books.jobs.pending.asleep(class) {
            Some(sleep) if place.is_none_or(|place| own < place) => {
                for_head(books, job, sleep.reason, plan);
                all_settled &= books.reserved.get(job).is_some();
            }
            _ => all_settled = false,
        }
    }
    books.reserved.is_unsettled = !all_settled;
}

/// Reserves for a job that did not start for this reason, if it is first in its queue; why it waits
/// then.
pub(crate) fn for_head(
    books: &mut Books,
    job: JobId,
    reason: PendingReason,
    plan: &mut Plan,
) -> PendingReason {
    let may = books.reserved.is_on()
        && reason == PendingReason::Unschedulable
        && books.claims.get(job).is_none();
    if !may || books.reserved.get(job).is_some() || !heads(books).contains(&job) {
        return reason;
    }
    match Search::of(books, job).earliest(u64::MAX) {
        Some(found) => {
            reserve(books, job, found, plan);
            PendingReason::WaitingForReservation
        }
        None => {
            let open = without_end(books);
            books.reserved.hopeless.insert(job, open);
            reason
        }
    }
}

/// Jobs with a reservation, by number.
fn reserved_jobs(books: &Books) -> Vec<JobId> {
    books.reserved.iter().map(|claim| claim.job).collect()
}

/// The first job of each queue that may have a reservation, in their order.
fn heads(books: &mut Books) -> Vec<JobId> {
    if !books.reserved.hopeless.is_empty() {
        let open = without_end(books);
        books.reserved.hopeless.retain(|_, known| *known == open);
    }
    let mut queues = BTreeSet::new();
    let mut heads = Vec::new();
    for (job, class) in books.jobs.pending.heads().take(MAX_CLASSES) {
        let asleep = books.jobs.pending.asleep(class);
        let is_out = asleep.is_some_and(|sleep| sleep.reason == PendingReason::WaitingForQuota)
            || books.claims.get(job).is_some()
            || books.reserved.hopeless.contains_key(&job);
        if !is_out && queues.insert(&books.jobs.records[&job].job.queue) {
            heads.push(job);
        }
        if heads.len() == books.reserved.config.heads as usize {
            break;
        }
    }
    heads
}

/// Whether an expected end that a reservation counts on lies behind its time by now.
fn counts_on_raised(books: &Books, job: JobId) -> bool {
    let Some(claim) = books.reserved.get(job) else { return false };
    let state = &books.placement.state;
    claim.awaited.iter().any(|owner| {
        let held = books.jobs.held_by_owner(state, &books.foreign, owner);
        let end_ms = held.and_then(|id| state.holdings.get(id).phase.expected_end_ms());
        held.is_some() && end_ms.is_none_or(|end_ms| end_ms > claim.until_ms)
    })
}

/// Whether all nodes are there and take pods on which a job has its places.
fn has_its_nodes(books: &Books, job: JobId) -> bool {
    let Some(claim) = books.reserved.get(job) else { return false };
    let nodes = &books.placement.state.nodes;
    claim.places.iter().all(|place| {
        let slot = nodes.find(&place.node);
        slot.is_some_and(|slot| nodes.cold(slot).node.condition == dovetail_model::Condition::Ready)
    })
}

/// Searches for a time before `before_ms`. Without one a reservation that is good stays as it is,
/// and one that is not ends.
fn search_again(books: &mut Books, job: JobId, before_ms: u64, plan: &mut Plan) {
    let before = books.reserved.get(job).map(|claim| claim.until_ms);
    match Search::of(books, job).earliest(before_ms) {
        Some(found) => {
            // What may be lent until later helps all that wait.
            if before.is_some_and(|before_ms| before_ms < found.start_ms) {
                books.placement.state.helped |= Help::ALL;
            }
            let lent: Vec<JobId> = books.reserved.lent_by(job).collect();
            release(books, job);
            reserve(books, job, found, plan);
            lent.into_iter().for_each(|to| books.reserved.lend(job, to));
        }
        None if before_ms == u64::MAX => end(books, job, plan),
        None => {}
    }
}

/// Ends the reservation of a job, which waits on.
fn end(books: &mut Books, job: JobId, plan: &mut Plan) {
    release(books, job);
    books.change_class(job, plan);
}

/// Frees what is reserved for a job.
pub(crate) fn release(books: &mut Books, job: JobId) {
    let Some(claim) = books.reserved.remove(job) else { return };
    for id in books.placement.state.holdings.kept_by(claim.reservation) {
        let node = books.placement.state.remove_holding(id).node;
        books.survey.forget(node);
    }
}

fn reserve(books: &mut Books, job: JobId, found: Found, plan: &mut Plan) {
    let Found { start_ms: until_ms, places, mut awaited } = found;
    let mut seen = BTreeSet::new();
    awaited.retain(|owner| match owner {
        Owner::Pod(pod) => seen.insert(*pod),
        _ => true,
    });
    let reservation = books.reserved.claims.unused_from(FIRST_OF_RESERVED);
    books.reserved.claims.insert(Claim { job, reservation, places, awaited, until_ms });
    keep_all(books);
    books.change_class(job, plan);
}

/// Holds for each reservation what it needs and is free by now.
pub(super) fn keep_all(books: &mut Books) {
    let Books { reserved, placement, jobs, foreign, survey, .. } = books;
    if reserved.claims.is_empty() {
        return;
    }
    survey.clear();
    reserved.claims.keep_all(&mut placement.state, (jobs, foreign));
}
