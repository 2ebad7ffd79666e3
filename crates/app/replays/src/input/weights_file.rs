//! Weights of order `dovetail`: a preset, a file that changes one, or both.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use dovetail_order::{ModelWeights, PRESETS, Turns};
use dovetail_settings::toml_file::TomlFile;
use dovetail_settings::weights::Weights;

/// Flags as written.
#[derive(Clone, Debug, Default, Args)]
pub struct WeightFlags {
    /// timed: objective of --order dovetail [default: fair]
    #[arg(long, value_name = "NAME", value_parser = names())]
    pub preset: Option<String>,
    /// timed: TOML file with weights that differ from the preset, for --order dovetail
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
}

fn names() -> PossibleValuesParser {
    let values = PRESETS.iter().map(|(name, help, _)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(values)
}

impl WeightFlags {
    /// The first of these flags that was given.
    pub fn given(&self) -> Option<&'static str> {
        let weights = self.weights.as_ref().map(|_| "--weights");
        self.preset.as_ref().map(|_| "--preset").or(weights)
    }

    /// What they say: the preset, changed by the file. A preset in the file replaces the flag.
    pub fn turns(&self) -> Result<(Turns, ModelWeights)> {
        let weights: Weights = match &self.weights {
            Some(path) => TomlFile::read(path)?.parse("weights")?,
            None => Weights::default(),
        };
        Ok((weights.turns(self.preset.as_deref()), weights.model_weights()))
    }

    /// What is read, by flag.
    pub fn file(&self) -> (&'static str, Option<&Path>) {
        ("--weights", self.weights.as_deref())
    }
}
