//! Colour, where somebody looks and did not forbid it. Meaning is never in colour alone.

use std::io::IsTerminal;

use dovetail_settings::form::Color;

/// Where a text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Result,
    /// Standard error.
    Error,
}

/// Whether texts are styled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    is_on: bool,
}

impl Style {
    /// The style of a stream under a setting.
    pub fn new(color: Color, stream: OutputStream) -> Self {
        let is_terminal = || match stream {
            OutputStream::Result => std::io::stdout().is_terminal(),
            OutputStream::Error => std::io::stderr().is_terminal(),
        };
        let forbidden = || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_on = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => is_terminal() && !forbidden(),
        };
        Self { is_on }
    }

    /// A heading.
    pub fn strong(self, text: &str) -> String {
        self.wrapped("1", text)
    }

    /// Something that is wrong.
    pub fn alarm(self, text: &str) -> String {
        self.wrapped("1;31", text)
    }

    /// Text that belongs to something as bad as this: `error`, `warning` or `info`.
    pub fn severity(self, severity: &str, text: &str) -> String {
        match severity {
            "error" => self.alarm(text),
            "warning" => self.wrapped("33", text),
            _ => self.wrapped("36", text),
        }
    }

    fn wrapped(self, code: &str, text: &str) -> String {
        if self.is_on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
