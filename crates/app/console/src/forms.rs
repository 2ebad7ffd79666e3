//! Which output formats each command has.

use dovetail_settings::form::{
    Output, Output::Csv, Output::Html, Output::Json, Output::Markdown, Output::Sarif,
    Output::Table, Output::Yaml,
};

/// Formats by command; one that is not here only has subcommands.
const FORMS: &[(&str, &[Output])] = &[
    ("sim run", &[Table, Json, Yaml, Html]),
    ("sim replay", &[Table, Json, Yaml]),
    ("sim compare", &[Table, Json, Yaml, Html]),
    ("sim sweep", &[Table, Json, Yaml, Csv]),
    ("sim arena", &[Table, Json, Yaml, Html]),
    ("sim bounds", &[Table, Json, Yaml]),
    ("trace import", &[Table, Json, Yaml]),
    ("trace synth", &[Table, Json, Yaml]),
    ("trace stats", &[Table, Json, Yaml]),
    ("trace export", &[Table, Json, Yaml]),
    ("usage idle", &[Table, Json, Yaml]),
    ("usage gpus", &[Table, Json, Yaml]),
    ("audit", &[Table, Json, Yaml, Html, Markdown, Sarif]),
    ("cost", &[Table, Json, Yaml, Csv]),
    ("cost job", &[Table, Json, Yaml]),
    ("cost questions", &[Table, Json, Yaml]),
    ("cost digest", &[Table, Json, Yaml, Html, Markdown]),
    // It writes a file, and prints nothing.
    ("collect", &[]),
    ("completion", &[]),
    ("demo", &[Table, Json, Yaml, Html]),
    ("partition plan", &[Table, Json, Yaml]),
    ("partition show", &[Table, Json, Yaml]),
    ("partition apply", &[Table, Json, Yaml]),
    ("partition rollback", &[Table, Json, Yaml]),
    // The table is a manifest for kubectl.
    ("partition setup", &[Table, Json, Yaml]),
    ("partition size", &[Table, Json, Yaml]),
    ("scheduler", &[Table, Json, Yaml]),
    ("serve", &[]),
    ("why", &[Table, Json, Yaml]),
    ("queue", &[Table, Json, Yaml, Csv]),
    ("top", &[Table, Json, Yaml]),
    ("config", &[Table, Json, Yaml]),
    ("version", &[Table, Json, Yaml]),
];

/// The formats of a command, by its path without the program's name.
pub fn forms(command: &str) -> Option<&'static [Output]> {
    FORMS.iter().find(|(name, _)| *name == command).map(|(_, forms)| *forms)
}
