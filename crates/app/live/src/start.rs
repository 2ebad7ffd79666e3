//! When pending jobs are expected to start, in words.

use dovetail_console::table::{narrow_table, wrapped};
use dovetail_control::ask::{DomainLine, InLine, Preemptions, StartLine};
use dovetail_objects::harmless;
use dovetail_units::amount::gpu_hours;
use dovetail_units::duration::duration;

/// When a job is expected to start.
pub(crate) fn when(start: &StartLine) -> String {
    match (start.within_p50_ms, start.within_p90_ms) {
        (None, _) => {
            "unknown (to declare run times, set the annotation dovetail.dev/runtime on pods)"
                .to_owned()
        }
        (Some(p50_ms), Some(p90_ms)) if p50_ms == p90_ms => {
            format!("in {}, from the run times that pods declare", duration(p50_ms))
        }
        (Some(p50_ms), Some(p90_ms)) => {
            format!("in {} (50%), within {} (90%)", duration(p50_ms), duration(p90_ms))
        }
        (Some(p50_ms), None) => format!("in {} (50%)", duration(p50_ms)),
    }
}

/// What earlier preemptions cost a job.
pub(crate) fn preempted(preemptions: &Preemptions) -> String {
    let Preemptions { count, last, lost_gpu_milli_ms } = preemptions;
    let times = if *count == 1 { "time" } else { "times" };
    let lost = gpu_hours(i128::from(*lost_gpu_milli_ms));
    format!("{count} {times}, last at {last}; lost {lost} GPU-hours")
}

/// After which jobs it starts, and where; `None` if that is not known.
pub(crate) fn after(start: &StartLine) -> Option<String> {
    let nodes = named("node", &start.nodes, 2)?;
    let place = match &start.domain {
        Some(DomainLine { level, name }) => {
            format!("in {} {}, on {nodes}", harmless(level), harmless(name))
        }
        None => format!("on {nodes}"),
    };
    Some(match jobs(&start.after) {
        Some(jobs) => format!("after {jobs}, {place}"),
        None => place,
    })
}

/// Names of jobs. Those of gangs have the kind of their owner before them.
fn jobs(names: &[String]) -> Option<String> {
    let of_jobs = names.iter().map(|name| name.strip_prefix("job ").unwrap_or(name).to_owned());
    let of_jobs: Vec<String> = of_jobs.collect();
    match of_jobs.iter().any(|name| name.contains(' ')) {
        true => listed(names, 2),
        false => named("job", &of_jobs, 2),
    }
}

/// Names behind their kind, beyond so many only how many; `None` without any.
fn named(kind: &str, names: &[String], most: usize) -> Option<String> {
    let plural = if names.len() == 1 { "" } else { "s" };
    listed(names, most).map(|listed| format!("{kind}{plural} {listed}"))
}

/// Names, beyond so many only how many; `None` without any.
fn listed(names: &[String], most: usize) -> Option<String> {
    let shown: Vec<_> = names.iter().take(most).map(|name| harmless(name)).collect();
    match (shown.as_slice(), names.len() - shown.len()) {
        ([], _) => None,
        (_, 0) => Some(shown.join(" and ")),
        (_, more) => Some(format!("{} and {more} more", shown.join(", "))),
    }
}

/// Expected starts of pending jobs, under the table of these; empty if they were not asked for.
pub(crate) fn table(waiting: &[InLine]) -> String {
    let row = |job: &InLine| {
        let start = job.expected_start.as_ref()?;
        let within = |ms: Option<u64>| ms.map_or_else(|| "unknown".to_owned(), duration);
        let after = after(start).unwrap_or_else(|| "-".to_owned());
        let job = harmless(&job.job).into_owned();
        Some(vec![job, within(start.within_p50_ms), within(start.within_p90_ms), after])
    };
    let rows: Vec<Vec<String>> = waiting.iter().filter_map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let note = "expected starts, if no new job is scheduled earlier; unknown if the run time of a \
                blocking pod is unknown (annotation dovetail.dev/runtime)";
    let header = ["job", "in (50%)", "in (90%)", "starts"];
    format!("{}\n{}", narrow_table(&header, rows), wrapped(note, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_job_waits_for_is_said_in_one_line() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let mut start = StartLine {
            within_p50_ms: Some(7_200_000),
            within_p90_ms: Some(18_000_000),
            after: names(&["team/a", "team/b", "team/c"]),
            domain: None,
            nodes: names(&["n1"]),
        };
        assert_eq!(when(&start), "in 2 h (50%), within 5 h (90%)");
        let told = after(&start).expect("it is known");
        assert_eq!(told, "after jobs team/a, team/b and 1 more, on node n1");
        start.after.truncate(1);
        assert_eq!(after(&start).as_deref(), Some("after job team/a, on node n1"));
        start.domain = Some(DomainLine { level: "rack".to_owned(), name: "3".to_owned() });
        assert_eq!(after(&start).as_deref(), Some("after job team/a, in rack 3, on node n1"));
        for (names_of_jobs, told) in [
            (&["job team/a"][..], "after job team/a"),
            (&["job team/a", "team/b"], "after jobs team/a and team/b"),
            (&["gang team/a", "job team/b"], "after gang team/a and job team/b"),
        ] {
            start.after = names(names_of_jobs);
            assert_eq!(after(&start), Some(format!("{told}, in rack 3, on node n1")));
        }
        start = StartLine::default();
        assert!(when(&start).starts_with("unknown") && after(&start).is_none());
    }
}
