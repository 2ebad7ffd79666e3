//! Figures of docs/benchmarks.md that concern the ledger:
//! `cargo bench -p dovetail-store --bench figures -- NAME...`.
//!
//! Each prints what was measured beside its target; nothing is asserted on time. `DOVETAIL_LEDGER`
//! names an empty PostgreSQL database to measure instead of a file; without it `query` measures
//! both, on a server of its own where there is one. `DOVETAIL_LEDGER_DAYS` sets how many days
//! `query` fills (30, about 2 GB).
#![allow(clippy::print_stdout)]

mod cluster;
mod ingest;
mod month;
mod query;

/// A figure: its name, what it shows, and the function that prints it.
type Figure = (&'static str, &'static str, fn());

const FIGURES: [Figure; 2] = [
    ("ingest", "from bytes of range answers to committed rows", ingest::print),
    ("query", "a month of 40,000 GPUs: bytes kept, and answers", query::print),
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
