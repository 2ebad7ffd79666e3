//! Tables, and how older ones become today's. Versions only go up; each is one file of
//! `migrations`, applied in one transaction, and never changed once it was released.

use sqlx::{AnyConnection, AssertSqlSafe, Connection};

use crate::address::Address;
use crate::error::{Failure, StoreError};
use crate::statements::{number, read, run};

/// Each version's changes.
const VERSIONS: [&str; 5] = [
    include_str!("../migrations/0001.sql"),
    include_str!("../migrations/0002.sql"),
    include_str!("../migrations/0003.sql"),
    include_str!("../migrations/0004.sql"),
    include_str!("../migrations/0005.sql"),
];

/// Any number will do, as long as nobody else locks it: "dove".
const LOCK: i64 = 0x646f_7665;

/// Brings the tables to today's version.
pub(crate) async fn migrate(
    connection: &mut AnyConnection,
    address: &Address,
) -> Result<(), Failure> {
    if version(connection, address).await? == VERSIONS.len() {
        return Ok(());
    }
    let begin = if address.is_file() { "BEGIN IMMEDIATE" } else { "BEGIN" };
    let mut transaction = connection.begin_with(begin).await?;
    if !address.is_file() {
        let lock = format!("SELECT pg_advisory_xact_lock({LOCK})");
        sqlx::raw_sql(AssertSqlSafe(lock)).execute(&mut *transaction).await?;
    }
    // Another program may have been faster.
    let version = version(&mut transaction, address).await?;
    for changes in VERSIONS.iter().skip(version) {
        let words = match address.is_file() {
            true => [("{clustered}", "WITHOUT ROWID"), ("{bytes}", "BLOB")],
            false => [("{clustered}", ""), ("{bytes}", "BYTEA")],
        };
        // The explanation at the top names the words too: comments go first.
        let lines = changes.lines().filter(|line| !line.trim_start().starts_with("--"));
        let mut sql = lines.collect::<Vec<_>>().join("\n");
        for (word, own) in words {
            sql = sql.replace(word, own);
        }
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *transaction).await?;
    }
    if version == 0 {
        let table = "CREATE TABLE dovetail_ledger (version BIGINT NOT NULL)";
        run(&mut transaction, table, Vec::new()).await?;
        run(&mut transaction, "INSERT INTO dovetail_ledger VALUES (0)", Vec::new()).await?;
    }
    let newest = VERSIONS.len() as i64;
    run(&mut transaction, "UPDATE dovetail_ledger SET version = $1", vec![newest.into()]).await?;
    Ok(transaction.commit().await?)
}

/// The version of the tables; 0 where there are none.
async fn version(connection: &mut AnyConnection, address: &Address) -> Result<usize, Failure> {
    let tables = match address.is_file() {
        true => {
            "SELECT COUNT(*), COUNT(CASE WHEN name = 'dovetail_ledger' THEN 1 END) FROM sqlite_master"
        }
        false => {
            "SELECT COUNT(*), COUNT(*) FROM pg_catalog.pg_tables WHERE schemaname = current_schema() \
             AND tablename = 'dovetail_ledger'"
        }
    };
    let counts = read(connection, tables, Vec::new()).await?;
    let counts = counts.first().map(|row| Ok::<_, sqlx::Error>((number(row, 0)?, number(row, 1)?)));
    match counts.transpose()? {
        None | Some((0, _)) => return Ok(0),
        Some((all, 0)) => {
            let why = format!("it has {all} unrelated tables");
            return Err(StoreError::Foreign { address: address.to_string(), why }.into());
        }
        Some(_) => {}
    }
    let found = read(connection, "SELECT version FROM dovetail_ledger", Vec::new()).await?;
    let found = found.first().map(|row| number(row, 0)).transpose()?.unwrap_or(0);
    let known = VERSIONS.len();
    match usize::try_from(found) {
        Ok(version) if version <= known => Ok(version),
        _ => {
            let address = address.to_string();
            Err(StoreError::Newer { address, found, known: known as i64 }.into())
        }
    }
}
