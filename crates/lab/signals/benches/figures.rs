//! How well the phases of jobs are told:
//! `cargo bench -p dovetail-signals --bench figures -- NAME...`.
//!
//! `phases` prints the confusion matrix at 15, 30 and 60 s on ranges that nothing was tuned on;
//! `stock` and `util` with fewer signals; `tuning`, `tuning-stock` and `tuning-util` the same on
//! the other ranges. With `cases` also the largest mistakes of each job.
#![allow(clippy::print_stdout)]

use dovetail_phases::job_phases::{PHASES, Phase, PhaseRule, job_phases};
use dovetail_signals::{Case, Collected, Confusion, Half, JobBehavior};

const SEEDS: std::ops::Range<u64> = 0..24;
const FIGURES: [(&str, Half, Collected); 6] = [
    ("phases", Half::HeldOut, Collected::All),
    ("stock", Half::HeldOut, Collected::Stock),
    ("util", Half::HeldOut, Collected::UtilOnly),
    ("tuning", Half::Tuning, Collected::All),
    ("tuning-stock", Half::Tuning, Collected::Stock),
    ("tuning-util", Half::Tuning, Collected::UtilOnly),
];

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    for (name, half, collected) in FIGURES {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            print(name, half, collected, &wanted);
        }
    }
}

fn print(name: &str, half: Half, collected: Collected, wanted: &[String]) {
    const STEPS_MS: [u64; 3] = [15_000, 30_000, 60_000];
    let mut sums = [(); STEPS_MS.len()].map(|()| Confusion::default());
    for kind in JobBehavior::ALL {
        for seed in SEEDS {
            let case = Case::run(kind, seed, half);
            let mut line = format!("{kind:?} {seed}");
            for (sum, step_ms) in sums.iter_mut().zip(STEPS_MS) {
                let record = case.record(step_ms, collected);
                let said = job_phases(&record, &PhaseRule::default()).expect("it can be split");
                let one = case.confusion(&record, &said, collected);
                line += &worst(&one);
                sum.add(&one);
            }
            if wanted.iter().any(|wanted| wanted == "cases") {
                println!("{line}");
            }
        }
    }
    for (sum, step_ms) in sums.iter().zip(STEPS_MS) {
        println!("\n## {name}: {half:?}, {collected:?}, {} s\n", step_ms / 1000);
        matrix(sum);
    }
}

/// The largest mistakes of one job.
fn worst(confusion: &Confusion) -> String {
    let mut cells = Vec::new();
    let all: u64 = confusion.time_ms.iter().flatten().sum();
    for was in Phase::ALL {
        for said in Phase::ALL.into_iter().filter(|said| *said != was) {
            cells.push((confusion.time_ms[was as usize][said as usize], was, said));
        }
    }
    cells.sort_by_key(|cell| std::cmp::Reverse(cell.0));
    let shown = cells.iter().take(2).filter(|cell| cell.0 * 100 > all);
    let shown = shown.map(|(ms, was, said)| {
        format!(" {}->{} {:.1}%", was.name(), said.name(), *ms as f64 / all as f64 * 100.0)
    });
    format!(" |{}", shown.collect::<String>())
}

fn matrix(confusion: &Confusion) {
    let seen: Vec<usize> = (0..PHASES)
        .filter(|at| {
            confusion.time_ms.iter().any(|row| row[*at] > 0)
                || confusion.time_ms[*at] != [0; PHASES]
        })
        .collect();
    print!("| was \\ said (hours) |");
    seen.iter().for_each(|at| print!(" {} |", Phase::ALL[*at].name()));
    println!(" share | precision | recall |");
    println!("|{}", "---|".repeat(seen.len() + 4));
    for was in &seen {
        let phase = Phase::ALL[*was];
        print!("| {} |", phase.name());
        seen.iter()
            .for_each(|said| print!(" {:.2} |", confusion.time_ms[*was][*said] as f64 / 3.6e6));
        let share = confusion.share(phase);
        let mark = match share >= 0.01
            && (confusion.precision(phase) < 0.9 || confusion.recall(phase) < 0.9)
        {
            true => " below 0.9",
            false => "",
        };
        println!(
            " {:.1}% | {:.3} | {:.3}{mark} |",
            share * 100.0,
            confusion.precision(phase),
            confusion.recall(phase)
        );
    }
}
