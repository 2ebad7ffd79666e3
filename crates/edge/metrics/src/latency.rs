//! Latency histograms over a window, as blocks of time that can be compared with others.

use std::collections::BTreeMap;

use dovetail_guard::{TimeBlock, Window, WindowError};
use thiserror::Error;

use crate::prometheus::Series;
#[cfg(feature = "client")]
use crate::prometheus::{PrometheusClient, QueryError, RangeQuery, Transport};

/// Blocks of a window.
pub const BLOCKS: usize = 24;

/// More buckets than this are no histogram of latency.
const MOST_BOUNDS: usize = 1_000;

/// A window of time, in equal blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Where the first block starts, in ms since 1970.
    pub from_ms: u64,
    /// How long each of the [`BLOCKS`] blocks is, in ms.
    pub block_ms: u64,
}

/// A histogram that cannot be used.
#[derive(Debug, Error)]
pub enum LatencyError {
    /// The server has no answer.
    #[cfg(feature = "client")]
    #[error(transparent)]
    Query(#[from] QueryError),
    /// A series is not a bucket.
    #[error(
        "a series has the label le=`{0}`, which is not a bucket bound: query the `_bucket` series of a histogram"
    )]
    NoBound(String),
    /// There are no bounds or counts to work with.
    #[error("the histogram is invalid: {0}")]
    Window(#[from] WindowError),
    #[error("the histogram has more than {MOST_BOUNDS} buckets")]
    TooManyBounds,
}

/// Requests of a window. `query` gives, at a moment, how many requests of the block before it were
/// not slower than each bound `le`. `None` if there is no series.
///
/// # Errors
/// A server without an answer, and series that are no histogram.
#[cfg(feature = "client")]
pub async fn read<T: Transport>(
    client: &mut PrometheusClient<T>,
    query: &str,
    blocks: Blocks,
) -> Result<Option<Window>, LatencyError> {
    let at = |block: usize| blocks.from_ms.saturating_add(blocks.block_ms * block as u64);
    let range = RangeQuery {
        query: query.to_owned(),
        from_ms: at(1).cast_signed(),
        to_ms: at(BLOCKS).cast_signed(),
        step_ms: blocks.block_ms.max(1).cast_signed(),
    };
    let mut found = Vec::new();
    client.range(&range, |series| found.extend(series)).await?;
    window(&found, blocks)
}

/// The window out of the answer to a range query with one moment at the end of each block. Series
/// of one bound are added.
///
/// # Errors
/// Series that are no histogram.
pub fn window(series: &[Series], blocks: Blocks) -> Result<Option<Window>, LatencyError> {
    // By bound; floats of buckets are positive or infinite, so their bits are in order.
    let mut counts: BTreeMap<u64, [Option<f64>; BLOCKS]> = BTreeMap::new();
    let mut totals: [Option<f64>; BLOCKS] = [None; BLOCKS];
    for Series { labels, samples } in series {
        let text = labels.get("le").map_or("", String::as_str);
        let bound: f64 = text.parse().unwrap_or(f64::NAN);
        if bound.is_nan() {
            return Err(LatencyError::NoBound(text.to_owned()));
        }
        for sample in samples {
            let Some(block) = block_of(sample.at_ms, blocks) else { continue };
            if !sample.value.is_finite() || sample.value < 0.0 {
                continue;
            }
            match bound {
                f64::INFINITY => *totals[block].get_or_insert(0.0) += sample.value,
                bound if bound > 0.0 => {
                    let of_bound = counts.entry(bound.to_bits()).or_insert([None; BLOCKS]);
                    *of_bound[block].get_or_insert(0.0) += sample.value;
                }
                // No request takes less than no time.
                _ => {}
            }
        }
        if counts.len() > MOST_BOUNDS {
            return Err(LatencyError::TooManyBounds);
        }
    }
    if totals.iter().all(Option::is_none) {
        return Ok(None);
    }
    let bounds = counts.keys().map(|bits| f64::from_bits(*bits)).collect();
    let block = |(block, total): (usize, Option<f64>)| {
        // A bucket without a count is unknown, not empty.
        let below: Option<Vec<f64>> = counts.values().map(|counts| counts[block]).collect();
        below.zip(total).map(|(below, total)| TimeBlock { below, total })
    };
    let blocks = totals.into_iter().enumerate().map(block).collect();
    Ok(Some(Window::new(bounds, blocks)?))
}

/// The block that ends at a moment.
fn block_of(at_ms: i64, blocks: Blocks) -> Option<usize> {
    let passed_ms = u64::try_from(at_ms).ok()?.checked_sub(blocks.from_ms)?;
    let ended = usize::try_from(passed_ms.checked_div(blocks.block_ms)?).ok()?;
    ended.checked_sub(1).filter(|block| *block < BLOCKS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prometheus::SeriesSample;

    fn series(le: &str, values: &[(i64, f64)]) -> Series {
        let samples =
            values.iter().map(|(at_ms, value)| SeriesSample { at_ms: *at_ms, value: *value });
        let labels = [("le".to_owned(), le.to_owned())].into_iter().collect();
        Series { labels, samples: samples.collect() }
    }

    #[test]
    fn buckets_become_blocks_and_a_block_without_a_total_is_unknown() {
        let blocks = Blocks { from_ms: 1_000, block_ms: 100 };
        let read = |series: &[Series]| window(series, blocks).expect("a histogram");
        assert_eq!(read(&[]), None);
        let found = read(&[
            series("+Inf", &[(1_100, 9.0), (1_300, 4.0), (1_400, 5.0), (9_000, 1.0)]),
            series("10.0", &[(1_100, 8.0), (1_300, 3.0), (1_400, 3.0)]),
            series("2.5", &[(1_100, 2.0), (1_200, f64::NAN), (1_300, 0.0)]),
            series("2.5", &[(1_100, 1.0)]),
        ]);
        let found = found.expect("a window");
        assert_eq!(found.bounds(), [2.5, 10.0]);
        assert_eq!(found.blocks().len(), BLOCKS);
        assert_eq!(found.blocks()[0], Some(TimeBlock { below: vec![3.0, 8.0], total: 9.0 }));
        assert_eq!(found.blocks()[1], None);
        assert_eq!(found.blocks()[2], Some(TimeBlock { below: vec![0.0, 3.0], total: 4.0 }));
        assert_eq!(found.blocks()[3], None, "a bucket that was not scraped is not empty");
        assert_eq!(found.requests(), 13.0);
        let gauge = window(&[series("", &[(1_100, 1.0)])], blocks).expect_err("no bucket");
        assert!(gauge.to_string().contains("le=``"), "{gauge}");
    }
}
