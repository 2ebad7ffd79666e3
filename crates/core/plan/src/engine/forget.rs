//! Forgetting names and requirements of what is gone.
//!
//! Selectors, requirements, images and what follows from them get numbers when they are first met, and tables by these
//! numbers only ever grow. In a simulation that ends; a scheduler that runs for months meets ever new ones. An engine
//! that is built from its own snapshot knows those that are in use and decides as before.

use dovetail_model::Snapshot;

use super::{Engine, EngineConfig};
use crate::learn::Learnt;
use crate::policy::named::PolicySpec;

impl Engine {
    /// How many distinct names and requirements there are tables for, also of what is gone.
    pub fn known_names(&self) -> usize {
        let state = &self.state;
        state.shapes.len() + state.counters.selector_count() + state.images.name_count()
    }

    /// Forgets names and requirements of what is gone. It takes as long as a restart and changes no later decision;
    /// numbers of nodes and shapes that were given out are void.
    pub fn forget_what_is_gone(&mut self) {
        let snapshot: Snapshot = self.snapshot();
        let learnt = self.policy.learnt().map(Learnt::for_another_engine);
        let policy = PolicySpec { learnt, ..self.config.policy.clone() };
        let config = EngineConfig { policy, ..self.config.clone() };
        let renewed = Self::new(config, &snapshot).expect("its own snapshot is a good world");
        let before = std::mem::replace(self, renewed);
        (self.decisions, self.effort) = (before.decisions, before.effort);
    }
}
