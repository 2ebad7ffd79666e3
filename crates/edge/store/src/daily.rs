//! Days, moved by what an hour changed: exact, because all amounts are whole numbers.

use std::collections::BTreeMap;

use sqlx::AnyConnection;

use crate::error::Failure;
use crate::statements::{ColumnValue, insert, run};
use crate::written_hour::{COSTS, ChargeRow, Costs};

/// Rows by party and group of nodes.
pub(crate) const BY_PARTY_AND_GROUP: i64 = 0;
/// Rows by party, workload and group of nodes.
pub(crate) const BY_WORKLOAD: i64 = 1;
/// Rows by party.
pub(crate) const BY_PARTY: i64 = 2;

/// Grain, party, workload, group, cause and pricing.
type Key = (i64, i64, i64, i64, i64, i64);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Difference {
    charges: i64,
    gpu_milli_ms: i64,
    costs: Costs,
}

/// Moves a day by the difference of the charges of an hour, by (node, holder, cause).
pub(crate) async fn write(
    connection: &mut AnyConnection,
    cluster: i64,
    day: u64,
    before: &BTreeMap<(i64, i64, i64), ChargeRow>,
    after: &BTreeMap<(i64, i64, i64), ChargeRow>,
) -> Result<(), Failure> {
    let mut differences: BTreeMap<Key, Difference> = BTreeMap::new();
    for (rows, sign) in [(before, -1), (after, 1)] {
        for ((_, _, paid), row) in rows {
            for (grain, workload, group) in [
                (BY_PARTY_AND_GROUP, 0, row.group),
                (BY_WORKLOAD, row.workload, row.group),
                (BY_PARTY, 0, 0),
            ] {
                let key = (grain, row.party, workload, group, *paid, row.pricing);
                differences.entry(key).or_default().add(row, sign);
            }
        }
    }
    differences.retain(|_, difference| *difference != Difference::default());
    let day = day as i64;
    let mut cells = Vec::new();
    for ((grain, party, workload, group, paid, pricing), difference) in &differences {
        let key = [cluster, *grain, day, *party, *workload, *group, *paid, *pricing];
        cells.extend(key.map(ColumnValue::Number));
        cells.extend([difference.charges, difference.gpu_milli_ms].map(ColumnValue::Number));
        cells.extend(difference.costs.map(ColumnValue::Number));
    }
    let head = format!(
        "INSERT INTO daily (cluster, grain, day_number, party, workload, node_group, paid, pricing, \
         charges, gpu_milli_ms, {})",
        COSTS.join(", ")
    );
    let moved = ["charges", "gpu_milli_ms"].into_iter().chain(COSTS);
    let moved: Vec<String> = moved.map(|c| format!("{c} = daily.{c} + excluded.{c}")).collect();
    let tail = format!(
        " ON CONFLICT (cluster, grain, day_number, party, workload, node_group, paid, pricing) \
         DO UPDATE SET {}",
        moved.join(", ")
    );
    insert(connection, &head, 15, &tail, cells).await?;
    if differences.values().any(|difference| difference.charges < 0) {
        // What is left of what no charge is left of.
        let sql = "DELETE FROM daily WHERE cluster = $1 AND grain IN (0, 1, 2) AND day_number = $2 \
                   AND charges = 0";
        run(connection, sql, vec![cluster.into(), day.into()]).await?;
    }
    Ok(())
}

impl Difference {
    fn add(&mut self, row: &ChargeRow, sign: i64) {
        self.charges += sign;
        self.gpu_milli_ms += sign * row.gpu_milli_ms;
        self.costs.iter_mut().zip(row.costs).for_each(|(sum, cost)| *sum += sign * cost);
    }
}
