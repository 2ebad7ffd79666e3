//! `step`: one event in, one plan out.

mod apply;
mod ask;
mod cycle;
mod follow;
mod forget;
mod pods;
mod queues;
mod snapshot;
pub mod supply;

pub use ask::WouldGo;
use queues::Capacity;
pub use queues::WaitingBelow;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_model::{
    Charge, Event, Holding, HoldingId, Job, JobId, NodeId, NodeName, Owner, PendingReason, Plan,
    PodId, Snapshot,
};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::finder::Finder;
use crate::gang::{Gang, UnknownLevel};
use crate::index::Index;
use crate::naive::Naive;
use crate::policy::Policy;
use crate::policy::named::{self, PolicySpec, UnknownPolicy};
use crate::queue::quota::Quota;
use crate::queue::{Order, OrderKey, Pending};
use crate::repair::{Claims, PreemptionConfig, SearchEffort, Survey};
use crate::state::State;

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
        }
    }
}

/// The decision engine.
pub struct Engine {
    pub(crate) state: State,
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) finder: Search,
    pub(crate) pending: Pending,
    pub(crate) quota: Quota,
    pub(crate) capacity: Capacity,
    pub(crate) jobs: FxHashMap<JobId, JobRecord>,
    pub(crate) now_ms: u64,
    pub(crate) decisions: Vec<crate::explain::DecisionRecord>,
    pub(crate) config: EngineConfig,
    drains: BTreeMap<NodeName, apply::Drain>,
    pub(crate) foreign: BTreeMap<String, HoldingId>,
    /// Held by others on nodes that are not there yet.
    unplaced_foreign: BTreeMap<String, Holding>,
    /// Names under which room is kept for jobs that are to come, with their priority; some may hold nothing any more.
    pub(crate) kept_rooms: BTreeMap<String, i32>,
    /// Jobs that run and may be stopped, by priority.
    pub(crate) running: BTreeSet<(i32, JobId)>,
    pub(crate) claims: Claims,
    /// How many of the pods that a selector counts may be stopped.
    pub(crate) budgets: BTreeMap<String, i64>,
    pub(crate) survey: Survey,
    /// What the searches of this cycle may still take.
    pub(crate) search_operations_left: u64,
    /// Whether that was not enough for all.
    pub(crate) is_search_postponed: bool,
    /// Classes that the last cycle did not search for; before them, this one searches for nobody.
    pub(crate) search_first: BTreeSet<usize>,
    pub(crate) effort: SearchEffort,
}

/// Either way to answer about single pods.
pub(crate) enum Search {
    /// By index.
    Indexed(Index),
    /// By exhaustive search.
    Exhaustive(Naive),
}

impl Search {
    /// How many random picks were made.
    pub(crate) fn draws(&self) -> u64 {
        match self {
            Self::Indexed(index) => index.draws(),
            Self::Exhaustive(naive) => naive.draws(),
        }
    }

    pub(crate) fn finder(&mut self) -> &mut dyn Finder {
        match self {
            Self::Indexed(index) => index,
            Self::Exhaustive(naive) => naive,
        }
    }
}

/// A job the engine knows.
#[derive(Debug)]
pub(crate) struct JobRecord {
    pub(crate) job: Job,
    pub(crate) gang: Arc<Gang>,
    /// Everything it holds; empty while it waits.
    pub(crate) holdings: Vec<HoldingId>,
    /// What is counted for its queue.
    pub(crate) counted: Charge,
    /// Place and class while it waits.
    pub(crate) place: Option<(OrderKey, usize)>,
    pub(crate) reason: Option<PendingReason>,
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
    UnknownNode {
        /// Name of the node.
        node: NodeName,
    },
    /// The job is not known.
    #[error("job {job:?} is not known: it was never submitted or has already ended")]
    UnknownJob {
        /// The job.
        job: JobId,
    },
    /// Who is spoken of holds nothing.
    #[error("{owner:?} holds nothing that could be counted: report what it holds first")]
    NothingHeld {
        /// Of whom the event speaks.
        owner: Owner,
    },
    /// The job does not wait.
    #[error("job {job:?} does not wait: what it needs cannot change while it runs")]
    NotWaiting {
        /// The job.
        job: JobId,
    },
    /// A pod that its job does not have.
    #[error("job {} has no pod {pod:?}", .pod.job.0)]
    UnknownPod {
        /// The pod.
        pod: PodId,
    },
    /// The identity is taken.
    #[error("job {name} has the identity {job:?}, which another job still has")]
    DuplicateJob {
        /// The job.
        job: JobId,
        /// Its name.
        name: String,
    },
    /// The job has no pods.
    #[error("job {name} has no pod set with at least one pod: there is nothing to place")]
    EmptyJob {
        /// Its name.
        name: String,
    },
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
        let mut state = State::default();
        state.load(snapshot);
        let policy = named::build(&config.policy, &mut state, !config.naive)?;
        let finder = match config.naive {
            true => Search::Exhaustive(Naive::default()),
            false => Search::Indexed(Index::with_max_bytes(config.max_index_bytes)),
        };
        let mut engine = Self {
            state,
            policy,
            finder,
            pending: Pending::new(config.order),
            quota: Quota::default(),
            capacity: Capacity::default(),
            jobs: FxHashMap::default(),
            now_ms: snapshot.now_ms,
            decisions: Vec::new(),
            config,
            drains: BTreeMap::new(),
            foreign: BTreeMap::new(),
            unplaced_foreign: BTreeMap::new(),
            kept_rooms: BTreeMap::new(),
            running: BTreeSet::new(),
            claims: Claims::default(),
            budgets: BTreeMap::new(),
            survey: Survey::default(),
            search_operations_left: 0,
            is_search_postponed: false,
            search_first: BTreeSet::new(),
            effort: SearchEffort::default(),
        };
        engine.adopt(snapshot)?;
        Ok(engine)
    }

    /// Takes an event and decides what follows from it.
    pub fn step(&mut self, event: Event, now_ms: u64) -> Result<Plan, EngineError> {
        let mut plan = self.apply(event, now_ms)?;
        self.cycle(&mut plan);
        Ok(plan)
    }

    /// The state, to look at.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The policy in force.
    pub fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    /// Time of the newest event.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// How many jobs wait.
    pub fn waiting_jobs(&self) -> usize {
        self.pending.len()
    }

    /// A job that waits or runs.
    pub fn job(&self, job: JobId) -> Option<&Job> {
        self.jobs.get(&job).map(|record| &record.job)
    }

    /// Whether a node of this name is there.
    pub fn has_node(&self, name: &str) -> bool {
        self.state.nodes.find(name).is_some()
    }

    /// Nodes of a running job's pods, one per pod.
    pub fn nodes_of(&self, job: JobId) -> Vec<NodeName> {
        let holdings = self.holdings_of(job).into_iter();
        holdings.map(|(node, _)| self.state.nodes.cold(node).node.name.clone()).collect()
    }

    /// The pods of a running job.
    pub fn pods_of(&self, job: JobId) -> Vec<PodId> {
        let owners =
            self.holdings_of(job).into_iter().map(|(_, id)| &self.state.holdings.get(id).owner);
        let pods = owners.filter_map(|owner| match owner {
            Owner::Pod(pod) => Some(*pod),
            _ => None,
        });
        pods.collect()
    }

    /// Where a running job's pods are, as (node, holding).
    pub fn holdings_of(&self, job: JobId) -> Vec<(NodeId, HoldingId)> {
        let ids = self.jobs.get(&job).map(|record| record.holdings.as_slice()).unwrap_or(&[]);
        ids.iter().map(|id| (self.state.holdings.get(*id).node, *id)).collect()
    }

    /// Records of placements since the last call, if the configuration asks for them.
    pub fn decisions(&mut self) -> Vec<crate::explain::DecisionRecord> {
        std::mem::take(&mut self.decisions)
    }
}
