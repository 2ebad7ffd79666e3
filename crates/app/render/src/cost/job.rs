//! Where a job's hours went, for people, at most 100 columns wide.

use dovetail_console::shortened::shortened;
use dovetail_console::table::{counted, table, whole, wrapped};
use dovetail_costing::document::by_method;
use dovetail_costing::job::document::{Document, MethodOut, PartOut};
use dovetail_phases::job_phases::{Confidence, Phase};
use dovetail_units::amount::{brief, percent, rounded_percent, usd};
use dovetail_units::duration::duration_of_seconds;

use crate::cost::terminal::price_lines;

/// Remedies are named for parts of so much of the job.
const WORTH_MENDING: f64 = 0.02;

/// All of it.
pub fn terminal(document: &Document) -> String {
    let mut text = wrapped(&first_line(document), 0);
    text += &wrapped(&second_line(document), 0);
    text.push('\n');
    text += &parts(document);
    text += &legend(document);
    text += &remedies(document);
    if !document.notes.is_empty() {
        text.push('\n');
    }
    for note in &document.notes {
        text += &wrapped(&format!("{}.", shortened(note)), 0);
    }
    text + &price_lines(&document.prices)
}

fn first_line(document: &Document) -> String {
    let per = if document.basis == "run-rate" { " a month" } else { "" };
    let other = match document.other_usd_micros {
        Some(micros) if micros > 0 => {
            format!(" (including {} for CPU and memory)", usd(Some(micros)))
        }
        _ => String::new(),
    };
    let range = match (&document.lowest, &document.highest) {
        (Some(lowest), Some(highest)) => {
            let amount = |of: &MethodOut| by_method(of.cost_usd_micros, &of.method);
            format!(" ({} to {})", amount(lowest), amount(highest))
        }
        _ => String::new(),
    };
    format!(
        "{}: {} GPU-hours{per}, {}{other}; {}. Methods {} and {}{range}.",
        document.job,
        brief(document.gpu_hours),
        usd(document.cost_usd_micros),
        computed(document),
        document.phases_method,
        document.method
    )
}

/// How much of it computed, with what may have.
fn computed(document: &Document) -> String {
    let share = |phase: Phase| {
        let part = document.parts.iter().find(|part| part.phase == phase);
        part.map_or(0.0, |part| part.share)
    };
    let least = share(Phase::Compute);
    let open = share(Phase::BusyNotSeparable) + share(Phase::Unknown);
    match (least > 0.0, open > 0.0) {
        (true, true) => {
            format!(
                "{} to {} of the GPU time was spent computing",
                percent(least),
                percent(least + open)
            )
        }
        (true, false) => format!("{} of the GPU time was spent computing", percent(least)),
        (false, true) => {
            format!(
                "how much of it was spent computing is unknown, at most {} of the GPU time",
                percent(open)
            )
        }
        (false, false) => "none of the GPU time was spent computing".to_owned(),
    }
}

fn second_line(document: &Document) -> String {
    let ranks = match document.ranks {
        None if document.pods == 1 || document.signals.is_empty() => String::new(),
        None => ", independent of each other".to_owned(),
        Some(1) => ", 1 GPU at a time".to_owned(),
        Some(ranks) => {
            format!(", in groups of {} that wait for each other", counted(ranks as usize, "GPU"))
        }
    };
    let read = match document.signals.is_empty() {
        true => "GPU use was not measured".to_owned(),
        false => {
            format!(
                "sampled every {}: {}",
                duration_of_seconds(document.sample_step_s),
                document.signals.join(", ")
            )
        }
    };
    let sampled = match document.basis {
        "run-rate" => {
            format!(
                "One snapshot of {}, extrapolated to {} days",
                document.from,
                whole(document.days.round() as u64)
            )
        }
        _ => format!("From {} to {}", document.from, document.to),
    };
    format!("{sampled}; {}{ranks}; {read}.", counted(document.pods, "pod"))
}

fn parts(document: &Document) -> String {
    let row = |part: &PartOut| {
        vec![
            part.phase.name().to_owned(),
            brief(part.gpu_hours),
            percent(part.share),
            usd(part.cost_usd_micros),
            confidence(part.confidence).to_owned(),
            evidence(part),
        ]
    };
    let mut rows: Vec<Vec<String>> = document.parts.iter().map(row).collect();
    if document.other_usd_micros.is_some_and(|micros| micros > 0) {
        let mut row = vec![String::new(); 6];
        row[0] = "CPU and memory".to_owned();
        row[3] = usd(document.other_usd_micros);
        rows.push(row);
    }
    let cost = usd(document.cost_usd_micros);
    let all = [brief(document.gpu_hours), percent(1.0), cost, String::new(), String::new()];
    rows.push(["total".to_owned()].into_iter().chain(all).collect());
    table(&["part", "GPU-hours", "share", "cost", "confidence", "evidence (means)"], rows)
}

/// What the words of the table mean, for whoever sees them for the first time.
fn legend(document: &Document) -> String {
    let has = |phase: Phase| document.parts.iter().any(|part| part.phase == phase);
    let mut text = "\n".to_owned();
    if has(Phase::BusyNotSeparable) {
        text += &wrapped(
            "busy_not_separable: the GPUs were busy, but no available signal distinguishes computing from \
             waiting for another member.",
            0,
        );
    }
    if has(Phase::Unknown) {
        text += &wrapped(
            "unknown: no samples, a GPU that several pods shared, or a pause too short to explain without host \
             metrics; it may be work or waste.",
            0,
        );
    }
    text + &wrapped(
        "confidence, for most of a part's time: high if events or two signals show it, medium if one signal does, low \
         if it is shorter than two samples. near: means of the surrounding time.",
        0,
    )
}

fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Low => "low",
        Confidence::Medium => "medium",
        Confidence::High => "high",
    }
}

/// Means of what was read that tell this phase; of what has no place those of what it is a share
/// of.
fn evidence(part: &PartOut) -> String {
    use Phase::{CheckpointRestore, CheckpointSave, DataLoading, LongPause, ShortGap, Tail};
    let evidence = &part.evidence;
    let share = |name: &str, value: Option<u64>| {
        Some(format!("{name} {}", rounded_percent(value? as f64 / 1e8)))
    };
    let rate = |name: &str, value: Option<u64>| {
        Some(format!("{name} {} MB/s", brief(value? as f64 / 1e6)))
    };
    let by_host = [CheckpointRestore, CheckpointSave, DataLoading, LongPause, ShortGap, Tail];
    let busy = share("busy", evidence.busy_micro_percent);
    let told = match by_host.contains(&part.phase) {
        true => vec![
            busy,
            evidence.cpu_milli.map(|cpu| format!("CPU {:.1}", cpu as f64 / 1e3)),
            share("disk", evidence.disk_busy_micro_percent),
            rate("in", evidence.in_bytes_per_s),
            rate("out", evidence.out_bytes_per_s),
        ],
        false => vec![
            busy,
            share("tensor", evidence.tensor_micro_percent),
            share("DRAM", evidence.dram_micro_percent),
            evidence.power_milliwatts.map(|power| format!("{:.0} W", power as f64 / 1e3)),
        ],
    };
    let told: Vec<String> = told.into_iter().flatten().collect();
    match (told.is_empty(), part.phase) {
        (true, Phase::Unknown) => "no data".to_owned(),
        (true, _) => "events".to_owned(),
        (false, _) if part.placed_share == 0.0 => format!("near {}", told.join(", ")),
        (false, _) => told.join(", "),
    }
}

fn remedies(document: &Document) -> String {
    let mut text = String::new();
    for part in &document.parts {
        if let Some(remedy) = part.remedy.filter(|_| part.share >= WORTH_MENDING) {
            text +=
                &wrapped(&format!("{} ({}): {remedy}.", part.phase.name(), percent(part.share)), 0);
        }
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}
