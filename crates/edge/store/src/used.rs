//! How busy GPUs were while pods had them: by node and hour, as text.
//!
//! ```text
//! 0 17 300000000 240000000;0 18 150000000 0
//! ```
//! Each entry has its slot of five minutes in the hour, the number of the pod, the time that was
//! measured in milli-GPU × ms, and the part of it that was used: time × how busy. A reading
//! replaces the slots whose begin it covers; where it begins within a slot it adds to what is
//! there.

use std::collections::BTreeMap;

use dovetail_account::rollup::HOUR_MS;
use sqlx::AnyConnection;

use crate::error::Failure;
use crate::names::Numbers;
use crate::reading::{Reading, USED_SLOT_MS};
use crate::statements::{ColumnValue, insert, number, read, text};

/// Measured and used time by slot and pod.
pub(crate) type Slots = BTreeMap<(u64, u32), (i64, i64)>;

/// Writes what a reading says of an hour.
pub(crate) async fn write(
    connection: &mut AnyConnection,
    (cluster, hour): (i64, u64),
    numbers: &Numbers,
    reading: &Reading,
) -> Result<(), Failure> {
    let key = || vec![ColumnValue::Number(cluster), ColumnValue::Number(hour as i64)];
    let mut later: BTreeMap<i64, Slots> = BTreeMap::new();
    let hour = hour * HOUR_MS..(hour + 1) * HOUR_MS;
    for used in reading.used.iter().filter(|used| hour.contains(&used.slot_ms)) {
        let slots = later.entry(i64::from(numbers.nodes[used.node])).or_default();
        let slot = (used.slot_ms - hour.start) / USED_SLOT_MS;
        let amounts = slots.entry((slot, numbers.pods[used.pod])).or_default();
        amounts.0 = amounts.0.saturating_add(used.measured_gpu_milli_ms);
        amounts.1 = amounts.1.saturating_add(used.used_gpu_milli_ms);
    }
    if later.is_empty() {
        return Ok(());
    }
    let sql = "SELECT node, slots FROM used WHERE cluster = $1 AND hour_number = $2";
    let mut known: BTreeMap<i64, Slots> = BTreeMap::new();
    for row in read(connection, sql, key()).await? {
        known.insert(number(&row, 0)?, decoded(&text(&row, 1)?)?);
    }
    let is_covered = |slot: u64| {
        let begin_ms = hour.start + slot * USED_SLOT_MS;
        (reading.span.from_ms..reading.span.to_ms).contains(&begin_ms)
    };
    let mut cells = Vec::new();
    for (node, slots) in later {
        let mut all = known.remove(&node).unwrap_or_default();
        all.retain(|(slot, _), _| !is_covered(*slot));
        for (key, (measured, used)) in slots {
            let amounts = all.entry(key).or_default();
            amounts.0 = amounts.0.saturating_add(measured);
            amounts.1 = amounts.1.saturating_add(used);
        }
        cells.extend(key());
        cells.extend([node.into(), ColumnValue::Text(encoded(&all))]);
    }
    let head = "INSERT INTO used (cluster, hour_number, node, slots)";
    let tail = " ON CONFLICT (cluster, hour_number, node) DO UPDATE SET slots = excluded.slots";
    Ok(insert(connection, head, 4, tail, cells).await?)
}

fn encoded(slots: &Slots) -> String {
    let entry = |((slot, pod), (measured, used)): (&(u64, u32), &(i64, i64))| {
        format!("{slot} {pod} {measured} {used}")
    };
    slots.iter().map(entry).collect::<Vec<_>>().join(";")
}

pub(crate) fn decoded(text: &str) -> Result<Slots, Failure> {
    let entry = |entry: &str| {
        let mut words = entry.split(' ');
        let key = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let amounts = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        words.next().is_none().then_some((key, amounts))
    };
    let slots: Option<Slots> = text.split(';').map(entry).collect();
    slots.ok_or_else(|| Failure::Damaged(format!("`{text}` is not GPU usage")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_anything_else_is_damage() {
        let slots = Slots::from([((0, 17), (300_000_000, 240_000_000)), ((11, 1), (1, 0))]);
        let text = encoded(&slots);
        assert_eq!(text, "0 17 300000000 240000000;11 1 1 0");
        assert_eq!(decoded(&text).ok(), Some(slots));
        for text in ["", "0", "0 1 2", "0 1 2 x", "0 1 2 3 4", "0 1 2 3;"] {
            assert!(decoded(text).is_err(), "{text}");
        }
    }
}
