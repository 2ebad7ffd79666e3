//! What is logged, to standard error.

use std::io::{self, Write};

use dovetail_objects::harmless;
use dovetail_settings::scheduler::LogLevel;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// They say again, without naming the server or the cause, what we say of it.
const TOLD_BY_US: [&str; 2] = ["kube_client::client::builder", "kube_runtime::watcher"];

/// Logs from here on: lines of text, or one JSON object each.
pub fn start(level: LogLevel, is_json: bool) {
    let log =
        tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE).with_writer(LogLines::default);
    match is_json {
        true => log.json().finish().with(targets(level)).init(),
        false => log.with_ansi(false).finish().with(targets(level)).init(),
    }
}

/// What is logged of whom: of the libraries below warnings alone, unless everything is asked for.
fn targets(level: LogLevel) -> Targets {
    let (ours, theirs) = match level {
        LogLevel::Error => (LevelFilter::ERROR, LevelFilter::ERROR),
        LogLevel::Warn => (LevelFilter::WARN, LevelFilter::WARN),
        LogLevel::Info => (LevelFilter::INFO, LevelFilter::WARN),
        LogLevel::Debug => (LevelFilter::DEBUG, LevelFilter::WARN),
        LogLevel::Trace => return Targets::new().with_default(LevelFilter::TRACE),
    };
    let targets = Targets::new().with_default(theirs).with_target("dovetail", ours);
    targets.with_targets(TOLD_BY_US.map(|target| (target, LevelFilter::OFF)))
}

/// Standard error, with one line for each thing that is logged, whatever was quoted in it.
#[derive(Debug, Default)]
struct LogLines;

impl Write for LogLines {
    /// Takes a whole entry, as the formatter writes it.
    fn write(&mut self, entry: &[u8]) -> io::Result<usize> {
        io::stderr().lock().write_all(line(entry).as_bytes())?;
        Ok(entry.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}

fn line(entry: &[u8]) -> String {
    let text = String::from_utf8_lossy(entry);
    format!("{}\n", harmless(text.strip_suffix('\n').unwrap_or(&text)))
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn an_entry_is_one_line_without_control_characters() {
        assert_eq!(line(b"WARN pod left: `3\x1b[31m\n`\n"), "WARN pod left: `3\\u{1b}[31m\\n`\n");
    }

    #[test]
    fn libraries_are_heard_when_something_is_wrong_or_everything_is_asked_for() {
        let debug = targets(LogLevel::Debug);
        assert!(debug.would_enable("dovetail_scheduler::leader_loop", &Level::DEBUG));
        assert!(!debug.would_enable("hyper_util::client", &Level::INFO));
        assert!(debug.would_enable("hyper_util::client", &Level::WARN));
        assert!(!debug.would_enable("kube_runtime::watcher", &Level::ERROR));
        assert!(!targets(LogLevel::Error).would_enable("rustls", &Level::WARN));
        assert!(targets(LogLevel::Trace).would_enable("hyper_util::client", &Level::TRACE));
    }
}
