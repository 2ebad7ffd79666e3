//! `fgd-learnt`: `fgd` whose target mix is learnt from arrivals, knowing nothing at the start.

use dovetail_model::{HeldDevices, NodeId};

use crate::fgd::FgdScorer;
use crate::fragmentation::Fragmentation;
use crate::learn::{Learnt, ONE};
use crate::target::TargetPod;
use crate::{Policy, Term};
use dovetail_state::State;
use dovetail_state::shapes::ShapeId;

#[derive(Debug)]
pub(crate) struct FgdLearnt {
    learnt: Learnt,
    scorer: FgdScorer,
    remember: bool,
}

impl FgdLearnt {
    pub(crate) fn new(state: &mut State, learnt: Option<&Learnt>, remember: bool) -> Self {
        let learnt = learnt.cloned().unwrap_or_default();
        let scorer = scorer(state, &learnt, remember);
        Self { learnt, scorer, remember }
    }
}

fn scorer(state: &mut State, learnt: &Learnt, remember: bool) -> FgdScorer {
    let target = |(kind, weight): (crate::learn::PodKind, i64)| TargetPod {
        cpu_milli: kind.cpu_milli,
        gpu_count: kind.gpu_count,
        gpu_milli: kind.gpu_milli,
        gpu_models: kind.gpu_models.into_iter().collect(),
        weight: weight as f64 / ONE as f64,
    };
    let mix: Vec<TargetPod> = learnt.common_kinds().into_iter().map(target).collect();
    FgdScorer::new(Fragmentation::new(state, &mix, remember), remember)
}

impl Policy for FgdLearnt {
    fn name(&self) -> &'static str {
        "fgd-learnt"
    }

    fn version(&self) -> u64 {
        self.learnt.version
    }

    #[inline]
    fn score(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> i64 {
        self.scorer.score(state, shape, node)
    }

    fn terms(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> Vec<Term> {
        let points = self.score(state, shape, node);
        vec![Term { name: "fragmentation", points }]
    }

    fn devices(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> HeldDevices {
        self.scorer.devices(state, shape, node)
    }

    fn observe_arrival(&mut self, state: &State, shape: ShapeId, pods: u32) {
        self.learnt.observe(state, shape, pods);
    }

    fn observe_end(&mut self, state: &State, shape: ShapeId, ran_ms: u64) {
        self.learnt.observe_end(state, shape, ran_ms);
    }

    fn publish(&mut self, state: &mut State) -> bool {
        let published = self.learnt.publish(state);
        if published {
            self.scorer = scorer(state, &self.learnt, self.remember);
        }
        published
    }

    fn published_values(&self) -> Vec<(String, i64)> {
        self.learnt.published_values()
    }

    fn learnt(&self) -> Option<&Learnt> {
        Some(&self.learnt)
    }
}
