//! A way to write down everything that happens to a scheduler and everything it asks for.
//!
//! One step of a scheduler is one [`RecordEntry`]: what happened, how much it might send, when,
//! and what it decided and asked for. Whoever steps a scheduler that knows nothing with the same
//! gets the same.

mod engines;
mod entry;
mod input;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use engines::EngineEntry;
pub use entry::{RecordEntry, RequestEntry};
pub use input::{InputEntry, UnknownKind};

use crate::control::Settings;

/// Writes down what one leadership after the other is about. Errors are its own: nothing here waits
/// for it or depends on it.
pub trait Record: Send {
    /// A leadership begins, with these settings.
    fn begin(&mut self, settings: &Settings);
    /// A step was taken; what engines were told and answered in it.
    fn step(&mut self, entry: RecordEntry, engines: Vec<EngineEntry>);
    /// The leadership is over.
    fn end(&mut self);
    /// Whether something could not be written down.
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
