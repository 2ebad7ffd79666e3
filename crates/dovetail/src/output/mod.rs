//! Forms of output.

pub(crate) mod file;
pub(crate) mod forms;
pub(crate) mod log;
pub(crate) mod places;
pub(crate) mod plain;
pub(crate) mod shortened;
pub(crate) mod style;
pub(crate) mod table;

use std::io::Write;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The form of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Output {
    /// For people, at most 100 columns wide
    #[default]
    #[value(alias = "terminal")]
    Table,
    /// One object; the keys are a promise (docs/json.md)
    Json,
    /// Rows with a header, where the result has rows
    Csv,
    /// One file with plots that needs nothing else
    Html,
    /// For a pull request or a page of notes
    Markdown,
    /// SARIF 2.1.0, for tools that show findings
    Sarif,
}

impl Output {
    /// The name for the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Html => "html",
            Self::Markdown => "markdown",
            Self::Sarif => "sarif",
        }
    }
}

/// Writes a line to standard error; there is nobody to tell if that fails.
pub(crate) fn to_stderr(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
