//! An hour of a cluster that is written, and what its rows hold.

use dovetail_account::device_time::Span;
use dovetail_account::rollup::HOUR_MS;
use dovetail_account::split::SplitMethod;

use crate::codes::Codes;
use crate::names::Numbers;
use crate::statements::ColumnValue;

/// Costs in the order of the methods; what is not known is 0, and the pricing says so.
pub(crate) type Costs = [i64; SplitMethod::ALL.len()];

/// What of a row's costs is known.
pub(crate) const UNPRICED: i64 = 0;
pub(crate) const ALL_BUT_RESIDUAL: i64 = 1;
pub(crate) const PRICED: i64 = 2;

/// Columns of costs, in the order of the methods.
pub(crate) const COSTS: [&str; SplitMethod::ALL.len()] =
    ["cost_all_in", "cost_residual", "cost_aws_split", "cost_opencost", "cost_datadog"];

/// Which hour is written, and with which numbers.
pub(crate) struct HourWrite<'a> {
    pub(crate) cluster: i64,
    pub(crate) hour: u64,
    /// The part of the hour that was read.
    pub(crate) cut: Span,
    pub(crate) codes: &'a Codes,
    pub(crate) numbers: &'a Numbers,
}

impl HourWrite<'_> {
    pub(crate) fn hour_ms(&self) -> u64 {
        self.hour * HOUR_MS
    }

    pub(crate) fn key(&self) -> Vec<ColumnValue> {
        vec![self.cluster.into(), (self.hour as i64).into()]
    }
}

/// A row of `hourly` beside its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChargeRow {
    pub(crate) group: i64,
    pub(crate) party: i64,
    pub(crate) workload: i64,
    pub(crate) pricing: i64,
    pub(crate) gpu_milli_ms: i64,
    pub(crate) costs: Costs,
}
