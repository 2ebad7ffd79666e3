//! `dovetail queue`: the quota and use of each queue, and its pending jobs in scheduling order.

use std::collections::BTreeMap;

use anyhow::Result;
use dovetail_cluster::queues::amounts;
use dovetail_console::app::App;
use dovetail_console::style::OutputStream;
use dovetail_console::table::{counted, fits, narrow_table, whole, wrapped};
use dovetail_control::ask::{InLine, NotInLine, QueueLine, QueueLines};
use dovetail_objects::harmless;
use dovetail_settings::errors::UsageError;
use dovetail_settings::form::Output;
use dovetail_sources::namespace::NamespaceFlags;
use dovetail_sources::own_prices::OwnPriceFlags;
use dovetail_units::amount::{gpu_count, gpus};
use dovetail_units::duration::duration;

use crate::{ClusterSnapshot, not_in_line, reservation, reserved, start};

/// Prints queues and pending jobs, with the expected start of each if that is asked for.
///
/// # Errors
/// A form that the command lacks, and output that cannot be written.
pub fn answer(
    app: &App,
    seen: &mut ClusterSnapshot,
    namespace: &NamespaceFlags,
    with_starts: bool,
    prices: &OwnPriceFlags,
) -> Result<()> {
    let output = app.output("queue")?;
    if with_starts && output == Output::Csv {
        let text = "--start does not support -o csv; omit --start, or use -o json";
        return Err(UsageError(text.to_owned()).into());
    }
    let QueueLines {
        queues,
        mut waiting,
        not_in_line: mut others,
        reservations,
        mut reserved,
        gpu_resource,
    } = seen.queues(with_starts)?;
    if with_starts {
        seen.note_unlearned(app);
    }
    let is_shown = |name: &str| name.split_once('/').is_none_or(|(of, _)| namespace.shows(of));
    waiting.retain(|job| is_shown(&job.job));
    others.retain(|other| is_shown(&other.name));
    reserved.retain(|line| line.job.as_deref().is_none_or(is_shown));
    let reserved = reserved::priced(app, prices, &reserved)?;
    match output {
        Output::Json => {
            let mut all =
                serde_json::json!({ "queues": queues, "waiting": waiting, "not_in_line": others });
            if !reservations.is_empty() {
                all["reservations"] = serde_json::json!(reservations);
            }
            if !reserved.is_empty() {
                all["reserved"] = serde_json::json!(reserved);
            }
            app.print_json(&all)
        }
        Output::Csv => csv_of(app, &waiting),
        _ => {
            let text = text(app, (&queues, &gpu_resource), &waiting, others.is_empty());
            let reservations = reservation::text(app, &reservations);
            let reserved = reserved::text(app, &reserved);
            app.print(&(text + &beside(app, &others) + &reservations + &reserved))
        }
    }
}

/// Pending pods that are not in the scheduling order.
fn beside(app: &App, others: &[NotInLine]) -> String {
    if others.is_empty() {
        return String::new();
    }
    let title = format!("{} not in the scheduling order", whole(others.len() as u64));
    format!("\n{}\n\n{}", app.style(OutputStream::Result).strong(&title), not_in_line::text(others))
}

/// `queues` with the resource whose units are GPUs.
fn text(
    app: &App,
    (queues, gpu_resource): (&[QueueLine], &str),
    waiting: &[InLine],
    is_all: bool,
) -> String {
    let mut text = String::new();
    if !queues.is_empty() {
        text += &app.style(OutputStream::Result).strong(&counted(queues.len(), "queue"));
        text += &format!("\n\n{}\n", table_of_queues(queues, gpu_resource));
        for (queue, problem) in queues.iter().filter_map(|one| Some((one, one.problem.as_ref()?))) {
            let told = match queue.exists {
                true => format!("queue {} is not ready: {problem}", queue.name),
                false => problem.clone(),
            };
            text += &wrapped(&harmless(&told), 0);
            text.push('\n');
        }
    }
    if waiting.is_empty() {
        return text
            + if is_all {
                "no pending jobs\n"
            } else {
                "no pending jobs in the scheduling order\n"
            };
    }
    let gpu_milli: i64 = waiting.iter().map(|job| job.gpu_milli).sum();
    let jobs = whole(waiting.len() as u64);
    let title = format!("{jobs} pending, requesting {}", gpus(gpu_milli));
    let row = |job: &InLine| {
        let gpus = gpu_count(job.gpu_milli);
        let waited = duration(job.waited_ms);
        vec![
            harmless(&job.queue).into_owned(),
            job.place.to_string(),
            harmless(&job.job).into_owned(),
            job.priority.to_string(),
            job.pods.to_string(),
            gpus,
            waited,
            job.reason.to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = waiting.iter().map(row).collect();
    let title = app.style(OutputStream::Result).strong(&title);
    let hint = "`dovetail why NAME -n NAMESPACE` explains why one of them is pending";
    let starts = start::table(waiting);
    text + &format!("{title}\n\n{}\n{starts}{hint}\n", table_of_jobs(rows))
}

/// A line each where a table would break names, which nobody could copy then.
fn table_of_jobs(rows: Vec<Vec<String>>) -> String {
    let header = ["queue", "#", "job", "prio", "pods", "GPUs", "waited", "reason"];
    if fits(&header, &rows) {
        return narrow_table(&header, rows);
    }
    let words = ["priority", "pods", "GPUs", "waited", "reason"];
    let named = |row: Vec<String>| {
        let [queue, place, job, rest @ ..] = row.as_slice() else { return String::new() };
        let rest = words.iter().zip(rest).map(|(name, value)| format!("{name} {value}"));
        let rest = rest.collect::<Vec<_>>().join(", ");
        wrapped(&format!("{queue} {place}: {job}: {rest}"), 0)
    };
    rows.into_iter().map(named).collect()
}

/// What each queue is given and holds, with `?` for what is not known. GPUs are called so, however
/// long the name of their resource is.
fn table_of_queues(queues: &[QueueLine], gpu_resource: &str) -> String {
    let counts_usage = queues.iter().any(|queue| queue.used_cluster_hours.is_some());
    let row = |queue: &QueueLine| {
        let unknown = || "?".to_owned();
        let list = |amounts: &Option<BTreeMap<String, String>>| match amounts {
            None => unknown(),
            Some(amounts) if amounts.is_empty() => "-".to_owned(),
            Some(amounts) => {
                let each = amounts.iter().map(|(name, amount)| match (&**name, &**amount) {
                    (name, "1") if name == gpu_resource => "1 GPU".to_owned(),
                    (name, amount) if name == gpu_resource => format!("{amount} GPUs"),
                    (name, amount) => format!("{amount} {name}"),
                });
                each.collect::<Vec<_>>().join(", ")
            }
        };
        let has_some = queue.guaranteed.as_ref().is_some_and(|amounts| !amounts.is_empty());
        let guaranteed = match queue.borrows {
            Some(true) if has_some => format!("{}, borrows", list(&queue.guaranteed)),
            _ => list(&queue.guaranteed),
        };
        let none_above = || if queue.exists { "-".to_owned() } else { unknown() };
        let name = match queue.exists {
            true => queue.name.clone(),
            false => format!("{} (deleted)", queue.name),
        };
        let mut cells = vec![
            name,
            queue.parent.clone().unwrap_or_else(none_above),
            gpu_count(queue.gpu_milli),
            guaranteed,
            list(&queue.limit),
            queue.weight.map_or_else(unknown, |weight| weight.to_string()),
            // As the object and its pods say it.
            amounts::percent(queue.share),
            queue.waiting_jobs.to_string(),
        ];
        if counts_usage {
            let hours = queue.used_cluster_hours.map(|hours| format!("{hours:.1}"));
            cells.extend([list(&queue.borrowed), hours.unwrap_or_else(unknown)]);
        }
        cells
    };
    let mut header =
        vec!["queue", "parent", "GPUs", "guaranteed", "limit", "weight", "share", "pending"];
    if counts_usage {
        header.extend(["borrowed", "used, cluster-hours"]);
    }
    narrow_table(&header, queues.iter().map(row).collect())
}

fn csv_of(app: &App, waiting: &[InLine]) -> Result<()> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for job in waiting {
        writer.serialize(job)?;
    }
    app.print(&String::from_utf8(writer.into_inner()?)?)
}
