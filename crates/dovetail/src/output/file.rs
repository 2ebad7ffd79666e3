//! Files that are written compressed where their name says so.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;

/// A file being written: gzip if its name ends in `.gz`.
#[derive(Debug)]
pub(crate) enum OutputFile {
    Plain(BufWriter<File>),
    Gzip(Box<GzEncoder<BufWriter<File>>>),
}

impl OutputFile {
    /// Creates or replaces a file.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let file = File::create(path);
        let file = file.with_context(|| format!("{}: cannot be written", path.display()))?;
        let file = BufWriter::new(file);
        let is_gzip = path.extension().is_some_and(|extension| extension == "gz");
        Ok(match is_gzip {
            true => Self::Gzip(Box::new(GzEncoder::new(file, Compression::default()))),
            false => Self::Plain(file),
        })
    }

    /// Writes what is still held back, with the end of the gzip stream.
    pub(crate) fn finish(self, path: &Path) -> Result<()> {
        let flushed = match self {
            Self::Plain(mut file) => file.flush(),
            Self::Gzip(encoder) => encoder.finish().and_then(|mut file| file.flush()),
        };
        flushed.with_context(|| format!("{}: cannot be written", path.display()))
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            Self::Gzip(encoder) => encoder.flush(),
        }
    }
}
