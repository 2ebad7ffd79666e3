//! Small tables of other crates: any CSV file with known columns, read by the same rules as traces.

use std::io::Read;
use std::path::Path;

use super::table::NextRow;
use super::{FileTable, LineReader, RowProblem, RowView, TableColumn, TextCell};
use crate::error::TraceError;

/// A CSV file that is neither a trace nor a list of machines.
pub struct SmallTable {
    table: FileTable,
    columns: Vec<TableColumn>,
}

/// One row of a [`SmallTable`]. Columns are named by their position in the list given.
pub struct SmallRow<'t> {
    row: RowView<'t>,
    columns: &'t [TableColumn],
    /// Line in the file, from 1, the header included.
    pub line: u64,
}

impl SmallTable {
    /// Opens a file, plain or gzip, that has these columns, in any order, and no others.
    ///
    /// # Errors
    /// [`TraceError`] for a file that cannot be read, and for another header.
    pub fn open(path: &Path, columns: &[&'static str]) -> Result<Self, TraceError> {
        Self::of(LineReader::open(path)?, columns)
    }

    /// The same out of a stream; `name` stands for the file in messages.
    ///
    /// # Errors
    /// As [`SmallTable::open`].
    pub fn new(
        input: impl Read + 'static,
        name: &str,
        columns: &[&'static str],
    ) -> Result<Self, TraceError> {
        Self::of(LineReader::new(input, name)?, columns)
    }

    fn of(lines: LineReader, names: &[&'static str]) -> Result<Self, TraceError> {
        let mut table = FileTable::other(lines, names)?;
        let columns = names.iter().map(|name| table.require(name)).collect::<Result<_, _>>()?;
        let stranger = table.unused().next().map(str::to_owned);
        if let Some(name) = stranger {
            let expected = format!("only {}", names.join(", "));
            return Err(table.header_error(&name, "is not a column of this table", expected));
        }
        Ok(Self { table, columns })
    }

    /// Turns every row into a value.
    ///
    /// # Errors
    /// [`TraceError`] names file, line and column of the first row that cannot be taken.
    pub fn rows<T>(
        mut self,
        mut parse: impl FnMut(&SmallRow<'_>) -> Result<T, RowProblem>,
    ) -> Result<Vec<T>, TraceError> {
        let mut values = Vec::new();
        loop {
            let parsed = match self.table.advance()? {
                NextRow::End => return Ok(values),
                NextRow::Bad(problem) => Err(problem),
                NextRow::Row => parse(&SmallRow {
                    row: self.table.row(),
                    columns: &self.columns,
                    line: self.table.line(),
                }),
            };
            let place = |problem: RowProblem| problem.at(self.table.file(), self.table.line());
            values.push(parsed.map_err(|problem| TraceError::Row(Box::new(place(problem))))?);
        }
    }
}

impl SmallRow<'_> {
    fn cell(&self, column: usize) -> TextCell<'_> {
        self.row.cell(self.columns[column])
    }

    /// Text that must be there, without control characters.
    ///
    /// # Errors
    /// What is wrong with the cell.
    pub fn name(&self, column: usize) -> Result<String, RowProblem> {
        self.cell(column).name()
    }

    /// A whole number from 0 to `highest`: digits alone.
    ///
    /// # Errors
    /// What is wrong with the cell.
    pub fn whole(&self, column: usize, highest: u64) -> Result<u64, RowProblem> {
        self.cell(column).whole(highest)
    }

    /// Seconds with or without decimals, in ms, half a millisecond rounded up.
    ///
    /// # Errors
    /// What is wrong with the cell.
    pub fn seconds_as_ms(&self, column: usize) -> Result<u64, RowProblem> {
        self.cell(column).seconds_as_ms()
    }

    /// The same in microseconds.
    ///
    /// # Errors
    /// What is wrong with the cell.
    pub fn seconds_as_us(&self, column: usize) -> Result<u64, RowProblem> {
        self.cell(column).seconds_as_us()
    }

    /// A cell that cannot be taken: `problem` as the end of the sentence "the text ...".
    pub fn bad(
        &self,
        column: usize,
        problem: impl Into<String>,
        expected: impl Into<String>,
    ) -> RowProblem {
        self.cell(column).bad(problem, expected)
    }
}
