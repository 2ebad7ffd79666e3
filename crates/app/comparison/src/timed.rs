//! What a section on jobs in time says.

use dovetail_units::amount::{brief, counted, fine_percent, whole};
use dovetail_units::duration::duration_of_seconds;

use crate::money::{self, causes};
use crate::number::{change, learning, points, printable, usd};
use crate::page::{PageBlock, PageTable, Section, TableCell, TableRow, Tile};
use crate::spread::Spread;
use crate::timed_figures;
use dovetail_sim::comparison::{TimedComparison, TimedPolicy, TimedRun};
use dovetail_sim::timeline::{AmountReport, UsageReport};

/// A figure of one run.
type OfRun = Box<dyn Fn(&TimedRun) -> Option<f64>>;

/// An amount of an account.
type OfUsage = fn(&UsageReport) -> AmountReport;

/// A row of the comparison.
pub(crate) struct TimedMeasure {
    pub(crate) name: String,
    /// A part of the row before.
    pub(crate) is_part: bool,
    of: OfRun,
    unit: fn(f64) -> String,
    /// How a difference is told.
    difference: fn(Option<f64>, Option<f64>) -> String,
}

/// Rows of the comparison under one heading.
pub(crate) struct MeasureGroup {
    pub(crate) name: &'static str,
    pub(crate) measures: Vec<TimedMeasure>,
}

impl TimedMeasure {
    fn new(
        name: impl Into<String>,
        unit: fn(f64) -> String,
        of: impl Fn(&TimedRun) -> Option<f64> + 'static,
    ) -> Self {
        Self { name: name.into(), is_part: false, of: Box::new(of), unit, difference: change }
    }

    /// A percentage.
    fn percent(name: impl Into<String>, of: impl Fn(&TimedRun) -> Option<f64> + 'static) -> Self {
        Self { difference: points, ..Self::new(name, fine_percent, of) }
    }

    fn part(self) -> Self {
        Self { is_part: true, ..self }
    }

    /// Over the runs of a policy.
    pub(crate) fn spread(&self, policy: &TimedPolicy) -> Option<Spread> {
        Spread::of(policy.runs.iter().map(|run| (self.of)(run)))
    }

    pub(crate) fn text(&self, policy: &TimedPolicy) -> String {
        Spread::full_text(self.spread(policy), self.unit)
    }

    /// As a cell, with the change against another policy.
    fn cell(&self, policy: &TimedPolicy, reference: Option<&TimedPolicy>) -> TableCell {
        let spread = self.spread(policy);
        let change = reference.map(|reference| self.change(policy, reference));
        let notes = [Spread::deviation_text(spread, self.unit), change.unwrap_or_default()];
        let notes: Vec<String> = notes.into_iter().filter(|note| !note.is_empty()).collect();
        let text = Spread::text(spread, self.unit);
        TableCell { text, note: notes.join(", "), ..TableCell::default() }
    }

    /// Change of the mean against another policy.
    pub(crate) fn change(&self, policy: &TimedPolicy, reference: &TimedPolicy) -> String {
        let mean = |policy| self.spread(policy).map(|spread| spread.mean);
        (self.difference)(mean(policy), mean(reference))
    }
}

/// Mean GPUs over the period of a run.
fn mean_gpus(run: &TimedRun, amount: &AmountReport) -> Option<f64> {
    let usage = run.usage()?;
    let period_ms = usage.to_ms - usage.from_ms;
    (period_ms > 0).then(|| amount.gpu_milli_ms as f64 / 1000.0 / period_ms as f64)
}

/// Place of the group of money.
const MONEY: usize = 2;

pub(crate) fn groups(comparison: &TimedComparison) -> Vec<MeasureGroup> {
    let mut groups = vec![MeasureGroup { name: "Queue and jobs", measures: of_jobs(comparison) }];
    let mut runs = comparison.policies.iter().flat_map(|policy| &policy.runs);
    if runs.any(|run| run.account.is_some()) {
        let name = "GPUs, on average over the period";
        groups.push(MeasureGroup { name, measures: of_gpus(comparison) });
        groups.push(MeasureGroup { name: "Dollars per month, estimated", measures: of_money() });
    }
    groups
}

fn of_jobs(comparison: &TimedComparison) -> Vec<TimedMeasure> {
    let count = |name, of: fn(&TimedRun) -> u64| {
        TimedMeasure::new(name, whole, move |run| Some(of(run) as f64))
    };
    let seconds =
        |name, of: fn(&TimedRun) -> Option<f64>| TimedMeasure::new(name, duration_of_seconds, of);
    let mut measures = vec![
        count("jobs", |run| run.metrics.jobs),
        seconds("time in queue, mean", |run| run.metrics.average_queue_s),
        seconds("p50", |run| run.metrics.p50_queue_s).part(),
        seconds("p99", |run| run.metrics.p99_queue_s).part(),
        seconds("time from submission to end, mean", |run| run.metrics.average_jct_s),
        seconds("p99", |run| run.metrics.p99_jct_s).part(),
    ];
    if let Some(limit_s) = comparison.limit_average_jct_s.filter(|limit| *limit > 0.0) {
        let above =
            move |run: &TimedRun| Some((run.metrics.average_jct_s? / limit_s - 1.0) * 100.0);
        measures.push(TimedMeasure::percent("mean above the limit", above).part());
    }
    measures.push(seconds("end of the last job", |run| run.metrics.makespan_s));
    if let Some(limit_s) = comparison.limit_makespan_s.filter(|limit| *limit > 0.0) {
        let above = move |run: &TimedRun| Some((run.metrics.makespan_s? / limit_s - 1.0) * 100.0);
        measures.push(TimedMeasure::percent("above the limit", above).part());
    }
    let runs = || comparison.policies.iter().flat_map(|policy| &policy.runs);
    if runs().any(|run| run.metrics.unfinished_jobs > 0) {
        measures.push(count("unfinished jobs", |run| run.metrics.unfinished_jobs));
        let impossible = comparison.impossible_jobs as f64;
        measures.push(
            TimedMeasure::new("of these can never start", whole, move |_| Some(impossible)).part(),
        );
    }
    let used = |run: &TimedRun| Some(run.metrics.gpu_occupancy? * 100.0);
    measures.push(TimedMeasure::percent(
        "GPU time of finished work, until the last job finished",
        used,
    ));
    measures.push(count("restarts", |run| run.metrics.restarts));
    let redone = |run: &TimedRun| Some(run.metrics.repeated_gpu_hours);
    measures.push(TimedMeasure::new("GPU-hours of lost work", brief, redone).part());
    measures
}

fn of_gpus(comparison: &TimedComparison) -> Vec<TimedMeasure> {
    let share = |run: &TimedRun| {
        let total = &run.usage()?.total;
        let installed = total.installed.gpu_milli_ms as f64;
        (installed > 0.0).then(|| total.allocated.gpu_milli_ms as f64 / installed * 100.0)
    };
    let gpus = |name, of: fn(&UsageReport) -> AmountReport| {
        TimedMeasure::new(name, brief, move |run| mean_gpus(run, &of(run.usage()?)))
    };
    let mut measures = vec![
        TimedMeasure::percent("allocated, share of installed", share),
        gpus("installed", |usage| usage.total.installed),
        gpus("allocated", |usage| usage.total.allocated),
        gpus("unavailable", |usage| usage.total.unavailable),
        gpus("free", |usage| usage.total.free),
    ];
    measures.extend(causes(comparison).into_iter().map(|cause| {
        let of =
            move |run: &TimedRun| mean_gpus(run, run.usage()?.total.free_by_cause.get(&cause)?);
        TimedMeasure::new(money::cause_label(cause), brief, of).part()
    }));
    measures.push(gpus("free while jobs are pending", UsageReport::free_while_work_waited));
    measures
}

fn of_money() -> Vec<TimedMeasure> {
    let usd = |name, of: fn(&UsageReport) -> AmountReport| {
        TimedMeasure::new(name, usd, move |run| {
            let micros = of(run.usage()?).estimated_usd_micros_per_month?;
            Some(micros as f64 / 1e6)
        })
    };
    // The dollars of a total are those of its priced part.
    let priced = |of: OfUsage| {
        let share = move |run: &TimedRun| Some(of(run.usage()?).priced_share? * 100.0);
        TimedMeasure::percent("of GPU time with a price", share).part()
    };
    let totals: [(&str, OfUsage); 3] = [
        ("the cluster", |usage| usage.total.installed),
        ("free GPUs", |usage| usage.total.free),
        ("free while jobs are pending", UsageReport::free_while_work_waited),
    ];
    totals.into_iter().flat_map(|(name, of)| [usd(name, of), priced(of)]).collect()
}

pub(crate) fn section(place: usize, comparison: &TimedComparison) -> Section {
    let id = format!("timed-{place}");
    let mut blocks = vec![
        PageBlock::Tiles { tiles: tiles(comparison) },
        PageBlock::Table { table: table(comparison) },
    ];
    blocks.extend(timed_figures::blocks(&id, comparison));
    blocks.extend(money::blocks(comparison));
    blocks.push(PageBlock::Notes {
        heading: "Method and uncertainty".to_owned(),
        notes: notes(comparison),
    });
    Section {
        title: format!("Jobs in time: {}", printable(&comparison.trace)),
        intro: format!(
            "{} with {}. Jobs are submitted, wait, run and finish; every policy sees the same jobs \
             at the same times.",
            counted(comparison.nodes, "node"),
            counted(comparison.gpus, "GPU")
        ),
        blocks,
        id,
    }
}

/// The other policy that is best in a measure: the last policy may lose to it.
fn best_other<'p>(
    measure: &TimedMeasure,
    policies: &'p [TimedPolicy],
    is_better: fn(f64, f64) -> bool,
) -> Option<&'p TimedPolicy> {
    let (_, others) = policies.split_last()?;
    let mean = |policy: &TimedPolicy| Some(measure.spread(policy)?.mean);
    others.iter().reduce(|best, other| match (mean(best), mean(other)) {
        (Some(so_far), Some(mean)) if is_better(mean, so_far) => other,
        (None, Some(_)) => other,
        _ => best,
    })
}

/// The last policy, with the first beside it, and with the best of the others where that is another
/// one: losses are shown as gains are.
fn tiles(comparison: &TimedComparison) -> Vec<Tile> {
    let (Some(first), Some(last)) = (comparison.policies.first(), comparison.policies.last())
    else {
        return Vec::new();
    };
    let groups = groups(comparison);
    let more = |one: f64, other: f64| one > other;
    let less = |one: f64, other: f64| one < other;
    let tile = |group: usize, name: &str, label: &str, is_better: fn(f64, f64) -> bool| {
        let measure = groups.get(group)?.measures.iter().find(|measure| measure.name == name)?;
        let note = match comparison.policies.len() {
            1 => printable(&last.policy),
            _ => format!(
                "{}; {}: {} ({})",
                printable(&last.policy),
                printable(&first.policy),
                measure.text(first),
                measure.change(last, first)
            ),
        };
        let best = best_other(measure, &comparison.policies, is_better);
        let note = match best.filter(|best| best.policy != first.policy) {
            Some(best) => format!(
                "{note}; best of the others, {}: {} ({})",
                printable(&best.policy),
                measure.text(best),
                measure.change(last, best)
            ),
            None => note,
        };
        let note = note.replace(" ()", "");
        let priced =
            groups.get(group)?.measures.iter().skip_while(|other| other.name != name).nth(1);
        let note = match priced.filter(|priced| group == MONEY && priced.spread(last).is_some()) {
            Some(priced) => format!("{note}; {} of that GPU time has a price", priced.text(last)),
            None => note,
        };
        Some(Tile { label: label.to_owned(), value: measure.text(last), note })
    };
    [
        tile(1, "allocated, share of installed", "of the GPU time is allocated", more),
        tile(
            1,
            "free while jobs are pending",
            "GPUs free while jobs are pending, on average",
            less,
        ),
        tile(
            MONEY,
            "free while jobs are pending",
            "a month for GPUs free while jobs are pending (estimate)",
            less,
        ),
        tile(0, "time in queue, mean", "in queue, on average", less),
        tile(0, "p99", "in queue for the slowest 1% of jobs, at least", less),
        tile(0, "time from submission to end, mean", "from submission to end, on average", less),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn table(comparison: &TimedComparison) -> PageTable {
    let policies = &comparison.policies;
    let cell = |measure: &TimedMeasure, place: usize| {
        measure.cell(&policies[place], (place > 0).then_some(&policies[0]))
    };
    let rows = groups(comparison).into_iter().flat_map(|group| {
        let heading = TableRow { head: group.name.to_owned(), class: "group", cells: Vec::new() };
        let measures = group.measures.into_iter().map(|measure| TableRow {
            cells: (0..policies.len()).map(|place| cell(&measure, place)).collect(),
            class: if measure.is_part { "part" } else { "" },
            head: measure.name,
        });
        std::iter::once(heading).chain(measures).collect::<Vec<_>>()
    });
    let names = policies.iter().map(|policy| printable(&policy.policy));
    let against = match policies.len() {
        1 => String::new(),
        _ => format!("; small: change against {}", printable(&policies[0].policy)),
    };
    PageTable {
        caption: format!("Policies on the same jobs{against}"),
        header: std::iter::once(String::new()).chain(names).collect(),
        rows: rows.collect(),
    }
}

fn notes(comparison: &TimedComparison) -> Vec<String> {
    let runs = &comparison.policies[0].runs;
    let seeds: Vec<String> = runs.iter().map(|run| run.seed.to_string()).collect();
    let mut notes = notes_on_accounts(comparison);
    notes.push(
        "Queue and job figures are over all jobs of the trace that started or finished at any \
         time; GPU figures are over the period. Time in queue counts from submission to the first \
         start; p50 and p99 are the values at the positions floor(0.5 n) and floor(0.99 n) of the \
         sorted times."
            .to_owned(),
    );
    notes.extend(note_on_unfinished(comparison));
    notes.push(match runs.len() {
        1 => format!(
            "One run (seed {}). The replay is deterministic, so the figures are exact for these jobs; the \
             spread over other jobs is unknown.",
            seeds[0]
        ),
        n => format!(
            "Figures are the mean over {n} runs (seeds {}), ± the standard deviation of the sample; all policies \
             ran on the same {n} sets of jobs and nodes. Curves show seed {}.",
            seeds.join(", "),
            seeds[0]
        ),
    });
    if comparison.limit_average_jct_s.is_some() || comparison.limit_makespan_s.is_some() {
        notes.push(
            "The limits hold for any schedule, with free preemption and full knowledge of the future, on one pool \
             of equal GPUs; they may not be reachable."
                .to_owned(),
        );
    }
    notes.extend(comparison.policies.iter().filter_map(|policy| {
        Some(learning(&policy.policy, policy.learning_started_from.as_deref()?))
    }));
    notes
}

/// What the means leave out, and why.
fn note_on_unfinished(comparison: &TimedComparison) -> Option<String> {
    let mut runs = comparison.policies.iter().flat_map(|policy| &policy.runs);
    if !runs.any(|run| run.metrics.unfinished_jobs > 0) {
        return None;
    }
    let mut note = "Some jobs did not finish. Times in queue cover the jobs that started, and \
                    times to the end cover the jobs that finished: policies with different numbers \
                    of unfinished jobs are compared on different jobs."
        .to_owned();
    if comparison.impossible_jobs > 0 {
        let jobs = comparison.first_impossible_jobs.iter();
        let named: Vec<String> = jobs
            .map(|job| format!("{} ({})", printable(&job.job), printable(&job.reason)))
            .collect();
        let jobs = counted(comparison.impossible_jobs, "job");
        note += &format!(" {jobs} can never start on this cluster: {}", named.join("; "));
        let is_all = comparison.impossible_jobs == named.len() as u64;
        note += if is_all { "." } else { ", and others." };
    }
    Some(note)
}

/// What the accounts say of themselves.
fn notes_on_accounts(comparison: &TimedComparison) -> Vec<String> {
    let Some(first) = comparison.all_shown().next() else { return Vec::new() };
    let mut notes: Vec<String> = first.usage.method.iter().map(|note| printable(note)).collect();
    let periods = comparison.policies.iter().flat_map(|policy| &policy.runs);
    let mut ends = periods.filter_map(TimedRun::usage).map(|usage| usage.to_ms);
    let first_ms = ends.next();
    if ends.any(|end_ms| Some(end_ms) != first_ms) {
        notes.push(
            "The periods of the runs differ in length: each ends with its run. Compare shares and averages, \
             not sums."
                .to_owned(),
        );
    }
    notes.push(
        "Free while jobs are pending: GPUs that are free for any cause except lack of demand, \
         starting nodes, and nodes out of service. At any time, at most as many GPUs count as \
         pending jobs requested."
            .to_owned(),
    );
    let without = comparison.policies.iter().filter(|policy| policy.shown().is_none());
    let without: Vec<String> = without.map(|policy| printable(&policy.policy)).collect();
    if !without.is_empty() {
        notes.push(format!(
            "Published preemptive orders do not record GPU time by cause: {}.",
            without.join(", ")
        ));
    }
    notes
}
