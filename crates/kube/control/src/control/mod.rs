//! The one door of the live scheduler: what happened goes in; requests and log entries come out.
//!
//! [`Control::step`] reads no clock and sends nothing, so whoever drives a scheduler decides what
//! happens to it, in which order and when.

mod input;
mod leader_state;
mod output;
mod pending_log;

use std::sync::{Arc, Mutex};

use dovetail_cluster::world;
use dovetail_plan::EngineConfig;
use serde::{Deserialize, Serialize};

pub use input::{Credits, Input};
pub use output::{Announced, LogEntry, StepOutput};

use crate::ask::{Question, Reply};
use crate::learned::ConfigMapName;
use crate::record::{RecordEntry, Recording};
use crate::request::Now;
use crate::schedule::Comparison;
use leader_state::LeaderState;

/// How a scheduler decides and what it says.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Settings {
    /// Name of this process in the events it writes; if empty, that of the scheduler.
    pub instance: String,
    /// Whose pods, and how they are read.
    pub world: world::Settings,
    /// How is decided.
    pub engine: EngineConfig,
    /// How volumes are waited for.
    pub volumes: world::VolumePatience,
    /// Where what is learned is kept; `None`: it is lost with the process.
    #[serde(default)]
    pub learned: Option<ConfigMapName>,
    /// Nothing is written.
    pub dry_run: bool,
    /// It decides once, for [`Control::ask`], and writes nothing.
    pub only_asks: bool,
    /// What the pods' own scheduler does is compared with what this one decides.
    #[serde(skip)]
    pub comparison: Option<Arc<Mutex<Comparison>>>,
    /// Where everything that happens and is asked for is written down.
    #[serde(skip)]
    pub recording: Option<Recording>,
}

/// The scheduler of one process, from one leadership to the next.
pub struct Control {
    settings: Settings,
    /// `None` while another leads.
    term: Option<LeaderState>,
}

impl Control {
    /// A scheduler that does not lead.
    pub fn new(settings: Settings) -> Self {
        Self { settings, term: None }
    }

    /// Takes what happened, in this order, decides, and says what is to be done. A wall clock that
    /// goes back is taken to stand still.
    pub fn step(&mut self, inputs: Vec<Input>, credits: Credits, now: Now) -> StepOutput {
        let recording = self.settings.recording.clone();
        let entry = recording.as_ref().map(|_| RecordEntry::before(&inputs, credits, now));
        let led = self.term.is_some();
        let mut output = StepOutput::default();
        for input in inputs {
            match (input, &mut self.term) {
                (Input::Won { epoch }, _) => {
                    recording.iter().for_each(|to| to.get().begin(&self.settings));
                    self.term = Some(LeaderState::new(&self.settings, epoch));
                }
                (Input::ChooseBy { policy }, term) => {
                    self.settings.engine.policy.name.clone_from(&policy);
                    if let Some(term) = term {
                        term.choose_by(policy, now);
                    }
                }
                (Input::End, Some(_)) => self.term = None,
                (input, Some(term)) => term.take(input, now, &mut output),
                // What comes late is about a leadership that is over.
                (_, None) => {}
            }
        }
        match &mut self.term {
            Some(term) => term.go_on(credits, now, &mut output),
            None => output.is_over = true,
        }
        if let (Some(to), Some(entry)) = (recording, entry.filter(|_| led || self.term.is_some())) {
            self.record(&to, entry, &mut output);
        }
        output
    }

    /// Writes down what a step was about.
    fn record(&mut self, to: &Recording, entry: RecordEntry, output: &mut StepOutput) {
        let engines = self.term.as_mut().map(LeaderState::take_engine_entries).unwrap_or_default();
        let entry = entry.after(&engines, &output.requests);
        let mut to = to.get();
        to.step(entry, engines);
        if self.term.is_none() {
            to.end();
        }
        output.is_recording_broken = to.is_broken();
    }

    /// Answers a question about the cluster as it is known; `None` before everything is listed. No
    /// decision is changed by it.
    pub fn ask(&mut self, question: &Question, now_ms: u64) -> Option<Reply> {
        self.term.as_mut()?.ask(question, now_ms)
    }
}
