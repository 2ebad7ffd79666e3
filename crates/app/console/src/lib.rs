//! What a command is given, and how it speaks: settings, standard output and error, tables, files.

pub mod app;
pub mod clock;
pub mod connection;
mod drafts;
pub mod file;
pub mod forms;
pub mod log;
pub mod open;
pub mod places;
pub mod plain;
pub mod progress;
pub mod shortened;
pub mod style;
pub mod table;
pub mod yaml;
