//! What nodes were in some hours, as far as a bill is made from it again: under another method, at
//! another price.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use dovetail_account::cost::{HeldTime, Paid};
use dovetail_account::device_time::DeviceState;
use dovetail_model::Money;
use sqlx::AnyConnection;

use crate::codes::Codes;
use crate::error::{Failure, StoreError};
use crate::keep::hour_in_words;
use crate::reading::shortened;
use crate::statements::{ColumnValue, number, read};
use crate::store::{Store, known_cluster};
use crate::written_hour::UNPRICED;

/// A node in some hours; it and its holders are numbers of this ledger.
#[derive(Clone, Debug, Default)]
pub struct NodeTime {
    pub node: u32,
    pub devices: u32,
    /// From the first hour in which one was seen until after the last, counted since 1970.
    pub hours: Range<u64>,
    /// Device-time in milli-GPU × ms by holder and state.
    pub gpus: BTreeMap<(Option<u32>, DeviceState), i128>,
    /// What was kept of CPU and memory, by holder.
    pub kept: BTreeMap<u32, HeldTime>,
    /// What its priced hours cost; `None` where none has a price.
    pub price: Option<Money>,
    /// Whether some of its hours have no price.
    pub has_unpriced: bool,
}

impl NodeTime {
    /// All pods that had something of it.
    pub fn holders(&self) -> BTreeSet<u32> {
        let of_gpus = self.gpus.keys().filter_map(|(holder, _)| *holder);
        of_gpus.chain(self.kept.keys().copied()).collect()
    }
}

impl NodeTime {
    /// What the nodes of a cluster were from one hour until before another, counted since 1970; by
    /// number.
    ///
    /// # Errors
    /// See [`StoreError`]; also where devices are not kept so far back.
    pub async fn of(
        store: &mut Store,
        cluster: &str,
        hours: Range<u64>,
    ) -> Result<Vec<Self>, StoreError> {
        store.connect().await?;
        let connection = store.connection.as_mut().expect("connected before");
        let found = times_of(connection, &store.codes, cluster, hours).await;
        found.map_err(|failure| store.failed(failure))
    }
}

async fn times_of(
    connection: &mut AnyConnection,
    codes: &Codes,
    name: &str,
    hours: Range<u64>,
) -> Result<Vec<NodeTime>, Failure> {
    let Some(cluster) = known_cluster(connection, name).await? else { return Ok(Vec::new()) };
    if hours.start < cluster.devices_from_hour {
        return Err(Failure::Told(StoreError::DevicesForgotten {
            cluster: shortened(name),
            floor: hour_in_words(cluster.devices_from_hour),
        }));
    }
    let cells =
        [cluster.id, hours.start as i64, hours.end as i64].map(ColumnValue::Number).to_vec();
    let of_hours = "WHERE cluster = $1 AND hour_number >= $2 AND hour_number < $3";
    let mut nodes: BTreeMap<i64, NodeTime> = BTreeMap::new();
    let sql = format!(
        "SELECT node, holder, paid, pricing, CAST(SUM(gpu_milli_ms) AS BIGINT), \
         CAST(SUM(cost_all_in) AS BIGINT) FROM hourly {of_hours} GROUP BY node, holder, paid, pricing"
    );
    for row in read(connection, &sql, cells.clone()).await? {
        let node = nodes.entry(number(&row, 0)?).or_default();
        let paid = number(&row, 2)?;
        let Some(paid) = u8::try_from(paid).ok().and_then(|code| codes.paid(code)) else {
            return Err(Failure::Damaged(format!("{paid} is not a cause")));
        };
        if let Paid::Gpus(state) = paid {
            let key = (holder(number(&row, 1)?)?, state);
            *node.gpus.entry(key).or_default() += i128::from(number(&row, 4)?);
        }
        match number(&row, 3)? {
            UNPRICED => node.has_unpriced = true,
            _ => *node.price.get_or_insert(Money::ZERO) += Money::micros(number(&row, 5)?),
        }
    }
    let sql = format!(
        "SELECT node, holder, CAST(SUM(cpu_milli_ms) AS BIGINT), CAST(SUM(memory_kib_ms) AS BIGINT) \
         FROM kept {of_hours} GROUP BY node, holder"
    );
    for row in read(connection, &sql, cells.clone()).await? {
        let Some(node) = nodes.get_mut(&number(&row, 0)?) else { continue };
        let Some(holder) = holder(number(&row, 1)?)? else { continue };
        let held = HeldTime {
            cpu_milli_ms: number(&row, 2)?.into(),
            memory_byte_ms: i128::from(number(&row, 3)?) << 10,
        };
        node.kept.insert(holder, held);
    }
    let sql = format!(
        "SELECT node, COUNT(DISTINCT device), MIN(hour_number), MAX(hour_number) FROM device_hour {of_hours} \
             GROUP BY node"
    );
    for row in read(connection, &sql, cells).await? {
        if let Some(node) = nodes.get_mut(&number(&row, 0)?) {
            node.devices = u32::try_from(number(&row, 1)?).unwrap_or(u32::MAX);
            let [first, last] = [number(&row, 2)?, number(&row, 3)?].map(i64::unsigned_abs);
            node.hours = first..last + 1;
        }
    }
    let numbered = nodes.into_iter().map(|(number, node)| {
        let number = u32::try_from(number);
        let number = number.map_err(|_| Failure::Damaged("a node has no number".to_owned()))?;
        Ok(NodeTime { node: number, ..node })
    });
    numbered.collect()
}

/// 0 is nobody.
fn holder(number: i64) -> Result<Option<u32>, Failure> {
    let known = u32::try_from(number);
    let known =
        known.map_err(|_| Failure::Damaged(format!("{number} is not the number of a name")))?;
    Ok(Some(known).filter(|number| *number != 0))
}
