//! How often histories without a change, with a slower service and with more load are rolled back:
//! `cargo run --profile test -p dovetail-guard --example rates [HISTORIES]`.
#![allow(clippy::print_stdout, reason = "this program prints a table")]

#[path = "../tests/all/history.rs"]
mod history;

use dovetail_guard::LatencyVerdict;
use history::{Case, Latency, play};

fn main() {
    let histories = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000);
    let latencies = [
        Latency::LogNormal(6.0, 0.8),
        Latency::LogNormal(3.5, 0.5),
        Latency::LogNormal(12.0, 0.6),
        Latency::LogNormal(1.2, 1.0),
        Latency::LogNormal(7.0, 0.3),
        Latency::Two(0.7, (2.0, 0.4), (15.0, 0.6)),
        Latency::Exponential(8.0),
    ];
    println!(
        "latency, requests a window, drift, slower, load: rolled back, unknown, of {histories}"
    );
    for latency in latencies {
        for (requests, drift) in [(10_000.0, 0.02), (20_000.0, 0.02), (20_000.0, 0.03)] {
            for (slower, load) in [(1.0, 1.0), (1.05, 1.0), (1.1, 1.0), (1.0, 1.4)] {
                let case = Case { latency, requests, drift, slower, load };
                let verdicts: Vec<LatencyVerdict> =
                    (0..histories).map(|seed| play(case, seed).verdict).collect();
                let worse = verdicts.iter().filter(|one| **one == LatencyVerdict::Worse).count();
                let unknown =
                    verdicts.iter().filter(|one| matches!(one, LatencyVerdict::Unknown(_))).count();
                println!("{latency:?}, {requests}, {drift}, {slower}, {load}: {worse}, {unknown}");
            }
        }
    }
}
