//! What every command is given: the settings, and where to write.

use std::io::{self, Write};

use anyhow::{Context, Result};
use dovetail_settings::Settings;
use dovetail_settings::errors::UsageError;
use dovetail_settings::form::Output;
use serde::Serialize;

use crate::forms::forms;
use crate::style::{Stream, Style};

/// Settings and the two streams.
#[derive(Debug)]
pub struct App {
    pub settings: Settings,
}

impl App {
    /// Commands under these settings.
    pub fn new(settings: Settings) -> Self {
        Self { settings }
    }

    /// The form of output asked for, if the command has it.
    pub fn output(&self, command: &str) -> Result<Output> {
        self.output_of(command, forms(command).unwrap_or_default())
    }

    /// The form of output asked for, if it is one of these.
    pub fn output_of(&self, command: &str, known: &[Output]) -> Result<Output> {
        let wanted = self.settings.output.value;
        if known.contains(&wanted) {
            return Ok(wanted);
        }
        let known: Vec<&str> = known.iter().map(|output| output.name()).collect();
        let text = format!(
            "`dovetail {command}` has no {} output: use --output {}",
            wanted.name(),
            known.join(" or ")
        );
        Err(UsageError(text).into())
    }

    /// Writes a result.
    pub fn print(&self, text: &str) -> Result<()> {
        let mut out = io::stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        written.context("cannot write to standard output")
    }

    /// Writes a result as one JSON object on one line.
    pub fn print_json(&self, value: &impl Serialize) -> Result<()> {
        let mut text = serde_json::to_string(value).context("cannot express the result as JSON")?;
        text.push('\n');
        self.print(&text)
    }

    /// Tells something beside the result.
    pub fn note(&self, text: &str) {
        let style = self.style(Stream::Error);
        to_stderr(&format!("{} {text}", style.strong("note:")));
    }

    /// Whether text on a stream is styled.
    pub fn style(&self, stream: Stream) -> Style {
        Style::new(self.settings.color.value, stream)
    }
}

/// Writes a line to standard error; there is nobody to tell if that fails.
pub fn to_stderr(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
