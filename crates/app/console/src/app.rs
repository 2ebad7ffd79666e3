//! What every command is given: the settings, and where to write.

use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use dovetail_settings::errors::UsageError;
use dovetail_settings::form::Output;
use dovetail_settings::{Setting, SettingOrigin, Settings};
use serde::Serialize;

use crate::forms::forms;
use crate::style::{OutputStream, Style};
use crate::table::{plural, wrapped};
use crate::yaml::yaml;

/// Settings and the two streams.
#[derive(Debug)]
pub struct App {
    pub settings: Settings,
    notes: NoteLimit,
}

/// How many notes are still written, where an answer has to fit one screen.
#[derive(Debug)]
struct NoteLimit {
    left: AtomicUsize,
    left_out: AtomicUsize,
    /// Where those that are left out are found.
    elsewhere: std::sync::OnceLock<&'static str>,
}

/// `table`, `table or json`, `table, json or yaml`.
fn alternatives(names: &[&str]) -> String {
    match names {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.join(", "),
    }
}

impl App {
    /// Commands under these settings.
    pub fn new(settings: Settings) -> Self {
        let notes = NoteLimit {
            left: AtomicUsize::new(usize::MAX),
            left_out: AtomicUsize::new(0),
            elsewhere: std::sync::OnceLock::new(),
        };
        Self { settings, notes }
    }

    /// The form of output asked for, if the command has it.
    pub fn output(&self, command: &str) -> Result<Output> {
        self.output_of(command, forms(command).unwrap_or_default())
    }

    /// The format asked for, if it is one of these. YAML has the keys of JSON, and counts as it:
    /// [`Self::print_json`] writes either. A default that the command does not have is the table.
    pub fn output_of(&self, command: &str, known: &[Output]) -> Result<Output> {
        let Setting { value: wanted, origin } = &self.settings.output;
        if known.contains(wanted) {
            return Ok(if *wanted == Output::Yaml { Output::Json } else { *wanted });
        }
        if !matches!(origin, SettingOrigin::Flag(_)) && known.contains(&Output::Table) {
            return Ok(Output::Table);
        }
        let known: Vec<&str> = known.iter().map(|output| output.name()).collect();
        let text = format!(
            "`dovetail {command}` does not support -o {}; use {}",
            wanted.name(),
            alternatives(&known)
        );
        Err(UsageError(text).into())
    }

    /// Writes a result.
    pub fn print(&self, text: &str) -> Result<()> {
        let mut out = io::stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        written.context("cannot write to standard output")
    }

    /// Writes a result as one JSON object on one line, or as YAML where that is asked for.
    pub fn print_json(&self, value: &impl Serialize) -> Result<()> {
        if self.settings.output.value == Output::Yaml {
            let value = serde_json::to_value(value).context("cannot write the result as YAML")?;
            return self.print(&yaml(&value));
        }
        let mut text = serde_json::to_string(value).context("cannot write the result as JSON")?;
        text.push('\n');
        self.print(&text)
    }

    /// Writes something beside the result to standard error.
    pub fn note(&self, text: &str) {
        let limit = &self.notes;
        let Some(_) = limit.elsewhere.get() else { return self.write_note(text) };
        // What to do often stands at the end, so a note is shown whole or not at all.
        let lines = wrapped(&format!("note: {text}"), 0);
        let count = lines.lines().count();
        match limit.left.load(Ordering::Relaxed).checked_sub(count) {
            None => drop(limit.left_out.fetch_add(1, Ordering::Relaxed)),
            Some(left) => {
                limit.left.store(left, Ordering::Relaxed);
                let text = lines.trim_end().trim_start_matches("note: ");
                self.write_note(text);
            }
        }
    }

    /// From now on notes take at most so many lines; `elsewhere` says where the others are printed.
    pub fn limit_notes(&self, lines: usize, elsewhere: &'static str) {
        if self.notes.elsewhere.set(elsewhere).is_ok() {
            self.notes.left.store(lines.saturating_sub(1), Ordering::Relaxed);
        }
    }

    /// Writes how many notes the limit left out.
    pub fn tell_left_out_notes(&self) {
        let count = self.notes.left_out.swap(0, Ordering::Relaxed);
        if let (Some(elsewhere), 1..) = (self.notes.elsewhere.get(), count) {
            self.write_note(&format!("{}; {elsewhere}", plural(count, "more note", "more notes")));
        }
    }

    fn write_note(&self, text: &str) {
        let style = self.style(OutputStream::Error);
        to_stderr(&format!("{} {text}", style.strong("note:")));
    }

    /// Whether text on a stream is styled.
    pub fn style(&self, stream: OutputStream) -> Style {
        Style::new(self.settings.color.value, stream)
    }
}

/// Writes a line to standard error; there is nobody to tell if that fails.
pub fn to_stderr(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
