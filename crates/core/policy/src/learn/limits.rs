//! What numbers of a written [`Learnt`] may be, so that no sum or product of them overflows.
//! Whatever an engine learns is far below.

use std::collections::BTreeSet;

use thiserror::Error;

use crate::learn::histogram::{MOST_AT_ONCE, PodKind};
use crate::learn::{Learnt, ONE, STEADY};

/// Counts, masses and versions.
const MOST_COUNTED: i128 = 1 << 53;
/// Run times added up, in ms.
const MOST_RAN_MS: i128 = 1 << 58;
/// Amounts of CPU, memory and other resources.
const MOST_ASKED: i128 = 1 << 60;
/// Memory of a device, in bytes.
const MOST_DEVICE_MEMORY: i128 = 1 << 46;
const MOST_DEVICES: i128 = u16::MAX as i128;
const MOST_NODES: i128 = 1 << 20;
/// Devices of all nodes.
const MOST_SUPPLY: i128 = 1 << 32;

/// A number of what was learnt is none that an engine learns.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LearntError {
    #[error("{field} is {value}, expected {least} to {most}")]
    Beyond { field: String, value: i128, least: i128, most: i128 },
    #[error("histogram.masses has {kind} twice")]
    Twice { kind: String },
    #[error("histogram.ends has {ends} entries, more than histogram.masses ({kinds})")]
    EndsOfNoKind { ends: usize, kinds: usize },
}

/// Whether a number is from 0 to `most`.
fn within(field: &str, value: impl Into<i128>, most: i128) -> Result<(), LearntError> {
    between(field, value.into(), 0, most)
}

fn between(field: &str, value: i128, least: i128, most: i128) -> Result<(), LearntError> {
    match (least..=most).contains(&value) {
        true => Ok(()),
        false => Err(LearntError::Beyond { field: field.to_owned(), value, least, most }),
    }
}

impl Learnt {
    /// Whether these are numbers that an engine could have learnt.
    ///
    /// # Errors
    /// The first number that is beyond its limits, with its field and its limits.
    pub fn check(&self) -> Result<(), LearntError> {
        within("version", self.version, MOST_COUNTED)?;
        within("turnover", self.turnover, STEADY.into())?;
        self.check_histogram()?;
        for (field, shares) in [("shares", &self.shares), ("gpu_time", &self.gpu_time)] {
            for (kind, share) in shares {
                check_kind(field, kind)?;
                within(field, *share, ONE.into())?;
            }
        }
        self.order.iter().try_for_each(|kind| check_kind("order", kind))?;
        self.in_use.values().try_for_each(|share| within("in_use", *share, ONE.into()))?;
        self.check_supply()
    }

    fn check_histogram(&self) -> Result<(), LearntError> {
        let (arrivals, checked) = self.histogram.counts();
        within("histogram.arrivals", arrivals, MOST_COUNTED)?;
        // One arrival more may come before the next check.
        let least = i128::from(arrivals.saturating_sub(u64::from(MOST_AT_ONCE)));
        between("histogram.checked", checked.into(), least, arrivals.into())?;
        let mut seen = BTreeSet::new();
        for (kind, mass) in self.histogram.masses() {
            check_kind("histogram.masses", kind)?;
            within("a mass of histogram.masses", mass, MOST_COUNTED)?;
            if !seen.insert(kind) {
                return Err(LearntError::Twice { kind: kind.to_string() });
            }
        }
        let (ends, kinds) = (self.histogram.ends().count(), seen.len());
        if ends > kinds {
            return Err(LearntError::EndsOfNoKind { ends, kinds });
        }
        for (mass, ran_ms) in self.histogram.ends() {
            within("histogram.ends.mass", mass, MOST_COUNTED)?;
            within("histogram.ends.ran_ms", ran_ms, MOST_RAN_MS)?;
        }
        Ok(())
    }

    fn check_supply(&self) -> Result<(), LearntError> {
        let supply = &self.supply;
        for milli in supply.milli_by_model.values() {
            within("supply.milli_by_model", *milli, 1_000 * MOST_SUPPLY)?;
        }
        within("supply.cpu_milli_per_gpu", supply.cpu_milli_per_gpu, MOST_ASKED)?;
        within("supply.memory_bytes_per_gpu", supply.memory_bytes_per_gpu, MOST_ASKED)?;
        within("supply.largest_cpu_milli", supply.largest_cpu_milli, MOST_ASKED)?;
        within("supply.largest_gpu_count", supply.largest_gpu_count, MOST_DEVICES)?;
        let mut devices = 0;
        for (class, nodes) in &supply.classes {
            within("the nodes of supply.classes", *nodes, MOST_NODES)?;
            for amount in class.amounts() {
                within("supply.classes", amount, i64::MAX.into())?;
            }
            for memory in class.device_memory_bytes.values() {
                within("supply.classes.device_memory_bytes", *memory, MOST_DEVICE_MEMORY)?;
            }
            for count in class.devices.values() {
                within("supply.classes.devices", *count, MOST_DEVICES)?;
            }
            let of_node: i128 = class.devices.values().map(|count| i128::from(*count)).sum();
            within("the devices of a node of supply.classes", of_node, MOST_DEVICES)?;
            devices += of_node * i128::from(*nodes);
            within("all devices of supply.classes", devices, MOST_SUPPLY)?;
        }
        Ok(())
    }
}

fn check_kind(of: &str, kind: &PodKind) -> Result<(), LearntError> {
    let check = |name: &str, value: i64, most| within(&format!("{of}: {name}"), value, most);
    check("gpu_milli", kind.gpu_milli, 1_000)?;
    check("cpu_milli", kind.cpu_milli, MOST_ASKED)?;
    check("memory_bytes", kind.memory_bytes, MOST_ASKED)?;
    check("device_memory_bytes", kind.device_memory_bytes, MOST_ASKED)?;
    check("min_device_memory_bytes", kind.min_device_memory_bytes, MOST_ASKED)?;
    check("ephemeral_bytes", kind.ephemeral_bytes, MOST_ASKED)?;
    kind.extended.iter().try_for_each(|(name, amount)| check(name, *amount, MOST_ASKED))
}

#[cfg(test)]
mod tests {
    use dovetail_model::{DeviceRequest, Requirement};
    use serde_json::{Value, json};

    use super::*;

    /// A value with numbers in every list.
    fn full() -> Value {
        let requirement = Requirement {
            device: DeviceRequest::Whole { count: 2, same_island: false },
            ..Requirement::default()
        };
        let kind = PodKind::of(&requirement);
        let (pod, one) = (json!(kind), json!({"A100": 8}));
        json!({
            "version": 3, "turnover": 8, "order": [pod], "in_use": {"A100": 1 << 19},
            "shares": [[pod, 1 << 20]], "gpu_time": [[pod, 1 << 20]],
            "histogram": {"arrivals": 300, "checked": 256, "masses": [[pod, 1_u64 << 40]],
                "ends": [{"mass": 1_u64 << 40, "ran_ms": 60_000}]},
            "supply": {"milli_by_model": {"A100": 8_000}, "cpu_milli_per_gpu": 12_000,
                "memory_bytes_per_gpu": 1_i64 << 36, "largest_cpu_milli": 96_000,
                "largest_gpu_count": 8, "classes": [[{"cpu_milli": 96_000,
                    "memory_bytes": 1_i64 << 39, "devices": one,
                    "device_memory_bytes": {"A100": 1_i64 << 36}, "ephemeral_bytes": 0,
                    "extended": {"rdma": 1}}, 1]]},
        })
    }

    /// Every place of a number, as a JSON pointer.
    fn numbers(value: &Value, at: &str, found: &mut Vec<String>) {
        match value {
            Value::Number(_) => found.push(at.to_owned()),
            Value::Array(all) => {
                for (place, one) in all.iter().enumerate() {
                    numbers(one, &format!("{at}/{place}"), found);
                }
            }
            Value::Object(all) => {
                for (name, one) in all {
                    numbers(one, &format!("{at}/{name}"), found);
                }
            }
            _ => {}
        }
    }

    #[test]
    fn whatever_one_number_is_it_is_refused_or_works() {
        let full = full();
        let learnt: Learnt = serde_json::from_value(full.clone()).expect("a whole value");
        assert_eq!(learnt.check(), Ok(()));
        let mut places = Vec::new();
        numbers(&full, "", &mut places);
        assert!(places.len() >= 50, "{places:?}");
        let mut refused = 0;
        for place in &places {
            let extremes = [json!(-1), json!(1_u64 << 53), json!(i64::MAX), json!(u64::MAX)];
            for extreme in extremes {
                let mut other = full.clone();
                *other.pointer_mut(place).expect("a number") = extreme;
                let Ok(mut learnt) = serde_json::from_value::<Learnt>(other) else { continue };
                if learnt.check().is_err() {
                    refused += 1;
                    continue;
                }
                // It works: nothing overflows, which would panic here.
                learnt.histogram.add(learnt.order[0].clone(), u32::MAX);
                learnt.histogram.check();
                let _ = (learnt.histogram.shares(), learnt.histogram.gpu_time_shares());
                let _ = (learnt.histogram.ended(), learnt.supply.scarcity(&learnt.order[0]));
            }
        }
        assert!(refused > 60, "{refused}");
    }
}
