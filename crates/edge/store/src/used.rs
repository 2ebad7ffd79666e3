//! How busy GPUs were while pods had them: by node and hour, as text.
//!
//! ```text
//! 0 17 300000000 240000000;0 18 150000000 0
//! ```
//! Each entry has its slot of five minutes in the hour, the number of the pod, the time that was
//! measured in milli-GPU × ms, and the part of it that was used: time × how busy. A reading replaces
//! the slots whose begin it covers; where it begins within a slot it adds to what is there.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::cost::Paid;
use dovetail_account::device_time::{DeviceState, Work};
use dovetail_account::rollup::HOUR_MS;
use sqlx::AnyConnection;

use crate::codes::Codes;
use crate::error::{Failure, StoreError};
use crate::hour::{Place, UNPRICED};
use crate::names::Names;
use crate::reading::{Reading, USED_SLOT_MS};
use crate::rows::{Cell, insert, number, read, text};
use crate::store::{Store, known_cluster};
use crate::sums::{
    GROUP, HOLDER, Key, NODE, PAID, PARTY, PRICING, Question, Sum, SumRow, WORKLOAD, named,
};

/// Measured and used time by slot and pod.
type Slots = BTreeMap<(u64, u32), (i64, i64)>;

/// How busy the GPUs of pods were on average, told apart as the rows of [`Store::sums`] are.
#[derive(Clone, Debug)]
pub struct UsedRow {
    /// Who and where; its time is what was measured, and it has no costs.
    pub of: SumRow,
    /// The part that was used, in milli-GPU × ms.
    pub used_gpu_milli_ms: i128,
}

/// Writes what a reading says of an hour.
pub(crate) async fn write(
    connection: &mut AnyConnection,
    place: &Place<'_>,
    reading: &Reading,
) -> Result<(), Failure> {
    let mut later: BTreeMap<i64, Slots> = BTreeMap::new();
    let hour = place.hour_ms()..place.hour_ms() + HOUR_MS;
    for used in reading.used.iter().filter(|used| hour.contains(&used.slot_ms)) {
        let slots = later.entry(i64::from(place.numbers.nodes[used.node])).or_default();
        let slot = (used.slot_ms - hour.start) / USED_SLOT_MS;
        let amounts = slots.entry((slot, place.numbers.pods[used.pod])).or_default();
        amounts.0 = amounts.0.saturating_add(used.measured_gpu_milli_ms);
        amounts.1 = amounts.1.saturating_add(used.used_gpu_milli_ms);
    }
    if later.is_empty() {
        return Ok(());
    }
    let sql = "SELECT node, slots FROM used WHERE cluster = $1 AND hour_number = $2";
    let mut known: BTreeMap<i64, Slots> = BTreeMap::new();
    for row in read(connection, sql, place.key()).await? {
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
        cells.extend(place.key());
        cells.extend([node.into(), Cell::Text(encoded(&all))]);
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

fn decoded(text: &str) -> Result<Slots, Failure> {
    let entry = |entry: &str| {
        let mut words = entry.split(' ');
        let key = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let amounts = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        words.next().is_none().then_some((key, amounts))
    };
    let slots: Option<Slots> = text.split(';').map(entry).collect();
    slots.ok_or_else(|| Failure::Damaged(format!("`{text}` is no usage of GPUs")))
}

impl Store {
    /// How busy GPUs were in the hours of a question that are still kept one by one, as far as it
    /// was measured for the pods that had them.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn used(&mut self, question: &Question) -> Result<Vec<UsedRow>, StoreError> {
        let asked = self.asked(question).await?;
        let mut rows = Vec::new();
        for name in asked {
            let connection = self.connection.as_mut().expect("connected before");
            let of_cluster = of_cluster(connection, &mut self.names, &self.codes, &name, question);
            match of_cluster.await {
                Ok(found) => rows.extend(found),
                Err(failure) => return Err(self.failed(failure)),
            }
        }
        Ok(rows)
    }
}

async fn of_cluster(
    connection: &mut AnyConnection,
    names: &mut BTreeMap<i64, Names>,
    codes: &Codes,
    name: &str,
    question: &Question,
) -> Result<Vec<UsedRow>, Failure> {
    let Some(cluster) = known_cluster(connection, name).await? else { return Ok(Vec::new()) };
    let hours = [question.from_hour, question.to_hour].map(|hour| Cell::Number(hour as i64));
    let cells = || [Cell::Number(cluster.id)].into_iter().chain(hours.clone()).collect::<Vec<_>>();
    let sql = "SELECT node, slots FROM used WHERE cluster = $1 AND hour_number >= $2 \
               AND hour_number < $3";
    let mut times: BTreeMap<(i64, u32), (i64, i64)> = BTreeMap::new();
    for row in read(connection, sql, cells()).await? {
        let node = number(&row, 0)?;
        for ((_, pod), (measured, used)) in decoded(&text(&row, 1)?)? {
            let amounts = times.entry((node, pod)).or_default();
            *amounts = (amounts.0.saturating_add(measured), amounts.1.saturating_add(used));
        }
    }
    let sql = "SELECT node, MAX(node_group) FROM hourly WHERE cluster = $1 AND hour_number >= $2 \
               AND hour_number < $3 GROUP BY node";
    let mut groups: BTreeMap<i64, i64> = BTreeMap::new();
    if question.detail.group {
        for row in read(connection, sql, cells()).await? {
            groups.insert(number(&row, 0)?, number(&row, 1)?);
        }
    }
    let pods: BTreeSet<u32> = times.keys().map(|(_, pod)| *pod).collect();
    let owners = names.entry(cluster.id).or_default();
    let owners = owners.owners(connection, cluster.id, pods.into_iter()).await?;
    let paid = codes.of_paid(Paid::Gpus(DeviceState::Active(Work::NotSeparable)));
    let mut measured: BTreeMap<Key, Sum> = BTreeMap::new();
    let mut used_of: BTreeMap<Key, i64> = BTreeMap::new();
    for ((node, pod), (time, used)) in times {
        let owner = owners.get(&pod);
        let mut key = Key::default();
        key[PARTY] = owner.map_or(0, |owner| i64::from(owner.party));
        key[PAID] = i64::from(paid);
        key[PRICING] = UNPRICED;
        let told = [
            (WORKLOAD, question.detail.workload, owner.map_or(0, |owner| owner.workload.into())),
            (HOLDER, question.detail.pod, i64::from(pod)),
            (NODE, question.detail.node, node),
            (GROUP, question.detail.group, groups.get(&node).copied().unwrap_or(0)),
        ];
        for (column, _, value) in told.into_iter().filter(|(_, is_asked, _)| *is_asked) {
            key[column] = value;
        }
        let sum = measured.entry(key).or_default();
        sum.gpu_milli_ms = sum.gpu_milli_ms.saturating_add(time);
        let sum = used_of.entry(key).or_default();
        *sum = sum.saturating_add(used);
    }
    let rows = named(connection, codes, &cluster, name, measured).await?;
    let row = |(of, used): (SumRow, i64)| UsedRow { of, used_gpu_milli_ms: used.into() };
    Ok(rows.into_iter().zip(used_of.into_values()).map(row).collect())
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
