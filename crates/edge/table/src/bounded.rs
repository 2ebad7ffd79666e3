//! Input with one kind of line end, which ends in an error when too much is read at once.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// Reads no more bytes than are allowed; whoever holds the [`Allowance`] can allow more. Every line
/// ends in `\n`, the last one too, whether it was `\r\n`, `\r` or nothing: so that lines can be
/// counted. Behind the last line comes an empty one: whoever asks for more while reading a record
/// looks for the end of a quote.
pub(crate) struct Bounded<R> {
    input: R,
    allowance: Allowance,
    /// The byte before; the begin of the input is the begin of a line.
    before: u8,
    /// Whether the empty line at the end was given.
    is_ended: bool,
}

/// Bytes that may still be read.
#[derive(Clone)]
pub(crate) struct Allowance {
    bytes: Rc<Cell<u64>>,
    /// Whether somebody asked for more than there is.
    is_over: Rc<Cell<bool>>,
}

impl Allowance {
    pub(crate) fn of(bytes: u64) -> Self {
        Self { bytes: Rc::new(Cell::new(bytes)), is_over: Rc::default() }
    }

    pub(crate) fn renew(&self, bytes: u64) {
        self.bytes.set(bytes);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    pub(crate) fn is_used_up(&self) -> bool {
        self.bytes.get() == 0
    }
}

impl<R: Read> Bounded<R> {
    pub(crate) fn new(input: R, allowance: Allowance) -> Self {
        Self { input, allowance, before: b'\n', is_ended: false }
    }

    /// Puts `\n` for every end of a line; answers with how many bytes are left.
    fn end_lines_alike(&mut self, bytes: &mut [u8]) -> usize {
        let mut kept = 0;
        for place in 0..bytes.len() {
            let byte = bytes[place];
            let is_second_half = byte == b'\n' && self.before == b'\r';
            self.before = byte;
            if !is_second_half {
                bytes[kept] = if byte == b'\r' { b'\n' } else { byte };
                kept += 1;
            }
        }
        kept
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let left = self.allowance.bytes.get();
            if left == 0 {
                return Err(io::Error::other("too many bytes without an end"));
            }
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            let count = self.input.read(&mut buffer[..most])?;
            self.allowance.bytes.set(left - count as u64);
            let ends_line = matches!(self.before, b'\n' | b'\r');
            if count == 0 && most > 0 && !ends_line {
                self.before = b'\n';
                buffer[0] = b'\n';
                return Ok(1);
            }
            if count == 0 && most > 0 {
                self.allowance.is_over.set(self.is_ended);
                if !std::mem::replace(&mut self.is_ended, true) {
                    buffer[0] = b'\n';
                    return Ok(1);
                }
            }
            let kept = self.end_lines_alike(&mut buffer[..count]);
            if kept > 0 || count == 0 {
                return Ok(kept);
            }
        }
    }
}
