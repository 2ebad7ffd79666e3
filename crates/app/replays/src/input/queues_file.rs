//! Queues and what they have used, from files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use dovetail_console::app::App;
use dovetail_model::{Bounds, Queue, QueueUsage};
use dovetail_settings::errors::BadInput;
use dovetail_settings::toml_file::TomlFile;
use dovetail_sim::timed::TimedWorld;
use dovetail_trace::TraceJob;
use dovetail_units::duration::parse_duration;
use serde::Deserialize;
use toml::Spanned;

/// GPUs of a quota or limit, at most: no cluster has more.
const MOST_GPUS: u32 = dovetail_trace::limits::MAX_GPUS;
/// GPU-hours that a queue has used, at most.
const MOST_HOURS: f64 = 1e12;
/// Of queues one above the other, no more than these.
pub const MOST_LEVELS: usize = 64;

/// Flags as written.
#[derive(Clone, Debug, Default, Args)]
pub struct QueueFlags {
    /// timed: TOML file with quota, limit, weight, parent and half-life of queues; queues that
    /// appear only in the trace have weight 1
    #[arg(long, value_name = "FILE")]
    pub queues: Option<PathBuf>,
    /// timed: TOML file with the GPU-hours that queues used before the first submission
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
}

impl QueueFlags {
    /// The first of these flags that was given.
    pub fn given(&self) -> Option<&'static str> {
        let history = self.history.as_ref().map(|_| "--history");
        self.queues.as_ref().map(|_| "--queues").or(history)
    }

    /// The queues of the file, and those that jobs name beside.
    pub fn queues(&self, jobs: &[TraceJob]) -> Result<Vec<Queue>> {
        let mut queues = match &self.queues {
            Some(path) => read_queues(&TomlFile::read(path)?)?,
            None => Vec::new(),
        };
        let known = |name: &str| queues.iter().any(|queue| queue.name == name);
        let named = TimedWorld::named_queues(jobs).into_iter();
        let others: Vec<Queue> = named.filter(|queue| !known(&queue.name)).collect();
        queues.extend(others);
        Ok(queues)
    }

    /// Tells which queues of the file are neither that of a job nor above one that is: often a name
    /// is misspelt.
    pub fn tell_unused(&self, app: &App, jobs: &[TraceJob]) -> Result<()> {
        let Some(path) = &self.queues else { return Ok(()) };
        let unused = unused(&read_queues(&TomlFile::read(path)?)?, jobs);
        if !unused.is_empty() {
            let names = unused.join(", ");
            app.note(&format!("{}: queues without jobs: {names}", path.display()));
        }
        Ok(())
    }

    /// What these queues had used when the first job was submitted, on a cluster of so many GPUs.
    pub fn usage(&self, queues: &[Queue], gpus: u64) -> Result<Vec<QueueUsage>> {
        match &self.history {
            Some(path) => read_history(&TomlFile::read(path)?, queues, gpus),
            None => Ok(Vec::new()),
        }
    }

    /// What is read, by flag.
    pub fn files(&self) -> [(&'static str, Option<&Path>); 2] {
        [("--queues", self.queues.as_deref()), ("--history", self.history.as_deref())]
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueuesFile {
    #[serde(default)]
    queues: BTreeMap<Spanned<String>, Entry>,
}

/// One queue as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Entry {
    quota: Option<Spanned<f64>>,
    limit: Option<Spanned<f64>>,
    #[serde(default)]
    limit_by_model: BTreeMap<String, Spanned<f64>>,
    weight: Option<Spanned<u32>>,
    parent: Option<Spanned<String>>,
    half_life: Option<Spanned<String>>,
    /// For the preset `kai`.
    #[serde(default)]
    priority: i32,
}

/// The queues of a file.
///
/// # Errors
/// The file says something that makes no sense: file, line and field.
pub fn read_queues(file: &TomlFile) -> Result<Vec<Queue>> {
    let QueuesFile { queues: written } = file.parse("queues")?;
    let parents: BTreeMap<&str, Option<&str>> = written
        .iter()
        .map(|(name, entry)| {
            (name.get_ref().as_str(), entry.parent.as_ref().map(|parent| parent.get_ref().as_str()))
        })
        .collect();
    let mut queues = Vec::new();
    for (name, entry) in &written {
        let own = name.get_ref();
        let at = |field: &str, start: usize, what: &str| {
            file.error(start, &format!("queues.{own}.{field}: {what}"))
        };
        if own.is_empty() {
            return Err(file.error(name.span().start, "queues: a queue needs a name").into());
        }
        if let Some(parent) = &entry.parent {
            let above = (own.as_str(), parent.get_ref().as_str());
            if let Some(what) = wrong_parent(&parents, above) {
                return Err(at("parent", parent.span().start, &what).into());
            }
        }
        let weight = entry.weight.as_ref();
        if let Some(zero) = weight.filter(|weight| *weight.get_ref() == 0) {
            let what = "0: a weight must be at least 1; to exclude a queue, write `limit = 0`";
            return Err(at("weight", zero.span().start, what).into());
        }
        let gpus = |field: &str, amount: &Spanned<f64>| {
            let field = format!("queues.{own}.{field}");
            let expected = format!("GPUs from 0 to {MOST_GPUS}");
            milli(*amount.get_ref()).ok_or_else(|| file.value_error(&field, amount, &expected))
        };
        let bound = |field: &str, amount: &Option<Spanned<f64>>| {
            amount.as_ref().map(|amount| gpus(field, amount)).transpose()
        };
        let half_life = entry.half_life.as_ref().map(|written| {
            let read = parse_duration(written.get_ref());
            read.map_err(|what| at("halfLife", written.span().start, &what))
        });
        let mut limit = Bounds::gpus(bound("limit", &entry.limit)?);
        for (model, amount) in &entry.limit_by_model {
            limit.by_model.insert(model.clone(), gpus(&format!("limitByModel.{model}"), amount)?);
        }
        queues.push(Queue {
            parent: entry.parent.as_ref().map(|parent| parent.get_ref().clone()),
            guaranteed: Bounds::gpus(bound("quota", &entry.quota)?),
            borrows: true,
            weight: weight.map_or(1, |weight| *weight.get_ref()),
            limit,
            half_life_ms: half_life.transpose()?,
            priority: entry.priority,
            ..Queue::named(own)
        });
    }
    check_quotas(file, &written, &queues)?;
    Ok(queues)
}

/// Refuses more quota below a queue than the queue has itself, as a cluster does.
fn check_quotas(
    file: &TomlFile,
    written: &BTreeMap<Spanned<String>, Entry>,
    queues: &[Queue],
) -> Result<(), BadInput> {
    let mut below: BTreeMap<&str, i64> = BTreeMap::new();
    for queue in queues {
        if let (Some(parent), Some(quota)) = (&queue.parent, queue.guaranteed.gpu_milli) {
            *below.entry(parent).or_default() += quota;
        }
    }
    for queue in queues {
        let sum = below.get(queue.name.as_str()).copied().unwrap_or(0);
        let Some(most) = queue.guaranteed.gpu_milli.filter(|most| sum > *most) else { continue };
        let entry = written.iter().find(|(name, _)| *name.get_ref() == queue.name);
        let start = entry.and_then(|(_, entry)| Some(entry.quota.as_ref()?.span().start));
        let [sum, most] = [sum, most].map(|milli| milli as f64 / 1e3);
        let what = format!(
            "queues.{}.quota: its child queues have quotas of {sum} GPUs in total, but the queue \
             itself only {most}: raise its quota or lower theirs",
            queue.name
        );
        return Err(file.error(start.unwrap_or_default(), &what));
    }
    Ok(())
}

/// What is wrong with a queue that has this parent, if anything.
fn wrong_parent(
    parents: &BTreeMap<&str, Option<&str>>,
    (own, parent): (&str, &str),
) -> Option<String> {
    let mut above = Some(parent);
    let mut steps = 0;
    while let Some(name) = above {
        let Some(next) = parents.get(name) else {
            return Some(format!("queue `{name}` is not defined: add a table for it"));
        };
        steps += 1;
        if name == own || steps > parents.len() {
            return Some("the queue would be its own ancestor: choose another parent".to_owned());
        }
        if steps >= MOST_LEVELS {
            return Some(format!("the queue hierarchy has more than {MOST_LEVELS} levels"));
        }
        above = *next;
    }
    None
}

/// Queues that are neither that of a job nor above one that is.
pub fn unused(queues: &[Queue], jobs: &[TraceJob]) -> Vec<String> {
    let parents: BTreeMap<&str, Option<&str>> =
        queues.iter().map(|queue| (&*queue.name, queue.parent.as_deref())).collect();
    let mut used: BTreeSet<&str> = BTreeSet::new();
    for job in jobs {
        let mut at = job.queue.as_deref();
        while let Some(name) = at.filter(|name| used.insert(name)) {
            at = parents.get(name).copied().flatten();
        }
    }
    let unused = queues.iter().filter(|queue| !used.contains(&*queue.name));
    unused.map(|queue| queue.name.clone()).collect()
}

fn milli(gpus: f64) -> Option<i64> {
    (0.0..=f64::from(MOST_GPUS)).contains(&gpus).then(|| (gpus * 1e3).round() as i64)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct HistoryFile {
    gpu_hours: BTreeMap<Spanned<String>, Spanned<f64>>,
}

/// What these queues have used by a file, of a cluster of so many GPUs.
///
/// # Errors
/// The file says something that makes no sense, or names a queue that is none of these: file, line
/// and field.
pub fn read_history(file: &TomlFile, queues: &[Queue], gpus: u64) -> Result<Vec<QueueUsage>> {
    let HistoryFile { gpu_hours } = file.parse("gpuHours")?;
    let mut usage = Vec::new();
    for (name, hours) in &gpu_hours {
        let own = name.get_ref();
        if !queues.iter().any(|queue| queue.name == *own) {
            let what = format!("gpuHours.{own}: the queue is neither in the trace nor in --queues");
            return Err(file.error(name.span().start, &what).into());
        }
        let written = *hours.get_ref();
        if !(0.0..=MOST_HOURS).contains(&written) {
            let expected = format!("GPU-hours from 0 to {MOST_HOURS}");
            return Err(file.value_error(&format!("gpuHours.{own}"), hours, &expected).into());
        }
        let cluster_s = written * 3_600.0 / gpus.max(1) as f64;
        // The whole cluster for a second is a billion.
        let used = (cluster_s * 1e9).round() as u64;
        let (queue, is_own) = (own.clone(), false);
        usage.push(QueueUsage { queue, is_own, used, at_ms: 0 });
    }
    Ok(usage)
}
