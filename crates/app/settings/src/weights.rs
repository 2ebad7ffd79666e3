//! Weights of order `dovetail` as files give them: the fields that differ from a preset. The file
//! for `--weights` and the table `[scheduler.weights]` of the settings file are the same.

use std::collections::BTreeMap;

use dovetail_order::{ModelWeights, PRESETS, QueueTurns, Turns};
use dovetail_units::duration::parse_duration;
use serde::de::{Deserialize, Deserializer, Error};

/// The preset where none is named.
const DEFAULT: &str = PRESETS[0].0;
/// The largest weight, and the largest factor. Standings end at what 64 bits count: with weights of
/// a million, those of large jobs reach it and are the same.
const MOST: f64 = 1e3;

/// Weights as written; a field that is left out has the value of the preset.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Weights {
    #[serde(deserialize_with = "preset")]
    preset: Option<Turns>,
    /// In thousandths, as are the two below.
    #[serde(deserialize_with = "thousandths")]
    size: Option<u32>,
    #[serde(deserialize_with = "thousandths")]
    run_time: Option<u32>,
    #[serde(deserialize_with = "thousandths")]
    age: Option<u32>,
    preempts: Option<bool>,
    /// In hundredths.
    #[serde(deserialize_with = "factor")]
    advantage: Option<u32>,
    queues: Option<QueueTurns>,
    #[serde(deserialize_with = "seconds")]
    half_life: Option<u32>,
    #[serde(deserialize_with = "seconds")]
    reclaim_within: Option<u32>,
    #[serde(deserialize_with = "seconds")]
    respite: Option<u32>,
    protect_guarantees: Option<bool>,
    /// What a GPU of a model counts in the usage of queues, in thousandths.
    #[serde(deserialize_with = "by_model")]
    weight_by_model: ModelWeights,
}

impl Weights {
    /// The weights that an engine gets: those written here, the others of the preset. A preset
    /// named here replaces the one that is passed; without either, the default preset applies.
    pub fn turns(&self, preset: Option<&str>) -> Turns {
        let passed = || Turns::preset(preset.unwrap_or(DEFAULT));
        let base = self.preset.or_else(passed).unwrap_or_default();
        Turns {
            size: self.size.unwrap_or(base.size),
            run_time: self.run_time.unwrap_or(base.run_time),
            age: self.age.unwrap_or(base.age),
            preempts: self.preempts.unwrap_or(base.preempts),
            advantage: self.advantage.unwrap_or(base.advantage),
            queues: self.queues.unwrap_or(base.queues),
            half_life_s: self.half_life.unwrap_or(base.half_life_s),
            reclaim_within_s: self.reclaim_within.unwrap_or(base.reclaim_within_s),
            respite_s: self.respite.unwrap_or(base.respite_s),
            protects_guarantees: self.protect_guarantees.unwrap_or(base.protects_guarantees),
            ..base
        }
    }

    /// What GPUs of some models count in the usage of queues.
    pub fn model_weights(&self) -> ModelWeights {
        self.weight_by_model.clone()
    }
}

fn by_model<'de, D: Deserializer<'de>>(value: D) -> Result<ModelWeights, D::Error> {
    let written = BTreeMap::<String, f64>::deserialize(value)?;
    // Without a name, GPUs of no known model would weigh more than the cluster has of them.
    let weight = |(model, weight): (String, f64)| match (0.001..=MOST).contains(&weight) {
        _ if model.is_empty() => Err(D::Error::custom("``: expected the name of a GPU model")),
        true => Ok((model, (weight * 1e3).round() as u32)),
        false => Err(D::Error::custom(format!(
            "{model}: `{weight}`: expected a number from 0.001 to {MOST}"
        ))),
    };
    written.into_iter().map(weight).collect::<Result<_, _>>().map(ModelWeights)
}

fn preset<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Turns>, D::Error> {
    let name = String::deserialize(value)?;
    let known = || PRESETS.map(|(name, ..)| name).join(", ");
    let unknown = || D::Error::custom(format!("`{name}`: expected {}", known()));
    Turns::preset(&name).ok_or_else(unknown).map(Some)
}

/// Reads what is at least `least` and at most [`MOST`], times `parts`, to the nearest integer.
fn number<'de, D: Deserializer<'de>>(
    value: D,
    least: f64,
    parts: f64,
) -> Result<Option<u32>, D::Error> {
    let written = f64::deserialize(value)?;
    if (least..=MOST).contains(&written) {
        return Ok(Some((written * parts).round() as u32));
    }
    Err(D::Error::custom(format!("`{written}`: expected a number from {least} to {MOST}")))
}

fn thousandths<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u32>, D::Error> {
    number(value, 0.0, 1e3)
}

fn factor<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u32>, D::Error> {
    number(value, 1.0, 1e2)
}

fn seconds<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u32>, D::Error> {
    let ms = parse_duration(&String::deserialize(value)?).map_err(D::Error::custom)?;
    Ok(Some(u32::try_from(ms / 1_000).unwrap_or(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toml_file::TomlFile;

    #[test]
    fn weights_change_a_preset_and_are_refused_with_line_and_field() {
        let of = |text: &str| {
            let written = TomlFile::of("w.toml", text).parse::<Weights>("weights");
            written.map(|weights| weights.turns(Some("cost"))).map_err(|e| e.to_string())
        };
        let text = "preset = \"latency\"\nage = 0.05\nadvantage = 2.5\nqueues = \"fair-tree\"\n\
                    halfLife = \"1d\"\nreclaimWithin = \"2m\"\nrespite = \"8h\"\nprotectGuarantees = true\n";
        let expected = Turns {
            age: 50,
            advantage: 250,
            queues: QueueTurns::FairTree,
            half_life_s: 86_400,
            reclaim_within_s: 120,
            respite_s: 28_800,
            protects_guarantees: true,
            ..Turns::preset("latency").expect("a preset")
        };
        assert_eq!(of(text), Ok(expected));
        let cost = Turns::preset("cost").expect("a preset");
        assert_eq!(of("size = 2"), Ok(Turns { size: 2_000, ..cost }));
        let by_model = |text: &str| {
            let written = TomlFile::of("w.toml", text).parse::<Weights>("weights");
            written.map(|weights| weights.model_weights().0).map_err(|e| e.to_string())
        };
        let models = "size = 1\nweightByModel = { H100 = 4, T4 = 0.5 }\n";
        let expected = [("H100", 4_000), ("T4", 500)].map(|(model, of)| (model.to_owned(), of));
        assert_eq!(by_model(models), Ok(expected.into()));
        let error = by_model(&models.replace("T4", "\"\"")).expect_err("no name");
        assert!(error.starts_with("w.toml:2: weightByModel: ``: expected the name"), "{error}");
        let error = by_model(&models.replace("0.5", "0")).expect_err("a weight of nothing");
        assert!(error.starts_with("w.toml:2: weightByModel: T4: `0`: expected"), "{error}");
        let error = by_model(&models.replace("= 4", "= 1001")).expect_err("a large weight");
        assert!(error.starts_with("w.toml:2: weightByModel: H100: `1001`: expected"), "{error}");
        assert_eq!(Weights::default().turns(None), Turns::preset("fair").expect("a preset"));
        for (from, to, told) in [
            ("latency", "quick", "w.toml:1: preset: `quick`: expected fair, throughput"),
            ("0.05", "-1", "w.toml:2: age: `-1`: expected a number from 0 to 1000"),
            ("0.05", "1000.5", "w.toml:2: age: `1000.5`: expected a number from 0 to 1000"),
            ("0.05", "nan", "w.toml:2: age: `NaN`: expected a number from 0 to 1000"),
            ("2.5", "inf", "w.toml:3: advantage: `inf`: expected a number from 1 to 1000"),
            ("2.5", "0.5", "w.toml:3: advantage: `0.5`: expected a number from 1"),
            ("fair-tree", "tree", "w.toml:4: queues: unknown variant `tree`"),
            ("\"1d\"", "\"1\"", "w.toml:5: halfLife: `1` is not a duration"),
            ("\"2m\"", "\"x\"", "w.toml:6: reclaimWithin: `x` is not a duration"),
            ("\"8h\"", "\"8\"", "w.toml:7: respite: `8` is not a duration"),
            ("= true", "= 1", "w.toml:8: protectGuarantees: `1`: expected true or false"),
            ("\nage", "\nold", "w.toml:2: old: unknown field `old`"),
            ("\nage", "\npreset = \"fair\"\nage", "w.toml:2: preset: duplicate key"),
        ] {
            let error = of(&text.replace(from, to)).expect_err(told);
            assert!(error.starts_with(told), "{error}");
        }
    }
}
