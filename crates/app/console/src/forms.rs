//! Which forms of output each command has.

use dovetail_settings::form::{
    Output, Output::Csv, Output::Html, Output::Json, Output::Markdown, Output::Sarif, Output::Table,
};

/// Forms by command; one that is not here only holds others.
const FORMS: &[(&str, &[Output])] = &[
    ("sim run", &[Table, Json, Html]),
    ("sim replay", &[Table, Json]),
    ("sim compare", &[Table, Json, Html]),
    ("sim sweep", &[Table, Json, Csv]),
    ("sim arena", &[Table, Json, Html]),
    ("sim bounds", &[Table, Json]),
    ("trace import", &[Table, Json]),
    ("trace synth", &[Table, Json]),
    ("trace stats", &[Table, Json]),
    ("trace export", &[Table, Json]),
    ("usage idle", &[Table, Json]),
    ("usage gpus", &[Table, Json]),
    ("audit", &[Table, Json, Html, Markdown, Sarif]),
    ("cost", &[Table, Json, Csv]),
    ("cost job", &[Table, Json]),
    ("cost questions", &[Table, Json]),
    ("cost digest", &[Table, Json, Html, Markdown]),
    // It writes a file, and prints nothing.
    ("collect", &[]),
    ("demo", &[Table, Json, Html]),
    ("scheduler", &[Table, Json]),
    ("serve", &[]),
    ("why", &[Table, Json]),
    ("queue", &[Table, Json, Csv]),
    ("top", &[Table, Json]),
    ("config", &[Table, Json]),
];

/// The forms of a command, by its path without the program's name.
pub fn forms(command: &str) -> Option<&'static [Output]> {
    FORMS.iter().find(|(name, _)| *name == command).map(|(_, forms)| *forms)
}
