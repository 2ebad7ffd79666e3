//! `dovetail partition size` as a document, and as text.

use std::collections::BTreeMap;

use anyhow::Result;
use dovetail_console::table::{facts, table, whole};
use dovetail_model::MigTable;
use dovetail_partition::{SizingError, size};
use dovetail_settings::errors::UsageError;
use dovetail_units::amount::usd;
use serde::Serialize;

/// Hours of the month of every figure in dollars.
pub(crate) const HOURS_PER_MONTH: u64 = 720;

/// What `dovetail partition size` answers.
#[derive(Debug, Serialize)]
pub struct Document {
    pub gpu: String,
    /// Fewest GPUs that hold the demand.
    pub gpus: u64,
    /// No fewer GPUs can hold it; equal to `gpus` where that is proved to be the fewest.
    pub lower_bound: u64,
    pub demand: BTreeMap<String, u64>,
    /// GPUs by layout.
    pub layouts: Vec<LayoutRow>,
    /// One whole GPU for each instance: what is paid without sharing.
    pub whole_gpus: u64,
    pub usd_per_gpu_hour: Option<f64>,
    pub usd_per_month: Option<f64>,
    pub whole_usd_per_month: Option<f64>,
}

/// GPUs with the same instances.
#[derive(Debug, Serialize)]
pub struct LayoutRow {
    pub instances: BTreeMap<String, u64>,
    pub gpus: u64,
}

/// Sizes a list of profiles and counts. `tables`: all that are known.
///
/// # Errors
/// A profile that the GPU does not have.
pub fn document(
    (model, table): (&str, &MigTable),
    tables: &[MigTable],
    demand: &[(String, u64)],
    usd_micros_per_gpu_hour: Option<i64>,
) -> Result<Document> {
    let wrong = |error: SizingError| UsageError(format!("--demand: {error}"));
    // A table is named for one of the models that it is of.
    let unknown = |profile: String| {
        let known: Vec<&str> = table.profiles.iter().map(|one| one.name.as_str()).collect();
        wrong(SizingError::Unknown { gpu: model.to_owned(), profile, known: known.join(", ") })
    };
    // What is nearly as large is another model's.
    let is_unknown = |(name, _): &&(String, u64)| table.named(name, tables).is_none();
    if let Some((profile, _)) = demand.iter().find(is_unknown) {
        return Err(unknown(profile.clone()).into());
    }
    let sizing = size(table, demand).map_err(wrong)?;
    let named = |layout: &[u16]| {
        let counts = table.profiles.iter().zip(layout).filter(|(_, count)| **count > 0);
        counts.map(|(profile, count)| (profile.name.clone(), u64::from(*count))).collect()
    };
    let layouts = sizing.layouts.iter();
    let layouts = layouts.map(|(layout, gpus)| LayoutRow { instances: named(layout), gpus: *gpus });
    let mut asked: BTreeMap<String, u64> = BTreeMap::new();
    for (name, count) in demand {
        let name = table.profile(name).map_or(name, |place| &table.profiles[place].name);
        *asked.entry(name.clone()).or_default() += count;
    }
    let whole_gpus = asked.values().sum();
    let hour = usd_micros_per_gpu_hour.map(|micros| micros as f64 / 1e6);
    let month = |gpus: u64| hour.map(|hour| hour * (gpus * HOURS_PER_MONTH) as f64);
    Ok(Document {
        gpu: model.to_owned(),
        gpus: sizing.gpus,
        lower_bound: sizing.lower_bound,
        demand: asked,
        layouts: layouts.collect(),
        whole_gpus,
        usd_per_gpu_hour: hour,
        usd_per_month: month(sizing.gpus),
        whole_usd_per_month: month(whole_gpus),
    })
}

/// The document as text.
pub fn text(document: &Document) -> String {
    let rows = document.layouts.iter().map(|row| {
        let instances = row.instances.iter().map(|(profile, count)| format!("{profile} × {count}"));
        let instances: Vec<String> = instances.collect();
        let layout = if instances.is_empty() { "-".to_owned() } else { instances.join(", ") };
        vec![whole(row.gpus), layout]
    });
    let proof = match document.gpus == document.lower_bound {
        true => "proven minimum".to_owned(),
        false => format!("at least {} are needed", document.lower_bound),
    };
    let mut text = table(&["GPUs", "layout"], rows.collect());
    text.push('\n');
    text += &facts(vec![
        (
            "shared",
            format!(
                "{} × {} ({proof}): {}",
                whole(document.gpus),
                document.gpu,
                month_words(document.usd_per_month)
            ),
        ),
        (
            "one GPU each",
            format!(
                "{} × {}: {}",
                whole(document.whole_gpus),
                document.gpu,
                month_words(document.whole_usd_per_month)
            ),
        ),
    ]);
    text
}

/// Dollars of a month.
pub(crate) fn month_words(amount: Option<f64>) -> String {
    match amount {
        Some(amount) => format!("{} a month", usd(Some((amount * 1e6).round() as i64))),
        None => "price unknown: set it with --gpu-price".to_owned(),
    }
}
