//! What a node was on a day beside its GPUs: where it stands, what it offers, what it cost.

use serde::{Deserialize, Serialize};
use sqlx::AnyConnection;

use crate::error::Failure;
use crate::reading::{ReadNode, Reading};
use crate::statements::{ColumnValue, insert};
use crate::written_hour::HourWrite;

/// Facts of a node. A text is empty, and an amount 0, where nobody knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeFacts {
    pub gpu_type: String,
    pub pool: String,
    /// How its provider knows it.
    pub provider_id: String,
    pub provider: String,
    pub region: String,
    pub instance_type: String,
    /// How it is bought.
    pub purchase: String,
    /// Thousandths of a vCPU that it offers.
    pub cpu_milli: u64,
    pub memory_bytes: u64,
    /// Its price in micro-USD for each of its GPUs and hour; `None` where nobody knows.
    pub usd_micros_per_gpu_hour: Option<i64>,
    /// Price of a vCPU-hour sold alone, in micro-USD.
    pub usd_micros_per_vcpu_hour: Option<u32>,
    /// Price of a GiB-hour sold alone, in micro-USD.
    pub usd_micros_per_gib_hour: Option<u32>,
}

impl NodeFacts {
    pub(crate) fn of(node: &ReadNode) -> Self {
        let terms = &node.terms;
        let list = terms.list_prices.as_ref();
        Self {
            gpu_type: node.gpu_type.clone(),
            pool: node.pool.clone(),
            provider_id: node.provider_id.clone(),
            provider: node.provider.clone(),
            region: node.region.clone(),
            instance_type: node.instance_type.clone(),
            purchase: node.purchase.clone(),
            cpu_milli: terms.cpu_milli,
            memory_bytes: terms.memory_bytes,
            usd_micros_per_gpu_hour: terms.usd_micros_per_gpu_hour,
            usd_micros_per_vcpu_hour: list.map(|list| list.usd_micros_per_vcpu_hour),
            usd_micros_per_gib_hour: list.map(|list| list.usd_micros_per_gib_hour),
        }
    }
}

/// Notes what the touched nodes of an hour were on its day.
pub(crate) async fn write(
    connection: &mut AnyConnection,
    place: &HourWrite<'_>,
    reading: &Reading,
    is_touched: impl Fn(i64) -> bool,
) -> Result<(), Failure> {
    let numbers = place.numbers.nodes.iter().zip(&place.numbers.facts);
    let mut cells = Vec::new();
    for ((node, facts), _) in numbers.zip(&reading.nodes) {
        let node = i64::from(*node);
        if is_touched(node) {
            let day = (place.hour / 24) as i64;
            cells.extend([place.cluster, day, node, i64::from(*facts)].map(ColumnValue::Number));
        }
    }
    let head = "INSERT INTO node_day (cluster, day_number, node, facts)";
    let tail = " ON CONFLICT (cluster, day_number, node) DO UPDATE SET facts = excluded.facts \
                WHERE node_day.facts <> excluded.facts";
    Ok(insert(connection, head, 4, tail, cells).await?)
}
