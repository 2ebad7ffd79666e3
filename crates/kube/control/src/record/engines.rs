//! What engines are told and answer, beside what happens to their scheduler.

use dovetail_model::{Action, Event, Snapshot};
use dovetail_plan::{Engine, EngineConfig};

/// Something an engine was told, and what it answered.
#[derive(Clone, Debug)]
pub enum EngineEntry {
    /// An engine decides from here on: how, with what its policy has learnt, and the world as it
    /// begins with. There is one per leadership, and one more after each inconsistency.
    Begins(Box<(EngineConfig, Snapshot)>),
    Steps {
        now_ms: u64,
        events: Vec<Event>,
        actions: Vec<Action>,
        decides: bool,
    },
}

impl EngineEntry {
    pub(crate) fn begins(config: &EngineConfig, engine: &Engine) -> Self {
        let mut config = config.clone();
        config.policy.learnt = engine.policy().learnt().cloned();
        Self::Begins(Box::new((config, engine.snapshot())))
    }

    /// What it answered.
    pub fn actions(&self) -> &[Action] {
        match self {
            Self::Begins(_) => &[],
            Self::Steps { actions, .. } => actions,
        }
    }
}
