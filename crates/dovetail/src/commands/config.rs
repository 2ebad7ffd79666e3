//! `dovetail config`.

use anyhow::Result;
use dovetail_console::app::App;
use dovetail_console::table::table;
use dovetail_settings::SettingOrigin;
use dovetail_settings::form::Output;
use serde::Serialize;

/// One setting, as printed.
#[derive(Debug, Serialize)]
struct SettingLine {
    setting: &'static str,
    value: String,
    origin: String,
}

pub(crate) fn run(app: &App) -> Result<()> {
    let output = app.output("config")?;
    let settings = &app.settings;
    let line = |setting, value: String, origin: &dyn ToString| SettingLine {
        setting,
        value,
        origin: origin.to_string(),
    };
    let mut lines = vec![
        line("output", settings.output.value.name().to_owned(), &settings.output.origin),
        line("seed", settings.seed.value.to_string(), &settings.seed.origin),
        line("threads", settings.threads.value.to_string(), &settings.threads.origin),
        line("color", settings.color.value.name().to_owned(), &settings.color.origin),
    ];
    let (section, path) = &settings.scheduler;
    let of_file = section.lines().into_iter().chain(settings.cost.lines());
    let of_file = of_file.chain(settings.prices.lines()).chain(settings.notices.lines());
    for (setting, value, is_in_file) in of_file.chain(settings.audit.lines()) {
        let in_file = SettingOrigin::File(path.clone());
        lines.push(line(
            setting,
            value,
            if is_in_file { &in_file } else { &SettingOrigin::Default },
        ));
    }
    if output == Output::Json {
        return app.print_json(&serde_json::json!({ "settings": lines }));
    }
    let rows = lines.into_iter();
    let rows = rows.map(|line| vec![line.setting.to_owned(), line.value, line.origin]).collect();
    app.print(&table(&["setting", "value", "origin"], rows))
}
