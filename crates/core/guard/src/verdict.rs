//! The verdict over the three quantiles, and when there is none.

use std::fmt;

use dovetail_units::amount::rounded_percent;

use crate::change::{FREEDOM, QuantileChange, log_change};
use crate::normal::student_quantile;
use crate::shares::Pair;
use crate::window::{TimeBlock, Window};

/// The quantiles that are compared.
pub const QUANTILES: [f64; 3] = [0.5, 0.95, 0.99];
/// A quantile is worse if it grew by more than this and has certainly grown.
pub const WORSE_BY: f64 = 0.05;
/// The request rate may change by at most this, up or down.
pub const MOST_LOAD_CHANGE: f64 = 0.25;

/// Load whose growth explains nothing: bursts alone make as much. What grew beyond it may itself be
/// why latency grew by as much, since queues make latency grow with load.
const LOAD_BY_CHANCE: f64 = 0.05;

/// The probability of a wrong bound, over all quantiles together.
const WRONG: f64 = 0.01;
/// Fewer requests in a window tell nothing.
const LEAST_REQUESTS: f64 = 1_000.0;
/// Fewer blocks in which both windows have requests tell nothing about their differences.
const LEAST_BLOCKS: usize = 12;
/// A quantile whose bound is further away from its estimate than this is not measured.
const WIDEST: f64 = 0.25;

/// Requests of the whole workload in the two windows: a change of one node must not be blamed for a
/// change of load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    pub before: f64,
    pub after: f64,
}

impl Load {
    /// Requests in the blocks that both windows have.
    pub fn of(before: &Window, after: &Window) -> Self {
        let both = before.blocks().iter().zip(after.blocks());
        let both = both.filter_map(|(before, after)| before.as_ref().zip(after.as_ref()));
        let add = |load: Self, (before, after): (&TimeBlock, &TimeBlock)| Self {
            before: load.before + before.total,
            after: load.after + after.total,
        };
        both.fold(Self { before: 0.0, after: 0.0 }, add)
    }

    /// Relative change.
    fn change(self) -> f64 {
        self.after / self.before - 1.0
    }
}

/// Why nothing can be said.
#[derive(Clone, Debug, PartialEq)]
pub enum Unknown {
    /// There is no series of a histogram.
    NoSeries,
    /// The two windows have buckets of other bounds.
    OtherBuckets,
    /// The request rate changed by more than [`MOST_LOAD_CHANGE`].
    OtherLoad {
        /// Relative change.
        change: f64,
    },
    /// Latency grew by no more than the request rate may explain.
    LoadGrew {
        /// Relative change of the request rate.
        load: f64,
    },
    /// A quantile of which the bounds are too far apart, with the requests there are.
    TooUncertain {
        quantile: f64,
        /// Distance of its bound from the estimate, relative.
        within: f64,
    },
    /// A window has too few requests.
    TooFewRequests {
        /// In the window that has fewer.
        requests: f64,
    },
    /// Too small a part of the window was measured both before and after.
    TooFewBlocks {
        /// Blocks with requests in both windows.
        blocks: usize,
    },
    /// A quantile is in a bucket of which one bound was not measured.
    TooCoarse,
}

/// What became of one quantile.
#[derive(Clone, Debug, PartialEq)]
pub struct QuantileVerdict {
    /// Such as 0.95.
    pub quantile: f64,
    /// How much it changed; or why that is unknown.
    pub change: Result<QuantileChange, Unknown>,
}

/// What became of the latency of a workload.
#[derive(Clone, Debug, PartialEq)]
pub enum LatencyVerdict {
    /// A quantile is better, and none is worse.
    Better,
    /// No quantile changed by more than can be by chance.
    Same,
    /// A quantile is worse.
    Worse,
    /// No measured quantile is worse, and not all could be measured.
    Unknown(Unknown),
}

/// A verdict and what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    pub verdict: LatencyVerdict,
    /// Empty if no quantile could be compared.
    pub quantiles: Vec<QuantileVerdict>,
}

impl fmt::Display for Unknown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSeries => write!(out, "no series of a latency histogram was found"),
            Self::OtherBuckets => write!(out, "the buckets of the histogram changed"),
            Self::OtherLoad { change } => {
                let most = rounded_percent(MOST_LOAD_CHANGE);
                let word = if *change > 0.0 { "grew" } else { "fell" };
                let change = rounded_percent(change.abs());
                write!(out, "the request rate {word} by {change}, more than the allowed {most}")
            }
            Self::TooFewRequests { requests } => write!(out, "too few requests ({requests:.0})"),
            Self::LoadGrew { load } => write!(
                out,
                "the request rate grew by {}, which may be why latency grew",
                rounded_percent(*load)
            ),
            Self::TooUncertain { quantile, within } => write!(
                out,
                "with this number of requests, p{:.0} is known only to within {}, and {} is \
                 required",
                quantile * 100.0,
                rounded_percent(*within),
                rounded_percent(WIDEST)
            ),
            Self::TooFewBlocks { blocks } => write!(
                out,
                "only {blocks} blocks of time have requests both before and after the change, and \
                 {LEAST_BLOCKS} are required"
            ),
            Self::TooCoarse => write!(out, "the buckets of the histogram are too coarse"),
        }
    }
}

impl QuantileChange {
    fn is_worse(self) -> bool {
        self.estimate > WORSE_BY && self.low > 0.0
    }

    /// Whether it certainly grew by more than load that grew so much explains.
    fn is_beyond(self, load: f64) -> bool {
        self.low > load - LOAD_BY_CHANCE
    }

    fn is_better(self) -> bool {
        self.estimate < -WORSE_BY && self.high < 0.0
    }
}

/// Compares two windows of the same hours. Block `i` of one is compared with block `i` of the
/// other.
///
/// A quantile is worse if its estimate grew by more than 5% and the one-sided bound of its change
/// is above zero, and above what load grew by beyond 5%.
/// The bounds of the three quantiles hold together with 99% (Bonferroni), by
/// Student's t.
pub fn judge(before: &Window, after: &Window, load: Load) -> Judgement {
    let quantiles = match measured(before, after, load) {
        Ok(quantiles) => quantiles,
        Err(unknown) => {
            return Judgement { verdict: LatencyVerdict::Unknown(unknown), quantiles: Vec::new() };
        }
    };
    let any = |holds: &dyn Fn(QuantileChange) -> bool| {
        quantiles.iter().filter_map(|one| one.change.as_ref().ok()).any(|change| holds(*change))
    };
    let load = load.change();
    let unknown = quantiles.iter().find_map(|one| one.change.clone().err());
    let verdict = match unknown {
        _ if any(&|change| change.is_worse() && change.is_beyond(load)) => LatencyVerdict::Worse,
        _ if any(&QuantileChange::is_worse) => LatencyVerdict::Unknown(Unknown::LoadGrew { load }),
        Some(unknown) => LatencyVerdict::Unknown(unknown),
        None if any(&QuantileChange::is_better) => LatencyVerdict::Better,
        None => LatencyVerdict::Same,
    };
    Judgement { verdict, quantiles }
}

fn measured(before: &Window, after: &Window, load: Load) -> Result<Vec<QuantileVerdict>, Unknown> {
    if before.bounds().is_empty() || after.bounds().is_empty() {
        return Err(Unknown::NoSeries);
    }
    if before.bounds() != after.bounds() {
        return Err(Unknown::OtherBuckets);
    }
    let requests = before.requests().min(after.requests());
    if requests < LEAST_REQUESTS || load.before <= 0.0 {
        return Err(Unknown::TooFewRequests { requests });
    }
    let change = load.change();
    if change.is_nan() || change.abs() > MOST_LOAD_CHANGE {
        return Err(Unknown::OtherLoad { change });
    }
    let pair = Pair::of(before, after).ok_or(Unknown::TooFewBlocks { blocks: 0 })?;
    let blocks = pair.weights.len();
    if blocks < LEAST_BLOCKS {
        return Err(Unknown::TooFewBlocks { blocks });
    }
    let errors = student_quantile(1.0 - WRONG / QUANTILES.len() as f64, FREEDOM as f64);
    let of = |quantile: f64| {
        let change = match log_change(quantile, before.bounds(), &pair) {
            None => Err(Unknown::TooCoarse),
            Some((log, error)) => match libm::expm1(errors * error) {
                within if within <= WIDEST => Ok(QuantileChange::of(log, error, errors)),
                within => Err(Unknown::TooUncertain { quantile, within }),
            },
        };
        QuantileVerdict { quantile, change }
    };
    Ok(QUANTILES.into_iter().map(of).collect())
}
