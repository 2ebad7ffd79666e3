//! Questions about jobs that nobody submitted: where would it go, now or under another view.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_model::{
    Bounds, HoldingId, Job, JobId, NodeId, NodeName, Queue, QueueUsage, Requirement,
};

use super::books::Books;
use super::error::EngineError;
use super::placement::WouldGo;
use super::supply::LevelCheck;
use crate::gang::{Gang, Placer};
use crate::pending::ByQueues;
use crate::preemption::{BlockingBudgets, Preemption};
use crate::reserve::Reservations;
use dovetail_finder::Index;
use dovetail_order::queues::quota::{Beside, UsageScope};
use dovetail_order::queues::usage::Usage;
use dovetail_order::turn_terms::{LevelTerms, QueueTerms, TurnTerms};
use dovetail_policy::first_fit::FirstFit;
use dovetail_policy::{Pick, whole_score};
use dovetail_state::shapes::ShapeId;
use dovetail_state::view::View;

/// Questions about jobs. None of them changes a later decision.
pub struct Questions<'e> {
    pub(crate) books: &'e mut Books,
    preemption: &'e mut Preemption,
    reserve: &'e Reservations,
}

impl<'e> Questions<'e> {
    pub(super) fn of(
        books: &'e mut Books,
        preemption: &'e mut Preemption,
        reserve: &'e Reservations,
    ) -> Self {
        Self { books, preemption, reserve }
    }

    /// The disruption budgets without which a waiting job, for which no pods to preempt were found,
    /// would start in the place of others, as far as a search of so many operations finds out.
    pub fn blocking_budgets(&mut self, job: JobId, max_operations: u64) -> Option<BlockingBudgets> {
        self.preemption.blocking_budgets((self.books, self.reserve), job, max_operations)
    }

    /// What queues have used if nothing changes until then; `None` where the order does not count
    /// it.
    pub fn usage_at(&mut self, now_ms: u64) -> Option<Vec<QueueUsage>> {
        self.used_at(now_ms).map(|usage| usage.plain())
    }

    /// What queues have used then; the capacity is that of now.
    fn used_at(&mut self, now_ms: u64) -> Option<Usage> {
        let Books { usage, capacity, placement, jobs, quota, .. } = &mut *self.books;
        capacity.refresh(&placement.state);
        let mut usage = usage.clone()?;
        usage.advance(now_ms, (quota, capacity.total()), &jobs.pending.waiting_queues());
        Some(usage)
    }

    /// What decides how soon it is the turn of a waiting job, if nothing changes until then; `None`
    /// if it does not wait.
    pub fn turn(&mut self, job: JobId, now_ms: u64) -> Option<TurnTerms> {
        let usage = self.used_at(now_ms);
        let job: &Job = &self.books.jobs.waiting(job)?.job;
        let (order, by_queues) = self.books.jobs.pending.order();
        Some(TurnTerms {
            order,
            priority: job.priority,
            is_by_queue_first: by_queues == ByQueues::First,
            queues: if by_queues == ByQueues::No { Vec::new() } else { self.levels(job, &usage) },
            standing: self.books.turns.as_ref().map(|turns| turns.terms(job, now_ms)),
        })
    }

    fn levels(&self, job: &Job, usage: &Option<Usage>) -> Vec<LevelTerms> {
        let Books { quota, capacity, jobs, placement, .. } = &*self.books;
        let asked = jobs.records[&job.id].gang.smallest(&placement.state);
        let terms = |queue: &Queue, scope: UsageScope| match (usage, &quota.shares) {
            (Some(usage), _) => {
                QueueTerms::FairTree(usage.terms(queue, scope, quota, capacity.total()))
            }
            (None, Some(shares)) => QueueTerms::Kai(shares.terms(quota, &asked, (queue, scope))),
            (None, None) => QueueTerms::DominantShare(quota.terms(queue, scope, capacity.total())),
        };
        let level = |queue: &Queue, scope| {
            let terms = terms(queue, scope);
            LevelTerms { queue: queue.name.clone(), scope, terms }
        };
        quota.by_level(&job.queue, level).into_vec()
    }

    /// Where the pods of a job would go under a view, quota aside; `None` if the job does not fit.
    /// Room that is held for a waiting job alone ([`Job::kept_room`]) is free to it. Nothing
    /// changes. [`EngineError::UnknownLevel`] if it asks for a topology level that does not exist.
    pub fn what_if_job(
        &mut self,
        job: &Job,
        view: &View,
    ) -> Result<Option<Vec<WouldGo>>, EngineError> {
        let gang = Gang::of(&mut self.books.placement.state, job)?;
        let own = self.books.room_held_for(job.id);
        let placed = self.books.what_if(own, &gang, view, Bounds::default());
        Ok(placed.map(|placed| self.books.placement.would_go(job.id, placed)))
    }

    /// Whether a job would fit, quota aside, if nothing were held under these names
    /// ([`dovetail_model::Owner::Foreign`]) and everything were gone that is releasing and not late
    /// with it. Nothing changes. The error is that of [`Questions::what_if_job`].
    pub fn would_fit_without(
        &mut self,
        job: &Job,
        names: impl IntoIterator<Item = String>,
    ) -> Result<bool, EngineError> {
        let gang = Gang::of(&mut self.books.placement.state, job)?;
        let held = names.into_iter().filter_map(|name| self.books.kept.foreign.get(&name));
        let free: BTreeSet<HoldingId> = held.chain(self.books.room_held_for(job.id)).collect();
        let view = View::AfterReleasing;
        Ok(self.books.what_if(free, &gang, &view, Bounds::default()).is_some())
    }

    /// Which of these waiting jobs would start, one after the other in this order and quota aside,
    /// once everything has gone that is releasing and not late with it: what one takes the next has
    /// not. Nothing changes.
    pub fn would_start_in_turn(&mut self, jobs: &[JobId]) -> BTreeSet<JobId> {
        let Books { placement, jobs: known, kept, .. } = &mut *self.books;
        let helped = placement.state.helped;
        let draws = placement.draws();
        let mark = View::AfterReleasing.open(&mut placement.state, placement.now_ms);
        // What those leave for whom room is kept is not for others.
        kept.fill_all(&mut placement.state, known);
        let mut starts = BTreeSet::new();
        for job in jobs {
            let Some(record) = known.waiting(*job) else { continue };
            let before = placement.state.begin();
            for own in kept.foreign.room_of(&record.job) {
                placement.state.release(own);
            }
            match placement.place(*job, &record.gang, Bounds::default()) {
                Some(_) => {
                    starts.insert(*job);
                    placement.state.commit(before);
                }
                None => placement.state.rollback(before),
            }
        }
        placement.state.rollback(mark);
        placement.state.helped = helped;
        placement.set_draws(draws);
        starts
    }

    /// Where pods of a job would go now: as many of each set as there is room for and as its queue
    /// may hold, whatever its smallest size is. Nothing changes. The error is that of
    /// [`Questions::what_if_job`].
    pub fn what_fits(&mut self, job: &Job) -> Result<Vec<WouldGo>, EngineError> {
        let mut gang = Gang::of(&mut self.books.placement.state, job)?;
        gang.sets.iter_mut().for_each(|set| set.min = 0);
        let limit = self.books.quota.headroom(&job.queue, &Beside::default());
        let placed = self.books.what_if([], &gang, &View::Now, limit).unwrap_or_default();
        Ok(self.books.placement.would_go(job.id, placed))
    }

    /// Where the pods of a waiting job would go if it were its turn, with all that is kept for it
    /// and within its quota as it grows; `None` if it does not wait or does not fit. Nothing is
    /// decided.
    pub fn would_choose(&mut self, job: JobId) -> Option<Vec<WouldGo>> {
        // A decision cycle begins with this.
        let Books { placement, jobs, kept, .. } = &mut *self.books;
        kept.keep_claims(&mut placement.state, jobs);
        let gang = Arc::clone(&self.books.jobs.waiting(job)?.gang);
        let growth_limit = self.books.bounded().growth_limit(job, &gang).unwrap_or_default();
        let Books { placement, jobs, kept, .. } = &*self.books;
        let kept = kept.all_for(placement, &jobs.records[&job]);
        let placed = self.books.what_if(kept, &gang, &View::Now, growth_limit);
        placed.map(|placed| self.books.placement.would_go(job, placed))
    }

    /// The best node for the first pod of a job, found by judging every node and without any index;
    /// `None` if none fits. The index is held against this where the naive search, which also adds
    /// up every holding anew, would take too long. For policies that pick the best; the error is
    /// that of [`Questions::what_if_job`].
    pub fn best_of_every_node(&mut self, job: &Job) -> Result<Option<NodeName>, EngineError> {
        let gang = Gang::of(&mut self.books.placement.state, job)?;
        let Some(set) = gang.sets.first() else { return Ok(None) };
        let slots = (0..self.books.placement.state.nodes.slots() as u32).map(NodeId);
        let fitting: Vec<NodeId> =
            slots.filter(|n| set.shape.fits(&mut self.books.placement.state, *n)).collect();
        let demand = self.books.placement.state.shapes.get(set.shape).demand.clone();
        let images = self.books.placement.state.shapes.get(set.shape).images;
        let best = fitting.into_iter().max_by_key(|node| {
            let points = demand.points(&mut self.books.placement.state, images, *node);
            let policy = &mut *self.books.placement.policy;
            let score =
                whole_score(policy, &mut self.books.placement.state, set.shape, points, *node);
            (score, Reverse(self.books.placement.state.nodes.hot(*node).rank))
        });
        Ok(best.map(|node| self.books.placement.state.nodes.cold(node).node.name.clone()))
    }

    /// Whether a waiting job would fit as a whole at this moment, quota aside; false if it does not
    /// wait.
    ///
    /// Nothing changes. Where the policy draws random numbers, the answer is first-fit's: asking
    /// must not move the sequence that later decisions rest on.
    pub fn gang_fits(&mut self, job: JobId, levels: LevelCheck) -> bool {
        let Some(record) = self.books.jobs.waiting(job) else {
            return false;
        };
        let mut gang: Gang = Gang::clone(&record.gang);
        if levels == LevelCheck::Ignored {
            gang.required = None;
            gang.sets.iter_mut().for_each(|set| set.required = None);
        }
        if self.books.placement.policy.pick() == Pick::Best {
            let free = self.books.what_if([], &gang, &View::Now, Bounds::default());
            return free.is_some();
        }
        let helped = self.books.placement.state.helped;
        let mark = self.books.placement.state.begin();
        let (mut policy, mut finder) = (FirstFit, Index::default());
        let placed = Placer::new(&mut self.books.placement.state, &mut policy, &mut finder, job)
            .place(&gang);
        self.books.placement.state.rollback(mark);
        self.books.placement.state.helped = helped;
        placed.is_some()
    }

    /// The number of a requirement that is asked for elsewhere; numbering it changes no decision.
    pub fn shape_of(&mut self, requirement: &Arc<Requirement>) -> ShapeId {
        self.books.placement.state.intern_shape(requirement)
    }
}
