//! Patches as an audit shows them. What was read stands in them in ASCII alone, other letters
//! escaped: exact for kubectl, harmless on a screen.

use dovetail_audit::Patch;
use dovetail_console::plain::plain;
use serde::Serialize;
use serde_json::value::RawValue;

use super::baseline::Object;
use super::document::object;

/// A change that mends a finding.
#[derive(Debug, Serialize)]
pub struct PatchOut {
    pub object: Object,
    pub api_version: String,
    pub form: &'static str,
    pub restarts: String,
    pub warnings: Vec<String>,
    pub command: Option<String>,
    pub body: Option<Box<RawValue>>,
    pub(crate) fragment: Option<Box<RawValue>>,
    #[serde(skip)]
    pub patch: Patch,
}

impl PatchOut {
    /// A patch with its source, as JSON and text.
    pub fn of(patch: Patch) -> Self {
        // What is written as JSON is JSON.
        let raw = |json: dovetail_audit::Json| RawValue::from_string(json.to_line()).ok();
        Self {
            object: object(&patch.object),
            api_version: plain(&patch.api_version),
            form: patch.form_name(),
            restarts: patch.effect.clone(),
            warnings: patch.warnings.iter().map(|warning| plain_long(warning)).collect(),
            command: patch.command(None),
            body: patch.body().and_then(raw),
            fragment: patch.fragment.clone().and_then(raw),
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
            "source" => "change of its source",
            _ => "command",
        }
    }
}

/// Harmless text that may be longer than a name.
fn plain_long(text: &str) -> String {
    text.split(' ').map(plain).collect::<Vec<_>>().join(" ")
}
