//! A ledger that is open.

use std::collections::BTreeMap;

use dovetail_account::device_time::Span;
use dovetail_account::rollup::{Coverage, HOUR_MS};
use sqlx::{Any, AnyConnection, AssertSqlSafe, ConnectOptions, Connection, Transaction};

use crate::address::Address;
use crate::codes::Codes;
use crate::error::{Failure, StoreError};
use crate::names::KnownNames;
use crate::schema::migrate;
use crate::statements::{ColumnValue, insert, number, read, run, text, unsigned};

/// A ledger. A connection that is lost is made again by the next call; nothing is half written.
#[derive(Debug)]
pub struct Store {
    pub(crate) address: Address,
    pub(crate) connection: Option<AnyConnection>,
    /// By number of the cluster.
    pub(crate) names: BTreeMap<i64, KnownNames>,
    pub(crate) codes: Codes,
    most_pages: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct LedgerCluster {
    pub(crate) id: i64,
    pub(crate) devices_from_hour: u64,
    pub(crate) nodes_from_hour: u64,
}

/// Waits for another writer of the same file this long.
const PATIENCE_MS: u32 = 10_000;

impl Store {
    /// Opens a ledger, makes it where there is none, and brings it to today's form.
    ///
    /// # Errors
    /// What cannot be opened, or is no ledger, or one of a newer version.
    pub async fn open(address: &Address) -> Result<Self, StoreError> {
        sqlx::any::install_default_drivers();
        let mut store = Self {
            address: address.clone(),
            connection: None,
            names: BTreeMap::new(),
            codes: Codes::new(),
            most_pages: None,
        };
        store.connect().await?;
        Ok(store)
    }

    /// Bounds a file: pages (of 4 KiB) beyond this are refused as a full disk would refuse them. It
    /// holds for as long as the ledger is open.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn bound_file(&mut self, most_pages: u32) -> Result<(), StoreError> {
        self.most_pages = Some(most_pages);
        self.connection = None;
        self.connect().await
    }

    /// Where it is, without what is secret.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Names of all clusters, ascending.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn clusters(&mut self) -> Result<Vec<String>, StoreError> {
        self.connect().await?;
        let found = self.read("SELECT name FROM cluster ORDER BY name", Vec::new()).await?;
        let names: Result<Vec<String>, _> = found.iter().map(|row| text(row, 0)).collect();
        names.map_err(|error| self.failed(error.into()))
    }

    /// What of a period was never read of a cluster from a source, or from any, ascending.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn missing(
        &mut self,
        cluster: &str,
        source: Option<&str>,
        period: Span,
    ) -> Result<Vec<Span>, StoreError> {
        self.connect().await?;
        let sql = "SELECT from_ms, to_ms FROM covered JOIN cluster ON cluster.id = covered.cluster \
                   WHERE cluster.name = $1 AND (source = $2 OR $3 = 1)";
        let any = ColumnValue::Number(i64::from(source.is_none()));
        let cells = vec![cluster.into(), source.unwrap_or_default().into(), any];
        let rows = self.read(sql, cells).await?;
        let spans = rows.iter().map(|row| {
            Ok::<_, sqlx::Error>(Span { from_ms: unsigned(row, 0)?, to_ms: unsigned(row, 1)? })
        });
        let coverage: Result<Coverage, sqlx::Error> = spans.collect();
        match coverage {
            Ok(coverage) => Ok(coverage.missing(period)),
            Err(error) => Err(self.failed(error.into())),
        }
    }

    /// First moment of a cluster that can still be written, in ms since 1970: before it devices are
    /// no longer kept one by one.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn writable_from_ms(&mut self, cluster: &str) -> Result<u64, StoreError> {
        let known = self.known(cluster).await?;
        Ok(known.map_or(0, |known| known.devices_from_hour * HOUR_MS))
    }

    /// First moment of a cluster whose hours are kept one by one, in ms since 1970: before it there
    /// are whole days alone.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn hours_from_ms(&mut self, cluster: &str) -> Result<u64, StoreError> {
        let known = self.known(cluster).await?;
        Ok(known.map_or(0, |known| known.nodes_from_hour * HOUR_MS))
    }

    async fn known(&mut self, cluster: &str) -> Result<Option<LedgerCluster>, StoreError> {
        self.connect().await?;
        let connection = self.connection.as_mut().expect("connected before");
        match known_cluster(connection, cluster).await {
            Ok(known) => Ok(known),
            Err(failure) => Err(self.failed(failure)),
        }
    }

    /// Ends the connection; what was kept is kept without it.
    pub async fn close(mut self) {
        if let Some(connection) = self.connection.take() {
            // Every transaction is over: nothing can be lost here.
            _ = connection.close().await;
        }
    }

    /// Connects where there is no connection.
    pub(crate) async fn connect(&mut self) -> Result<(), StoreError> {
        if self.connection.is_some() {
            return Ok(());
        }
        let name = self.address.to_string();
        let options = self.address.options()?;
        let options = options.disable_statement_logging();
        let mut connection =
            options.connect().await.map_err(|error| StoreError::of(&name, &error))?;
        let made = self.prepare(&mut connection).await;
        made.map_err(|failure| failure.at(&name))?;
        self.connection = Some(connection);
        Ok(())
    }

    async fn prepare(&self, connection: &mut AnyConnection) -> Result<(), Failure> {
        if self.address.is_file() {
            // Whole pages and commits reach the disk; readers do not wait for writers.
            let mut settings = format!(
                "PRAGMA busy_timeout = {PATIENCE_MS}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
                 PRAGMA cache_size = -65536;"
            );
            if let Some(pages) = self.most_pages {
                settings += &format!("PRAGMA max_page_count = {pages};");
            }
            sqlx::raw_sql(AssertSqlSafe(settings)).execute(&mut *connection).await?;
        }
        migrate(connection, &self.address).await
    }

    /// Reads outside of a transaction.
    pub(crate) async fn read(
        &mut self,
        sql: &str,
        cells: Vec<ColumnValue>,
    ) -> Result<Vec<sqlx::any::AnyRow>, StoreError> {
        let connection = self.connection.as_mut().expect("connected before");
        let rows = read(connection, sql, cells).await;
        rows.map_err(|error| self.failed(error.into()))
    }

    /// After a failure nobody knows what state the connection is in: the next call makes a new one.
    pub(crate) fn failed(&mut self, failure: Failure) -> StoreError {
        self.connection = None;
        // Numbers of a transaction that never was.
        self.names.clear();
        failure.at(&self.address.to_string())
    }
}

/// Statements of it see what there was at one moment, whatever others write meanwhile.
pub(crate) async fn view(
    connection: &mut AnyConnection,
    is_file: bool,
) -> Result<Transaction<'_, Any>, Failure> {
    if is_file {
        return Ok(connection.begin().await?);
    }
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
    let mut view = connection.begin_with(begin).await?;
    // As much memory as a file has for its cache: the server's own 4 MB make it sort on its disk. A
    // plan for any period and any names looks through long lists of names row by row. To compile a
    // statement takes as long as to run it.
    let settings = "SET LOCAL work_mem = '64MB'; SET LOCAL plan_cache_mode = force_custom_plan; \
                    SET LOCAL jit = off";
    sqlx::raw_sql(settings).execute(&mut *view).await?;
    Ok(view)
}

/// The cluster with a name, entered where it is new; locked for this transaction.
pub(crate) async fn locked_cluster(
    connection: &mut AnyConnection,
    name: &str,
) -> Result<LedgerCluster, Failure> {
    loop {
        // First of all a write: the others of this cluster wait here, and see what this one did.
        let sql = "UPDATE cluster SET writes = writes + 1 WHERE name = $1";
        if run(connection, sql, vec![name.into()]).await? > 0 {
            break;
        }
        let next =
            read(connection, "SELECT COALESCE(MAX(id), 0) + 1 FROM cluster", Vec::new()).await?;
        let next = next.first().map(|row| number(row, 0)).transpose()?.unwrap_or(1);
        let row = vec![next.into(), name.into(), 0.into(), 0.into(), 0.into()];
        insert(connection, "INSERT INTO cluster", 5, " ON CONFLICT DO NOTHING", row).await?;
    }
    let found = known_cluster(connection, name).await?;
    found.ok_or_else(|| Failure::Damaged("a stored cluster is missing".to_owned()))
}

/// The cluster with a name, if it is there.
pub(crate) async fn known_cluster(
    connection: &mut AnyConnection,
    name: &str,
) -> Result<Option<LedgerCluster>, Failure> {
    let sql = "SELECT id, devices_from_hour, nodes_from_hour FROM cluster WHERE name = $1";
    let rows = read(connection, sql, vec![name.into()]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(Some(LedgerCluster {
        id: number(row, 0)?,
        devices_from_hour: unsigned(row, 1)?,
        nodes_from_hour: unsigned(row, 2)?,
    }))
}
