//! Which sleeping classes could start after what became better, and whether they still could once
//! others have started.

use std::sync::Arc;

use dovetail_model::{JobId, NodeId, PendingReason};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Books, relations};
use crate::pending::{Sleep, asleep_before};
use crate::preemption::{KeptQuota, might_clear};
use crate::reserve::{self, Reservations};
use dovetail_order::queues::quota::Beside;
use dovetail_state::cause::Help;
use dovetail_state::scope::Scope;

/// What became better.
pub(super) struct Better<'n> {
    pub(super) helped: Help,
    /// Where something was freed.
    pub(super) nodes: &'n [NodeId],
    /// The latest time until which room of others is lent.
    pub(super) lent_until_ms: Option<u64>,
}

/// What became better in a cycle, and the classes that were woken for that.
#[derive(Debug, Default)]
pub(super) struct Woken {
    helped: Vec<(Help, Vec<NodeId>)>,
    /// What each waits for, and at which place of `helped` it was woken.
    classes: FxHashMap<usize, (Sleep, usize)>,
    /// Of the classes that were asked again, how many of the latest sleep on.
    asleep_again: usize,
    /// Classes that sleep on before it was their turn to be asked.
    let_asleep: FxHashSet<usize>,
}

impl Woken {
    /// Where more nodes became better, a class is tried as soon as it is asked about all of them.
    const MOST_NODES: usize = 64;

    /// After more classes in a row than this that sleep on, all are asked, if these are one part in
    /// [`Self::PARTS`] of them at least: each that can start is asked in vain.
    const MOST_ASLEEP: usize = 16;
    const PARTS: usize = 64;

    pub(super) fn note(&mut self, class: usize, sleep: Sleep) {
        self.classes.insert(class, (sleep, self.helped.len()));
    }

    /// Whatever woke a class before does not count.
    pub(super) fn forget(&mut self, class: usize) {
        self.classes.remove(&class);
    }

    /// A class was asked again whether it could start; whether so many of the latest could not that
    /// all that are awake are to be asked.
    pub(super) fn note_asked(&mut self, sleeps_on: bool, awake: usize) -> bool {
        self.asleep_again = if sleeps_on { self.asleep_again + 1 } else { 0 };
        let is_due = self.asleep_again > Self::MOST_ASLEEP.max(awake / Self::PARTS);
        if is_due {
            self.asleep_again = 0;
        }
        is_due
    }

    /// Something became better, on these nodes where something was freed.
    pub(super) fn note_helped(&mut self, helped: Help, nodes: Vec<NodeId>) {
        self.helped.push((helped, nodes));
    }

    /// Wakes the classes that could take more than before from those that run, as others wait
    /// behind them. They are tried, even if they were woken for room before that others have taken.
    pub(super) fn wake_before_moved(&mut self, books: &mut Books) {
        let moved = books.jobs.pending.line.take_moved();
        if !relations::has_open(books) {
            return;
        }
        for class in asleep_before(&books.jobs.pending, &moved) {
            let first = books.jobs.pending.first_of(class);
            let first = first.and_then(|job| books.jobs.records.get(&job));
            if first.is_some_and(|record| relations::might_take_by_order(books, record)) {
                books.jobs.pending.wake(class);
                self.forget(class);
            }
        }
    }

    /// What a class waits for, and what became better from when it was woken on; `None` if it was
    /// not woken for that, or if that is too much to look at.
    fn since(&self, class: usize) -> Option<(Sleep, Help, Vec<NodeId>)> {
        let (sleep, from) = self.classes.get(&class)?;
        let helped = &self.helped[*from..];
        let count: usize = helped.iter().map(|(_, nodes)| nodes.len()).sum();
        if count > Self::MOST_NODES {
            return None;
        }
        let nodes = helped.iter().flat_map(|(_, nodes)| nodes).copied().collect();
        let helped = helped.iter().fold(Help::NONE, |all, (helped, _)| all | *helped);
        Some((*sleep, helped, nodes))
    }

    /// All classes sleep on that were woken for room that is taken by now and are told nothing new:
    /// one after the other, each would first have to be found.
    pub(super) fn let_sleep(
        &mut self,
        (books, reserve): (&mut Books, &Reservations),
        known: &mut KeptQuota,
    ) {
        let awake: Vec<usize> = books.jobs.pending.awake.classes().collect();
        for class in awake {
            let Some(job) = books.jobs.pending.first_of(class) else { continue };
            let sleep = self.is_in_vain((job, class), (&mut *books, reserve), known);
            let Some(sleep) = sleep else { continue };
            if books.jobs.records[&job].reason == Some(sleep.told()) {
                books.jobs.pending.sleep(class, sleep);
                self.forget(class);
                self.let_asleep.insert(class);
            }
        }
    }

    /// A job was tried in vain: whatever woke its class before does not count. Whoever is the first
    /// of its queue by now is tried, even if its class was let sleep before its turn.
    pub(super) fn note_tried(
        &mut self,
        (job, class): (JobId, usize),
        (books, reserve): (&mut Books, &Reservations),
    ) {
        self.forget(class);
        if self.let_asleep.is_empty() {
            return;
        }
        let queue = &books.jobs.records[&job].job.queue;
        let first = reserve.first_of(books, queue);
        let place = first.and_then(|first| books.jobs.records[&first].place);
        if let Some((_, class)) = place
            && self.let_asleep.remove(&class)
        {
            books.jobs.pending.wake(class);
        }
    }

    /// How a class sleeps on that was woken in this cycle for room that others have taken by now.
    /// The first job of a queue is always tried.
    pub(super) fn is_in_vain(
        &self,
        (job, class): (JobId, usize),
        (books, reserve): (&mut Books, &Reservations),
        known: &mut KeptQuota,
    ) -> Option<Sleep> {
        let (sleep, helped, nodes) = self.since(class)?;
        if books.placement.state.helped != Help::NONE {
            return None;
        }
        let lent_until_ms = reserve::lent_until_ms(books);
        let better = Better { helped, nodes: &nodes, lent_until_ms };
        if may_start((class, sleep), books, known, &better) {
            return None;
        }
        let queue = &books.jobs.records[&job].job.queue;
        (reserve.first_of(books, queue) != Some(job)).then(|| sleep.on())
    }
}

/// Whether a job of one pod with a claim fits where that is, or on one of these nodes; `None` where
/// trying it tells. Many may wait for their victims at once, and each that leaves wakes one.
fn fits_with_claim(job: JobId, books: &mut Books, nodes: &[NodeId]) -> Option<bool> {
    let claim = books.kept.claims.get(job).filter(|claim| !claim.awaited.is_empty())?;
    let [place] = claim.places.as_slice() else { return None };
    let shape = books.jobs.records[&job].gang.only_pod()?.shape;
    let state = &books.placement.state;
    if !state.shapes.get(shape).demand.is_plain() {
        return None;
    }
    let own_node = state.nodes.find(&place.node)?;
    let own = state.holdings.kept_by(claim.reservation);
    Some(books.placement.as_if_free(own, |placement| {
        let state = &mut placement.state;
        let mut there = nodes.iter().copied().chain([own_node]);
        there.any(|node| !shape.plainly_lacks(state, node) && shape.fits(state, node))
    }))
}

/// Whether a sleeping class could start at all; cheap, and never wrong when it says no. Only
/// what was freed on `nodes` became better, unless nodes themselves changed.
pub(super) fn may_start(
    (class, sleep): (usize, Sleep),
    books: &mut Books,
    known: &mut KeptQuota,
    better: &Better<'_>,
) -> bool {
    let Better { helped, nodes, lent_until_ms } = *better;
    let key = books.jobs.pending.asks(class);
    let wants = sleep.wants;
    let (is_claimed, has_room) = (key.claim.is_some(), !key.kept_room.is_empty());
    if has_room {
        return true;
    }
    let first = books.jobs.pending.first_of(class);
    let first = first.and_then(|job| books.jobs.records.get(&job));
    if books.kept.bookings.is_for(&key.queue, key.claim) {
        return true;
    }
    if reserve::lends_to(lent_until_ms, key.p90_ms, books.placement.now_ms) {
        return true;
    }
    if is_claimed {
        let changes_all = helped.meets(Help::NODES) || wants.meets(Help::SEARCH);
        let job = first.map(|record| record.job.id).filter(|_| !changes_all);
        return job.and_then(|job| fits_with_claim(job, books, nodes)).unwrap_or(true);
    }
    let might_preempt = first.is_some_and(|record| relations::might_preempt(books, record, known));
    // Room may have been there all the time, on any node.
    if !might_preempt && sleep.reason == PendingReason::WaitingForQuota {
        let asked = key.gang.smallest(&books.placement.state);
        return books.quota.blocked_by(&key.queue, &asked, &Beside::default()).is_none();
    }
    if helped.meets(Help::NODES | Help::CLAIM_USED) || wants.meets(Help::SEARCH) {
        return true;
    }
    let gang = Arc::clone(&key.gang);
    if let Some(record) = first.filter(|_| might_preempt) {
        // What its queue may get back stands on any node.
        if relations::may_reclaim(books, record, known) {
            return true;
        }
        let is_plain = |shape| books.placement.state.shapes.get(shape).demand.is_plain();
        let only = gang.only_pod().filter(|set| is_plain(set.shape) && !wants.meets(Help::QUOTA));
        let relation = relations::beside(books, record, known);
        return only.is_none_or(|set| might_clear(books, (record, &relation), set.shape, nodes));
    }
    if let Some(set) = gang.only_pod() {
        let demand = &books.placement.state.shapes.get(set.shape).demand;
        if !demand.is_plain() {
            return true;
        }
        let (shape, state) = (set.shape, &mut books.placement.state);
        return nodes
            .iter()
            .any(|node| !shape.plainly_lacks(state, *node) && shape.fits(state, *node));
    }
    let placement = &mut books.placement;
    let finder = placement.finder.finder();
    gang.sets.iter().filter(|set| set.min > 0).all(|set| {
        finder.room(&mut placement.state, set.shape, Scope::Everywhere) >= u64::from(set.min)
    })
}
