//! `step`: what happened in, one plan out.
//!
//! | part | owns |
//! |---|---|
//! | `placement` | the one state, the policy and the search: where pods can go |
//! | `jobs` | jobs that wait and run |
//! | `foreign` | what others hold, and room under names for jobs to come |
//! | [`crate::preemption`] | what is kept; who is preempted, and what that takes |
//! | `config`, `error` | what an engine is told once; which events it refuses |
//! | [`crate::reserve`] | who is next and gets a reservation, and who is lent its room |
//! | `away` | what is kept of preempted jobs until they are submitted again |
//! | `drains` | windows in which nodes take nothing |
//! | `books` | these parts, and what changes several of them (`events`: what happens to jobs) |
//! | `charge`, `models` | what a pod counts where it stands; GPU models of which a queue may not hold more |
//! | `dividing` | what follows where the order divides the cluster over queues |
//! | `relations` | who might make place for a waiting job |
//! | `reclaiming` | which job is tried before one that it would reclaim from |
//! | `turning` | what time changes of standings |
//! | `batch`, `apply`, `cycle` | a step: what happened; it is taken in; what can start does |
//! | `snapshot`, `asleep` | an engine as plain data and back; its sleeping classes |
//! | `ask`, `listing`, `supply`, `probe` | questions, none of which changes anything |

mod apply;
mod ask;
mod asleep;
mod away;
mod batch;
mod books;
pub(crate) mod charge;
mod config;
mod cycle;
pub(crate) mod dividing;
mod drains;
mod error;
mod events;
mod foreign;
mod jobs;
mod learned;
mod listing;
pub(crate) mod models;
mod overdue;
mod placement;
pub mod probe;
mod queues;
mod reclaiming;
pub(crate) mod relations;
pub(crate) mod snapshot;
pub mod supply;
mod turning;
mod woken;

pub use ask::Questions;
pub use batch::Batch;
pub(crate) use books::Books;
pub use config::EngineConfig;
pub use error::EngineError;
pub(crate) use foreign::Foreign;
pub(crate) use jobs::{JobRecord, Jobs};
pub use learned::Learned;
pub use listing::{Listing, ReservedFor, ReservedUnused, WaitingBelow};
pub use placement::WouldGo;
pub(crate) use placement::{NodeSearch, Placement};

use std::sync::Arc;

use dovetail_model::{Action, Job, JobId, Plan, Snapshot};

use crate::preemption::{Preemption, SearchEffort};
use crate::reserve::Reservations;
use dovetail_order::book::TurnBook;
use dovetail_order::queues::quota::QueueUse;
use dovetail_policy::Policy;
use dovetail_policy::learn::Learnt;
use dovetail_policy::named::PolicySpec;
use dovetail_state::State;
use drains::Drains;
use supply::Supply;

/// The decision engine.
pub struct Engine {
    pub(crate) books: Books,
    preemption: Preemption,
    reserve: Reservations,
    drains: Drains,
    decisions: Vec<crate::explain::DecisionRecord>,
    /// Whether the last step that decided has left something undecided
    /// ([`EngineConfig::ends_at_claims`]).
    pub has_more: bool,
    /// Whether the last step that decided did not preempt for all jobs because it had named enough
    /// victims ([`Batch::with_victims`]). The engine sets no time for the next one.
    pub is_held_back: bool,
    config: EngineConfig,
}

impl Engine {
    /// An engine over the world of a snapshot; waiting jobs wait, running ones hold what they hold.
    pub fn new(config: EngineConfig, snapshot: &Snapshot) -> Result<Self, EngineError> {
        snapshot::adopt(config, snapshot)
    }

    /// The one door: takes what happened at a time and, if the batch says so, decides what follows.
    /// A batch without events decides at the time of the newest event.
    ///
    /// # Errors
    /// An event that cannot be taken: it has changed nothing, what came before it in the batch has
    /// been taken, and what comes after it has not.
    pub fn step(&mut self, batch: impl Into<Batch>, now_ms: u64) -> Result<Plan, EngineError> {
        let Batch { events, decides, most_victims } = batch.into();
        let mut plan = Plan::default();
        for event in events {
            self.apply(event, now_ms, &mut plan)?;
        }
        if decides {
            self.has_more = false;
            self.cycle(most_victims, &mut plan);
            self.is_held_back = self.preemption.is_held_back();
        }
        Ok(plan)
    }

    /// Builds the indices that the next decisions rest on, off the decision path; changes no
    /// decision.
    pub fn prepare(&mut self) {
        let Some((job, _)) = self.books.next_job(None) else { return };
        let gang = Arc::clone(&self.books.jobs.records[&job].gang);
        let Placement { state, policy, finder, .. } = &mut self.books.placement;
        for set in &gang.sets {
            finder.finder().prepare(state, &mut **policy, set.shape);
        }
    }

    /// Takes over what a recorded decision keeps, gives back or gives up. That pods were bound is
    /// told by [`dovetail_model::Event::Adopted`]; of it this takes over that room kept for the job
    /// is over.
    pub fn follow(&mut self, action: &Action) {
        self.books.follow(action);
    }

    /// Questions about jobs: where they would go, and why they wait. None changes anything.
    pub fn ask(&mut self) -> Questions<'_> {
        self.books.known.forget();
        Questions::of(&mut self.books, &mut self.preemption, &self.reserve)
    }

    /// Lists of jobs and queues.
    pub fn list(&self) -> Listing<'_> {
        Listing::of(&self.books, &self.reserve)
    }

    /// Nodes with their devices.
    pub fn supply(&self) -> Supply<'_> {
        Supply::of(self.state())
    }

    /// The state, to look at.
    pub fn state(&self) -> &State {
        &self.books.placement.state
    }

    /// The policy in force.
    pub fn policy(&self) -> &dyn Policy {
        &*self.books.placement.policy
    }

    /// Time of the newest event.
    pub fn now_ms(&self) -> u64 {
        self.books.placement.now_ms
    }

    /// A job that waits or runs.
    pub fn job(&self, job: JobId) -> Option<&Job> {
        self.books.jobs.records.get(&job).map(|record| &record.job)
    }

    /// What a queue and everything below it hold, and which share of the cluster that is.
    pub fn queue_use(&mut self, queue: &str) -> QueueUse {
        self.books.capacity.refresh(&self.books.placement.state);
        self.books.quota.use_of(queue, self.books.capacity.total())
    }

    /// When a [`dovetail_model::Event::Tick`] changes something even if nothing else happens.
    pub fn due_ms(&self) -> Option<u64> {
        match self.preemption.is_cut_off() {
            true => Some(self.now_ms()),
            false => {
                let books = &self.books;
                let kept = &books.kept;
                let turns = books.turns.as_ref().filter(|_| books.jobs.pending.len() > 0);
                let turns_ms = turns.and_then(TurnBook::due_ms);
                let bookings_ms = kept.bookings.due_ms();
                let claims_ms = [kept.claims.due_ms(), Reservations::due_ms(kept)];
                let wakes_ms = books.jobs.pending.due_ms();
                let due = claims_ms.into_iter().chain([bookings_ms, turns_ms, wakes_ms]);
                due.flatten().min()
            }
        }
    }

    /// How often it was looked for pods to stop and what that took, since the last call.
    pub fn take_search_effort(&mut self) -> SearchEffort {
        self.preemption.take_effort()
    }

    /// Records of placements since the last call, if the configuration asks for them.
    pub fn decisions(&mut self) -> Vec<crate::explain::DecisionRecord> {
        std::mem::take(&mut self.decisions)
    }

    /// The world as plain data. An engine made from it, with the same policy and what that has
    /// learnt, decides as this one.
    pub fn snapshot(&self) -> Snapshot {
        snapshot::of(self)
    }

    /// How many distinct names and requirements there are tables for, also of what is gone.
    pub fn known_names(&self) -> usize {
        let state = self.state();
        state.shapes.count() + state.counters.selector_count() + state.images.name_count()
    }

    /// What was learnt: by the policy in force, or by an earlier one that was.
    fn learnt(&self) -> Option<Learnt> {
        self.policy().learnt().or(self.config.policy.learnt.as_ref()).cloned()
    }

    /// Forgets names and requirements of what is gone.
    ///
    /// Selectors, requirements, images and what follows from them get numbers when they are first
    /// met, and tables by these numbers only ever grow. In a simulation that ends; a scheduler that
    /// runs for months meets ever new ones. An engine that is built from its own snapshot knows
    /// those that are in use and decides as before. It takes as long as a restart and changes no
    /// later decision; numbers of nodes and shapes that were given out are void.
    pub fn forget_what_is_gone(&mut self) {
        let snapshot: Snapshot = self.snapshot();
        let learnt = self.learnt().as_ref().map(Learnt::for_another_engine);
        let policy = PolicySpec { learnt, ..self.config.policy.clone() };
        let config = EngineConfig { policy, ..self.config.clone() };
        let renewed = Self::new(config, &snapshot).expect("its own snapshot is a good world");
        let before = std::mem::replace(self, renewed);
        self.decisions = before.decisions;
        self.preemption.take_over_effort(before.preemption);
    }
}
