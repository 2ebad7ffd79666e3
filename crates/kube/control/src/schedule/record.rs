//! A way to write down everything that is applied to the engine and everything it answers.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dovetail_model::{Event, Plan};
use dovetail_plan::{Engine, EngineConfig};

/// Writes down what is applied to one engine after the other and what it answers. Errors are its
/// own: nothing here waits for it or depends on it.
pub trait Record: Send {
    /// A new engine decides from here on. There is one per leadership, and one more after each
    /// inconsistency.
    fn begin(&mut self, config: &EngineConfig, engine: &Engine);
    /// An event was applied to it, and it answered at once.
    fn told(&mut self, now_ms: u64, event: &Event, plan: &Plan);
    /// It decided.
    fn decided(&mut self, now_ms: u64, plan: &Plan);
    /// It decides no more.
    fn end(&mut self);
    /// Whether something that was applied or decided could not be written down.
    fn is_broken(&self) -> bool;
}

/// What every scheduler of a process writes into.
#[derive(Clone)]
pub struct Recording(Arc<Mutex<dyn Record>>);

impl Recording {
    /// A recording.
    pub fn new(record: impl Record + 'static) -> Self {
        Self(Arc::new(Mutex::new(record)))
    }

    /// Where it is written; a panic of another writer leaves no half of an entry.
    pub fn get(&self) -> MutexGuard<'_, dyn Record + 'static> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Recording")
    }
}
