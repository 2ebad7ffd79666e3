//! Files and folders with dumps.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;

use super::once::{Once, SeenObjects, SeveralVersions};
use super::reader::{Sink, read_objects};
use super::{COLLECTION, DumpError};

/// The first bytes of a gzip stream.
const GZIP: [u8; 2] = [0x1f, 0x8b];

const BUFFER_BYTES: usize = 1 << 18;

/// What was read of files and folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadDump {
    /// How many objects the files have.
    pub objects: u64,
    /// Objects of which they have several versions; of each the newest counts.
    pub several: Option<SeveralVersions>,
    /// Folders with YAML files, which are not read, and how many there are.
    pub yaml: Vec<(PathBuf, usize)>,
}

/// Reads files, and all files of folders that could be dumps, in order of their names. Each object
/// is handed on once: of several versions the one with the highest resourceVersion, or the last
/// where that is no number. Where files can be read only once, such as a pipe, or the sink cannot
/// begin again, it also gets old versions that come before the newest.
///
/// # Errors
/// See [`DumpError`].
pub fn read_paths(paths: &[PathBuf], sink: &mut dyn Sink) -> Result<ReadDump, DumpError> {
    let (mut files, mut yaml) = (Vec::new(), Vec::new());
    for path in paths {
        files.extend(dump_files(path)?);
        if path.is_dir() {
            let ignored = names(path)?.iter().filter(|file| is_yaml(file)).count();
            yaml.extend((ignored > 0).then(|| (path.clone(), ignored)));
        }
    }
    let mut seen = SeenObjects::default();
    let objects = read_files(&files, &mut Once::first(&mut seen, sink))?;
    let is_stream = |file: &PathBuf| file == Path::new(STDIN) || !file.is_file();
    let can_be_read_again = || !files.iter().any(is_stream);
    if seen.is_outdated && can_be_read_again() && sink.begin_again() {
        read_files(&files, &mut Once::second(&mut seen, sink))?;
    }
    Ok(ReadDump { objects, several: seen.several, yaml })
}

fn read_files(files: &[PathBuf], sink: &mut dyn Sink) -> Result<u64, DumpError> {
    let mut objects = 0;
    for file in files {
        objects += read_file(file, sink)?;
    }
    Ok(objects)
}

/// Standard input, as a path.
pub const STDIN: &str = "-";

/// A file, or standard input.
///
/// # Errors
/// A file that cannot be opened.
fn opened(path: &Path) -> Result<Box<dyn BufRead>, DumpError> {
    if path == Path::new(STDIN) {
        // It has one buffer for all who read it, so what was peeked at is read again.
        return Ok(Box::new(std::io::stdin().lock()));
    }
    let file = File::open(path);
    let file = file.map_err(|source| DumpError::Io { path: path.to_owned(), source })?;
    Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, file)))
}

/// Reads one file, plain or gzip whatever its name says; `-` is standard input. Answers with the
/// number of objects.
///
/// # Errors
/// See [`DumpError`].
pub fn read_file(path: &Path, sink: &mut dyn Sink) -> Result<u64, DumpError> {
    let io = |source| DumpError::Io { path: path.to_owned(), source };
    let is_stdin = path == Path::new(STDIN);
    let name = if is_stdin { "standard input".to_owned() } else { path.display().to_string() };
    let mut input = opened(path)?;
    if input.fill_buf().map_err(io)?.starts_with(&GZIP) {
        let plain = BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(input));
        return read_objects(plain, &name, sink);
    }
    read_objects(input, &name, sink)
}

/// When a collection was made, in ms since 1970, if a file is one: its first line says so.
///
/// # Errors
/// A file that cannot be opened or read.
pub fn collected_at(path: &Path) -> Result<Option<u64>, DumpError> {
    const LONGEST_LINE: u64 = 4096;
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct First {
        kind: String,
        collected_at: jiff::Timestamp,
    }
    let io = |source| DumpError::Io { path: path.to_owned(), source };
    let mut input = opened(path)?;
    let begin = input.fill_buf().map_err(io)?;
    let is_gzip = begin.starts_with(&GZIP);
    // Standard input is only peeked at: what is taken from it is gone.
    let peeked = (path == Path::new(STDIN)).then(|| begin.to_vec());
    let input: Box<dyn BufRead> = match peeked {
        Some(begin) => Box::new(Cursor::new(begin)),
        None => input,
    };
    let input: Box<dyn Read> =
        if is_gzip { Box::new(MultiGzDecoder::new(input)) } else { Box::new(input) };
    let mut line = Vec::new();
    // Whatever is wrong with the file is told by who reads it.
    let _ = BufReader::new(input.take(LONGEST_LINE)).read_until(b'\n', &mut line);
    let first: Option<First> = serde_json::from_slice(&line).ok();
    let at = first.filter(|first| first.kind == COLLECTION).map(|first| first.collected_at);
    Ok(at.and_then(|at| u64::try_from(at.as_millisecond()).ok()))
}

/// Files of a folder that could be dumps, in order of their names; a file is itself, and so is `-`.
///
/// # Errors
/// A folder that cannot be read, or that has none.
pub fn dump_files(path: &Path) -> Result<Vec<PathBuf>, DumpError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = names(path)?;
    files.retain(|file| could_be_dump(file));
    files.sort();
    match files.is_empty() {
        true => Err(DumpError::NothingThere { path: path.to_owned() }),
        false => Ok(files),
    }
}

/// The files of a folder.
fn names(folder: &Path) -> Result<Vec<PathBuf>, DumpError> {
    let io = |source| DumpError::Io { path: folder.to_owned(), source };
    let entries = fs::read_dir(folder).map_err(io)?;
    let mut files: Vec<PathBuf> =
        entries.map(|entry| Ok(entry.map_err(io)?.path())).collect::<Result<_, _>>()?;
    files.retain(|file| file.is_file());
    Ok(files)
}

fn could_be_dump(path: &Path) -> bool {
    ends_in(path, &[".json", ".jsonl", ".ndjson"])
}

fn is_yaml(path: &Path) -> bool {
    ends_in(path, &[".yaml", ".yml"])
}

/// Whether a name has one of these endings, or one and that of gzip.
fn ends_in(path: &Path, endings: &[&str]) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    endings.iter().any(|ending| name.ends_with(ending))
}
