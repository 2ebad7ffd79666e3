//! Records of a file, one at a time.

use std::io::Read;

use csv::{ByteRecord, ReaderBuilder, StringRecord};

use crate::bounded::{Allowance, Bounded};
use crate::error::TableError;

/// Most bytes of a record, with what is read ahead of the next one.
pub const MAX_RECORD_BYTES: u64 = 1 << 20;

const UTF8_BYTE_ORDER_MARK: char = '\u{feff}';

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// By a program: every line is a record.
    Export,
    /// By a person: a line that begins with `#` is a comment.
    Handwritten,
}

/// A table that is read from its begin. Blanks around cells do not count, empty lines neither.
pub struct Table<R> {
    file: String,
    reader: csv::Reader<Bounded<R>>,
    allowance: Allowance,
    header: StringRecord,
    cells: StringRecord,
    line: u64,
}

impl<R: Read> Table<R> {
    /// Reads the header; `file` is the name in messages.
    ///
    /// # Errors
    /// A header that is too long or no text. A table without any line has an empty header.
    pub fn open(input: R, file: &str, style: Style) -> Result<Self, TableError> {
        let allowance = Allowance::of(MAX_RECORD_BYTES);
        let comment = (style == Style::Handwritten).then_some(b'#');
        let reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .comment(comment)
            .from_reader(Bounded::new(input, allowance.clone()));
        let (file, header, cells) = (file.to_owned(), StringRecord::new(), StringRecord::new());
        let mut table = Self { file, reader, allowance, header, cells, line: 1 };
        if table.advance()? {
            let names = table.cells.iter();
            table.header =
                names.map(|name| name.trim_start_matches(UTF8_BYTE_ORDER_MARK).trim()).collect();
        }
        Ok(table)
    }

    /// Names of the columns.
    pub fn header(&self) -> impl Iterator<Item = &str> {
        self.header.iter()
    }

    /// Place of a column; of the first of that name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.header().position(|column| column == name)
    }

    /// A header that has not what is needed.
    pub fn bad_header(&self, problem: String) -> TableError {
        TableError::Header { file: self.file.clone(), problem: shortened(problem) }
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// A record that is too long, has more or fewer cells than the header, or is no text.
    pub fn next_record(&mut self) -> Result<Option<CsvRecord<'_>>, TableError> {
        if !self.advance()? {
            return Ok(None);
        }
        let Self { file, header, cells, line, .. } = self;
        let (found, expected) = (cells.len(), header.len());
        if found != expected {
            let file = file.clone();
            return Err(TableError::Width { file, line: *line, found, expected });
        }
        Ok(Some(CsvRecord { file, line: *line, header, cells }))
    }

    /// Goes to the next record; false at the end.
    fn advance(&mut self) -> Result<bool, TableError> {
        self.allowance.renew(MAX_RECORD_BYTES);
        self.line = self.reader.position().line();
        let mut bytes = ByteRecord::new();
        let is_there = self.reader.read_byte_record(&mut bytes);
        if !is_there.map_err(|source| self.unreadable(source))? {
            return Ok(false);
        }
        if self.allowance.is_over() {
            let ends = bytes.as_slice().iter().filter(|byte| **byte == b'\n').count() as u64;
            let line = self.reader.position().line().saturating_sub(ends);
            return Err(TableError::OpenQuote { file: self.file.clone(), line });
        }
        // Where reading stands now, less the end of the last line and those inside quotes: empty
        // lines and comments before the record are not its begin.
        let ends = bytes.as_slice().iter().filter(|byte| **byte == b'\n').count() as u64;
        self.line = self.reader.position().line().saturating_sub(ends + 1);
        self.cells = StringRecord::from_byte_record(bytes).map_err(|error| {
            let (file, cell) = (self.file.clone(), error.utf8_error().field() + 1);
            TableError::NoText { file, line: self.line, cell }
        })?;
        Ok(true)
    }

    fn unreadable(&self, source: csv::Error) -> TableError {
        let (file, line) = (self.file.clone(), self.line);
        match self.allowance.is_used_up() {
            true => TableError::LongRecord { file, line },
            false => TableError::Unreadable { file, line, source },
        }
    }
}

/// One record.
#[derive(Clone, Copy, Debug)]
pub struct CsvRecord<'t> {
    file: &'t str,
    line: u64,
    header: &'t StringRecord,
    cells: &'t StringRecord,
}

impl<'t> CsvRecord<'t> {
    /// A cell, without blanks around it.
    pub fn text(&self, column: usize) -> &'t str {
        self.cells.get(column).unwrap_or_default().trim()
    }

    /// Name of the file.
    pub fn file(&self) -> &'t str {
        self.file
    }

    /// Line on which the record begins, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// A cell that cannot be taken.
    pub fn bad_cell(&self, column: usize, problem: impl Into<String>) -> TableError {
        TableError::Cell {
            file: self.file.to_owned(),
            line: self.line,
            column: shortened(self.header.get(column).unwrap_or_default().to_owned()),
            problem: shortened(problem.into()),
        }
    }
}

/// What is wrong may quote a cell, and a cell may be a whole file.
fn shortened(mut problem: String) -> String {
    const LONGEST: usize = 400;
    if let Some((end, _)) = problem.char_indices().nth(LONGEST) {
        problem.truncate(end);
        problem.push('…');
    }
    problem
}
