//! Writing files: dovetail's own CSV, which keeps everything, and job tables, which do not.

mod job_table;
mod own;

use std::io::Write;

pub use job_table::write_job_table;
pub use own::{write_cluster, write_trace};

use crate::error::{TraceError, shortened};
use crate::job::Violation;

/// One CSV line that is being put together.
struct CsvLine<'w, W> {
    output: &'w mut W,
    what: &'static str,
    first: bool,
}

impl<'w, W: Write> CsvLine<'w, W> {
    fn new(output: &'w mut W, what: &'static str) -> Self {
        Self { output, what, first: true }
    }

    fn put(&mut self, text: &str) -> Result<(), TraceError> {
        let comma = if std::mem::take(&mut self.first) { "" } else { "," };
        let quoted = text.contains([',', '"']);
        let written = if quoted {
            write!(self.output, "{comma}\"{}\"", text.replace('"', "\"\""))
        } else {
            write!(self.output, "{comma}{text}")
        };
        written.map_err(|source| TraceError::Write { what: self.what, source })
    }

    fn end(self) -> Result<(), TraceError> {
        let written = self.output.write_all(b"\n");
        written.map_err(|source| TraceError::Write { what: self.what, source })
    }
}

fn write_header<W: Write>(
    output: &mut W,
    what: &'static str,
    columns: &[&'static str],
) -> Result<(), TraceError> {
    let mut line = CsvLine::new(output, what);
    for column in columns {
        line.put(column)?;
    }
    line.end()
}

/// Text that a reader gives back unchanged.
fn checked_text<'t>(
    object: &str,
    column: &'static str,
    text: &'t Option<String>,
) -> Result<&'t str, TraceError> {
    let problem = match text.as_deref() {
        None => return Ok(""),
        Some("") => "cannot be distinguished from a missing value",
        Some(text) if text.chars().any(char::is_control) => "has a control character",
        Some(text) => return Ok(text),
    };
    let text = text.as_deref().unwrap_or_default();
    let violation = Violation::new(column, text, problem, "printable text, or no value");
    Err(unwritable(object, violation))
}

fn unwritable(object: &str, violation: Violation) -> TraceError {
    TraceError::Unwritable {
        object: shortened(object),
        column: violation.field,
        text: shortened(&violation.text),
        problem: violation.problem,
        expected: violation.expected,
    }
}
