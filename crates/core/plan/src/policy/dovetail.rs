//! `dovetail`, the default.
use dovetail_model::{HeldDevices, NodeId};

use crate::policy::fgd_learnt::FgdLearnt;
use crate::policy::named::UnknownPolicy;
use crate::policy::{Policy, Term};
use crate::state::State;
use crate::state::shapes::ShapeId;

/// The policy.
#[derive(Debug)]
pub(crate) struct Dovetail {
    inner: FgdLearnt,
}

impl Dovetail {
    pub(crate) fn new(s: &mut State, l: Option<&str>, r: bool) -> Result<Self, UnknownPolicy> {
        Ok(Self { inner: FgdLearnt::new(s, l, r)? })
    }
}
impl Policy for Dovetail {
    fn name(&self) -> &'static str {
        "dovetail"
    }
    fn version(&self) -> u64 {
        self.inner.version()
    }
    fn score(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> i32 {
        self.inner.score(state, shape, node)
    }
    fn terms(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> Vec<Term> {
        self.inner.terms(state, shape, node)
    }
    fn devices(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> HeldDevices {
        self.inner.devices(state, shape, node)
    }
    fn observe_arrival(&mut self, state: &State, shape: ShapeId, pods: u32) {
        self.inner.observe_arrival(state, shape, pods);
    }
    fn publish(&mut self, state: &mut State) -> bool {
        self.inner.publish(state)
    }
    fn learnt(&self) -> Option<String> {
        self.inner.learnt()
    }
}
