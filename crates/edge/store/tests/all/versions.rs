//! Ledgers of every version open with what was in them, and one of a newer version is left alone.
//!
//! `ledgers/N.sql` has the rows of a small ledger of version N; bytes stand as `{bytes:HEX:}`. When
//! a version is added:
//! `cargo test -p dovetail-store --test all versions::dump -- --ignored --nocapture`, before the
//! change.

use dovetail_store::{Address, LedgerChanges, StoreError};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Row};

use crate::databases::{Databases, open, run};
use crate::free_looks::causes_are_kept_in;
use crate::world::{World, everything};

/// Rows of each version, with the changes that made its tables.
const LEDGERS: [(&str, &[&str]); 4] = [
    (include_str!("ledgers/1.sql"), &[FIRST]),
    (include_str!("ledgers/2.sql"), &[FIRST, SECOND]),
    (include_str!("ledgers/3.sql"), &[FIRST, SECOND, THIRD]),
    // The fourth version changed rows alone, which are in these.
    (include_str!("ledgers/4.sql"), &[FIRST, SECOND, THIRD]),
];
const FIRST: &str = include_str!("../../migrations/0001.sql");
const SECOND: &str = include_str!("../../migrations/0002.sql");
const THIRD: &str = include_str!("../../migrations/0003.sql");

const TABLES: [&str; 13] = [
    "dovetail_ledger",
    "cluster",
    "names",
    "covered",
    "device_hour",
    "kept",
    "hourly",
    "daily",
    "node_day",
    "resolution",
    "notice",
    "free_look",
    "used",
];

/// What is in the ledgers.
fn world() -> World {
    World { gpus_per_node: 1, hours: 25, ..World::new("west", 11) }
}

async fn connect(address: &Address) -> AnyConnection {
    sqlx::any::install_default_drivers();
    let url = match address {
        Address::File(path) => format!("sqlite:{}?mode=rwc", path.display()),
        Address::Server(url) => url.clone(),
    };
    AnyConnection::connect(&url).await.unwrap()
}

/// Writes tables and rows as that version did.
async fn make(address: &Address, rows: &str, changes: &[&str]) {
    let mut connection = connect(address).await;
    let is_file = matches!(address, Address::File(_));
    let table = "CREATE TABLE dovetail_ledger (version BIGINT NOT NULL);\n";
    let mut text = table.to_owned() + &changes.join("\n") + rows;
    let words = match is_file {
        true => [("{clustered}", "WITHOUT ROWID"), ("{bytes}", "BLOB"), ("{bytes:", "X'")],
        false => [("{clustered}", ""), ("{bytes}", "BYTEA"), ("{bytes:", "'\\x")],
    };
    for (word, own) in words.into_iter().chain([(":}", "'")]) {
        text = text.replace(word, own);
    }
    sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

#[test]
fn a_ledger_of_every_version_opens_with_what_was_in_it() {
    let databases = Databases::start();
    let folder = tempfile::tempdir().unwrap();
    for (version, (rows, changes)) in LEDGERS.iter().enumerate() {
        for (place, address) in databases.addresses.iter().enumerate() {
            let file = Address::File(folder.path().join(format!("{version}.db")));
            let address = if place == 0 { &file } else { address };
            run(async {
                make(address, rows, changes).await;
                let world = world();
                let now_ms = world.period().to_ms;
                let mut store = open(address).await;
                let found = everything(&mut store, &world).await;
                let again = store.keep(&world.reading(world.period()), now_ms).await.unwrap();
                assert_eq!(again, LedgerChanges { hours: world.hours, ..LedgerChanges::default() });
                causes_are_kept_in(&mut store).await;
                store.close().await;

                let fresh =
                    Address::File(folder.path().join(format!("fresh {version} {place}.db")));
                let mut fresh = open(&fresh).await;
                fresh.keep(&world.reading(world.period()), now_ms).await.unwrap();
                assert_eq!(found, everything(&mut fresh, &world).await);
                fresh.close().await;

                newer(address).await;
                if place > 0 {
                    let mut connection = connect(address).await;
                    for table in TABLES {
                        let sql = AssertSqlSafe(format!("DROP TABLE {table}"));
                        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
                    }
                }
            });
        }
    }
}

async fn newer(address: &Address) {
    let mut connection = connect(address).await;
    let sql = "UPDATE dovetail_ledger SET version = 99";
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let told = dovetail_store::Store::open(address).await.unwrap_err();
    assert!(matches!(told, StoreError::Newer { found: 99, .. }), "{told:?}");
    assert!(told.to_string().contains("use a newer dovetail"), "{told}");
}

/// Not a test: prints the rows of a ledger of today's version.
#[test]
#[ignore = "prints the rows of a version that is about to become an earlier one"]
#[allow(clippy::print_stdout, reason = "that is what it is for")]
fn dump() {
    let folder = tempfile::tempdir().unwrap();
    let address = Address::File(folder.path().join("ledger.db"));
    run(async {
        let world = world();
        let mut store = open(&address).await;
        store.keep(&world.reading(world.period()), world.period().to_ms).await.unwrap();
        store.close().await;
        let mut connection = connect(&address).await;
        for table in TABLES {
            let sql = AssertSqlSafe(format!("SELECT * FROM {table}"));
            for row in sqlx::raw_sql(sql).fetch_all(&mut connection).await.unwrap() {
                println!("INSERT INTO {table} VALUES ({});", values(&row).join(", "));
            }
        }
    });
}

fn values(row: &AnyRow) -> Vec<String> {
    let value = |place: usize| {
        if let Ok(number) = row.try_get::<i64, _>(place) {
            return number.to_string();
        }
        match row.try_get::<String, _>(place) {
            Ok(text) => format!("'{}'", text.replace('\'', "''")),
            Err(_) => {
                let bytes = row.try_get::<Vec<u8>, _>(place).expect("bytes");
                let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("{{bytes:{hex}:}}")
            }
        }
    };
    (0..row.len()).map(value).collect()
}
