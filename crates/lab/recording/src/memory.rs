//! Recordings in memory, for what is played and not kept.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use dovetail_control::control::Settings;
use dovetail_control::record::{EngineEntry, Record, RecordEntry, Recording};

use crate::recorder::LiveRecorder;

/// The recordings of some processes: one text for each leadership, in the order in which they
/// began.
#[derive(Clone, Debug, Default)]
pub struct Texts(Arc<Mutex<Vec<Vec<u8>>>>);

impl Texts {
    /// A recording of a process, to be read here.
    pub fn recording(&self) -> Recording {
        Recording::new(InMemory { texts: self.clone(), open: None })
    }

    /// What was recorded so far. A leadership that is not over has no end mark.
    pub fn read(&self) -> Vec<Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

struct InMemory {
    texts: Texts,
    open: Option<LiveRecorder<MemoryText>>,
}

/// One of them, to be written.
struct MemoryText {
    texts: Texts,
    place: usize,
}

impl Write for MemoryText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut texts = self.texts.0.lock().unwrap_or_else(PoisonError::into_inner);
        texts[self.place].write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Record for InMemory {
    fn begin(&mut self, settings: &Settings) {
        let mut texts = self.texts.0.lock().unwrap_or_else(PoisonError::into_inner);
        texts.push(Vec::new());
        let text = MemoryText { texts: self.texts.clone(), place: texts.len() - 1 };
        drop(texts);
        self.open = Some(LiveRecorder::start("memory", text, "memory", settings));
    }

    fn step(&mut self, entry: RecordEntry, engines: Vec<EngineEntry>) {
        self.open.iter_mut().for_each(|open| open.step(&entry, &engines));
    }

    fn end(&mut self) {
        // Memory takes everything.
        self.open.take().into_iter().for_each(|open| drop(open.finish()));
    }

    fn is_broken(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.problem().is_some())
    }
}
