//! Files that are written compressed where their name says so, and whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::drafts::Listed;

/// Writes a file beside its place and puts it there when it is whole: what stands there before
/// stays until then, and stays if something fails.
///
/// # Errors
/// The writer's own error, which says what could not be written, or that of the file system.
pub fn write_whole<T, E: Into<anyhow::Error>>(
    path: &Path,
    write: impl FnOnce(&mut OutputFile) -> Result<T, E>,
) -> Result<T> {
    let what = || format!("{}: cannot be written", path.display());
    // A pipe or a device has no place beside it.
    if path.exists() && !path.is_file() {
        let mut file = OutputFile::create(path)?;
        let written = write(&mut file).map_err(Into::into).with_context(what)?;
        return file.finish(path).map(|()| written);
    }
    // Behind a link, so that the link stays.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let draft = draft_of(&place);
    // A signal that ends the program removes it.
    let _listed = Listed::new(&draft);
    let file = File::create(&draft).with_context(what)?;
    let mut file = OutputFile::of(file, path);
    let written = write(&mut file).map_err(Into::into).with_context(what).and_then(|written| {
        file.finish(path)?;
        fs::rename(&draft, &place).with_context(what)?;
        Ok(written)
    });
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&draft);
    }
    written
}

/// Refuses a path that cannot be written, before long work whose result belongs there.
///
/// # Errors
/// What the file system says.
pub fn check_place(path: &Path) -> Result<()> {
    let what = || format!("{}: cannot be written", path.display());
    if path.exists() {
        // To open a pipe would wait for its reader.
        let is_stored = path.is_file() || path.is_dir();
        let opened = || fs::OpenOptions::new().append(true).open(path).map(drop);
        return if is_stored { opened().with_context(what) } else { Ok(()) };
    }
    let draft = draft_of(path);
    let _listed = Listed::new(&draft);
    File::create(&draft).with_context(what)?;
    fs::remove_file(&draft).with_context(what)
}

/// Beside a file, under a name of this process alone.
fn draft_of(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.part", std::process::id()))
}

/// A file being written: gzip if its name ends in `.gz`.
#[derive(Debug)]
pub enum OutputFile {
    Plain(BufWriter<File>),
    Gzip(Box<GzEncoder<BufWriter<File>>>),
}

impl OutputFile {
    /// Creates or replaces a file.
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create(path);
        let file = file.with_context(|| format!("{}: cannot be written", path.display()))?;
        Ok(Self::of(file, path))
    }

    /// Writes into an open file what is to stand under a name.
    fn of(file: File, name: &Path) -> Self {
        let file = BufWriter::new(file);
        match name.extension().is_some_and(|extension| extension == "gz") {
            true => Self::Gzip(Box::new(GzEncoder::new(file, Compression::default()))),
            false => Self::Plain(file),
        }
    }

    /// Writes what is still held back, with the end of the gzip stream.
    pub fn finish(self, path: &Path) -> Result<()> {
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
