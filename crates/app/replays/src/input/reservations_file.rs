//! Reservations from one time to another, from a file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use dovetail_model::{Beneficiary, Booking, DeviceRequest, Requirement, Resources};
use dovetail_settings::errors::BadInput;
use dovetail_settings::toml_file::TomlFile;
use dovetail_units::duration::parse_duration;
use serde::Deserialize;
use toml::Spanned;

/// Pods of one reservation, at most.
const MOST_PODS: u32 = 10_000;

/// GPUs of one of its pods, at most.
const MOST_GPUS: u32 = 1_024;

/// Cores of one of its pods, at most.
const MOST_CORES: f64 = 1e6;

/// What a file reserves, with when it is asked for, in order of that time.
///
/// # Errors
/// The file cannot be read, or says something that makes no sense: file, line and field.
pub fn read_reservations(path: &Path) -> Result<Vec<(u64, Booking)>> {
    Ok(read(&TomlFile::read(path)?)?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReservationsFile {
    #[serde(default)]
    reservations: BTreeMap<Spanned<String>, Entry>,
}

/// One reservation as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Entry {
    queue: Option<String>,
    job: Option<String>,
    gpus: Spanned<u32>,
    #[serde(default)]
    gpu_models: BTreeSet<String>,
    #[serde(default)]
    cpu: Option<Spanned<f64>>,
    count: Spanned<u32>,
    from: Spanned<String>,
    to: Spanned<String>,
    asked: Option<Spanned<String>>,
}

/// The same of a file that was opened.
///
/// # Errors
/// The file says something that makes no sense: file, line and field.
pub fn read(file: &TomlFile) -> Result<Vec<(u64, Booking)>, BadInput> {
    let ReservationsFile { reservations } = file.parse("reservations")?;
    let mut all = Vec::new();
    for (name, entry) in &reservations {
        let own = name.get_ref();
        let field = |name: &str| format!("reservations.{own}.{name}");
        let at = |name: &str, start: usize, what: &str| {
            file.error(start, &format!("{}: {what}", field(name)))
        };
        let time = |field: &str, written: &Spanned<String>| {
            let read = parse_duration(written.get_ref());
            read.map_err(|what| at(field, written.span().start, &what))
        };
        let beneficiary = match (&entry.queue, &entry.job) {
            (Some(_), Some(_)) => {
                let what = "names both a queue and a job: remove one of them";
                let what = format!("reservations.{own}: {what}");
                return Err(file.error(name.span().start, &what));
            }
            (Some(queue), None) => Some(Beneficiary::Queue(queue.clone())),
            (None, Some(job)) => Some(Beneficiary::Job(job.clone())),
            (None, None) => None,
        };
        let (count, gpus) = (*entry.count.get_ref(), *entry.gpus.get_ref());
        if !(1..=MOST_PODS).contains(&count) {
            let expected = format!("pods from 1 to {MOST_PODS}");
            return Err(file.value_error(&field("count"), &entry.count, &expected));
        }
        if !(1..=MOST_GPUS).contains(&gpus) {
            let expected = format!("GPUs of each pod from 1 to {MOST_GPUS}");
            return Err(file.value_error(&field("gpus"), &entry.gpus, &expected));
        }
        let (from_ms, to_ms) = (time("from", &entry.from)?, time("to", &entry.to)?);
        if to_ms <= from_ms {
            let what = format!("{} is not after `from`", entry.to.get_ref());
            return Err(at("to", entry.to.span().start, &what));
        }
        let asked = entry.asked.as_ref().map(|asked| time("asked", asked)).transpose()?;
        let cpu_milli = match &entry.cpu {
            None => 0,
            Some(cpu) if (0.0..=MOST_CORES).contains(cpu.get_ref()) => (cpu.get_ref() * 1e3) as i64,
            Some(cpu) => {
                let expected = format!("cores from 0 to {MOST_CORES}");
                return Err(file.value_error(&field("cpu"), cpu, &expected));
            }
        };
        let requirement = Requirement {
            resources: Resources { cpu_milli, ..Resources::default() },
            device: DeviceRequest::Whole { count: gpus as u16, same_island: false },
            gpu_models: entry.gpu_models.clone(),
            ..Requirement::default()
        };
        let booking = Booking {
            name: own.clone(),
            beneficiary,
            requirement: Arc::new(requirement),
            count,
            from_ms,
            to_ms,
            was_admitted: false,
        };
        all.push((asked.unwrap_or(0), booking));
    }
    all.sort_by_key(|(asked_ms, _)| *asked_ms);
    Ok(all)
}
