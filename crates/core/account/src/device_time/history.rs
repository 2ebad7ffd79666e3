//! What is known of one device over a period.

use dovetail_model::FreeCause;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::share::Share;
use crate::signal::ActivitySegment;

/// Begin and end (exclusive) in ms since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub from_ms: u64,
    /// End, exclusive.
    pub to_ms: u64,
}

/// One device. All lists but the holdings ascend in time and do not overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceHistory {
    /// Name for messages, for example `node-7/gpu-3`.
    pub name: String,
    /// When it was there and billed.
    pub installed: Span,
    /// When it was lost, or its node not ready.
    pub unavailable: Vec<Span>,
    /// Why what was free was free; where no span lies, nobody knows.
    pub free_causes: Vec<CauseSpan>,
    /// When nobody saw who had it: what nobody is known to hold then is unknown, not free.
    pub unseen: Vec<Span>,
    /// Who held it; several at a time share it.
    pub holdings: Vec<HoldingTime>,
}

/// Why what is free is free, for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CauseSpan {
    pub span: Span,
    pub cause: FreeCause,
}

/// One holder of (a part of) a device: from its binding to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldingTime {
    /// Number of the holder, by which the caller knows the pod.
    pub holder: u32,
    pub share: Share,
    /// From the decision to place it until it was gone. The device is held before anything starts.
    pub held: Span,
    /// When its pod first became ready; `None` if it did not.
    pub ready_ms: Option<u64>,
    /// When the last pod of its gang became ready; `None` if it did not. Alone: as `ready_ms`.
    pub gang_ready_ms: Option<u64>,
    /// What the signals say, ascending; where no segment lies, nobody knows.
    pub activity: Vec<ActivitySegment>,
    /// What active time was for, where known, ascending.
    pub work: Vec<WorkSpan>,
}

/// What a holder computed for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkSpan {
    pub span: Span,
    pub work: ActiveWork,
}

/// What active time was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActiveWork {
    /// Progress that was kept.
    Useful,
    /// Saving and restoring checkpoints.
    Checkpointing,
    /// Work done again, or that was lost before it was saved.
    Repeated,
    /// Nobody can tell.
    NotSeparable,
}

impl ActiveWork {
    /// All kinds in the order in which they are shown.
    pub const ALL: [Self; 4] =
        [Self::Useful, Self::Checkpointing, Self::Repeated, Self::NotSeparable];
}

/// A history that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HistoryError {
    /// Times out of order.
    #[error("{device}: the spans of {what} overlap or are out of order")]
    Order {
        device: String,
        /// Which list.
        what: &'static str,
    },
    /// A part of nothing.
    #[error("{device}: holder {holder} has a share of a device that is not divided")]
    Share { device: String, holder: u32 },
}

impl DeviceHistory {
    /// Checks the order of all lists and the shares.
    pub(crate) fn check(&self) -> Result<(), HistoryError> {
        let order = |what, spans: &mut dyn Iterator<Item = Span>| {
            let mut end_ms = 0;
            for span in spans {
                if span.from_ms < end_ms || span.to_ms < span.from_ms {
                    return Err(HistoryError::Order { device: self.name.clone(), what });
                }
                end_ms = span.to_ms;
            }
            Ok(())
        };
        order("its time", &mut std::iter::once(self.installed))?;
        order("unavailable time", &mut self.unavailable.iter().copied())?;
        order("unmeasured time", &mut self.unseen.iter().copied())?;
        order("a cause", &mut self.free_causes.iter().map(|cause| cause.span))?;
        for holding in &self.holdings {
            order("a holding", &mut std::iter::once(holding.held))?;
            let activity = holding.activity.iter();
            let spans = activity.map(|s| Span { from_ms: s.from_ms, to_ms: s.to_ms });
            order("activity", &mut { spans })?;
            order("work", &mut holding.work.iter().map(|work| work.span))?;
            if holding.share.units().is_none() {
                let (device, holder) = (self.name.clone(), holding.holder);
                return Err(HistoryError::Share { device, holder });
            }
        }
        Ok(())
    }
}
