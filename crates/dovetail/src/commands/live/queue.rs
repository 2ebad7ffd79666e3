//! `dovetail queue`: who waits, in order, and for what.

use anyhow::Result;
use clap::Args;

use super::LookFlags;
use super::line::{InLine, line};
use crate::app::App;
use crate::output::Output;
use crate::output::style::Stream;
use crate::output::table::{duration, table, whole};

/// Which cluster.
#[derive(Debug, Args)]
pub(crate) struct QueueFlags {
    #[command(flatten)]
    look: LookFlags,
}

/// Prints the line.
pub(crate) fn run(app: &App, flags: &QueueFlags) -> Result<()> {
    let output = app.output("queue", &[Output::Table, Output::Json, Output::Csv])?;
    let mut seen = flags.look.look(app)?;
    let waiting = line(&mut seen.scheduler, seen.now_ms);
    match output {
        Output::Json => app.print_json(&serde_json::json!({ "waiting": waiting })),
        Output::Csv => csv_of(app, &waiting),
        _ => app.print(&text(app, &waiting)),
    }
}

fn text(app: &App, waiting: &[InLine]) -> String {
    if waiting.is_empty() {
        return "nothing waits\n".to_owned();
    }
    let gpu_milli: i64 = waiting.iter().map(|job| job.gpu_milli).sum();
    let jobs = whole(waiting.len() as u64);
    let title = format!("{jobs} waiting, for {} GPUs", gpus(gpu_milli));
    let row = |job: &InLine| {
        let gpus = gpus(job.gpu_milli);
        let waited = duration(job.waited_ms as f64 / 1_000.0);
        let queue = if job.queue.is_empty() { "default" } else { &job.queue };
        vec![
            job.place.to_string(),
            job.job.clone(),
            queue.to_owned(),
            job.priority.to_string(),
            gpus,
            waited,
            job.reason.to_owned(),
        ]
    };
    let header = ["place", "job", "queue", "priority", "GPUs", "waited", "reason"];
    let rows = waiting.iter().map(row).collect();
    let title = app.style(Stream::Result).strong(&title);
    let hint = "`dovetail why NAME -n NAMESPACE` says more about one of them";
    format!("{title}\n\n{}\n{hint}\n", table(&header, rows))
}

fn csv_of(app: &App, waiting: &[InLine]) -> Result<()> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for job in waiting {
        writer.serialize(job)?;
    }
    app.print(&String::from_utf8(writer.into_inner()?)?)
}

/// Thousandths of GPUs as people write them.
pub(super) fn gpus(milli: i64) -> String {
    match milli % 1_000 {
        0 => whole((milli / 1_000).unsigned_abs()),
        _ => format!("{:.3}", milli as f64 / 1_000.0),
    }
}
