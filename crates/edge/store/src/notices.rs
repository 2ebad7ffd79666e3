//! What owners were told, and when: so that a program that begins anew does not tell them again.

use std::collections::BTreeMap;

use crate::error::{Failure, StoreError};
use crate::reading::shortened;
use crate::statements::{ColumnValue, insert, number, read, run, text, unsigned};
use crate::store::{Store, known_cluster};

/// What owners of a cluster were told.
#[derive(Clone, Copy, Debug)]
pub struct Notices<'c> {
    pub cluster: &'c str,
}

impl Notices<'_> {
    /// When each subject of a cluster was told last, in ms since 1970.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn told(self, store: &mut Store) -> Result<BTreeMap<String, u64>, StoreError> {
        store.connect().await?;
        let sql = "SELECT subject, told_ms FROM notice JOIN cluster ON cluster.id = notice.cluster \
                   WHERE cluster.name = $1";
        let rows = store.read(sql, vec![self.cluster.into()]).await?;
        let told: Result<_, sqlx::Error> =
            rows.iter().map(|row| Ok((text(row, 0)?, unsigned(row, 1)?))).collect();
        told.map_err(|error| store.failed(error.into()))
    }

    /// Notes that subjects of a cluster were told at a moment, and forgets all told before another.
    ///
    /// # Errors
    /// See [`StoreError`]; also for a cluster of which nothing was kept.
    pub async fn add(
        self,
        store: &mut Store,
        subjects: &[String],
        at_ms: u64,
        before_ms: u64,
    ) -> Result<(), StoreError> {
        store.connect().await?;
        let connection = store.connection.as_mut().expect("connected before");
        let written = async {
            let Some(known) = known_cluster(connection, self.cluster).await? else {
                let found = read(connection, "SELECT COUNT(*) FROM cluster", Vec::new()).await?;
                let count = found.first().map(|row| number(row, 0)).transpose()?.unwrap_or(0);
                return Err(Failure::Told(StoreError::UnknownCluster {
                    address: store.address.to_string(),
                    cluster: shortened(self.cluster),
                    known: format!("{count} others"),
                }));
            };
            let cells = subjects.iter().flat_map(|subject| {
                [
                    known.id.into(),
                    ColumnValue::Text(subject.clone()),
                    ColumnValue::Number(at_ms as i64),
                ]
            });
            let head = "INSERT INTO notice (cluster, subject, told_ms)";
            let tail = " ON CONFLICT (cluster, subject) DO UPDATE SET told_ms = excluded.told_ms";
            insert(connection, head, 3, tail, cells.collect()).await?;
            let sql = "DELETE FROM notice WHERE cluster = $1 AND told_ms < $2";
            run(connection, sql, [known.id, before_ms as i64].map(ColumnValue::Number).to_vec())
                .await?;
            Ok(())
        };
        let written: Result<(), Failure> = written.await;
        written.map_err(|failure| store.failed(failure))
    }
}
