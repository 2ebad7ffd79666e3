//! A reading written, hour by hour: each hour is one transaction, with what says that it was read.

use std::collections::BTreeMap;

use dovetail_account::device_time::Span;
use dovetail_account::rollup::{Coverage, HOUR_MS, hours};
use dovetail_units::time::time;
use sqlx::AnyConnection;
use sqlx::Connection;

use crate::codes::Codes;
use crate::error::{Failure, StoreError};
use crate::hour;
use crate::names::{KnownNames, Numbers};
use crate::reading::{Reading, shortened};
use crate::resolution;
use crate::statements::{insert, read, run, unsigned};
use crate::store::{Store, locked_cluster};
use crate::written_hour::HourWrite;

/// What a reading changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerChanges {
    /// Hours written, each in a transaction of its own.
    pub hours: u64,
    /// Hours of devices that are something else than before.
    pub device_hours: u64,
    /// Charges of nodes and hours that are something else than before.
    pub charges: u64,
}

impl Store {
    /// Writes a reading; `now_ms` is the present, in ms since 1970. Where an earlier reading said
    /// something of the same time of the same device, this one counts.
    ///
    /// # Errors
    /// See [`StoreError`]. Hours before the one that failed are written and known as read; the same
    /// reading can be handed in again.
    pub async fn keep(
        &mut self,
        reading: &Reading,
        now_ms: u64,
    ) -> Result<LedgerChanges, StoreError> {
        reading.check(now_ms)?;
        let mut kept = LedgerChanges::default();
        let mut numbers = None;
        for cut in hours(reading.span) {
            self.connect().await?;
            let connection = self.connection.as_mut().expect("connected before");
            let written =
                keep_hour(connection, &mut self.names, &self.codes, reading, cut, &mut numbers);
            match written.await {
                Ok(part) => {
                    kept.hours += 1;
                    kept.device_hours += part.device_hours;
                    kept.charges += part.charges;
                }
                Err(failure) => return Err(self.failed(failure)),
            }
        }
        Ok(kept)
    }
}

async fn keep_hour(
    connection: &mut AnyConnection,
    names: &mut BTreeMap<i64, KnownNames>,
    codes: &Codes,
    reading: &Reading,
    cut: Span,
    numbers: &mut Option<Numbers>,
) -> Result<LedgerChanges, Failure> {
    let mut transaction = connection.begin().await?;
    let cluster = locked_cluster(&mut transaction, &reading.cluster).await?;
    let hour = cut.from_ms / HOUR_MS;
    if hour < cluster.devices_from_hour {
        return Err(Failure::Told(StoreError::TooOld {
            cluster: shortened(&reading.cluster),
            from: hour_in_words(hour),
            floor: hour_in_words(cluster.devices_from_hour),
        }));
    }
    let names = names.entry(cluster.id).or_default();
    let known = match numbers.take() {
        Some(known) => known,
        None => names.numbers(&mut transaction, cluster.id, reading).await?,
    };
    let place = HourWrite { cluster: cluster.id, hour, cut, codes, numbers: &known };
    let kept = hour::write(&mut transaction, &place, names, reading).await?;
    resolution::write(&mut transaction, cluster.id, cut, reading.step_ms).await?;
    cover(&mut transaction, cluster.id, &reading.source, cut).await?;
    transaction.commit().await?;
    names.committed();
    // Only numbers that are there for good are used again.
    *numbers = Some(known);
    Ok(kept)
}

/// Notes that a span was read.
async fn cover(
    connection: &mut AnyConnection,
    cluster: i64,
    source: &str,
    span: Span,
) -> Result<(), Failure> {
    let what = "FROM covered WHERE cluster = $1 AND source = $2 AND from_ms <= $3 AND to_ms >= $4";
    let cells = || {
        vec![
            cluster.into(),
            source.into(),
            (span.to_ms as i64).into(),
            (span.from_ms as i64).into(),
        ]
    };
    let rows = read(connection, &format!("SELECT from_ms, to_ms {what}"), cells()).await?;
    let spans = rows.iter().map(|row| {
        Ok::<_, sqlx::Error>(Span { from_ms: unsigned(row, 0)?, to_ms: unsigned(row, 1)? })
    });
    let mut coverage: Coverage = spans.collect::<Result<_, _>>()?;
    coverage.add(span);
    run(connection, &format!("DELETE {what}"), cells()).await?;
    let rows = coverage.spans().flat_map(|span| {
        let (from_ms, to_ms) = (span.from_ms as i64, span.to_ms as i64);
        [cluster.into(), source.into(), from_ms.into(), to_ms.into()]
    });
    let head = "INSERT INTO covered (cluster, source, from_ms, to_ms)";
    Ok(insert(connection, head, 4, "", rows.collect()).await?)
}

/// An hour as messages name it.
pub(crate) fn hour_in_words(hour: u64) -> String {
    time(hour.saturating_mul(HOUR_MS))
}
