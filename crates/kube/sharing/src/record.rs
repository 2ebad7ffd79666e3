//! How far the change of a node is: the value of its annotation `dovetail.dev/partition`.

use serde::{Deserialize, Serialize};

use crate::layout::NodeLayout;

/// Where a change is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// The node is tainted; mig-manager has not been asked yet.
    Tainted,
    /// mig-manager was asked for the new layout.
    Applying,
    /// mig-manager was asked for the old layout.
    Reverting,
    /// The node has the new layout.
    Done,
    /// The node has the old layout.
    Undone,
    /// Others have taken the node over.
    Abandoned,
    /// Neither layout came; the node stays tainted.
    Stuck,
}

impl Step {
    /// Whether nothing more follows.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Undone | Self::Abandoned | Self::Stuck)
    }

    /// The step as a word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Tainted => "Tainted",
            Self::Applying => "Applying",
            Self::Reverting => "Reverting",
            Self::Done => "Done",
            Self::Undone => "Undone",
            Self::Abandoned => "Abandoned",
            Self::Stuck => "Stuck",
        }
    }
}

/// One of the two layouts of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// Its name in the ConfigMap.
    pub config: String,
    pub layout: NodeLayout,
}

impl Side {
    /// A layout under its own name.
    pub fn of(layout: NodeLayout) -> Self {
        Self { config: layout.name(), layout }
    }

    /// A name of the layout that is not the present one: mig-manager acts on changes alone.
    pub(crate) fn name_besides(&self, present: Option<&str>) -> String {
        if present == Some(&*self.config) { self.layout.second_name() } else { self.config.clone() }
    }
}

/// A change of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    pub step: Step,
    /// When the step began, in milliseconds since 1970.
    pub since_ms: u64,
    /// When the change began.
    pub started_ms: u64,
    /// `nvidia.com/mig.config` as it must be; another value is another's.
    pub asked: Option<String>,
    /// How often the new layout was asked for.
    pub attempt: u32,
    pub from: Side,
    pub to: Side,
    /// What went wrong last.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub problem: String,
}

impl Record {
    /// Whether mig-manager was asked for anything, and it is over.
    pub fn has_changed(&self) -> bool {
        self.step.is_over() && (self.attempt > 0 || self.step == Step::Stuck)
    }

    /// Seconds that the change has taken.
    pub fn seconds(&self) -> u64 {
        self.since_ms.saturating_sub(self.started_ms) / 1_000
    }

    /// The annotation's value.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads the annotation's value.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }
}
