//! Patches as an audit shows them. What was read stands in them in ASCII alone, other letters
//! escaped: exact for kubectl, harmless on a screen.

use dovetail_console::plain::plain;
use dovetail_patches::{Json, Patch};
use dovetail_trials::Withheld;
use serde::Serialize;
use serde_json::value::RawValue;

use super::baseline::{BaselineObject, object, object_words};

/// A change that fixes a finding.
#[derive(Debug, Serialize)]
pub struct PatchOut {
    pub object: BaselineObject,
    pub api_version: String,
    pub form: &'static str,
    pub restarts: String,
    pub warnings: Vec<String>,
    pub command: Option<String>,
    pub body: Option<Box<RawValue>>,
    pub(crate) fragment: Option<Box<RawValue>>,
    /// The checks whose findings it fixes.
    pub fixes: Vec<&'static str>,
    /// Its place, from 1, in the order in which patches are to be applied.
    pub order: usize,
    #[serde(skip)]
    pub patch: Patch,
}

/// Pods that a change would make unschedulable are listed up to so many.
const MOST_PODS: usize = 20;

/// A change for which no patch is written, because it would do harm.
#[derive(Debug, Serialize)]
pub struct WithheldOut {
    /// Pods that would lose the last node that they could use; none where it is other harm.
    pub unschedulable: Vec<BaselineObject>,
    pub unschedulable_pods: usize,
    /// What to do first.
    pub safe_order: String,
}

impl WithheldOut {
    /// With harmless names.
    pub fn of(withheld: Withheld) -> Self {
        Self {
            unschedulable: withheld.pods.iter().take(MOST_PODS).map(object).collect(),
            unschedulable_pods: withheld.pods.len(),
            safe_order: plain_long(&withheld.order),
        }
    }

    /// In a sentence.
    pub fn words(&self) -> String {
        if self.unschedulable_pods == 0 {
            return format!("no patch: {}", self.safe_order);
        }
        let named: Vec<String> = self.unschedulable.iter().take(5).map(object_words).collect();
        let more = match self.unschedulable_pods.saturating_sub(named.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("no patch: it would affect {}{more}; {}", named.join(", "), self.safe_order)
    }
}

impl PatchOut {
    /// A patch with its source, as JSON and text.
    pub fn of(patch: Patch, place: usize) -> Self {
        // What is written as JSON is JSON.
        let raw = |json: Json| RawValue::from_string(json.to_line()).ok();
        Self {
            object: object(&patch.object),
            api_version: plain(&patch.api_version),
            form: patch.form_name(),
            restarts: patch.effect.clone(),
            warnings: patch.warnings.iter().map(|warning| plain_long(warning)).collect(),
            command: patch.command(None),
            body: patch.body().and_then(raw),
            fragment: patch.fragment.clone().and_then(raw),
            fixes: patch.checks.clone(),
            order: place + 1,
            patch,
        }
    }

    /// The part of the object's source that changes, for a person's file.
    pub fn yaml(&self) -> Option<String> {
        Some(self.patch.fragment.as_ref()?.to_yaml())
    }

    /// In a few words, what it is.
    pub fn words(&self) -> &'static str {
        match self.form {
            "merge" => "merge patch",
            "strategic" => "strategic merge patch",
            "json" => "JSON patch",
            "create" => "new object",
            "source" => "change to the manifest",
            _ => "command",
        }
    }
}

/// Harmless text that may be longer than a name.
fn plain_long(text: &str) -> String {
    text.split(' ').map(plain).collect::<Vec<_>>().join(" ")
}
