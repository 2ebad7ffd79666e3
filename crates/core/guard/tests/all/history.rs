//! Histories of a service by seed: requests that come in bursts, more of them by day, latency that
//! drifts for a while, and the buckets of vLLM.

use dovetail_guard::{Judgement, Load, TimeBlock, Window, judge};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

/// `vllm:e2e_request_latency_seconds`, vLLM `vllm/v1/metrics/loggers.py` (Apache-2.0).
pub(crate) const VLLM_BOUNDS: [f64; 21] = [
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0,
    480.0, 960.0, 1920.0, 7680.0,
];

const BLOCKS: usize = 24;

/// How long requests take.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Latency {
    /// Median in seconds, spread of the logarithm.
    LogNormal(f64, f64),
    /// A share of requests of one kind, the rest of another.
    Two(f64, (f64, f64), (f64, f64)),
    /// Mean in seconds.
    Exponential(f64),
}

/// What is the same in all histories of a table's row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) latency: Latency,
    /// Requests in the window before the change.
    pub(crate) requests: f64,
    /// Spread by which latency drifts for a while.
    pub(crate) drift: f64,
    /// Latency after the change, as a multiple.
    pub(crate) slower: f64,
    /// Request rate after the change, as a multiple.
    pub(crate) load: f64,
}

struct Draw(Pcg64);

impl Draw {
    fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Box and Muller's.
    fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.uniform()));
        radius * libm::cos(2.0 * std::f64::consts::PI * self.uniform())
    }

    /// A process whose values have the spread, and remember this much of the last one.
    fn drift(&mut self, spread: f64, memory: f64) -> Vec<f64> {
        let mut value = spread * self.normal();
        let fresh = spread * libm::sqrt(1.0 - memory * memory);
        let next = |_| {
            value = memory * value + fresh * self.normal();
            value
        };
        (0..BLOCKS).map(next).collect()
    }

    fn latency(&mut self, latency: Latency) -> f64 {
        match latency {
            Latency::LogNormal(median, spread) => median * libm::exp(spread * self.normal()),
            Latency::Two(share, one, other) => {
                let (median, spread) = if self.uniform() < share { one } else { other };
                median * libm::exp(spread * self.normal())
            }
            Latency::Exponential(mean) => -mean * libm::log(self.uniform()),
        }
    }
}

/// A window: load ± 5% and latency some percent for a while, slower under load, requests in
/// bursts of four that are alike.
fn window(draw: &mut Draw, case: Case, slower: f64, load: f64) -> Window {
    let (loads, slows) = (draw.drift(0.05, 0.5), draw.drift(case.drift, 0.6));
    let blocks = (0..BLOCKS).map(|block| {
        let by_day =
            1.0 + 0.5 * libm::sin(2.0 * std::f64::consts::PI * block as f64 / BLOCKS as f64);
        let of_block = libm::exp(loads[block]);
        let mean = load * case.requests / BLOCKS as f64 * by_day * of_block;
        let bursts = ((mean + libm::sqrt(mean) * draw.normal()).max(4.0) / 4.0) as usize;
        let factor = slower * libm::exp(slows[block]) * libm::pow(load * by_day * of_block, 0.1);
        let mut below = vec![0.0; VLLM_BOUNDS.len()];
        for _ in 0..bursts {
            let alike = factor * libm::exp(0.15 * draw.normal());
            for _ in 0..4 {
                let seconds = alike * draw.latency(case.latency);
                let first = VLLM_BOUNDS.partition_point(|bound| *bound < seconds);
                below[first..].iter_mut().for_each(|count| *count += 1.0);
            }
        }
        Some(TimeBlock { below, total: 4.0 * bursts as f64 })
    });
    Window::new(VLLM_BOUNDS.to_vec(), blocks.collect()).expect("a window")
}

/// One history, judged.
pub(crate) fn play(case: Case, seed: u64) -> Judgement {
    let mut draw = Draw(Pcg64::new(u128::from(seed), 7));
    let before = window(&mut draw, case, 1.0, 1.0);
    let after = window(&mut draw, case, case.slower, case.load);
    judge(&before, &after, Load::of(&before, &after))
}
