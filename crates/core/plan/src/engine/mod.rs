//! `step`: what happened in, one plan out.
//!
//! | part | owns |
//! |---|---|
//! | `placement` | the one state, the policy and the search: where pods can go |
//! | `jobs` | jobs that wait and run |
//! | `foreign` | what others hold, and reservations for jobs to come |
//! | [`crate::preemption`] | claims; who is preempted, and what that takes |
//! | `away` | what is kept of preempted jobs until they are submitted again |
//! | `drains` | windows in which nodes take nothing |
//! | `books` | these parts, and what changes several of them (`events`: what happens to jobs) |
//! | `batch`, `apply`, `cycle` | a step: what happened; it is taken in; what can start does |
//! | `ask`, `listing`, `supply` | questions, none of which changes anything |

mod apply;
mod ask;
mod away;
mod batch;
mod books;
mod cycle;
mod drains;
mod events;
mod foreign;
mod jobs;
mod listing;
mod overdue;
mod placement;
mod queues;
mod snapshot;
pub mod supply;

pub use ask::{Questions, WouldGo};
pub use batch::Batch;
pub(crate) use books::Books;
pub(crate) use foreign::Foreign;
pub(crate) use jobs::{JobRecord, Jobs};
pub use listing::{Listing, WaitingBelow};
pub(crate) use placement::{Placement, Search};

use std::sync::Arc;

use dovetail_model::{Action, Job, JobId, NodeName, Owner, Plan, PodId, Snapshot};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::estimate::EstimatesConfig;
use crate::gang::UnknownLevel;
use crate::learn::Learnt;
use crate::order::Turns;
use crate::policy::Policy;
use crate::policy::named::{PolicySpec, UnknownPolicy};
use crate::preemption::{Preemption, PreemptionConfig, SearchEffort};
use crate::queue::Order;
use crate::queue::quota::QueueUse;
use crate::reserve::ReserveConfig;
use crate::state::State;
use drains::Drains;
use supply::Supply;

/// What an engine is told once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EngineConfig {
    /// How nodes are chosen.
    pub policy: PolicySpec,
    /// How waiting jobs are ordered.
    pub order: Order,
    /// Answer by exhaustive search and remember nothing: slow, for judging the index.
    pub naive: bool,
    /// Keep a record of every placement for [`Engine::decisions`].
    pub record_decisions: bool,
    /// Memory bound of the score trees, in bytes.
    pub max_index_bytes: usize,
    /// Whether jobs stop others of lower priority.
    #[serde(default)]
    pub preemption: PreemptionConfig,
    /// Whether run times are learned.
    #[serde(default, skip_serializing_if = "EstimatesConfig::is_default")]
    pub estimates: EstimatesConfig,
    /// Whether capacity is reserved for the jobs that are next.
    #[serde(default, skip_serializing_if = "ReserveConfig::is_default")]
    pub reserve: ReserveConfig,
    /// Weights of order `dovetail`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub turns: Turns,
}

// The form that serde asks for.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_default(turns: &Turns) -> bool {
    *turns == Turns::default()
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            policy: PolicySpec::default(),
            order: Order::default(),
            naive: false,
            record_decisions: false,
            max_index_bytes: crate::index::DEFAULT_MAX_BYTES,
            preemption: PreemptionConfig::default(),
            turns: Turns::default(),
            estimates: EstimatesConfig::default(),
            reserve: ReserveConfig::default(),
        }
    }
}

/// The decision engine.
pub struct Engine {
    pub(crate) books: Books,
    preemption: Preemption,
    drains: Drains,
    decisions: Vec<crate::explain::DecisionRecord>,
    config: EngineConfig,
}

/// An event that cannot be taken; nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EngineError {
    /// The time of the event lies before that of an earlier one.
    #[error(
        "an event at {now_ms} ms came after one at {last_ms} ms: events must be in order of time"
    )]
    TimeWentBack {
        /// Time of the event.
        now_ms: u64,
        /// Time of the newest event before.
        last_ms: u64,
    },
    /// The node is not known.
    #[error("node {node} is not known: add it before changing it")]
    UnknownNode { node: NodeName },
    /// The job is not known.
    #[error("job {job:?} is not known: it was never submitted or has already ended")]
    UnknownJob { job: JobId },
    /// Who is spoken of holds nothing.
    #[error("{owner:?} holds nothing that could be counted: report what it holds first")]
    NothingHeld {
        /// Of whom the event speaks.
        owner: Owner,
    },
    /// The job does not wait.
    #[error("job {job:?} does not wait: what it needs cannot change while it runs")]
    NotWaiting { job: JobId },
    /// A pod that its job does not have.
    #[error("job {} has no pod {pod:?}", .pod.job.0)]
    UnknownPod { pod: PodId },
    /// The identity is taken.
    #[error("job {name} has the identity {job:?}, which another job still has")]
    DuplicateJob { job: JobId, name: String },
    /// The job has no pods.
    #[error("job {name} has no pod set with at least one pod: there is nothing to place")]
    EmptyJob { name: String },
    /// A level that the topology does not have.
    #[error(transparent)]
    UnknownLevel(#[from] UnknownLevel),
    /// A policy that does not exist.
    #[error(transparent)]
    UnknownPolicy(#[from] UnknownPolicy),
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
        let Batch { events, decides } = batch.into();
        let mut plan = Plan::default();
        for event in events {
            self.apply(event, now_ms, &mut plan)?;
        }
        if decides {
            self.cycle(&mut plan);
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
        Questions::of(&mut self.books)
    }

    /// Lists of jobs and queues.
    pub fn list(&self) -> Listing<'_> {
        Listing::of(&self.books)
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
        match self.preemption.is_postponed() {
            true => Some(self.now_ms()),
            false => {
                let books = &self.books;
                let due = [books.claims.due_ms(), books.reserved.due_ms(), books.turn_due_ms()];
                due.into_iter().flatten().min()
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

    /// An engine that decides as this one about a world that was taken from it, and keeps no
    /// records.
    pub(crate) fn copy_of(&self, world: &Snapshot) -> Option<Self> {
        let policy = PolicySpec { learnt: self.learnt(), ..self.config.policy.clone() };
        let config = EngineConfig { policy, record_decisions: false, ..self.config.clone() };
        Self::new(config, world).ok()
    }

    /// How many distinct names and requirements there are tables for, also of what is gone.
    pub fn known_names(&self) -> usize {
        let state = self.state();
        state.shapes.len() + state.counters.selector_count() + state.images.name_count()
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
