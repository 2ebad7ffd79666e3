//! One hour of a cluster: devices read again, nodes added up anew, days moved by the difference.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::cost::HeldTime;
use dovetail_account::device_time::{DeviceInterval, Span};
use dovetail_account::rollup::{NodeTerms, RolledUp, overlay, roll_up, with_causes};
use sqlx::AnyConnection;

use crate::daily;
use crate::device_hour::{decode, encode};
use crate::error::Failure;
use crate::free_looks::{self, Looks};
use crate::keep::LedgerChanges;
use crate::names::{KnownNames, PodOwner, small};
use crate::node_facts;
use crate::reading::Reading;
use crate::statements::{ColumnValue, bytes, insert, number, placeholders, read, run};
use crate::used;
use crate::written_hour::{ALL_BUT_RESIDUAL, COSTS, ChargeRow, Costs, HourWrite, PRICED, UNPRICED};

/// A charge of a node in this hour, by node, holder and cause.
type Charges = BTreeMap<(i64, i64, i64), ChargeRow>;

/// Devices of a node with their intervals.
type Devices = BTreeMap<i64, BTreeMap<i64, Vec<DeviceInterval>>>;

/// CPU and memory by node and holder.
type KeptTime = BTreeMap<i64, BTreeMap<u32, HeldTime>>;

/// Writes what a reading says of an hour.
pub(crate) async fn write(
    connection: &mut AnyConnection,
    place: &HourWrite<'_>,
    names: &mut KnownNames,
    reading: &Reading,
) -> Result<LedgerChanges, Failure> {
    let hour = (place.cluster, place.hour);
    used::write(connection, hour, place.numbers, reading).await?;
    let mut touched = BTreeSet::new();
    let free = |node: i64| _ = touched.insert(node);
    let looks = free_looks::write(connection, place, reading, free).await?;
    let (devices, device_hours) =
        write_devices(connection, place, reading, &looks, &mut touched).await?;
    let kept = write_kept(connection, place, reading, &mut touched).await?;
    if touched.is_empty() {
        return Ok(LedgerChanges::default());
    }
    node_facts::write(connection, place, reading, |node| touched.contains(&node)).await?;
    let before = charges_before(connection, place, &touched).await?;
    let after = added_up(connection, place, names, reading, &devices, &kept, &touched).await?;
    let charges = write_charges(connection, place, &before, &after).await?;
    daily::write(connection, place.cluster, place.hour / 24, &before, &after).await?;
    Ok(LedgerChanges { hours: 1, device_hours, charges })
}

/// Lays the reading over what is there, and causes over what is free. Answers with all devices of
/// the hour, and with how many of them are something else than before; nodes that were seen are
/// touched.
async fn write_devices(
    connection: &mut AnyConnection,
    place: &HourWrite<'_>,
    reading: &Reading,
    looks: &Looks,
    touched: &mut BTreeSet<i64>,
) -> Result<(Devices, u64), Failure> {
    let sql =
        "SELECT device, node, states FROM device_hour WHERE cluster = $1 AND hour_number = $2";
    let mut devices = Devices::new();
    for row in read(connection, sql, place.key()).await? {
        let (device, node, states) = (number(&row, 0)?, number(&row, 1)?, bytes(&row, 2)?);
        let Some(intervals) = decode(place.codes, place.hour_ms(), &states) else {
            let hour = place.hour;
            return Err(Failure::Damaged(format!("hour {hour} of device {device}")));
        };
        devices.entry(node).or_default().insert(device, intervals);
    }
    let before = devices.clone();
    for (device, number) in reading.devices.iter().zip(&place.numbers.devices) {
        let Some(seen) = Reading::seen(device) else { continue };
        let from_ms = seen.from_ms.max(place.cut.from_ms);
        let seen = Span { from_ms, to_ms: seen.to_ms.min(place.cut.to_ms) };
        if seen.from_ms >= seen.to_ms {
            continue;
        }
        let node = i64::from(place.numbers.nodes[device.node]);
        touched.insert(node);
        let of_device = devices.entry(node).or_default().entry(i64::from(*number)).or_default();
        let later: Vec<DeviceInterval> = device
            .intervals
            .iter()
            .filter(|i| i.span.from_ms < seen.to_ms && i.span.to_ms > seen.from_ms)
            .map(|i| DeviceInterval {
                holder: i.holder.map(|holder| place.numbers.pods[holder as usize]),
                ..*i
            })
            .collect();
        *of_device = overlay(of_device, &later, seen);
    }
    for (node, looks) in looks.iter().filter(|(node, _)| touched.contains(node)) {
        let Some(of_node) = devices.get_mut(node) else { continue };
        let lists: Vec<Vec<DeviceInterval>> = of_node.values().cloned().collect();
        let found = with_causes(&lists, looks);
        of_node.values_mut().zip(found).for_each(|(list, found)| *list = found);
    }
    let (mut cells, mut changed) = (Vec::new(), 0);
    for (node, of_node) in &devices {
        for (device, intervals) in of_node {
            if before.get(node).and_then(|of_node| of_node.get(device)) == Some(intervals) {
                continue;
            }
            changed += 1;
            cells.extend(place.key());
            cells.extend([(*device).into(), (*node).into()]);
            cells.push(ColumnValue::Bytes(encode(place.codes, place.hour_ms(), intervals)));
        }
    }
    let head = "INSERT INTO device_hour (cluster, hour_number, device, node, states)";
    let tail = " ON CONFLICT (cluster, hour_number, device) DO UPDATE SET states = excluded.states";
    insert(connection, head, 5, tail, cells).await?;
    Ok((devices, changed))
}

/// Writes what was kept of CPU and memory, and answers with all that is known of the hour.
async fn write_kept(
    connection: &mut AnyConnection,
    place: &HourWrite<'_>,
    reading: &Reading,
    touched: &mut BTreeSet<i64>,
) -> Result<KeptTime, Failure> {
    let sql = "SELECT node, holder, cpu_milli_ms, memory_kib_ms FROM kept WHERE cluster = $1 \
               AND hour_number = $2";
    let mut known: BTreeMap<i64, BTreeMap<i64, (i64, i64)>> = BTreeMap::new();
    for row in read(connection, sql, place.key()).await? {
        let of_node = known.entry(number(&row, 0)?).or_default();
        of_node.insert(number(&row, 1)?, (number(&row, 2)?, number(&row, 3)?));
    }
    let mut said: BTreeMap<i64, BTreeMap<i64, (i64, i64)>> = BTreeMap::new();
    let of_hour = reading.kept.iter().flatten().filter(|kept| kept.hour_ms == place.hour_ms());
    for kept in of_hour {
        let node = i64::from(place.numbers.nodes[kept.node]);
        let holder = i64::from(place.numbers.pods[kept.pod]);
        let number = |amount: i128| i64::try_from(amount).unwrap_or(i64::MAX);
        let amounts = said.entry(node).or_default().entry(holder).or_default();
        amounts.0 = amounts.0.saturating_add(number(kept.held.cpu_milli_ms));
        amounts.1 = amounts.1.saturating_add(number(kept.held.memory_byte_ms >> 10));
    }
    said.retain(|node, amounts| known.get(node) != Some(amounts));
    delete(connection, place, "kept", said.keys().copied()).await?;
    let mut cells = Vec::new();
    for (node, amounts) in &said {
        for (holder, (cpu, memory)) in amounts {
            cells.extend(place.key());
            cells.extend([(*node).into(), (*holder).into(), (*cpu).into(), (*memory).into()]);
        }
    }
    let head = "INSERT INTO kept (cluster, hour_number, node, holder, cpu_milli_ms, memory_kib_ms)";
    insert(connection, head, 6, "", cells).await?;
    touched.extend(said.keys());
    known.append(&mut said);
    let mut times = KeptTime::new();
    for (node, amounts) in known {
        for (holder, (cpu_milli_ms, memory_kib_ms)) in amounts {
            let holder = small(holder)?;
            let held = HeldTime {
                cpu_milli_ms: cpu_milli_ms.into(),
                memory_byte_ms: i128::from(memory_kib_ms) << 10,
            };
            times.entry(node).or_default().insert(holder, held);
        }
    }
    Ok(times)
}

/// What the rows of these nodes are.
async fn charges_before(
    connection: &mut AnyConnection,
    place: &HourWrite<'_>,
    touched: &BTreeSet<i64>,
) -> Result<Charges, Failure> {
    let sql = format!(
        "SELECT node, holder, paid, node_group, party, workload, pricing, gpu_milli_ms, {} FROM hourly \
         WHERE cluster = $1 AND hour_number = $2",
        COSTS.join(", ")
    );
    let mut charges = Charges::new();
    for row in read(connection, &sql, place.key()).await? {
        let node = number(&row, 0)?;
        if !touched.contains(&node) {
            continue;
        }
        let mut costs = Costs::default();
        for (cost, column) in costs.iter_mut().zip(8..) {
            *cost = number(&row, column)?;
        }
        let charge = ChargeRow {
            group: number(&row, 3)?,
            party: number(&row, 4)?,
            workload: number(&row, 5)?,
            pricing: number(&row, 6)?,
            gpu_milli_ms: number(&row, 7)?,
            costs,
        };
        charges.insert((node, number(&row, 1)?, number(&row, 2)?), charge);
    }
    Ok(charges)
}

/// What the rows of these nodes must be.
async fn added_up(
    connection: &mut AnyConnection,
    place: &HourWrite<'_>,
    names: &mut KnownNames,
    reading: &Reading,
    devices: &Devices,
    kept: &KeptTime,
    touched: &BTreeSet<i64>,
) -> Result<Charges, Failure> {
    let of_numbers = place.numbers.nodes.iter().zip(&place.numbers.groups).zip(&reading.nodes);
    let terms: BTreeMap<i64, (i64, &NodeTerms)> = of_numbers
        .map(|((node, group), read)| (i64::from(*node), (i64::from(*group), &read.terms)))
        .collect();
    let of_touched = touched.iter().flat_map(|node| devices.get(node)).flat_map(BTreeMap::values);
    let holders = of_touched.flatten().filter_map(|interval| interval.holder);
    let holders = holders.chain(kept.values().flat_map(BTreeMap::keys).copied());
    let owners = names.owners(connection, place.cluster, holders).await?;
    let ranks = Ranks::new(&owners);
    let mut rows: Vec<(i64, i64, RolledUp)> = Vec::new();
    for node in touched {
        let Some((group, terms)) = terms.get(node) else { continue };
        let lists = devices.get(node).into_iter().flat_map(BTreeMap::values);
        let lists: Vec<Vec<DeviceInterval>> = lists.map(|list| ranks.of_intervals(list)).collect();
        let kept = kept.get(node).into_iter().flatten();
        let kept = kept.map(|(holder, held)| (ranks.of(*holder), *held)).collect();
        let found = roll_up(lists.iter().map(Vec::as_slice), terms, &kept);
        let found = found.map_err(|error| Failure::Damaged(format!("node {node}: {error}")))?;
        rows.extend(found.into_iter().map(|row| (*node, *group, row)));
    }
    let mut charges = Charges::new();
    for (node, group, row) in rows {
        let holder = row.holder.map(|rank| ranks.holder(rank));
        let owner = holder.and_then(|holder| owners.get(&holder));
        let (workload, party) = owner.map_or((0, 0), |owner| (owner.workload, owner.party));
        let mut costs = Costs::default();
        for (cost, known) in costs.iter_mut().zip(row.costs) {
            *cost = known.unwrap_or_default().usd_micros;
        }
        let known = row.costs.iter().flatten().count();
        let pricing = match known {
            0 => UNPRICED,
            known if known == row.costs.len() => PRICED,
            _ => ALL_BUT_RESIDUAL,
        };
        let gpu_milli_ms = i64::try_from(row.gpu_milli_ms)
            .map_err(|_| Failure::Damaged(format!("node {node} has too many devices")))?;
        let key = (node, holder.map_or(0, i64::from), i64::from(place.codes.of_paid(row.paid)));
        let (party, workload) = (i64::from(party), i64::from(workload));
        charges.insert(key, ChargeRow { group, party, workload, pricing, gpu_milli_ms, costs });
    }
    Ok(charges)
}

/// Holders by the order of their names. Shares of a micro-dollar go to the first in a tie, and who
/// that is must not depend on which pod got its number first.
struct Ranks {
    holders: Vec<u32>,
    ranks: BTreeMap<u32, u32>,
}

impl Ranks {
    fn new(owners: &BTreeMap<u32, PodOwner>) -> Self {
        let mut holders: Vec<u32> = owners.keys().copied().collect();
        holders.sort_by_key(|holder| owners[holder].digest);
        let ranks = holders.iter().copied().zip(0..).collect();
        Self { holders, ranks }
    }

    fn of(&self, holder: u32) -> u32 {
        self.ranks[&holder]
    }

    fn holder(&self, rank: u32) -> u32 {
        self.holders[rank as usize]
    }

    fn of_intervals(&self, intervals: &[DeviceInterval]) -> Vec<DeviceInterval> {
        let ranked = intervals.iter().map(|interval| DeviceInterval {
            holder: interval.holder.map(|holder| self.of(holder)),
            ..*interval
        });
        ranked.collect()
    }
}

/// Writes the nodes whose rows changed; answers with how many rows that are.
async fn write_charges(
    connection: &mut AnyConnection,
    place: &HourWrite<'_>,
    before: &Charges,
    after: &Charges,
) -> Result<u64, Failure> {
    let gone = before.iter().filter(|(key, row)| after.get(key) != Some(row));
    let new = after.iter().filter(|(key, row)| before.get(key) != Some(row));
    let nodes: BTreeSet<i64> = gone.chain(new.clone()).map(|(key, _)| key.0).collect();
    let changed = new.count() as u64;
    delete(connection, place, "hourly", nodes.iter().copied()).await?;
    let mut cells = Vec::new();
    for ((node, holder, paid), row) in after.iter().filter(|(key, _)| nodes.contains(&key.0)) {
        cells.extend(place.key());
        cells.extend(
            [*node, *holder, *paid, row.group, row.party, row.workload].map(ColumnValue::Number),
        );
        cells.extend([row.pricing, row.gpu_milli_ms].map(ColumnValue::Number));
        cells.extend(row.costs.map(ColumnValue::Number));
    }
    let head = format!(
        "INSERT INTO hourly (cluster, hour_number, node, holder, paid, node_group, party, workload, \
         pricing, gpu_milli_ms, {})",
        COSTS.join(", ")
    );
    insert(connection, &head, 15, "", cells).await?;
    Ok(changed)
}

/// Takes out the rows of nodes in this hour.
async fn delete(
    connection: &mut AnyConnection,
    place: &HourWrite<'_>,
    table: &str,
    nodes: impl Iterator<Item = i64>,
) -> Result<(), Failure> {
    let nodes: Vec<i64> = nodes.collect();
    for part in nodes.chunks(2000) {
        let sql = format!(
            "DELETE FROM {table} WHERE cluster = $1 AND hour_number = $2 AND node IN ({})",
            placeholders(2, part.len())
        );
        let mut cells = place.key();
        cells.extend(part.iter().map(|node| ColumnValue::Number(*node)));
        run(connection, &sql, cells).await?;
    }
    Ok(())
}
