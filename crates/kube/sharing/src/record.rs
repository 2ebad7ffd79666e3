//! How far the change of a node is: the value of its annotation `dovetail.dev/partition`.

use serde::{Deserialize, Serialize};

use crate::component::Component;
use crate::pod_move::{PodMove, moved_words};
use crate::side::Side;
use crate::watch::{Outcome, Watch};

/// Where a change is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// The node is tainted until the pods on its GPUs have finished, or have moved away.
    Emptying,
    /// The node is tainted; nothing has been asked for yet.
    Tainted,
    /// The pods of the operator leave the GPUs; then a layout is asked for.
    Clearing,
    /// The new layout was asked for.
    Applying,
    /// The old layout was asked for.
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
            Self::Emptying => "Emptying",
            Self::Tainted => "Tainted",
            Self::Clearing => "Clearing",
            Self::Applying => "Applying",
            Self::Reverting => "Reverting",
            Self::Done => "Done",
            Self::Undone => "Undone",
            Self::Abandoned => "Abandoned",
            Self::Stuck => "Stuck",
        }
    }
}

/// How long a change has waited for pods that started in spite of its taint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodWait {
    /// Since when, in milliseconds since 1970.
    pub since_ms: u64,
    /// Whether that is too long for other nodes to wait for this one.
    pub is_over: bool,
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
    /// The component that makes it.
    #[serde(default)]
    pub by: Component,
    /// The component's label as it must be; another value is another's.
    pub asked: Option<String>,
    /// How often the new layout was asked for.
    pub attempt: u32,
    pub from: Side,
    pub to: Side,
    /// What went wrong last.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub problem: String,
    /// The step that follows [`Step::Clearing`]; or [`Step::Tainted`], where that is not
    /// [`Step::Applying`]. It stays in the record of a change that was given up before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<Step>,
    /// Whether dovetail has put the clearing taint of the component on the node.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub evicts: bool,
    /// Whether its component had not answered an earlier request when it got the present one: what
    /// it reports next may be about the earlier one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unanswered: bool,
    /// Set while it waits for pods that started in spite of its taint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_wait: Option<PodWait>,
    /// The watch over latency after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<Watch>,
    /// Pods that move so that it can change, and those that moved shortly before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<PodMove>,
}

impl Record {
    /// A change that begins with the taint, at `now_ms` in milliseconds since 1970: no layout was
    /// asked for, by this change or before it, and no pod moves.
    pub fn begun(by: Component, from: Side, to: Side, now_ms: u64) -> Self {
        Self {
            step: Step::Tainted,
            since_ms: now_ms,
            started_ms: now_ms,
            by,
            asked: None,
            attempt: 0,
            from,
            to,
            problem: String::new(),
            then: None,
            evicts: false,
            unanswered: false,
            pod_wait: None,
            watch: None,
            moves: Vec::new(),
        }
    }

    /// The layout before the change, and the one after it.
    pub fn sides(&self) -> [&Side; 2] {
        [&self.from, &self.to]
    }

    /// The pods that the change itself moves.
    pub fn own_moves(&self) -> impl Iterator<Item = &PodMove> {
        self.moves.iter().filter(|one| one.is_since(self.started_ms))
    }

    /// Whether the change began by moving pods.
    pub fn has_moves(&self) -> bool {
        self.own_moves().next().is_some()
    }

    /// What was moved for the change, in words; empty if nothing was.
    pub fn moved_words(&self) -> String {
        moved_words(self.own_moves())
    }

    /// Whether anything was asked for, or pods had to leave for that, and it is over.
    pub fn has_changed(&self) -> bool {
        let has_asked = self.attempt > 0 || self.step == Step::Stuck;
        self.step.is_over() && (has_asked || self.was_given_up())
    }

    /// Whether other nodes wait for it: it is under way, and has not waited for pods for too long.
    pub(crate) fn holds_others_up(&self) -> bool {
        !self.step.is_over() && self.pod_wait.is_none_or(|wait| !wait.is_over)
    }

    /// Whether it counts for the budget of its policy: something was asked for, whether or not that
    /// is over.
    pub fn takes_budget(&self) -> bool {
        self.has_changed() || self.holds_others_up() && self.attempt > 0
    }

    /// Whether it is a return that was given up while it waited for pods: the node keeps the layout
    /// that it was to leave.
    pub(crate) fn was_called_off(&self) -> bool {
        let is_of_return = |watch: &Watch| {
            !watch.is_return && matches!(watch.outcome, Outcome::Worse | Outcome::RolledBack)
        };
        self.step == Step::Undone && self.watch.as_ref().is_some_and(is_of_return)
    }

    /// Whether it ended while the pods of the operator left the GPUs, before anything was asked
    /// for.
    pub(crate) fn was_given_up(&self) -> bool {
        self.step.is_over() && self.attempt == 0 && self.then.is_some()
    }

    /// Whether it is a return because latency got worse, or people asked for it.
    pub(crate) fn is_return(&self) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.is_return)
    }

    /// Whether a layout of its component is one of the change.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.asked.as_deref() == Some(name)
            || [&self.from, &self.to].iter().any(|side| side.config == name)
    }

    /// Whether some GPUs of the node keep their layout.
    pub(crate) fn leaves_gpus(&self) -> bool {
        self.by == Component::MigManager && self.from.keeps_gpus(&self.to)
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
