//! How far apart the samples were that each hour rests on.

use std::collections::BTreeMap;

use dovetail_account::device_time::Span;
use dovetail_account::rollup::{Coverage, DAY_MS, HOUR_MS, hours};
use sqlx::AnyConnection;

use crate::error::{Failure, StoreError};
use crate::statements::{ColumnValue, read, run, unsigned};
use crate::store::{Store, known_cluster};

/// What the hours of a day (UTC) rest on, as far as they lie in the period that was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DayResolution {
    /// The day, counted since 1970.
    pub day: u64,
    /// Hours of which something was read.
    pub hours_read: u32,
    /// Those of them of which nobody kept how far apart their samples were.
    pub hours_unknown: u32,
    /// Distance of two samples in the finest of the others, in ms.
    pub finest_ms: Option<u64>,
    pub coarsest_ms: Option<u64>,
}

/// Notes the resolution of a part of an hour: what was read as a whole rests on this reading alone.
pub(crate) async fn write(
    connection: &mut AnyConnection,
    cluster: i64,
    cut: Span,
    step_ms: Option<u64>,
) -> Result<(), Failure> {
    let hour = cut.from_ms / HOUR_MS;
    let is_whole = cut.to_ms - cut.from_ms == HOUR_MS;
    let key = [cluster, hour as i64].map(ColumnValue::Number).to_vec();
    let Some(step_ms) = step_ms else {
        if is_whole {
            let sql = "DELETE FROM resolution WHERE cluster = $1 AND hour_number = $2";
            run(connection, sql, key).await?;
        }
        return Ok(());
    };
    let longer = if is_whole { "<>" } else { "<" };
    let sql = format!(
        "INSERT INTO resolution (cluster, hour_number, step_ms) VALUES ($1, $2, $3) \
         ON CONFLICT (cluster, hour_number) DO UPDATE SET step_ms = excluded.step_ms \
         WHERE resolution.step_ms {longer} excluded.step_ms"
    );
    let cells = key.into_iter().chain([ColumnValue::Number(step_ms as i64)]).collect();
    run(connection, &sql, cells).await?;
    Ok(())
}

impl DayResolution {
    /// What each day of a period rests on, ascending; days of which nothing was read are not among
    /// them.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn of(
        store: &mut Store,
        cluster: &str,
        period: Span,
    ) -> Result<Vec<Self>, StoreError> {
        let missing: Coverage = store.missing(cluster, None, period).await?.into_iter().collect();
        let read_spans = missing.missing(period);
        let connection = store.connection.as_mut().expect("connected before");
        let steps = steps(connection, cluster, period).await;
        let steps = steps.map_err(|failure| store.failed(failure))?;
        let mut hours_read: Vec<u64> = read_spans
            .into_iter()
            .flat_map(|span| hours(span).collect::<Vec<_>>())
            .map(|hour| hour.from_ms / HOUR_MS)
            .collect();
        hours_read.dedup();
        let mut days: BTreeMap<u64, Self> = BTreeMap::new();
        for hour in hours_read {
            let day = hour * HOUR_MS / DAY_MS;
            let found = days.entry(day).or_insert(Self { day, ..Self::default() });
            found.hours_read += 1;
            match steps.get(&hour) {
                None => found.hours_unknown += 1,
                Some(step_ms) => {
                    let finest = found.finest_ms.map_or(*step_ms, |other| other.min(*step_ms));
                    found.finest_ms = Some(finest);
                    found.coarsest_ms = found.coarsest_ms.max(Some(*step_ms));
                }
            }
        }
        Ok(days.into_values().collect())
    }
}

/// Steps of the hours of a period, by hour.
async fn steps(
    connection: &mut AnyConnection,
    name: &str,
    period: Span,
) -> Result<BTreeMap<u64, u64>, Failure> {
    let Some(cluster) = known_cluster(connection, name).await? else {
        return Ok(BTreeMap::new());
    };
    let sql = "SELECT hour_number, step_ms FROM resolution WHERE cluster = $1 \
               AND hour_number >= $2 AND hour_number < $3";
    let (from, to) = (period.from_ms / HOUR_MS, period.to_ms.div_ceil(HOUR_MS));
    let cells = [cluster.id, from as i64, to as i64].map(ColumnValue::Number);
    let rows = read(connection, sql, cells.to_vec()).await?;
    let steps: Result<_, sqlx::Error> =
        rows.iter().map(|row| Ok((unsigned(row, 0)?, unsigned(row, 1)?))).collect();
    Ok(steps?)
}
