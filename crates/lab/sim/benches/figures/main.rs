//! The figures of docs/benchmarks.md: `cargo bench -p dovetail-sim --bench figures -- NAME...`.
//!
//! Every figure prints what was measured beside its target; nothing is asserted on time. Figures
//! over real traces need `DOVETAIL_TRACES` and say so when it is not set.
#![allow(clippy::print_stdout)]

mod cycle;
mod folds;
mod gang;
mod infeasible;
mod openb;
mod policies;
mod speed;
mod timed;
mod waits;

/// A figure: its name, what it shows, and the function that prints it.
type Figure = (&'static str, &'static str, fn());

const FIGURES: [Figure; 11] = [
    ("speed", "decisions per second at 1,213 nodes, with naive beside it", speed::print),
    ("speed-large", "the same at 97,040 nodes", speed::print_large),
    ("gang", "a gang of 512 pods x 8 GPUs on 10,000 nodes", gang::print),
    ("infeasible", "gangs that cannot fit, on 200 and 2,000 busy nodes", infeasible::print),
    ("cycle", "decisions on 10,000 nodes with 5,000 pending jobs", cycle::print),
    ("timed", "82k jobs of Philly on 512 GPUs", timed::print),
    ("waits", "waits on Philly and ITP, with reservations and learned run times", waits::print),
    ("compare", "seven policies on 14 traces x 5 seeds", policies::print_compare),
    ("policies", "dovetail against FGD and the limit, seeds 42 to 51", policies::print_policies),
    (
        "folds",
        "each weight of dovetail, and kinds of worlds left out of their choice",
        folds::print,
    ),
    ("folds-ends", "the same where jobs end alone, in an eighth of the time", folds::print_ends),
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
