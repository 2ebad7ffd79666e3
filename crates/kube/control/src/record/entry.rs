//! One step of a scheduler as a recording has it.

use dovetail_model::Action;
use serde::{Deserialize, Serialize};

use super::engines::EngineEntry;
use super::input::InputEntry;
use crate::control::{Credits, Input};
use crate::request::{ApiRequest, Method, Now, RequestClass};

/// One step.
#[derive(Debug, Serialize, Deserialize)]
pub struct RecordEntry {
    pub now: Now,
    /// How many requests of each class might begin.
    pub credits: Credits,
    /// What had happened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<InputEntry>,
    /// What engines decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
    /// What the scheduler sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestEntry>,
    /// Inputs that could not be written down.
    #[serde(skip)]
    pub lost: usize,
}

/// A request as it was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestEntry {
    number: u64,
    class: RequestClass,
    method: Method,
    path: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    media_type: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    body: String,
}

impl RecordEntry {
    /// A step that is about to be taken.
    pub(crate) fn before(inputs: &[Input], credits: Credits, now: Now) -> Self {
        let entries: Vec<InputEntry> = inputs.iter().filter_map(InputEntry::of).collect();
        let lost = inputs.len() - entries.len();
        let (actions, requests) = (Vec::new(), Vec::new());
        Self { now, credits, inputs: entries, actions, requests, lost }
    }

    /// The step was taken.
    pub(crate) fn after(mut self, engines: &[EngineEntry], requests: &[ApiRequest]) -> Self {
        self.actions = engines.iter().flat_map(EngineEntry::actions).cloned().collect();
        self.requests = requests.iter().map(RequestEntry::of).collect();
        self
    }
}

impl RequestEntry {
    fn of(request: &ApiRequest) -> Self {
        let ApiRequest { number, class, method, path, media_type, body } = request;
        Self {
            number: *number,
            class: *class,
            method: *method,
            path: path.clone(),
            media_type: (*media_type).to_owned(),
            body: String::from_utf8_lossy(body).into_owned(),
        }
    }
}
