//! How a place in a file is written, for every reader.
//!
//! `FILE`, `FILE:LINE`, ``FILE:LINE: column `NAME` `` in a table, and `FILE:LINE:CHARACTER` where a
//! line has no columns, such as in JSON. Lines and characters count from 1. A colon and what is
//! wrong follow.

use std::fmt;

/// What is wrong with a file whose lines end with a carriage return alone, and the way out.
pub const CARRIAGE_RETURNS: &str = "lines end with a carriage return alone; convert them to line \
                                    feeds, for example with tr '\\r' '\\n'";

/// A place in a file.
#[derive(Clone, Copy, Debug)]
pub struct FilePosition<'p> {
    file: &'p str,
    line: Option<u64>,
    column: Option<&'p str>,
    character: Option<u64>,
}

impl<'p> FilePosition<'p> {
    /// A file as a whole, as its user named it.
    pub fn file(file: &'p str) -> Self {
        Self { file, line: None, column: None, character: None }
    }

    /// A line of a file, from 1.
    pub fn line(file: &'p str, line: u64) -> Self {
        Self { line: Some(line), ..Self::file(file) }
    }

    /// The column of a table; all of the line without one.
    #[must_use]
    pub fn column(self, column: Option<&'p str>) -> Self {
        Self { column, ..self }
    }

    /// The character of the line; 0 where it is not known.
    #[must_use]
    pub fn character(self, character: u64) -> Self {
        Self { character: Some(character).filter(|it| *it > 0), ..self }
    }
}

impl fmt::Display for FilePosition<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, character } = self;
        out.write_str(file)?;
        for number in [line, character].into_iter().flatten() {
            write!(out, ":{number}")?;
        }
        column.map_or(Ok(()), |name| write!(out, ": column `{name}`"))
    }
}

/// What a JSON reader says is wrong, and the line and character within its text if it says them:
/// its sentences end with them in words of their own.
pub fn without_position(error: &str) -> (&str, Option<(u64, u64)>) {
    let parsed = error.rsplit_once(" at line ").and_then(|(problem, position)| {
        let (line, column) = position.split_once(" column ")?;
        Some((problem, Some((line.parse().ok()?, column.parse().ok()?))))
    });
    match parsed.unwrap_or((error, None)) {
        // The parser's word for a text that starts like true, false or null.
        ("expected ident", position) => ("expected value", position),
        other => other,
    }
}

/// What is wrong with JSON that begins on a line of a file, after its place; `what` says what it
/// should be.
pub fn bad_json(file: &str, first_line: u64, what: &str, error: &str) -> String {
    let (problem, position) = without_position(error);
    let place = match position {
        // Line 0 is how a reader says that it knows no place.
        Some((line, character)) if line > 0 => {
            FilePosition::line(file, first_line + line - 1).character(character.max(1))
        }
        _ => FilePosition::line(file, first_line),
    };
    format!("{place}: {what}: {problem}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_written_in_one_way() {
        assert_eq!(FilePosition::file("f").to_string(), "f");
        assert_eq!(FilePosition::line("f", 3).column(None).to_string(), "f:3");
        assert_eq!(FilePosition::line("f", 3).column(Some("cpu")).to_string(), "f:3: column `cpu`");
        assert_eq!(FilePosition::line("f", 3).character(51).to_string(), "f:3:51");
    }

    #[test]
    fn a_position_in_json_is_one_in_the_file() {
        let told = |error| bad_json("f", 7, "not it", error);
        assert_eq!(told("expected value at line 1 column 51"), "f:7:51: not it: expected value");
        assert_eq!(told("EOF at line 2 column 0"), "f:8:1: not it: EOF");
        assert_eq!(told("no place at line 0 column 0"), "f:7: not it: no place");
        assert_eq!(told("who is at line 5"), "f:7: not it: who is at line 5");
    }
}
