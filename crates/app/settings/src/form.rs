//! Output formats.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The format of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Output {
    /// Human-readable table, at most 100 columns wide
    #[default]
    #[value(alias = "terminal")]
    Table,
    /// One object with stable keys (docs/reference/json.md)
    Json,
    /// The same object as YAML
    Yaml,
    /// Rows with a header, for results that have rows
    Csv,
    /// Self-contained page with plots
    Html,
    /// For a pull request or a wiki page
    Markdown,
    /// SARIF 2.1.0, for code scanning tools
    Sarif,
}

impl Output {
    /// The name for the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Json => "json",
            Self::Yaml => "yaml",
            Self::Csv => "csv",
            Self::Html => "html",
            Self::Markdown => "markdown",
            Self::Sarif => "sarif",
        }
    }
}

/// When to use color.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Also in files and pipes
    Always,
    /// Not at all
    Never,
}

impl Color {
    /// The name for the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Always => "always",
            Self::Never => "never",
        }
    }
}
