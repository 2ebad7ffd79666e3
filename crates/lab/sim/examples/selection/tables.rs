//! What the rules chose, as tables.

use dovetail_sim::arena::{Estimate, mean};
use dovetail_trace::synth::{Purpose, Random};

use crate::{Choice, RULES, candidates};

const RESAMPLES: usize = 10_000;

fn geometric(factors: &[f64]) -> f64 {
    let logarithms: Vec<f64> = factors.iter().map(|factor| factor.ln()).collect();
    mean(&logarithms).map_or(f64::NAN, f64::exp)
}

/// The pooled factor of a rule and its interval: regimes are drawn, then seeds within each.
fn pooled(regimes: &[Vec<Choice>], rule: usize) -> [f64; 3] {
    let factors = |draw: &mut dyn FnMut(usize, usize) -> usize| {
        let of = |place: usize| {
            let choices = &regimes[draw(place, regimes.len())];
            let all = (0..choices.len()).map(|at| choices[draw(at, choices.len())].factor(rule));
            geometric(&all.collect::<Vec<_>>())
        };
        geometric(&(0..regimes.len()).map(of).collect::<Vec<_>>())
    };
    let mut random = Random::new(1, Purpose::Arrivals);
    let mut all: Vec<f64> =
        (0..RESAMPLES).map(|_| factors(&mut |_, count| random.below(count))).collect();
    all.sort_unstable_by(f64::total_cmp);
    [factors(&mut |at, _| at), all[RESAMPLES / 40], all[RESAMPLES - 1 - RESAMPLES / 40]]
}

/// Factors of one regime; the interval is Student's over the seeds.
pub(crate) fn print_regime(name: &str, choices: &[Choice]) {
    let factors = |rule| choices.iter().map(|choice| choice.factor(rule)).collect::<Vec<_>>();
    let logarithms: Vec<f64> = factors(0).iter().map(|factor| factor.ln()).collect();
    let of = Estimate::of(&logarithms).expect("seeds");
    let end = |end: Option<f64>| end.map_or(f64::NAN, f64::exp);
    let waits: f64 = choices.iter().map(|choice| choice.true_costs[0]).sum();
    let wait = waits / choices.len() as f64;
    let changed = choices.iter().filter(|choice| choice.by_rule[0] != 0);
    let name_of = |choice: &Choice| candidates()[choice.by_rule[0]].0;
    let chosen: Vec<_> =
        changed.map(|choice| format!("{} {:.2}", name_of(choice), choice.factor(0))).collect();
    let chosen = chosen.join(", ");
    let (factor, low, high) = (of.mean.exp(), end(of.low), end(of.high));
    print!("| {name} | {wait:.2} | {chosen} | {factor:.3} ({low:.3} to {high:.3}) |");
    (1..RULES.len()).for_each(|rule| print!(" {:.3} |", geometric(&factors(rule))));
    println!();
}

/// All regimes together, and what choosing costs.
pub(crate) fn print_pooled(regimes: &[Vec<Choice>]) {
    println!("\nAll regimes; 'better' and 'worse' are worlds with a change and their factors:\n");
    println!("| rule | factor (95%) | changes | better | worse |\n|---|---|---|---|---|");
    let all = || regimes.iter().flatten();
    for (rule, name) in RULES.iter().enumerate() {
        let [factor, low, high] = pooled(regimes, rule);
        let changed = all().filter(|choice| choice.by_rule[rule] != 0);
        let changed: Vec<f64> = changed.map(|choice| choice.factor(rule)).collect();
        let part = |is_in: &dyn Fn(f64) -> bool| {
            let part: Vec<f64> = changed.iter().copied().filter(|one| is_in(*one)).collect();
            format!("{} ({:.3})", part.len(), geometric(&part))
        };
        let (better, worse) = (part(&|one| one < 1.0), part(&|one| one > 1.0));
        let changes = format!("{} of {}", changed.len(), all().count());
        println!(
            "| {name} | {factor:.3} ({low:.3} to {high:.3}) | {changes} | {better} | {worse} |"
        );
    }
    let cpu_s: f64 = all().map(|choice| choice.cpu_s).sum();
    let days: f64 = all().map(|choice| choice.days).sum();
    let (each, per_day) = (cpu_s / all().count() as f64, cpu_s / days);
    println!("\nCPU seconds: {each:.1} for each choice, {per_day:.2} for each day that it is for");
}
