//! A world in one file: instances in use on each GPU, and pending pods by profile.
//!
//! `{"gpus": [[["1g.5gb", 5], ["2g.10gb", 2]], []], "demand": {"1g.5gb": 13}, "model":
//! "A100-40GB"}`; without a model it is the first whose table has all profiles. Results of other
//! planners may be beside them.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use dovetail_console::plain::plain_sentence;
use dovetail_model::MigTable;
use dovetail_partition::{Change, Demand, Gpu, Instance, PartitionInput, WorldError};
use dovetail_settings::errors::BadInput;
use dovetail_units::place::{FilePosition, bad_json};
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::field_line::line_at;
use crate::fleet::{Fleet, model_of};

/// The name of the nodes of a world without nodes.
const NODE: &str = "world";

/// Keys that are read.
const KEYS: [&str; 3] = ["gpus", "demand", "model"];
/// Keys of published worlds: how they were made, and what other planners found.
const RESULTS: [&str; 8] = [
    "mix",
    "fill",
    "seed",
    "free_compute_slices",
    "nos_accepted",
    "nos_created",
    "nos_destroyed",
    "found_accepted",
];
/// More results start so.
const BOUND: &str = "upper_bound";

/// Most pods of one profile.
const MOST_PODS: u32 = 1_000_000;

#[derive(Deserialize)]
struct WorldJson {
    gpus: Vec<Vec<(String, u8)>>,
    #[serde(deserialize_with = "once")]
    demand: BTreeMap<String, u32>,
    model: Option<String>,
}

/// Pods by profile; a profile that is named twice is refused, and so is a number of pods beyond
/// [`MOST_PODS`].
fn once<'de, D: Deserializer<'de>>(input: D) -> Result<BTreeMap<String, u32>, D::Error> {
    struct Counts;
    impl<'de> Visitor<'de> for Counts {
        type Value = BTreeMap<String, u32>;

        fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str("a number of pods for each profile")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut counts = BTreeMap::new();
            while let Some((profile, count)) = map.next_entry::<String, u32>()? {
                if count > MOST_PODS {
                    let told = format!("{profile}: {count} pods: expected at most {MOST_PODS}");
                    return Err(A::Error::custom(told));
                }
                if counts.contains_key(&profile) {
                    return Err(A::Error::custom(format!("{profile} is listed twice")));
                }
                counts.insert(profile, count);
            }
            Ok(counts)
        }
    }
    input.deserialize_map(Counts)
}

/// A field, as keys and numbers on the way to it, and what is wrong with it.
type Wrong = (Vec<String>, String);

/// The words for a field: ``field `gpus[0][1]` ``. A profile is the last key.
fn named(keys: &[String]) -> String {
    match keys {
        [first, numbers @ ..] if first == "gpus" => {
            let numbers: String = numbers.iter().map(|number| format!("[{number}]")).collect();
            format!("field `{first}{numbers}`")
        }
        _ => format!("field `{}`", keys.first().map_or("", String::as_str)),
    }
}

/// # Errors
/// The first key that means nothing.
fn check_keys(text: &str) -> Result<(), Wrong> {
    let keys: BTreeMap<String, IgnoredAny> =
        serde_json::from_str(text).map_err(|error| (Vec::new(), error.to_string()))?;
    let is_known = |key: &&String| {
        KEYS.contains(&&***key) || RESULTS.contains(&&***key) || key.starts_with(BOUND)
    };
    match keys.keys().find(|key| !is_known(key)) {
        Some(key) => {
            let why = format!("unknown field `{key}`: expected {}", KEYS.join(", "));
            Err((vec![key.clone()], why))
        }
        None => Ok(()),
    }
}

/// Reads a world.
///
/// # Errors
/// A file that cannot be read, or a field with what it must be.
pub fn read(path: &Path, tables: &[MigTable]) -> Result<Fleet> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{}: cannot be read", path.display()))?;
    let name = path.display().to_string();
    let wrong = |(keys, problem): Wrong| {
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let place = FilePosition::line(&name, line_at(&text, true, &keys));
        BadInput(plain_sentence(&format!("{place}: {problem}")))
    };
    if text.trim_start().starts_with('[') {
        let problem = "a list: write each world to a separate file".to_owned();
        return Err(wrong((Vec::new(), problem)).into());
    }
    let mut json = serde_json::Deserializer::from_str(&text);
    let world: WorldJson = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        // Without a field, the text itself is wrong, or lacks one.
        let what = match (error.path().to_string().as_str(), error.inner().is_data()) {
            ("." | "?", true) => "not a world".to_owned(),
            ("." | "?", false) => "invalid JSON".to_owned(),
            (field, _) => format!("field `{field}`"),
        };
        BadInput(plain_sentence(&bad_json(&name, 1, &what, &error.into_inner().to_string())))
    })?;
    let after =
        |error: serde_json::Error| bad_json(&name, 1, "text after the world", &error.to_string());
    json.end().map_err(|error| BadInput(after(error)))?;
    check_keys(&text).map_err(wrong)?;
    fleet(world, tables).map_err(|problem| wrong(problem).into())
}

/// The model of a world and its table: the first that has all profiles, unless the file says more.
fn model<'t>(world: &WorldJson, tables: &'t [MigTable]) -> Result<(String, &'t MigTable), Wrong> {
    let names = world.gpus.iter().flatten().map(|(name, _)| name).chain(world.demand.keys());
    let names: Vec<&String> = names.collect();
    let has_all = |table: &&MigTable| names.iter().all(|name| table.named(name, tables).is_some());
    if let Some(model) = &world.model {
        return model_of(tables, model).ok_or_else(|| {
            let why = format!(
                "field `model`: the MIG profiles of `{model}` are unknown; check the name, or \
                 describe it under `[[mig.table]]` in dovetail.toml"
            );
            (vec!["model".to_owned()], why)
        });
    }
    let found = tables.iter().find(has_all).map(|table| (table.name.clone(), table));
    found.ok_or_else(|| {
        let why = "no known GPU model has all profiles in this file: correct the profile names, or \
                   describe the model under `[[mig.table]]` in dovetail.toml";
        (Vec::new(), why.to_owned())
    })
}

fn fleet(world: WorldJson, tables: &[MigTable]) -> Result<Fleet, Wrong> {
    let (model, table) = model(&world, tables)?;
    let place = |name: &str, keys: &[&str]| {
        table.named(name, tables).ok_or_else(|| {
            let keys: Vec<String> = keys.iter().copied().map(str::to_owned).collect();
            let why = format!("{}: {} has no profile `{name}`", named(&keys), table.name);
            (keys, why)
        })
    };
    let mut gpus = Vec::new();
    for (number, held) in world.gpus.iter().enumerate() {
        let held = held.iter().enumerate().map(|(slot, (name, start))| {
            let profile = place(name, &["gpus", &number.to_string(), &slot.to_string()])?;
            Ok(Instance { profile, start: *start })
        });
        let held = held.collect::<Result<Vec<Instance>, Wrong>>()?;
        let (idle, change) = (Vec::new(), Change::Idle);
        gpus.push(Gpu { table: 0, pool: 0, is_whole: false, held, idle, change });
    }
    let demand = world.demand.iter().map(|(name, count)| {
        let profile = place(name, &["demand", name])?;
        let profile = table.profiles[profile].name.clone();
        let (priority, waiting_ms, pools) = (0, i64::MAX, None);
        Ok(Demand { profile, count: *count, priority, waiting_ms, pools })
    });
    let demand = demand.collect::<Result<Vec<Demand>, Wrong>>()?;
    let names = (0..gpus.len()).map(|number| (NODE.to_owned(), number)).collect();
    let starts_known = vec![true; gpus.len()];
    let models = vec![model; gpus.len()];
    let world = PartitionInput { tables: vec![table.clone()], gpus, demand };
    world.check().map_err(|error| {
        let (WorldError::Impossible { gpu, .. }
        | WorldError::Unknown { gpu }
        | WorldError::Whole { gpu }) = &error;
        let keys = vec!["gpus".to_owned(), gpu.to_string()];
        let why = format!("{}: {error}", named(&keys));
        (keys, why)
    })?;
    let gpus = models.len();
    Ok(Fleet { world, names, models, starts_known, gpus, ..Fleet::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_whole_behind_a_long_path() {
        let name = format!("dovetail-world-{}-{}", std::process::id(), "x".repeat(200));
        let file = std::env::temp_dir().join(name);
        std::fs::write(&file, r#"{"gpus": [], "demand": {"9g.99gb": 1}}"#).expect("a file");
        let tables: Vec<MigTable> = MigTable::all().collect();
        let refused = read(&file, &tables).expect_err("no such profile").to_string();
        std::fs::remove_file(&file).expect("it is there");
        assert!(refused.ends_with("under `[[mig.table]]` in dovetail.toml"), "{refused}");
    }
}
