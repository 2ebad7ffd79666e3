//! Many rows in one statement, and rows read.

use sqlx::any::{AnyArguments, AnyRow};
use sqlx::{AnyConnection, Arguments, AssertSqlSafe, Row};

#[derive(Clone, Debug)]
pub(crate) enum ColumnValue {
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl From<i64> for ColumnValue {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for ColumnValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// SQLite takes 32,766 values in a statement, PostgreSQL 65,535.
const MOST_CELLS: usize = 8_000;

pub(crate) type Result<T> = std::result::Result<T, sqlx::Error>;

fn arguments(cells: Vec<ColumnValue>) -> Result<AnyArguments> {
    let mut arguments = AnyArguments::default();
    for cell in cells {
        let added = match cell {
            ColumnValue::Number(number) => arguments.add(number),
            ColumnValue::Text(text) => arguments.add(text),
            ColumnValue::Bytes(bytes) => arguments.add(bytes),
        };
        added.map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}

/// Runs a statement of ours; the number of rows that it changed.
pub(crate) async fn run(
    connection: &mut AnyConnection,
    sql: &str,
    cells: Vec<ColumnValue>,
) -> Result<u64> {
    let query = sqlx::query_with(AssertSqlSafe(sql.to_owned()), arguments(cells)?);
    Ok(query.execute(connection).await?.rows_affected())
}

/// The rows of a query of ours.
pub(crate) async fn read(
    connection: &mut AnyConnection,
    sql: &str,
    cells: Vec<ColumnValue>,
) -> Result<Vec<AnyRow>> {
    let query = sqlx::query_with(AssertSqlSafe(sql.to_owned()), arguments(cells)?);
    query.fetch_all(connection).await
}

/// Inserts rows of `width` cells, as many as fit into one statement: `head` VALUES ... `tail`.
pub(crate) async fn insert(
    connection: &mut AnyConnection,
    head: &str,
    width: usize,
    tail: &str,
    cells: Vec<ColumnValue>,
) -> Result<()> {
    let mut cells = cells.into_iter().peekable();
    let most = MOST_CELLS / width * width;
    while cells.peek().is_some() {
        let part: Vec<ColumnValue> = cells.by_ref().take(most).collect();
        let rows = part.len() / width;
        let mut sql = format!("{head} VALUES ");
        for row in 0..rows {
            sql.push_str(if row == 0 { "(" } else { ",(" });
            sql.push_str(&placeholders(row * width, width));
            sql.push(')');
        }
        sql.push_str(tail);
        // Only the statement of a full part comes again.
        let query = sqlx::query_with(AssertSqlSafe(sql), arguments(part)?);
        query.persistent(rows * width == most).execute(&mut *connection).await?;
    }
    Ok(())
}

/// `$3,$4` after two.
pub(crate) fn placeholders(after: usize, count: usize) -> String {
    let numbers: Vec<String> = (after + 1..=after + count).map(|n| format!("${n}")).collect();
    numbers.join(",")
}

pub(crate) fn number(row: &AnyRow, place: usize) -> Result<i64> {
    row.try_get(place)
}

/// A number that is never negative.
pub(crate) fn unsigned(row: &AnyRow, place: usize) -> Result<u64> {
    let number = number(row, place)?;
    u64::try_from(number).map_err(|_| sqlx::Error::Decode(format!("{number} is negative").into()))
}

pub(crate) fn text(row: &AnyRow, place: usize) -> Result<String> {
    row.try_get(place)
}

pub(crate) fn bytes(row: &AnyRow, place: usize) -> Result<Vec<u8>> {
    row.try_get(place)
}
