//! What the GPUs of pods did, from samples, for those who hold them now.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use dovetail_account::device_time::Span;
use dovetail_account::signal::{Activity, ActivityRule, ActivityVerdict, activity_over};
use dovetail_account::{IdleRule, idle_runs};
use dovetail_console::clock::now_ms;
use dovetail_console::open as file;
use dovetail_console::plain::plain;
use dovetail_console::table::counted;
use dovetail_facts::{GpuUse, UsagePeriod, UsesOfPods, measure};
use dovetail_inventory::facts::Gathered;
use dovetail_metrics::file::{UsageFileOptions, UsageSamples, UsageSeries, read_usage_file};
use dovetail_settings::errors::BadInput;
use dovetail_units::duration::duration_of_seconds;

use crate::example;
use crate::own_time::OwnTime;
use crate::prometheus::ServerChoice;

/// A later sample cannot have been taken yet, in whatever time zone its file was written.
const ZONES_MS: u64 = 86_400_000;

/// A sample says something of no longer time.
const MOST_STEP_MS: u64 = 86_400_000;

/// Samples that end so long before the objects were read say little about them.
const APART_MS: u64 = 86_400_000;

/// Flags as written.
#[derive(Debug, Args)]
pub struct UsageFileFlags {
    /// CSV file of GPU activity:
    /// timestamp_s,pod,gpu,activity_percent[,memory_bytes][,namespace][,node][,gpu_share]
    #[arg(long, value_name = "FILE")]
    pub usage: Option<PathBuf>,
}

/// Uses of pods over a period.
pub struct Uses {
    pub period: UsagePeriod,
    pub of_pods: UsesOfPods,
    /// Samples of a file with the namespaces that are known; a server's are not kept.
    pub series: Vec<UsageSeries>,
    /// Where they come from, for people.
    pub source: String,
    /// What was left out of them, in words.
    pub left_out: Vec<String>,
}

impl UsageFileFlags {
    /// No server where a file is given; else the one that is chosen.
    pub fn or_else<'c>(&self, choice: &'c ServerChoice) -> &'c ServerChoice {
        if self.usage.is_some() { &ServerChoice::None } else { choice }
    }

    /// The samples of the file, or those of the example; `None` where there are none.
    ///
    /// # Errors
    /// A file that cannot be read, or has a bad row.
    pub fn read(&self, gathered: &Gathered, is_example: bool) -> Result<Option<Uses>> {
        let rule = ActivityRule::default();
        if let Some(path) = &self.usage {
            let latest_ms = now_ms().saturating_add(ZONES_MS);
            return of_file(path, file::open(path)?, latest_ms, gathered, &rule).map(Some);
        }
        if is_example {
            let samples = example::usage()?;
            let path = Path::new(example::NAME);
            return of_file(path, &*samples, u64::MAX, gathered, &rule).map(Some);
        }
        Ok(None)
    }
}

/// Notes uses on the pods that hold GPUs; answers with what is to be known of them.
pub fn apply(gathered: &mut Gathered, uses: &Uses) -> Vec<String> {
    let Gathered { facts, moment, .. } = gathered;
    let matched = measure(facts, moment, uses.period, &uses.of_pods);
    let source = plain(&uses.source);
    let mut notes = uses.left_out.clone();
    if matched.others > 0 {
        let pods = counted(matched.others, "measured pod");
        notes.push(format!("{source}: ignored {pods} without a GPU now"));
    }
    let apart_ms = facts.now_ms.abs_diff(uses.period.span.to_ms);
    if apart_ms > APART_MS {
        let apart = duration_of_seconds((apart_ms / 60_000 * 60) as f64);
        notes.push(format!(
            "{source}: the last sample and the objects of the cluster are {apart} apart, so \
             activity may not match the pods"
        ));
    }
    notes
}

fn of_file(
    path: &Path,
    input: impl BufRead,
    latest_ms: u64,
    gathered: &Gathered,
    rule: &ActivityRule,
) -> Result<Uses> {
    let source = path.display().to_string();
    let options = UsageFileOptions { skip_bad_rows: false, latest_ms };
    let mut samples = read_usage_file(input, &source, &options)?;
    let step_ms = known_step_ms(&samples, &source)?;
    name_namespaces(&mut samples, gathered);
    let left_out = OwnTime::of(gathered, 0).keep_samples(&mut samples.series, &source);
    let period = UsagePeriod { span: span(&samples, step_ms, gathered.facts.now_ms), step_ms };
    let places = places(gathered);
    let mut of_pods = UsesOfPods::new();
    let mut ends_ms: BTreeMap<(String, String), Vec<u64>> = BTreeMap::new();
    for series in &samples.series {
        let key = (series.namespace.clone().unwrap_or_default(), series.pod.clone());
        let end_ms = series.activity.last().map_or(0, |sample| sample.at_ms);
        let used = gpu_use(series, period, rule);
        let is_elsewhere = series.node.as_ref().is_some_and(|node| {
            places.get(&key).is_some_and(|(own, _)| !own.contains(node.as_str()))
        });
        ends_ms.entry(key.clone()).or_default().push(end_ms);
        let used = if is_elsewhere { used.misplaced() } else { used };
        of_pods.entry(key).or_default().push(used);
    }
    let gap_ms = step_ms * u64::from(rule.max_gap_intervals);
    misplace_too_many(&mut of_pods, &places, &ends_ms, gap_ms);
    Ok(Uses { period, of_pods, series: samples.series, source, left_out })
}

/// Gives series the namespace of the pod that they name, where the file has none.
fn name_namespaces(samples: &mut UsageSamples, gathered: &Gathered) {
    let namespaces = namespaces(gathered);
    for series in samples.series.iter_mut().filter(|series| series.namespace.is_none()) {
        series.namespace = Some(match namespaces.get(&*series.pod) {
            // A name in several namespaces is nobody's.
            Some(known) if known.len() == 1 => known.iter().copied().collect(),
            _ => String::new(),
        });
    }
}

/// From the first sample to the end of the last; where there is none, no time until now.
fn span(samples: &UsageSamples, step_ms: u64, now_ms: u64) -> Span {
    let times = samples.series.iter().flat_map(|series| &series.activity).map(|s| s.at_ms);
    let Some(from_ms) = times.clone().min() else {
        return Span { from_ms: now_ms, to_ms: now_ms };
    };
    let to_ms = times.max().unwrap_or(from_ms).saturating_add(step_ms);
    Span { from_ms, to_ms }
}

/// How far samples lie apart, if so near that what was between them is known.
fn known_step_ms(samples: &UsageSamples, source: &str) -> Result<u64> {
    let step_ms = step_ms(samples).ok_or_else(|| {
        let file = plain(source);
        BadInput(format!(
            "{file}: at least two samples of a GPU are needed to know the time of a sample"
        ))
    })?;
    if step_ms > MOST_STEP_MS {
        let (file, apart) = (plain(source), duration_of_seconds((step_ms / 1_000) as f64));
        let problem = "the time between is unknown: check `timestamp_s`, or add more samples";
        return Err(
            BadInput(format!("{file}: samples of a GPU are {apart} apart: {problem}")).into()
        );
    }
    Ok(step_ms)
}

/// Of pods that have more GPUs by their samples than by their objects it is not known which were
/// theirs.
fn misplace_too_many(
    of_pods: &mut UsesOfPods,
    places: &Places<'_>,
    ends_ms: &BTreeMap<(String, String), Vec<u64>>,
    gap_ms: u64,
) {
    for (key, uses) in of_pods {
        let Some((_, units)) = places.get(key) else { continue };
        // A pod that began anew may have had other GPUs before: those that were measured last
        // count.
        let ends_ms = ends_ms.get(key).map(Vec::as_slice).unwrap_or_default();
        let last_ms = ends_ms.iter().copied().max().unwrap_or(0);
        let since_ms = last_ms.saturating_sub(gap_ms);
        let at_once = ends_ms.iter().filter(|end_ms| **end_ms >= since_ms).count();
        if i64::try_from(at_once).is_ok_and(|at_once| at_once > *units) {
            *uses = std::mem::take(uses).into_iter().map(GpuUse::misplaced).collect();
        }
    }
}

/// The nodes of each pod, by namespace and name, and how many GPUs it has.
type Places<'n> = BTreeMap<(String, String), (BTreeSet<&'n str>, i64)>;

/// Nodes of pods that hold GPUs, by namespace and name, and how many units they hold.
fn places(gathered: &Gathered) -> Places<'_> {
    let mut found = Places::new();
    for held in &gathered.moment.held {
        let namespace = gathered.facts.workloads[held.workload].owner.namespace.clone();
        let (nodes, units) = found.entry((namespace, held.pod.clone())).or_default();
        nodes.insert(&held.node);
        *units = units.saturating_add(held.units);
    }
    found
}

/// Namespaces in which a pod of that name holds GPUs.
fn namespaces(gathered: &Gathered) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for held in &gathered.moment.held {
        let namespace = &gathered.facts.workloads[held.workload].owner.namespace;
        found.entry(&held.pod).or_default().insert(namespace);
    }
    found
}

/// The median distance of two samples.
fn step_ms(samples: &UsageSamples) -> Option<u64> {
    let rule = IdleRule { threshold_micro_percent: 0, min_run_ms: 0, grace_ms: 0 };
    let (step_us, _) = idle_runs(samples.of_pods(), &rule).in_time?;
    Some((step_us / 1_000).max(1))
}

fn gpu_use(series: &UsageSeries, period: UsagePeriod, rule: &ActivityRule) -> GpuUse {
    let verdict = |micro_percent: u32| ActivityVerdict {
        activity: match micro_percent > rule.threshold_micro_percent {
            true => Activity::Active,
            false => Activity::Idle,
        },
        signal: None,
        intensity_micro_percent: Some(micro_percent),
        reason: None,
    };
    let samples: Vec<(u64, ActivityVerdict)> =
        series.activity.iter().map(|s| (s.at_ms, verdict(s.activity_micro_percent))).collect();
    let from_ms = samples.first().map_or(period.span.to_ms, |(at_ms, _)| *at_ms);
    let held = (from_ms, period.span.to_ms);
    let segments = activity_over(&samples, held, period.step_ms, rule);
    let mut busy: Vec<u32> = series.activity.iter().map(|s| s.activity_micro_percent).collect();
    busy.sort_unstable();
    // Nearest rank: the smallest that 95 of 100 do not exceed.
    let rank = (busy.len() * 95).div_ceil(100);
    GpuUse {
        p95_micro_percent: rank.checked_sub(1).and_then(|place| busy.get(place)).copied(),
        memory_peak_bytes: series.memory_bytes.iter().flatten().max().copied(),
        ..GpuUse::of_segments(series.gpu.clone(), &segments)
    }
}
