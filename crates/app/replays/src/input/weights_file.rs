//! Weights of order `dovetail`: a preset, or a file of one's own.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use dovetail_order::{PRESETS, QueueTurns, Turns};
use dovetail_settings::toml_file::TomlFile;
use dovetail_units::duration::parse_duration;
use serde::Deserialize;
use toml::Spanned;

/// The preset where none is named.
const DEFAULT: &str = PRESETS[0].0;

/// Flags as written.
#[derive(Clone, Debug, Default, Args)]
pub struct WeightFlags {
    /// timed: objective of --order dovetail [default: fair]
    #[arg(long, value_name = "NAME", value_parser = names())]
    pub preset: Option<String>,
    /// timed: TOML file with custom weights for --order dovetail
    #[arg(long, value_name = "FILE", conflicts_with = "preset")]
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

    /// What they say.
    pub fn turns(&self) -> Result<Turns> {
        if let Some(path) = &self.weights {
            return read(&TomlFile::read(path)?);
        }
        let preset = Turns::preset(self.preset.as_deref().unwrap_or(DEFAULT));
        Ok(preset.unwrap_or_default())
    }

    /// What is read, by flag.
    pub fn file(&self) -> (&'static str, Option<&Path>) {
        ("--weights", self.weights.as_deref())
    }
}

/// Weights as written; what is left out is as the preset says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Weights {
    preset: Option<Spanned<String>>,
    size: Option<Spanned<f64>>,
    run_time: Option<Spanned<f64>>,
    age: Option<Spanned<f64>>,
    preempts: Option<bool>,
    advantage: Option<Spanned<f64>>,
    queues: Option<QueueTurns>,
    half_life: Option<Spanned<String>>,
    respite: Option<Spanned<String>>,
}

fn read(file: &TomlFile) -> Result<Turns> {
    let written: Weights = file.parse("weights")?;
    let at = |field: &str, start: usize, what: &str| file.error(start, &format!("{field}: {what}"));
    let base = match &written.preset {
        None => Turns::preset(DEFAULT),
        Some(name) => match Turns::preset(name.get_ref()) {
            Some(turns) => Some(turns),
            None => {
                let known: Vec<&str> = PRESETS.iter().map(|(name, ..)| *name).collect();
                let what = format!("`{}`: expected {}", name.get_ref(), known.join(", "));
                return Err(at("preset", name.span().start, &what).into());
            }
        },
    };
    let base = base.unwrap_or_default();
    // Weights in thousandths, the advantage in hundredths.
    let number = |field: &str, value: &Option<Spanned<f64>>, least: f64, parts: f64, otherwise| {
        let Some(value) = value else { return Ok(otherwise) };
        let written = *value.get_ref();
        if (least..=1e6).contains(&written) {
            return Ok((written * parts).round() as u32);
        }
        Err(file.value_error(field, value, &format!("a number from {least} to 1000000")))
    };
    let seconds = |field: &str, text: &Option<Spanned<String>>, otherwise| -> Result<u32> {
        let Some(text) = text else { return Ok(otherwise) };
        let ms = parse_duration(text.get_ref());
        let ms = ms.map_err(|what| at(field, text.span().start, &what))?;
        Ok(u32::try_from(ms / 1_000).unwrap_or(u32::MAX))
    };
    Ok(Turns {
        size: number("size", &written.size, 0.0, 1e3, base.size)?,
        run_time: number("runTime", &written.run_time, 0.0, 1e3, base.run_time)?,
        age: number("age", &written.age, 0.0, 1e3, base.age)?,
        preempts: written.preempts.unwrap_or(base.preempts),
        advantage: number("advantage", &written.advantage, 1.0, 1e2, base.advantage)?,
        queues: written.queues.unwrap_or(base.queues),
        half_life_s: seconds("halfLife", &written.half_life, base.half_life_s)?,
        respite_s: seconds("respite", &written.respite, base.respite_s)?,
        ..base
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_change_a_preset_and_are_refused_with_line_and_field() {
        let of = |text: &str| read(&TomlFile::of("w.toml", text)).map_err(|e| e.to_string());
        let text = "preset = \"latency\"\nage = 0.05\nadvantage = 2.5\nqueues = \"fair-tree\"\n\
                    halfLife = \"1d\"\nrespite = \"8h\"\n";
        let expected = Turns {
            age: 50,
            advantage: 250,
            queues: QueueTurns::FairTree,
            half_life_s: 86_400,
            respite_s: 28_800,
            ..Turns::preset("latency").expect("a preset")
        };
        assert_eq!(of(text), Ok(expected));
        assert_eq!(of(""), Ok(Turns::preset("fair").expect("a preset")));
        for (from, to, told) in [
            ("latency", "quick", "w.toml:1: preset: `quick`: expected fair, throughput"),
            ("0.05", "-1", "w.toml:2: age: `-1`: expected a number from 0"),
            ("2.5", "0.5", "w.toml:3: advantage: `0.5`: expected a number from 1"),
            ("fair-tree", "tree", "w.toml:4: queues: unknown variant `tree`"),
            ("\"1d\"", "\"1\"", "w.toml:5: halfLife: `1` is not a duration"),
            ("\"8h\"", "\"8\"", "w.toml:6: respite: `8` is not a duration"),
            ("\nage", "\nold", "w.toml:2: old: unknown field `old`"),
        ] {
            let error = of(&text.replace(from, to)).expect_err(told);
            assert!(error.starts_with(told), "{error}");
        }
    }
}
