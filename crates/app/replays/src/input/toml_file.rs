//! TOML files whose errors name line and field.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use dovetail_settings::errors::BadInput;
use serde::de::DeserializeOwned;

/// A file with its text.
#[derive(Debug)]
pub struct TomlFile {
    path: PathBuf,
    text: String,
}

impl TomlFile {
    /// # Errors
    /// The file cannot be read.
    pub fn read(path: &Path) -> Result<Self> {
        let read = || format!("{}: the file cannot be read", path.display());
        let text = std::fs::read_to_string(path).with_context(read)?;
        Ok(Self { path: path.to_owned(), text })
    }

    #[cfg(test)]
    pub(crate) fn of(path: &str, text: &str) -> Self {
        Self { path: path.into(), text: text.to_owned() }
    }

    /// What the file says.
    ///
    /// # Errors
    /// File, line and what is wrong in the part of that name.
    pub fn parse<T: DeserializeOwned>(&self, part: &str) -> Result<T, BadInput> {
        toml::from_str(&self.text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            self.error(start, &format!("{part}: {}", error.message()))
        })
    }

    /// Something is wrong at a place of the text.
    pub fn error(&self, start: usize, what: &str) -> BadInput {
        let line = self.text.get(..start).unwrap_or_default().matches('\n').count() + 1;
        BadInput(format!("{}:{line}: {what}", self.path.display()))
    }
}
