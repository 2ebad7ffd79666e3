//! Comparisons of replays as one page.

use crate::number::printable;
use crate::page::{PageHeader, ReportError, Section, laid_out};
use crate::{arrivals, timed};
use dovetail_sim::comparison::ReportData;

/// The report as one HTML file: no script, no outside resource, every name escaped.
///
/// # Errors
/// [`ReportError`] if there is nothing to show, or the policies have different numbers of runs.
pub fn html(data: &ReportData) -> Result<String, ReportError> {
    check(data)?;
    let sections: Vec<Section> = data
        .timed
        .iter()
        .enumerate()
        .map(|(place, comparison)| timed::section(place, comparison))
        .chain(data.arrivals.iter().enumerate().map(|(p, c)| arrivals::section(p, c)))
        .collect();
    let head = PageHeader {
        title: &data.title,
        program: &data.program,
        command: data.command.as_deref(),
        notes: &data.notes,
    };
    laid_out(&head, &sections)
}

/// Checks that every comparison has policies with equal numbers of runs.
pub(crate) fn check(data: &ReportData) -> Result<(), ReportError> {
    let arrivals = data.arrivals.iter().map(|comparison| {
        let runs = comparison.policies.iter().map(|p| (&p.policy, p.runs.len()));
        (&comparison.trace, runs.collect::<Vec<_>>())
    });
    let timed = data.timed.iter().map(|comparison| {
        let runs = comparison.policies.iter().map(|p| (&p.policy, p.runs.len()));
        (&comparison.trace, runs.collect::<Vec<_>>())
    });
    let all: Vec<_> = arrivals.chain(timed).collect();
    if all.is_empty() || all.iter().any(|(_, policies)| policies.is_empty()) {
        return Err(ReportError::Empty);
    }
    for (trace, policies) in all {
        let expected = policies[0].1;
        let other = policies.iter().find(|(_, runs)| *runs == 0 || *runs != expected);
        if let Some((policy, runs)) = other {
            let (trace, policy) = (printable(trace), printable(policy));
            return Err(ReportError::Runs { trace, policy, runs: *runs, expected });
        }
    }
    Ok(())
}
