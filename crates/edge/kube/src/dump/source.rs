//! Files and folders with dumps.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use super::DumpError;
use super::reader::{Sink, read_objects};

/// The first bytes of a gzip stream.
const GZIP: [u8; 2] = [0x1f, 0x8b];

const BUFFER_BYTES: usize = 1 << 18;

/// Reads files, and all files of folders that could be dumps, in order of their names. Answers with the
/// number of objects.
///
/// # Errors
/// See [`DumpError`].
pub fn read_paths(paths: &[PathBuf], sink: &mut dyn Sink) -> Result<u64, DumpError> {
    let mut objects = 0;
    for path in paths {
        if !path.is_dir() {
            objects += read_file(path, sink)?;
            continue;
        }
        let io = |source| DumpError::Io { path: path.clone(), source };
        let entries = fs::read_dir(path).map_err(io)?;
        let mut files: Vec<PathBuf> =
            entries.map(|entry| Ok(entry.map_err(io)?.path())).collect::<Result<_, _>>()?;
        files.retain(|file| file.is_file() && could_be_dump(file));
        files.sort();
        if files.is_empty() {
            return Err(DumpError::NothingThere { path: path.clone() });
        }
        for file in files {
            objects += read_file(&file, sink)?;
        }
    }
    Ok(objects)
}

/// Reads one file, plain or gzip whatever its name says. Answers with the number of objects.
///
/// # Errors
/// See [`DumpError`].
pub fn read_file(path: &Path, sink: &mut dyn Sink) -> Result<u64, DumpError> {
    let io = |source| DumpError::Io { path: path.to_owned(), source };
    let name = path.display().to_string();
    let mut input = BufReader::with_capacity(BUFFER_BYTES, File::open(path).map_err(io)?);
    if input.fill_buf().map_err(io)?.starts_with(&GZIP) {
        let plain = BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(input));
        return read_objects(plain, &name, sink);
    }
    read_objects(input, &name, sink)
}

fn could_be_dump(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    [".json", ".jsonl", ".ndjson"].iter().any(|ending| name.ends_with(ending))
}
