//! Rows of a file by column name.

use super::cell::{RowProblem, TextCell};
use super::csv_row::Fields;
use super::lines::LineReader;
use crate::error::{TraceError, shortened};
use crate::format::TraceFormat;

/// A file as a table: named columns, and one current row.
pub(crate) struct FileTable {
    lines: LineReader,
    format: Option<TraceFormat>,
    /// What the file should hold, for messages.
    holds: String,
    columns: Vec<String>,
    used: Vec<bool>,
    fields: Fields,
    row_line: u64,
    csv: bool,
}

/// A column of a [`FileTable`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableColumn(usize);

/// The current row.
#[derive(Clone, Copy)]
pub(crate) struct RowView<'a> {
    columns: &'a [String],
    fields: &'a Fields,
}

/// What [`FileTable::advance`] came to.
pub(crate) enum NextRow {
    Row,
    Bad(RowProblem),
    End,
}

impl<'a> RowView<'a> {
    pub(crate) fn cell(self, column: TableColumn) -> TextCell<'a> {
        TextCell { column: &self.columns[column.0], text: self.fields.get(column.0) }
    }

    /// The cell of a column the file may lack.
    pub(crate) fn maybe(self, column: Option<TableColumn>) -> Option<TextCell<'a>> {
        column.map(|column| self.cell(column))
    }
}

impl FileTable {
    /// A CSV file of a format; its first line names the columns.
    pub(crate) fn csv(lines: LineReader, format: TraceFormat) -> Result<Self, TraceError> {
        Self::with_header(lines, Some(format), format.description())
    }

    /// Any other CSV file; its first line names the columns.
    pub(crate) fn other(lines: LineReader, columns: &[&str]) -> Result<Self, TraceError> {
        Self::with_header(lines, None, format!("the columns {}", columns.join(",")))
    }

    fn with_header(
        mut lines: LineReader,
        format: Option<TraceFormat>,
        holds: String,
    ) -> Result<Self, TraceError> {
        let mut fields = Fields::default();
        let split = match lines.advance()? {
            false => Err("the file is empty"),
            true => match std::str::from_utf8(lines.bytes()) {
                Ok(text) => fields.split_csv(text),
                Err(_) => Err("the header is not UTF-8"),
            },
        };
        let columns: Vec<String> = fields.iter().map(str::to_owned).collect();
        let table = Self {
            used: vec![false; columns.len()],
            lines,
            format,
            holds,
            columns,
            fields,
            row_line: 1,
            csv: true,
        };
        if let Err(problem) = split {
            return Err(TraceError::Header {
                file: table.file().to_owned(),
                line: 1,
                column: None,
                problem: problem.to_owned(),
                expected: table.holds,
            });
        }
        for (index, name) in table.columns.iter().enumerate() {
            if table.columns[..index].contains(name) {
                return Err(table.header_error(name, "duplicate", "each name once"));
            }
        }
        Ok(table)
    }

    /// A file of words with blanks between them, fixed columns and `;` comments.
    pub(crate) fn blanks(lines: LineReader, format: TraceFormat, columns: &[&str]) -> Self {
        Self {
            lines,
            format: Some(format),
            holds: format.description(),
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
            used: vec![true; columns.len()],
            fields: Fields::default(),
            row_line: 0,
            csv: false,
        }
    }

    pub(crate) fn optional(&mut self, name: &str) -> Option<TableColumn> {
        let index = self.columns.iter().position(|column| column == name)?;
        self.used[index] = true;
        Some(TableColumn(index))
    }

    pub(crate) fn require(&mut self, name: &str) -> Result<TableColumn, TraceError> {
        let expected = format!("a header that has it, as {} does", self.holds);
        self.optional(name).ok_or_else(|| self.header_error(name, "is missing", expected))
    }

    pub(crate) fn header_error(
        &self,
        column: &str,
        problem: impl Into<String>,
        expected: impl Into<String>,
    ) -> TraceError {
        TraceError::Header {
            file: self.file().to_owned(),
            line: 1,
            column: Some(column.to_owned()),
            problem: problem.into(),
            expected: expected.into(),
        }
    }

    /// Columns nobody asked for.
    pub(crate) fn unused(&self) -> impl Iterator<Item = &str> {
        let pairs = self.columns.iter().zip(&self.used);
        pairs.filter(|(_, used)| !**used).map(|(name, _)| name.as_str())
    }

    /// A note for each column nobody asked for.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.unused().map(|name| format!("column {} is not used", shortened(name))).collect()
    }

    pub(crate) fn advance(&mut self) -> Result<NextRow, TraceError> {
        let mut blank = None;
        loop {
            if !self.lines.advance()? {
                return Ok(NextRow::End);
            }
            let bytes = self.lines.bytes();
            if bytes.is_empty() && self.csv {
                blank = blank.or(Some(self.lines.line()));
                continue;
            }
            if !self.csv && is_blank_or_comment(bytes) {
                continue;
            }
            if let Some(line) = blank {
                // Blank lines are nothing at the end of a file; between rows they are damage.
                self.lines.push_back();
                self.row_line = line;
                let expected = format!("{} fields", self.columns.len());
                return Ok(NextRow::Bad(RowProblem::whole_row("", "is blank", expected)));
            }
            self.row_line = self.lines.line();
            return Ok(self.split());
        }
    }

    fn split(&mut self) -> NextRow {
        let Ok(text) = std::str::from_utf8(self.lines.bytes()) else {
            let lossy = String::from_utf8_lossy(self.lines.bytes());
            return NextRow::Bad(RowProblem::whole_row(lossy, "is not UTF-8", "UTF-8 text"));
        };
        if !self.csv {
            self.fields.split_blanks(text);
        } else if let Err(problem) = self.fields.split_csv(text) {
            let expected = "comma-separated fields, each quoted completely or not at all";
            return NextRow::Bad(RowProblem::whole_row(text, problem, expected));
        }
        if self.fields.count() != self.columns.len() {
            let problem = format!("has {} fields", self.fields.count());
            let expected = format!("{} as in the header", self.columns.len());
            return NextRow::Bad(RowProblem::whole_row(text, problem, expected));
        }
        NextRow::Row
    }

    pub(crate) fn row(&self) -> RowView<'_> {
        RowView { columns: &self.columns, fields: &self.fields }
    }

    /// Line of the current row or problem.
    pub(crate) fn line(&self) -> u64 {
        self.row_line
    }

    pub(crate) fn file(&self) -> &str {
        self.lines.file()
    }

    pub(crate) fn format(&self) -> Option<TraceFormat> {
        self.format
    }

    /// What the file should hold, for messages.
    pub(crate) fn holds(&self) -> &str {
        &self.holds
    }
}

fn is_blank_or_comment(bytes: &[u8]) -> bool {
    let start = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    start.is_none_or(|byte| *byte == b';')
}
