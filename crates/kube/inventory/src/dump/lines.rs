//! Objects that stand on a line each, as in a collection: many lines are read at a time, side by
//! side.

use std::io::{self, BufRead, Read};

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::head::ObjectHeader;

/// Lines are taken together up to so many bytes.
const TOGETHER_BYTES: usize = 4 << 20;

/// What is longer is no line of a collection.
const LONGEST_LINE: u64 = 1 << 20;

/// The next lines of a stream.
#[derive(Default)]
pub(super) struct LineBatch {
    text: Vec<u8>,
    ends: Vec<usize>,
}

pub(super) enum DumpLine<'a> {
    /// A whole object that is no list.
    Object(ObjectHeader<'a>, &'a str),
    /// Nothing.
    Blank,
    /// Something else, or the beginning of something.
    Other,
}

impl LineBatch {
    /// Takes the next lines; none at the end of the stream.
    ///
    /// # Errors
    /// Of the stream; the lines before the error are there.
    pub(super) fn take(&mut self, input: &mut impl BufRead) -> io::Result<()> {
        self.text.clear();
        self.ends.clear();
        while self.text.len() < TOGETHER_BYTES {
            let read = input.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut self.text)?;
            if read == 0 {
                break;
            }
            self.ends.push(self.text.len());
            // The last one, or one that is too long.
            if !self.text.ends_with(b"\n") {
                break;
            }
        }
        Ok(())
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn read(&self) -> Vec<DumpLine<'_>> {
        let lines = (0..self.ends.len()).into_par_iter();
        lines.map(|line| DumpLine::of(&self.text[self.begin(line)..self.ends[line]])).collect()
    }

    /// The text from a line on, also what was read of a line before an error.
    pub(super) fn text_from(&self, line: usize) -> &[u8] {
        &self.text[self.begin(line)..]
    }

    fn begin(&self, line: usize) -> usize {
        if line == 0 { 0 } else { self.ends[line - 1] }
    }
}

impl<'a> DumpLine<'a> {
    fn of(line: &'a [u8]) -> Self {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Self::Blank;
        }
        let text = str::from_utf8(line).ok().filter(|text| text.starts_with('{'));
        let head = text
            .and_then(|text| Some((serde_json::from_str::<ObjectHeader<'_>>(text).ok()?, text)));
        match head {
            Some((head, text)) if !head.is_list => Self::Object(head, text),
            _ => Self::Other,
        }
    }
}
