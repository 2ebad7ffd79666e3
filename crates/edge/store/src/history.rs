//! What each device was, hour by hour, with the names of all who had it: for as long as devices are
//! kept.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::cost::HeldTime;
use dovetail_account::device_time::DeviceInterval;
use dovetail_account::rollup::HOUR_MS;
use sqlx::AnyConnection;

use crate::codes::Codes;
use crate::device_hour::decode;
use crate::error::{Failure, StoreError};
use crate::keep::hour_in_words;
use crate::names::{Party, WorkloadNames, bodies, parents, small};
use crate::node_facts::NodeFacts;
use crate::reading::shortened;
use crate::statements::{ColumnValue, bytes, number, read};
use crate::store::{Store, known_cluster};

/// An hour of a cluster. Nodes, devices and pods are numbers of this ledger.
#[derive(Clone, Debug, Default)]
pub struct HistoryHour {
    /// Devices that were seen, ascending.
    pub devices: Vec<HistoryDevice>,
    /// CPU and memory that was kept: node, pod, amount.
    pub kept: Vec<(u32, u32, HeldTime)>,
}

/// A device in an hour.
#[derive(Clone, Debug)]
pub struct HistoryDevice {
    pub node: u32,
    pub device: u32,
    /// What it was; holders are numbers of pods.
    pub intervals: Vec<DeviceInterval>,
}

/// A pod of the history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryPod {
    pub name: String,
    /// Its namespace and what may name its team.
    pub party: Party,
    /// What it belongs to.
    pub workload: WorkloadNames,
}

impl HistoryHour {
    /// What the devices of a cluster were in an hour, counted since 1970.
    ///
    /// # Errors
    /// See [`StoreError`]; also where devices are not kept so far back.
    pub async fn of(store: &mut Store, cluster: &str, hour: u64) -> Result<Self, StoreError> {
        store.connect().await?;
        let connection = store.connection.as_mut().expect("connected before");
        let found = hour_of(connection, &store.codes, cluster, hour).await;
        found.map_err(|failure| store.failed(failure))
    }
}

impl HistoryPod {
    /// Pods by their numbers.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn of(
        store: &mut Store,
        cluster: &str,
        pods: &BTreeSet<u32>,
    ) -> Result<BTreeMap<u32, Self>, StoreError> {
        store.connect().await?;
        let connection = store.connection.as_mut().expect("connected before");
        let found = pods_of(connection, cluster, pods).await;
        found.map_err(|failure| store.failed(failure))
    }
}

impl NodeFacts {
    /// Names and last known facts of the nodes that were seen on days from one until before
    /// another.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn last_known(
        store: &mut Store,
        cluster: &str,
        nodes: &BTreeSet<u32>,
        days: std::ops::Range<u64>,
    ) -> Result<BTreeMap<u32, (String, Self)>, StoreError> {
        store.connect().await?;
        let connection = store.connection.as_mut().expect("connected before");
        let found = nodes_of(connection, cluster, nodes, days).await;
        found.map_err(|failure| store.failed(failure))
    }
}

async fn hour_of(
    connection: &mut AnyConnection,
    codes: &Codes,
    name: &str,
    hour: u64,
) -> Result<HistoryHour, Failure> {
    let Some(cluster) = known_cluster(connection, name).await? else {
        return Ok(HistoryHour::default());
    };
    if hour < cluster.devices_from_hour {
        return Err(Failure::Told(StoreError::DevicesForgotten {
            cluster: shortened(name),
            floor: hour_in_words(cluster.devices_from_hour),
        }));
    }
    let key = || [cluster.id, hour as i64].map(ColumnValue::Number).to_vec();
    let sql = "SELECT device, node, states FROM device_hour WHERE cluster = $1 \
               AND hour_number = $2 ORDER BY device";
    let mut found = HistoryHour::default();
    for row in read(connection, sql, key()).await? {
        let (device, node) = (small(number(&row, 0)?)?, small(number(&row, 1)?)?);
        let Some(intervals) = decode(codes, hour * HOUR_MS, &bytes(&row, 2)?) else {
            return Err(Failure::Damaged(format!("hour {hour} of device {device}")));
        };
        found.devices.push(HistoryDevice { node, device, intervals });
    }
    let sql = "SELECT node, holder, cpu_milli_ms, memory_kib_ms FROM kept WHERE cluster = $1 \
               AND hour_number = $2 ORDER BY node, holder";
    for row in read(connection, sql, key()).await? {
        let held = HeldTime {
            cpu_milli_ms: number(&row, 2)?.into(),
            memory_byte_ms: i128::from(number(&row, 3)?) << 10,
        };
        found.kept.push((small(number(&row, 0)?)?, small(number(&row, 1)?)?, held));
    }
    Ok(found)
}

async fn pods_of(
    connection: &mut AnyConnection,
    name: &str,
    pods: &BTreeSet<u32>,
) -> Result<BTreeMap<u32, HistoryPod>, Failure> {
    let Some(cluster) = known_cluster(connection, name).await? else { return Ok(BTreeMap::new()) };
    let wide =
        |ids: &mut dyn Iterator<Item = u32>| -> BTreeSet<i64> { ids.map(i64::from).collect() };
    let names: BTreeMap<i64, String> =
        bodies(connection, cluster.id, &wide(&mut pods.iter().copied())).await?;
    let ids: Vec<u32> = pods.iter().copied().collect();
    let workloads = parents(connection, cluster.id, &ids).await?;
    let above: BTreeSet<u32> = workloads.values().map(|(workload, _)| *workload).collect();
    let of_workloads: BTreeMap<i64, WorkloadNames> =
        bodies(connection, cluster.id, &wide(&mut above.iter().copied())).await?;
    let above: Vec<u32> = above.into_iter().collect();
    let parties = parents(connection, cluster.id, &above).await?;
    let mut ids = parties.values().map(|(party, _)| *party);
    let of_parties: BTreeMap<i64, Party> = bodies(connection, cluster.id, &wide(&mut ids)).await?;
    let mut found = BTreeMap::new();
    for pod in pods {
        let known = || {
            let name = names.get(&i64::from(*pod))?.clone();
            let (workload, _) = workloads.get(pod)?;
            let (party, _) = parties.get(workload)?;
            let party = of_parties.get(&i64::from(*party))?.clone();
            let workload = of_workloads.get(&i64::from(*workload))?.clone();
            Some(HistoryPod { name, party, workload })
        };
        let Some(known) = known() else {
            return Err(Failure::Damaged(format!("pod number {pod} has no name")));
        };
        found.insert(*pod, known);
    }
    Ok(found)
}

async fn nodes_of(
    connection: &mut AnyConnection,
    name: &str,
    nodes: &BTreeSet<u32>,
    days: std::ops::Range<u64>,
) -> Result<BTreeMap<u32, (String, NodeFacts)>, Failure> {
    let Some(cluster) = known_cluster(connection, name).await? else { return Ok(BTreeMap::new()) };
    let wide: BTreeSet<i64> = nodes.iter().copied().map(i64::from).collect();
    let names: BTreeMap<i64, String> = bodies(connection, cluster.id, &wide).await?;
    let sql = "SELECT node, facts FROM node_day WHERE cluster = $1 AND day_number >= $2 \
               AND day_number < $3 ORDER BY day_number";
    let cells = [cluster.id, days.start as i64, days.end as i64].map(ColumnValue::Number);
    let mut last: BTreeMap<i64, i64> = BTreeMap::new();
    for row in read(connection, sql, cells.to_vec()).await? {
        last.insert(number(&row, 0)?, number(&row, 1)?);
    }
    let facts: BTreeSet<i64> = last.values().copied().collect();
    let facts: BTreeMap<i64, NodeFacts> = bodies(connection, cluster.id, &facts).await?;
    let mut found = BTreeMap::new();
    for node in nodes {
        let Some(name) = names.get(&i64::from(*node)) else {
            return Err(Failure::Damaged(format!("node number {node} has no name")));
        };
        let of_node = last.get(&i64::from(*node)).and_then(|number| facts.get(number));
        found.insert(*node, (name.clone(), of_node.cloned().unwrap_or_default()));
    }
    Ok(found)
}
