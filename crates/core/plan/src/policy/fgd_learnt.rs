//! `fgd-learnt`: `fgd` whose target mix is learnt from arrivals, knowing nothing at the start.

use dovetail_model::{HeldDevices, NodeId};

use crate::learn::ArrivalMix;
use crate::policy::fgd::FgdScorer;
use crate::policy::fragmentation::Fragmentation;
use crate::policy::named::UnknownPolicy;
use crate::policy::{Policy, Term};
use crate::state::State;
use crate::state::shapes::ShapeId;

/// The policy.
#[derive(Debug)]
pub(crate) struct FgdLearnt {
    mix: ArrivalMix,
    scorer: FgdScorer,
    remember: bool,
}

impl FgdLearnt {
    pub(crate) fn new(
        state: &mut State,
        learnt: Option<&str>,
        remember: bool,
    ) -> Result<Self, UnknownPolicy> {
        let mix = ArrivalMix::from_learnt("fgd-learnt", learnt)?;
        let scorer = scorer(state, &mix, remember);
        Ok(Self { mix, scorer, remember })
    }
}

fn scorer(state: &mut State, mix: &ArrivalMix, remember: bool) -> FgdScorer {
    FgdScorer::new(Fragmentation::new(state, &mix.target(), remember), remember)
}

impl Policy for FgdLearnt {
    fn name(&self) -> &'static str {
        "fgd-learnt"
    }

    fn version(&self) -> u64 {
        self.mix.version()
    }

    #[inline]
    fn score(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> i32 {
        self.scorer.score(state, shape, node)
    }

    fn terms(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> Vec<Term> {
        let points = i64::from(self.score(state, shape, node));
        vec![Term { name: "fragmentation", points }]
    }

    fn devices(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> HeldDevices {
        self.scorer.devices(state, shape, node)
    }

    fn observe_arrival(&mut self, state: &State, shape: ShapeId, pods: u32) {
        self.mix.observe(state, shape, pods);
    }

    fn publish(&mut self, state: &mut State) -> bool {
        let published = self.mix.publish();
        if published {
            self.scorer = scorer(state, &self.mix, self.remember);
        }
        published
    }

    fn learnt(&self) -> Option<String> {
        Some(self.mix.to_learnt())
    }
}
