//! The orders that there are.

use serde::{Deserialize, Serialize};

/// In which order waiting jobs are tried. Priority always comes first, submission order breaks
/// ties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Submission order; the first that does not fit holds up all others.
    Fifo,
    /// Submission order; whatever does not fit is passed over.
    #[default]
    FifoSkip,
    /// Shortest expected run time (median) first, unknown last; whatever does not fit is passed
    /// over.
    ShortestFirst,
    /// Jobs of the queue with the smallest weighted dominant share first, by submission order
    /// within it; whatever does not fit is passed over.
    DominantShare,
    /// The best standing first, as the preset says ([`turns`]); whatever does not fit is
    /// passed over.
    Dovetail,
}

impl Order {
    /// Its name, as flags and settings say it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::FifoSkip => "fifo-skip",
            Self::ShortestFirst => "shortest-first",
            Self::DominantShare => "dominant-share",
            Self::Dovetail => "dovetail",
        }
    }
}
