//! What each team had in a week, and in the week before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::Result;
use dovetail_account::cost::{CostSum, Paid};
use dovetail_account::device_time::Span;
use dovetail_account::rollup::{DAY_MS, HOUR_MS};
use dovetail_account::split::SplitMethod;
use dovetail_console::plain::plain;
use dovetail_store::{Detail, SumQuery, SumRow, default_method};
use dovetail_units::time::time;
use serde::Serialize;

use crate::dimension::UNKNOWN;
use crate::document::{hours, share};
use crate::from_store::Ledger;
use crate::known;
use crate::same_names::names_of_several;
use crate::teams::Teams;

/// Jobs that are listed.
const MOST_JOBS: usize = 5;

/// The weeks of all teams, with what was read of that time.
pub struct Weeks {
    pub from: String,
    /// The last of the seven days.
    pub last_day: String,
    /// Hours that were never read, of all clusters together, and all hours there are.
    pub hours_never_read: f64,
    pub hours: f64,
    pub of_teams: Vec<TeamWeek>,
}

/// A team's week; money is null where no price is known.
#[derive(Debug, Serialize)]
pub struct TeamWeek {
    pub team: String,
    pub from: String,
    pub to: String,
    /// The last of the seven days.
    #[serde(skip)]
    pub last_day: String,
    pub method: String,
    pub week: WeekOut,
    /// Of the seven days before; null where nothing was read of them.
    pub week_before: Option<WeekOut>,
    /// The jobs that had most GPU-time idle.
    pub idle_jobs: Vec<JobOut>,
    /// Hours of the week that were never read, of all clusters together.
    pub hours_never_read: f64,
    /// The same of the seven days before.
    pub hours_never_read_before: f64,
    /// All hours of a week, of all clusters together.
    #[serde(skip)]
    pub hours: f64,
    /// How many clusters these are of.
    #[serde(skip)]
    pub clusters: usize,
    /// That teams are told by the mapping of now, where there is one.
    #[serde(skip)]
    pub restated: Option<&'static str>,
}

/// Amounts of seven days.
#[derive(Debug, Serialize)]
pub struct WeekOut {
    pub gpu_hours: f64,
    pub active_gpu_hours: f64,
    pub idle_gpu_hours: f64,
    /// Held, and nobody knows what it did.
    pub unknown_gpu_hours: f64,
    pub cost_usd_micros: Option<i64>,
    pub idle_usd_micros: Option<i64>,
    /// Held, without a price: in no cost.
    pub unpriced_gpu_hours: f64,
    /// Whether something in it has no price.
    pub is_partly_unpriced: bool,
    /// Active part of what was measured; null where nothing was.
    pub active_share: Option<f64>,
}

/// A job.
#[derive(Debug, Serialize)]
pub struct JobOut {
    pub job: String,
    pub gpu_hours: f64,
    pub idle_gpu_hours: f64,
    pub idle_usd_micros: Option<i64>,
    /// Whether something in it has no price.
    pub is_partly_unpriced: bool,
}

/// A job's cluster and name.
type JobKey = (Arc<str>, String);

/// Sums of a team, and of its jobs.
#[derive(Default)]
struct OfTeam {
    all: CostSum,
    jobs: BTreeMap<JobKey, CostSum>,
}

/// The weeks of all teams that had GPUs in it, by name; of `also` those, too, that had some in the
/// week before.
pub fn weeks(
    ledger: &mut Ledger,
    cluster: Option<&str>,
    teams: (&Teams, &[String]),
    method: Option<SplitMethod>,
    span: Span,
) -> Result<Weeks> {
    let (teams, also) = teams;
    let length_ms = span.to_ms - span.from_ms;
    let before = Span { from_ms: span.from_ms.saturating_sub(length_ms), to_ms: span.from_ms };
    let rows = rows(ledger, cluster, span, true)?;
    let rows_before = self::rows(ledger, cluster, before, false)?;
    let method = method.unwrap_or_else(|| default_method(rows.iter().chain(&rows_before)));
    let of_week = by_team(&rows, teams, method);
    let of_before = by_team(&rows_before, teams, method);
    let clusters = match cluster {
        Some(name) => vec![name.to_owned()],
        None => ledger.run(|store| store.clusters())?,
    };
    let (mut missing_ms, mut missing_before_ms, mut read_before) = (0, 0, false);
    let clusters_asked = clusters.len();
    let hours = clusters_asked as f64 * length_ms as f64 / 3.6e6;
    for name in clusters {
        let missing = |ledger: &mut Ledger, span| -> Result<u64> {
            let spans = ledger.run(|store| store.missing(&name, None, span))?;
            Ok(spans.iter().map(|span| span.to_ms - span.from_ms).sum())
        };
        missing_ms += missing(ledger, span)?;
        let of_before = missing(ledger, before)?;
        read_before |= of_before < length_ms;
        missing_before_ms += of_before;
    }
    let nothing = OfTeam::default();
    let asked = also.iter().filter(|team| of_before.contains_key(*team));
    let names: BTreeSet<&String> = of_week.keys().chain(asked).collect();
    let (from, to) = (time(span.from_ms), time(span.to_ms));
    let last_day = time(span.to_ms.saturating_sub(DAY_MS));
    let hours_never_read = missing_ms as f64 / 3.6e6;
    let week = |team: &String| TeamWeek {
        team: plain(team),
        from: from.clone(),
        to: to.clone(),
        last_day: last_day.clone(),
        method: method.id(),
        week: WeekOut::of(&of_week.get(team).unwrap_or(&nothing).all),
        week_before: read_before.then(|| WeekOut::of(&of_before.get(team).unwrap_or(&nothing).all)),
        idle_jobs: idle_jobs(&of_week.get(team).unwrap_or(&nothing).jobs),
        hours_never_read,
        hours_never_read_before: missing_before_ms as f64 / 3.6e6,
        hours,
        clusters: clusters_asked,
        restated: teams.restated(),
    };
    let of_teams = names.into_iter().map(week).collect();
    Ok(Weeks { from: from.clone(), last_day: last_day.clone(), hours_never_read, hours, of_teams })
}

fn rows(
    ledger: &mut Ledger,
    cluster: Option<&str>,
    span: Span,
    workload: bool,
) -> Result<Vec<SumRow>> {
    let question = SumQuery {
        cluster: cluster.map(str::to_owned),
        from_hour: span.from_ms / HOUR_MS,
        to_hour: span.to_ms / HOUR_MS,
        detail: Detail { workload, ..Detail::default() },
    };
    ledger.run(|store| store.sums(&question))
}

fn by_team(rows: &[SumRow], teams: &Teams, method: SplitMethod) -> BTreeMap<String, OfTeam> {
    let place = SplitMethod::ALL.iter().position(|known| *known == method).unwrap_or(0);
    let mut found: BTreeMap<String, OfTeam> = BTreeMap::new();
    for row in rows {
        // What nobody had is no team's.
        let Some(party) = &row.party else { continue };
        let team = teams.team(&party.namespace, &party.namespace_labels, &party.labels);
        let of_team = found.entry(team.unwrap_or_else(|| UNKNOWN.to_owned())).or_default();
        of_team.all.add_rolled_up(row.paid, row.gpu_milli_ms, row.costs[place], row.charges);
        if let (Some(workload), Paid::Gpus(_)) = (&row.workload, row.paid) {
            let of_job =
                of_team.jobs.entry((row.cluster.clone(), workload.job.clone())).or_default();
            of_job.add_rolled_up(row.paid, row.gpu_milli_ms, row.costs[place], row.charges);
        }
    }
    found.retain(|_, of_team| of_team.all.allocated_gpu_milli_ms > 0);
    found
}

fn idle_jobs(jobs: &BTreeMap<JobKey, CostSum>) -> Vec<JobOut> {
    let several = names_of_several(jobs.keys().map(|(cluster, job)| (&**cluster, &**job)));
    let name = |(cluster, job): &JobKey| match several.contains(job) {
        true => plain(&format!("{cluster}/{job}")),
        false => plain(job),
    };
    let mut idle: Vec<(&JobKey, &CostSum)> =
        jobs.iter().filter(|(_, sum)| sum.idle_gpu_milli_ms > 0).collect();
    idle.sort_by_key(|(_, sum)| std::cmp::Reverse((sum.idle.usd_micros, sum.idle_gpu_milli_ms)));
    let job = |(key, sum): (&JobKey, &CostSum)| JobOut {
        job: name(key),
        gpu_hours: hours(sum.allocated_gpu_milli_ms),
        idle_gpu_hours: hours(sum.idle_gpu_milli_ms),
        idle_usd_micros: known::idle(sum).map(|cost| cost.usd_micros),
        is_partly_unpriced: sum.has_unpriced(),
    };
    idle.into_iter().take(MOST_JOBS).map(job).collect()
}

impl WeekOut {
    fn of(sum: &CostSum) -> Self {
        let measured = sum.active_gpu_milli_ms + sum.idle_gpu_milli_ms;
        Self {
            gpu_hours: hours(sum.allocated_gpu_milli_ms),
            active_gpu_hours: hours(sum.active_gpu_milli_ms),
            idle_gpu_hours: hours(sum.idle_gpu_milli_ms),
            unknown_gpu_hours: hours(sum.blind_gpu_milli_ms),
            cost_usd_micros: sum.cost().map(|cost| cost.usd_micros),
            idle_usd_micros: known::idle(sum).map(|cost| cost.usd_micros),
            unpriced_gpu_hours: hours(sum.gpu_milli_ms - sum.priced_gpu_milli_ms),
            is_partly_unpriced: sum.has_unpriced(),
            active_share: (measured > 0).then(|| share(sum.active_gpu_milli_ms, measured)),
        }
    }
}
