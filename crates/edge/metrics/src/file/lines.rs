//! Lines of bounded length with their numbers, and their fields.

use std::io::{self, BufRead, Read};

const UTF8_BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What one step of reading found.
#[derive(Debug)]
pub(crate) enum LineRead {
    /// A line, to be read with [`BoundedLines::bytes`].
    Here,
    End,
    TooLong,
    /// The first line, which ends with a carriage return alone.
    CarriageReturns,
}

/// One line at a time, without its line end (`\n` or `\r\n`).
#[derive(Debug)]
pub(crate) struct BoundedLines<R> {
    input: R,
    limit_bytes: u64,
    bytes: Vec<u8>,
    number: u64,
}

impl<R: BufRead> BoundedLines<R> {
    pub(crate) fn new(input: R, limit_bytes: u64) -> Self {
        Self { input, limit_bytes, bytes: Vec::new(), number: 0 }
    }

    /// Goes to the next line.
    pub(crate) fn advance(&mut self) -> io::Result<LineRead> {
        self.bytes.clear();
        self.number += 1;
        // One more than allowed, and two for the line end.
        let limit = self.limit_bytes + 3;
        let count = (&mut self.input).take(limit).read_until(b'\n', &mut self.bytes)?;
        if count == 0 {
            return Ok(LineRead::End);
        }
        if self.bytes.last() == Some(&b'\n') {
            self.bytes.pop();
            if self.bytes.last() == Some(&b'\r') {
                self.bytes.pop();
            }
        }
        if self.number == 1 && self.bytes.starts_with(UTF8_BYTE_ORDER_MARK) {
            self.bytes.drain(..UTF8_BYTE_ORDER_MARK.len());
        }
        if self.number == 1 && self.bytes.contains(&b'\r') {
            return Ok(LineRead::CarriageReturns);
        }
        Ok(if self.bytes.len() as u64 > self.limit_bytes {
            LineRead::TooLong
        } else {
            LineRead::Here
        })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Number of the current line, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

/// The fields of a line. A field stands in quotes as a whole or has none: no name of Kubernetes has
/// a comma or a quote in it, and a stray quote must spoil no more than its own line.
///
/// # Errors
/// The end of a sentence that begins with the line.
pub(crate) fn fields<'a>(line: &'a str, found: &mut Vec<&'a str>) -> Result<(), &'static str> {
    found.clear();
    for field in line.split(',') {
        let inner = field.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let field = inner.unwrap_or(field);
        if field.contains('"') {
            return Err("has a stray quote: put quotes around the whole field, or remove them");
        }
        found.push(field);
    }
    Ok(())
}
