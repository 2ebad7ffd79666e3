//! Figures of docs/benchmarks.md that need a real API server: `cargo bench -p dovetail-scheduler
//! --bench figures -- NAME...`.
//!
//! Who is compared takes turns on one server, and each figure is the median over the turns. The
//! server, its store and this program share the machine, so run it where nothing else does.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bind_rate;
mod claims;
mod contestant;
mod gangs;
mod kai_scale;
mod latency;
mod restart;
mod scheduler_process;
mod seen;
mod spread;
mod stage;

use mimalloc::MiMalloc;

/// A figure: its name, what it shows, and the function that prints it.
type Figure = (&'static str, &'static str, fn());

/// The one that the program has: see its `main.rs`.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const FIGURES: [Figure; 10] = [
    ("bind", "6,000 pods on 1,000 nodes: bound, and told of by an event", bind_rate::print),
    (
        "bind-large",
        "20,000 pods on 5,000 nodes: bound, and told of by an event",
        bind_rate::print_large,
    ),
    ("claims", "5,000 pods with a claim each, on 500 nodes with 10 devices: bound", claims::print),
    ("gangs", "64 gangs of 64 pods on 1,000 nodes", gangs::print),
    ("latency", "one pod at a time on 5,000 idle nodes: created to bound", latency::print),
    ("restart", "first bind after a start beside 100,000 pods on 5,000 nodes", restart::print),
    ("fill", "4,000 pods on 500 idle nodes", kai_scale::print_fill),
    (
        "busy-gang",
        "a gang of 512 pods on 500 nodes that have 512 idle GPUs",
        kai_scale::print_busy_gang,
    ),
    (
        "reclaim-gang",
        "a gang of 250 pods of 8 GPUs reclaims 2,000 of 4,000 GPUs",
        kai_scale::print_reclaim_gang,
    ),
    ("reclaim", "4,000 pods reclaim a GPU each", kai_scale::print_reclaim),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, kubeconfig, preset @ ..] = &arguments[..]
        && mode == scheduler_process::MODE
    {
        return scheduler_process::run(kubeconfig, preset.first().map(String::as_str));
    }
    let wanted: Vec<&String> =
        arguments.iter().filter(|argument| !argument.starts_with("--")).collect();
    for (name, shows, print) in FIGURES {
        if wanted.is_empty() || wanted.iter().any(|wanted| *wanted == name) {
            println!("\n## {name}: {shows}\n");
            print();
        }
    }
}
