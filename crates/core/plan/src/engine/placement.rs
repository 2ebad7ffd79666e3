//! Where pods can go: the one state, the policy that scores it and the search over it.

use std::sync::Arc;

use dovetail_model::{
    Bounds, HeldDevices, HoldingId, HoldingPhase, Job, JobId, NodeName, Owner, PodId,
};

use super::config::EngineConfig;
use super::jobs::JobRecord;
use crate::gang::{Gang, PlacedPod, Placer};
use crate::pending::ClassKey;
use dovetail_finder::{Finder, Index, Naive};
use dovetail_policy::Policy;
use dovetail_state::State;
use dovetail_state::cause::Help;
use dovetail_state::scope::Scope;
use dovetail_state::view::View;

/// Nodes with what is held on them, and how a place on them is chosen. It knows no waiting jobs and
/// decides nothing.
pub(crate) struct Placement {
    pub(crate) state: State,
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) finder: NodeSearch,
    /// Time of the newest event.
    pub(crate) now_ms: u64,
}

/// Either way to answer about single pods.
pub(crate) enum NodeSearch {
    Indexed(Index),
    Exhaustive(Naive),
}

/// Where one pod of a job in question would go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WouldGo {
    pub pod: PodId,
    pub node: NodeName,
    /// Its devices; on a node with counted devices the kubelet chooses which.
    pub devices: HeldDevices,
}

impl NodeSearch {
    /// The way that is asked for, with nothing remembered.
    pub(super) fn of(config: &EngineConfig) -> Self {
        match config.naive {
            true => Self::Exhaustive(Naive::default()),
            false => Self::Indexed(Index::with_max_bytes(config.max_index_bytes)),
        }
    }

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

impl Placement {
    /// Places a gang as a whole and holds what it gets; `None` if it does not fit.
    pub(crate) fn place(
        &mut self,
        job: JobId,
        gang: &Gang,
        growth_limit: Bounds,
    ) -> Option<Vec<PlacedPod>> {
        let finder = self.finder.finder();
        let mut placer = Placer::new(&mut self.state, &mut *self.policy, finder, job);
        placer.growth_limit = growth_limit;
        placer.place(gang)
    }

    /// Where a gang would be placed under a view with at most so much beyond its smallest size;
    /// nothing changes. What leaves by then is not for others where `reserve` holds it.
    pub(crate) fn what_if(
        &mut self,
        gang: &Gang,
        view: &View,
        growth_limit: Bounds,
        reserve: impl FnOnce(&mut State),
    ) -> Option<Vec<PlacedPod>> {
        let helped = self.state.helped;
        let draws = self.draws();
        let mark = view.open(&mut self.state, self.now_ms);
        if *view == View::AfterReleasing {
            reserve(&mut self.state);
        }
        let placed = self.place(JobId(u64::MAX), gang, growth_limit);
        self.state.rollback(mark);
        self.state.helped = helped;
        self.set_draws(draws);
        placed
    }

    /// Asks something as if these holdings were gone. Nothing changes.
    pub(crate) fn as_if_free<T>(
        &mut self,
        holdings: impl IntoIterator<Item = HoldingId>,
        ask: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let mut holdings = holdings.into_iter().peekable();
        if holdings.peek().is_none() {
            return ask(self);
        }
        let helped = self.state.helped;
        let mark = self.state.begin();
        holdings.for_each(|id| drop(self.state.release(id)));
        let answer = ask(self);
        self.state.rollback(mark);
        self.state.helped = helped;
        answer
    }

    /// How many random picks were made: of nodes, of devices.
    pub(crate) fn draws(&self) -> [u64; 2] {
        [self.finder.draws(), self.policy.draws()]
    }

    pub(crate) fn set_draws(&mut self, [nodes, devices]: [u64; 2]) {
        self.finder.finder().set_draws(nodes);
        self.policy.set_draws(devices);
    }

    /// What could help a gang that does not fit: for one pod the causes of refusal, else anything
    /// that frees something. Where the search is not exhaustive (several sets, or rules) and there
    /// is room for each set by itself, also anything that makes it choose otherwise.
    pub(crate) fn wanted_by(&mut self, gang: &Gang) -> Help {
        let finder = self.finder.finder();
        if let Some(set) = gang.only_pod() {
            let counts = finder.obstacles(&mut self.state, &mut *self.policy, set.shape);
            return Help::wanted(&counts);
        }
        let sets = || gang.sets.iter().filter(|set| set.min > 0);
        let has_rules = |shape| !self.state.shapes.get(shape).demand.rules.is_empty();
        if sets().count() == 1 && !sets().any(|set| has_rules(set.shape)) {
            return Help::FREED;
        }
        let hopeless = sets().any(|set| {
            let room = finder.room(&mut self.state, set.shape, Scope::Everywhere);
            room < u64::from(set.min)
        });
        if hopeless { Help::FREED } else { Help::ALL }
    }

    /// The class of a waiting job, apart from what is kept for it. Which images it names makes no
    /// difference where every place is tried.
    pub(crate) fn class_key(&self, job: &Job, gang: &Arc<Gang>) -> ClassKey {
        let mut gang = Arc::clone(gang);
        if let [set] = gang.sets.as_slice() {
            let shape = self.state.shapes.get(set.shape);
            if shape.images.is_some() && shape.demand.rules.is_empty() {
                let imageless = shape.imageless;
                Arc::make_mut(&mut gang).sets[0].shape = imageless;
            }
        }
        ClassKey {
            queue: job.queue.clone(),
            gang,
            preempts: !job.preemption.never_preempts,
            claim: None,
            p90_ms: None,
            kept_room: job.kept_room.clone(),
        }
    }

    /// Tells the policy how long the pods ran that still hold something.
    pub(crate) fn note_ends(&mut self, record: &JobRecord) {
        let Some(start_ms) = record.job.start_ms else { return };
        let ran_ms = self.now_ms.saturating_sub(start_ms);
        for id in &record.holdings {
            let Owner::Pod(pod) = self.state.holdings.get(*id).owner else { continue };
            let shape = record.gang.sets[usize::from(pod.pod_set)].shape;
            self.policy.observe_end(&self.state, shape, ran_ms);
        }
    }

    /// What is late with ending leaves no room that others wait for: they look for room elsewhere.
    pub(crate) fn note_late(&mut self, phase: HoldingPhase) {
        if matches!(phase, HoldingPhase::Releasing { .. }) && !phase.is_leaving(self.now_ms) {
            self.state.helped |= Help::FREED;
        }
    }

    /// Places with the names of their nodes.
    pub(crate) fn would_go(&self, job: JobId, placed: Vec<PlacedPod>) -> Vec<WouldGo> {
        let would_go = placed.into_iter().map(|placed| WouldGo {
            pod: PodId { job, ..placed.pod },
            node: self.state.nodes.cold(placed.node).node.name.clone(),
            devices: placed.devices,
        });
        would_go.collect()
    }
}
