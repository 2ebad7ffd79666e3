//! Jobs that can never start on the cluster of a replay, in words.

use dovetail_console::app::App;
use dovetail_console::table::{whole, wrapped};
use dovetail_sim::timed::{Impossible, ImpossibleJob};
use dovetail_trace::Trace;

/// Tells it before the replay, which may be long, with the place of the first job.
pub fn tell(found: &Impossible, app: &App, trace: &Trace) {
    if let Some(ImpossibleJob { job, reason, row }) = found.first_impossible_jobs.first() {
        let place = trace.place(*row);
        let text = match found.impossible_jobs - 1 {
            0 => format!("job {job} can never start on this cluster and stays pending: {reason}"),
            more => format!(
                "job {job} and {} more can never start on this cluster and stay pending; job \
                 {job}: {reason}",
                whole(more)
            ),
        };
        app.note(&format!("{place}: {text}"));
    }
}

/// The named jobs, a line each.
pub fn text(found: &Impossible) -> String {
    if found.impossible_jobs == 0 {
        return String::new();
    }
    let line = |job: &ImpossibleJob| wrapped(&format!("{}: {}", job.job, job.reason), 2);
    let named: String = found.first_impossible_jobs.iter().map(line).collect();
    let more = found.impossible_jobs - found.first_impossible_jobs.len() as u64;
    let more = match more {
        0 => String::new(),
        more => format!("  and {} more\n", whole(more)),
    };
    format!("\ncan never start on this cluster\n{named}{more}")
}
