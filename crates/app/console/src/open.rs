//! Files that may be compressed, whatever their name.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result, bail};
use flate2::bufread::MultiGzDecoder;

/// First bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Opens a file, plain or gzip by its first bytes.
pub fn open(path: &Path) -> Result<Box<dyn BufRead>> {
    let what = || format!("{}: cannot be read", path.display());
    let file = File::open(path).with_context(what)?;
    if file.metadata().with_context(what)?.is_dir() {
        bail!("{}: is a directory; pass a file", path.display());
    }
    let mut file = BufReader::new(file);
    let is_gzip = file.fill_buf().with_context(what)?.starts_with(&GZIP);
    Ok(match is_gzip {
        true => Box::new(BufReader::new(MultiGzDecoder::new(file))),
        false => Box::new(file),
    })
}
