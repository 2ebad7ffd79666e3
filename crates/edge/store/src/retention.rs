//! What is kept for how long.

use dovetail_account::rollup::DAY_MS;
use sqlx::{AnyConnection, Connection};

use crate::error::{Failure, StoreError};
use crate::statements::{ColumnValue, run};
use crate::store::{Store, locked_cluster};

/// Whole days that are kept beside today. Sums of days are kept for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Of intervals of each device: so far back can be read again.
    pub devices_days: u32,
    /// Of hours of each node: so far back are pods, nodes and parts of days.
    pub nodes_days: u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self { devices_days: 30, nodes_days: 90 }
    }
}

/// What was forgotten, in rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    pub device_hours: u64,
    /// Charges of nodes and hours.
    pub charges: u64,
}

impl Retention {
    /// Forgets what is older than it has to be; `now_ms` is the present. Nodes' hours are kept at
    /// least as long as their devices', from which they are added up. Sums stay what they are.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn apply(&self, store: &mut Store, now_ms: u64) -> Result<Forgotten, StoreError> {
        let mut forgotten = Forgotten::default();
        for name in store.clusters().await? {
            let connection = store.connection.as_mut().expect("connected before");
            match self.forget_of(connection, &name, now_ms).await {
                Ok(more) => {
                    forgotten.device_hours += more.device_hours;
                    forgotten.charges += more.charges;
                }
                Err(failure) => return Err(store.failed(failure)),
            }
        }
        Ok(forgotten)
    }

    async fn forget_of(
        &self,
        connection: &mut AnyConnection,
        name: &str,
        now_ms: u64,
    ) -> Result<Forgotten, Failure> {
        let floor = |days: u32| (now_ms / DAY_MS).saturating_sub(u64::from(days)) * 24;
        let mut transaction = connection.begin().await?;
        let cluster = locked_cluster(&mut transaction, name).await?;
        // What is forgotten stays forgotten, whatever a later setting or clock says.
        let devices = floor(self.devices_days).max(cluster.devices_from_hour);
        let longer = self.nodes_days.max(self.devices_days);
        let nodes = floor(longer).max(cluster.nodes_from_hour);
        let before =
            |hour: u64| vec![ColumnValue::Number(cluster.id), ColumnValue::Number(hour as i64)];
        let older =
            |table: &str| format!("DELETE FROM {table} WHERE cluster = $1 AND hour_number < $2");
        let device_hours = run(&mut transaction, &older("device_hour"), before(devices)).await?;
        run(&mut transaction, &older("kept"), before(devices)).await?;
        run(&mut transaction, &older("free_look"), before(devices)).await?;
        run(&mut transaction, &older("used"), before(devices)).await?;
        let sql = "DELETE FROM node_day WHERE cluster = $1 AND day_number < $2";
        run(&mut transaction, sql, before(devices / 24)).await?;
        let charges = run(&mut transaction, &older("hourly"), before(nodes)).await?;
        let sql = "UPDATE cluster SET devices_from_hour = $2, nodes_from_hour = $3 WHERE id = $1";
        let cells = [cluster.id, devices as i64, nodes as i64].map(ColumnValue::Number);
        run(&mut transaction, sql, cells.to_vec()).await?;
        transaction.commit().await?;
        Ok(Forgotten { device_hours, charges })
    }
}
