//! Figures of docs/benchmarks.md that concern the whole program:
//! `cargo bench -p dovetail --bench figures -- NAME...`.
//!
//! Each starts the program as its users do and prints what was measured beside its target; nothing
//! is asserted on time. Figures over real traces need `DOVETAIL_TRACES` and say so when it is not
//! set.
#![allow(clippy::print_stdout)]

mod audit;
#[path = "../../tests/all/duty_cycles.rs"]
mod duty_cycles;
mod first;
mod partition;
mod timed;
mod usage;

/// A figure: its name, what it shows, and the function that prints it.
type Figure = (&'static str, &'static str, fn());

const FIGURES: [Figure; 4] = [
    ("audit", "an audit of 5,000 nodes and 100,000 pods, from files", audit::print),
    ("first", "a first report: a real Prometheus with 14 days of 200 GPUs", first::print),
    ("partition", "layouts planned for 1,000 and 10,000 GPUs", partition::print),
    ("usage", "idle runs in 157,417 samples of 143 pods, from the CSV file", usage::print),
];

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    for (name, shows, print) in FIGURES {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            println!("\n## {name}: {shows}\n");
            print();
        }
    }
}
