//! Flags of `--protocol slices`.

use std::ops::RangeInclusive;

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use dovetail_model::{MigTable, canonical_gpu_model};
use dovetail_settings::errors::UsageError;
use dovetail_sim::slices::{MIXES, Mix, Moves};
use dovetail_units::duration::parse_duration;

use crate::commands::partition::{models_with_mig, sizes_of};

/// The mixes, for the command line.
fn mix_names() -> PossibleValuesParser {
    PossibleValuesParser::new(MIXES.map(|mix| PossibleValue::new(mix.name).help(mix.about)))
}

#[derive(Clone, Debug, Args)]
pub(crate) struct SlicesFlags {
    /// slices: model of all GPUs, such as A100-40GB [required with slices]
    #[arg(long, value_name = "MODEL", required_if_eq("protocol", "slices"))]
    gpu: Option<String>,
    /// slices: which sizes pods request [required with slices]
    #[arg(
        long,
        value_name = "NAME",
        value_parser = mix_names(),
        required_if_eq("protocol", "slices")
    )]
    mix: Option<String>,
    /// slices: mean number of requested compute slices, divided by the number of compute slices of
    /// all GPUs, 0.001 to 10, such as 0.9 [required with slices]
    #[arg(long, value_name = "RATIO", required_if_eq("protocol", "slices"))]
    load: Option<f64>,
    /// slices: number of pods; the first quarter is a warm-up [default: 3000]
    #[arg(long, value_name = "N")]
    requests: Option<u32>,
    /// slices: limit on GPU time lost to moving pods, as a percentage of the GPU time served
    /// [default: 0]
    #[arg(long, value_name = "PERCENT")]
    moves: Option<f64>,
    /// slices: downtime of a pod that is moved [default: 3m]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    move_cost: Option<u64>,
}

/// Requests where none are said.
const REQUESTS: u32 = 3_000;
/// Most requests of a run.
const MOST_REQUESTS: u32 = 10_000_000;
/// Loads of a run. With much smaller ones, requests arrive later than a clock can count.
const LOADS: RangeInclusive<f64> = 0.001..=10.0;
/// What a move costs where nothing is said.
const MOVE_COST_MS: u64 = 180_000;

/// The flags, checked.
#[derive(Clone, Debug)]
pub(crate) struct Slices {
    /// Model of all GPUs; another one may be cut alike.
    pub(crate) model: String,
    pub(crate) table: MigTable,
    pub(crate) mix: Mix,
    pub(crate) load: f64,
    pub(crate) requests: usize,
    pub(crate) moves: Moves,
}

impl SlicesFlags {
    /// The first flag that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--gpu", self.gpu.is_some()),
            ("--mix", self.mix.is_some()),
            ("--load", self.load.is_some()),
            ("--requests", self.requests.is_some()),
            ("--moves", self.moves.is_some()),
            ("--move-cost", self.move_cost.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }

    /// What they say.
    pub(crate) fn read(&self) -> Result<Slices> {
        let refuse = |text: String| anyhow::Error::from(UsageError(text));
        let model = self.gpu.as_deref().unwrap_or_default();
        let tables: Vec<MigTable> = MigTable::all().collect();
        if let [one, .., other] = &sizes_of(&tables, model)[..] {
            return Err(refuse(format!(
                "--gpu {model}: add its memory size, such as {one} or {other}"
            )));
        }
        let table = MigTable::of_model(model).ok_or_else(|| {
            let known = models_with_mig(&tables);
            refuse(format!("--gpu {model}: its MIG profiles are unknown; use one of {known}"))
        })?;
        let mix = self.mix.as_deref().and_then(Mix::named);
        let mix = mix.ok_or_else(|| refuse("--mix: unknown mix".to_owned()))?;
        let load = self.load.unwrap_or_default();
        if !LOADS.contains(&load) {
            let (least, most) = (LOADS.start(), LOADS.end());
            return Err(refuse(format!("--load {load}: expected {least} to {most}")));
        }
        let percent = self.moves.unwrap_or(0.0);
        if !(0.0..=100.0).contains(&percent) {
            return Err(refuse(format!("--moves {percent}: expected 0 to 100 percent")));
        }
        let requests = self.requests.unwrap_or(REQUESTS);
        if !(1..=MOST_REQUESTS).contains(&requests) {
            let text = format!("--requests {requests}: expected 1 to {MOST_REQUESTS}");
            return Err(refuse(text));
        }
        let cost_ms = self.move_cost.unwrap_or(MOVE_COST_MS);
        let moves = Moves { percent, cost_ms };
        let model = canonical_gpu_model(model);
        Ok(Slices { model, table, mix, load, requests: requests as usize, moves })
    }
}
