//! The settings file, `dovetail.toml`.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use super::{MAX_SEED, MAX_THREADS};
use crate::exit::UsageError;
use crate::output::Output;
use crate::output::style::Color;

/// Read if no other file is named.
const FILE_NAME: &str = "dovetail.toml";

/// What the file can say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileSettings {
    pub(super) output: Option<Output>,
    pub(super) seed: Option<u64>,
    pub(super) threads: Option<u64>,
    pub(super) color: Option<Color>,
}

/// The named file, or the one of the current folder; its name comes with it.
pub(super) fn read_file(named: Option<&Path>) -> Result<(PathBuf, FileSettings)> {
    let path = named.unwrap_or(Path::new(FILE_NAME)).to_owned();
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            let what = format!("{}: cannot read the settings: {error}", path.display());
            return Err(error).context(what);
        }
    };
    let settings = parse(&text);
    let at = |problem| UsageError(format!("{}: {problem}", path.display()));
    Ok((path.clone(), settings.map_err(at)?))
}

fn parse(text: &str) -> Result<FileSettings, String> {
    let settings: FileSettings =
        toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    let out = |name, number, least, most| {
        Err(format!("{name} = {number}: expected a whole number from {least} to {most}"))
    };
    match (settings.seed, settings.threads) {
        (Some(seed), _) if seed > MAX_SEED => out("seed", seed, 0, MAX_SEED),
        (_, Some(threads)) if !(1..=MAX_THREADS).contains(&threads) => {
            out("threads", threads, 1, MAX_THREADS)
        }
        _ => Ok(settings),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_and_values_out_of_range_are_refused() {
        assert_eq!(parse("seed = 7\ncolor = \"never\"").unwrap().seed, Some(7));
        assert!(parse("sed = 7").unwrap_err().contains("unknown field `sed`"));
        assert!(parse("threads = 0").unwrap_err().contains("from 1 to 4096"));
        assert!(parse("output = \"xml\"").unwrap_err().contains("xml"));
    }
}
