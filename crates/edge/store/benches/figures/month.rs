//! Hours copied, and days added up, by the database itself: what a program would have written, in a
//! fraction of the time.

use std::collections::BTreeMap;

use dovetail_store::Address;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Row};

use crate::cluster::{HOURS_PER_JOB, NODES, ahead_hours, node_name};

const AMOUNTS: [&str; 6] = [
    "gpu_milli_ms",
    "cost_all_in",
    "cost_residual",
    "cost_aws_split",
    "cost_opencost",
    "cost_datadog",
];

const GRAINS: [i64; 3] = [0, 1, 2];

/// The tables of a ledger, written past the program.
pub(crate) struct Month {
    connection: AnyConnection,
    is_file: bool,
}

impl Month {
    pub(crate) async fn open(address: &Address) -> Self {
        let (url, is_file) = match address {
            Address::File(path) => (format!("sqlite:{}", path.display()), true),
            Address::Server(url) => (url.clone(), false),
        };
        let connection = AnyConnection::connect(&url).await.expect("a connection");
        let mut month = Self { connection, is_file };
        if is_file {
            month.run("PRAGMA synchronous = OFF; PRAGMA cache_size = -262144").await;
        }
        month
    }

    /// Fills all hours but those that were kept, and adds up all days anew.
    pub(crate) async fn fill(&mut self, start_hour: u64, end_hour: u64) {
        for grain in GRAINS {
            let by_hours = added_up(grain, "");
            let by_days = format!("SELECT * FROM daily WHERE grain = {grain}");
            for (one, other) in [(&by_hours, &by_days), (&by_days, &by_hours)] {
                let sql = format!("SELECT COUNT(*) FROM ({one} EXCEPT {other}) AS different");
                assert_eq!(self.number(&sql).await, 0, "days are their hours: {sql}");
            }
        }
        self.note_places().await;
        for turn in (start_hour..end_hour).step_by(HOURS_PER_JOB as usize) {
            self.run("BEGIN").await;
            for hour in turn + 1..(turn + HOURS_PER_JOB).min(end_hour) {
                self.run(&copied(turn, hour)).await;
            }
            self.run("COMMIT").await;
        }
        self.run(&format!("DELETE FROM hourly WHERE hour_number >= {end_hour}")).await;
        self.run("DELETE FROM daily").await;
        for day in start_hour / 24..end_hour / 24 {
            let (from, to) = (day * 24, day * 24 + 24);
            let of_day = format!("AND hour_number >= {from} AND hour_number < {to}");
            for grain in GRAINS {
                self.run(&format!("INSERT INTO daily {}", added_up(grain, &of_day))).await;
            }
        }
        // Servers do this by themselves after a while.
        self.run(if self.is_file { "PRAGMA wal_checkpoint(TRUNCATE)" } else { "VACUUM ANALYZE" })
            .await;
    }

    /// Each node with how much earlier its jobs begin.
    async fn note_places(&mut self) {
        let found = sqlx::query("SELECT id, body FROM names WHERE kind = 1");
        let found = found.fetch_all(&mut self.connection).await.expect("nodes");
        let numbers: BTreeMap<String, i64> =
            found.iter().map(|row| (row.get::<String, _>(1), row.get::<i64, _>(0))).collect();
        let place = |node| {
            let number = numbers[&format!("\"{}\"", node_name(node))];
            format!("({number}, {})", ahead_hours(node))
        };
        let places: Vec<String> = (0..NODES).map(place).collect();
        let columns = "(node BIGINT PRIMARY KEY, ahead_hours BIGINT NOT NULL)";
        self.run(&format!("CREATE TEMP TABLE place {columns}")).await;
        self.run(&format!("INSERT INTO place VALUES {}", places.join(","))).await;
    }

    /// Bytes of tables with their indexes, and of all together, with their target.
    pub(crate) async fn bytes(mut self) -> Vec<(&'static str, i64, &'static str)> {
        let of = |table: &str| match self.is_file {
            true => format!(
                "SELECT SUM(pgsize) FROM dbstat WHERE name IN (SELECT name FROM sqlite_master WHERE tbl_name = '{table}')"
            ),
            false => format!("SELECT pg_total_relation_size('{table}')"),
        };
        let tables = ["hourly", "daily", "names"].map(|table| (table, of(table)));
        let mut found = Vec::new();
        for (table, sql) in tables {
            found.push((table, self.number(&sql).await, ""));
        }
        let (all, target) = match self.is_file {
            true => ("SELECT SUM(pgsize) FROM dbstat", "60"),
            false => {
                let sql = "SELECT CAST(SUM(pg_total_relation_size(oid)) AS BIGINT) FROM pg_class \
                           WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace";
                (sql, "")
            }
        };
        found.push(("everything", self.number(all).await, target));
        found
    }

    async fn run(&mut self, sql: &str) {
        let sql = AssertSqlSafe(sql.to_owned());
        sqlx::raw_sql(sql).execute(&mut self.connection).await.expect("a statement of ours");
    }

    async fn number(&mut self, sql: &str) -> i64 {
        let query = sqlx::query(AssertSqlSafe(sql.to_owned()));
        query.fetch_one(&mut self.connection).await.expect("an answer").get(0)
    }
}

/// An hour of a turn: nodes on which the turn runs still as in its first hour, the others as in the
/// next one's.
fn copied(turn: u64, hour: u64) -> String {
    let left_hours = turn + HOURS_PER_JOB - hour;
    let part = |from_hour: u64, which: &str| {
        format!(
            "SELECT hourly.cluster, {hour}, hourly.node, holder, paid, node_group, party, workload, pricing, {} \
             FROM place JOIN hourly ON hourly.node = place.node WHERE hourly.cluster = 1 \
             AND hourly.hour_number = {from_hour} AND place.ahead_hours {which} {left_hours}",
            AMOUNTS.join(", ")
        )
    };
    let next = turn + HOURS_PER_JOB;
    format!("INSERT INTO hourly {} UNION ALL {}", part(turn, "<"), part(next, ">="))
}

/// Days out of hours, as rows of `daily`: grain 0 by party and group, grain 1 by workload too,
/// grain 2 by party alone.
fn added_up(grain: i64, of_hours: &str) -> String {
    let (workload, group, by) = match grain {
        0 => ("0", "node_group", ", node_group"),
        1 => ("workload", "node_group", ", workload, node_group"),
        _ => ("0", "0", ""),
    };
    let sums = AMOUNTS.map(|column| format!("CAST(SUM({column}) AS BIGINT)")).join(", ");
    format!(
        "SELECT cluster, {grain}, hour_number / 24, party, {workload}, {group}, paid, pricing, COUNT(*), {sums} \
         FROM hourly WHERE cluster = 1 {of_hours} \
         GROUP BY cluster, hour_number / 24, party{by}, paid, pricing"
    )
}
