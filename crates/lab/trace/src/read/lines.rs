//! Lines with their numbers, out of plain or gzip input.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::error::TraceError;

/// Longest line that is read; a longer one is damage (or a gzip bomb), not a table.
const LONGEST_LINE_BYTES: u64 = 64 << 20;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const UTF8_BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One line at a time, without its line end (`\n` or `\r\n`).
pub(crate) struct LineReader {
    file: String,
    input: Box<dyn BufRead>,
    bytes: Vec<u8>,
    line: u64,
    pushed_back: bool,
}

impl LineReader {
    pub(crate) fn open(path: &Path) -> Result<Self, TraceError> {
        let file = path.display().to_string();
        match File::open(path) {
            Ok(input) if input.metadata().is_ok_and(|found| found.is_dir()) => {
                Err(TraceError::Directory { file })
            }
            Ok(input) => Self::new(input, &file),
            Err(source) => Err(TraceError::Open { file, source }),
        }
    }

    pub(crate) fn new(mut input: impl Read + 'static, file: &str) -> Result<Self, TraceError> {
        let mut start = Vec::new();
        let magic = (&mut input).take(GZIP_MAGIC.len() as u64).read_to_end(&mut start);
        magic.map_err(|source| TraceError::Read { file: file.to_owned(), line: 1, source })?;
        let gzip = start == GZIP_MAGIC;
        let whole = Cursor::new(start).chain(input);
        let input: Box<dyn BufRead> = if gzip {
            Box::new(BufReader::new(MultiGzDecoder::new(BufReader::new(whole))))
        } else {
            Box::new(BufReader::new(whole))
        };
        Ok(Self { file: file.to_owned(), input, bytes: Vec::new(), line: 0, pushed_back: false })
    }

    /// Goes to the next line; false at the end.
    pub(crate) fn advance(&mut self) -> Result<bool, TraceError> {
        if std::mem::take(&mut self.pushed_back) {
            return Ok(true);
        }
        self.bytes.clear();
        let read = (&mut self.input)
            .take(LONGEST_LINE_BYTES)
            .read_until(b'\n', &mut self.bytes)
            .and_then(|count| match count as u64 {
                LONGEST_LINE_BYTES => Err(io::Error::other("a line is longer than 64 MiB")),
                count => Ok(count),
            });
        let count = read.map_err(|source| TraceError::Read {
            file: self.file.clone(),
            line: self.line + 1,
            source,
        })?;
        if count == 0 {
            return Ok(false);
        }
        self.line += 1;
        if self.bytes.last() == Some(&b'\n') {
            self.bytes.pop();
            if self.bytes.last() == Some(&b'\r') {
                self.bytes.pop();
            }
        }
        if self.line == 1 && self.bytes.starts_with(UTF8_BYTE_ORDER_MARK) {
            self.bytes.drain(..UTF8_BYTE_ORDER_MARK.len());
        }
        if self.line == 1 && self.bytes.contains(&b'\r') {
            return Err(TraceError::CarriageReturns { file: self.file.clone() });
        }
        Ok(true)
    }

    /// Makes the next `advance` stay on this line.
    pub(crate) fn push_back(&mut self) {
        self.pushed_back = true;
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Number of the current line, from 1.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    pub(crate) fn file(&self) -> &str {
        &self.file
    }
}
