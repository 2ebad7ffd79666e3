//! What is logged, to standard error.

use crate::settings::scheduler::LogLevel;

/// Logs from here on: lines of text, or one JSON object each.
pub(crate) fn start(level: LogLevel, is_json: bool) {
    let level = match level {
        LogLevel::Error => tracing::Level::ERROR,
        LogLevel::Warn => tracing::Level::WARN,
        LogLevel::Info => tracing::Level::INFO,
        LogLevel::Debug => tracing::Level::DEBUG,
    };
    let log = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr);
    match is_json {
        true => log.json().init(),
        false => log.with_ansi(false).init(),
    }
}
