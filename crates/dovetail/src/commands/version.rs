//! `dovetail version`.

use anyhow::Result;
use dovetail_console::app::App;
use dovetail_settings::form::Output;

/// Prints the version of the program.
pub(crate) fn run(app: &App) -> Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    match app.output("version")? {
        Output::Json => app.print_json(&serde_json::json!({ "version": version })),
        _ => app.print(&format!("dovetail {version}\n")),
    }
}
