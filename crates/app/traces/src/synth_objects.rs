//! `dovetail trace synth --dump`: the objects of a cluster, and what its GPUs did.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use dovetail_console::app::App;
use dovetail_console::file::write_whole;
use dovetail_console::plain::plain;
use dovetail_console::table::{facts, whole};
use dovetail_inventory::dump::dump_files;
use dovetail_settings::errors::UsageError;
use dovetail_settings::form::Output;
use dovetail_trace::synth::objects::{OBJECTS_AT_S, ObjectKind, ObjectsConfig, Slip, objects};
use serde::Serialize;

/// The result, as JSON.
#[derive(Debug, Serialize)]
struct ObjectsWritten {
    settings: ObjectsConfig,
    at: String,
    nodes: usize,
    gpus: u64,
    pods: usize,
    slips: std::collections::BTreeMap<Slip, usize>,
    files: usize,
    samples: Option<u64>,
}

/// Writes one file for each kind into a folder, and the samples into `usage`, if named.
///
/// # Errors
/// A folder that holds anything else, and files that cannot be written.
pub fn run(app: &App, nodes: u32, folder: &Path, usage: Option<&Path>) -> Result<()> {
    let output = app.output("trace synth")?;
    let settings = ObjectsConfig { seed: app.settings.seed.value, nodes };
    let made = objects(&settings)?;
    empty(folder)?;
    for kind in ObjectKind::ALL {
        write_whole(&folder.join(kind.file_name()), |file| made.write_list(kind, file))?;
    }
    let samples = usage.map(|path| write_whole(path, |file| made.write_usage(file))).transpose()?;
    let at = jiff::Timestamp::from_second(OBJECTS_AT_S.cast_signed());
    let report = ObjectsWritten {
        settings,
        at: at.context("the moment is a date")?.to_string(),
        nodes: made.nodes(),
        gpus: made.gpus(),
        pods: made.pods(),
        slips: made.slips(),
        files: ObjectKind::ALL.len(),
        samples,
    };
    match output {
        Output::Json => app.print_json(&report),
        _ => app.print(&report.text(folder, usage)),
    }
}

/// Makes a folder, or takes one without other objects: a dump is all files of its folder.
fn empty(folder: &Path) -> Result<()> {
    let name = folder.display();
    fs::create_dir_all(folder)
        .with_context(|| format!("--dump {name}: cannot create the folder"))?;
    let Ok(files) = dump_files(folder) else { return Ok(()) };
    let is_ours =
        |file: &PathBuf| ObjectKind::ALL.iter().any(|kind| file.ends_with(kind.file_name()));
    match files.iter().find(|file| !is_ours(file)) {
        None => Ok(()),
        Some(file) => {
            let file = file.file_name().unwrap_or_default().to_string_lossy();
            let text = format!(
                "--dump {name}: the folder contains `{file}`: pass the path of a new or empty \
                 folder"
            );
            Err(UsageError(plain(&text)).into())
        }
    }
}

impl ObjectsWritten {
    fn text(&self, folder: &Path, usage: Option<&Path>) -> String {
        let mut rows = vec![
            ("seed", self.settings.seed.to_string()),
            ("nodes", format!("{}, with {} GPUs", whole(self.nodes as u64), whole(self.gpus))),
            ("pods", whole(self.pods as u64)),
            ("mistakes", format!("in {} owners", whole(self.slips.values().sum::<usize>() as u64))),
            ("written", format!("{} files in {}", self.files, folder.display())),
        ];
        rows.extend(self.samples.map(|samples| ("samples", whole(samples))));
        let usage = usage.map(|file| format!(" --usage {}", file.display())).unwrap_or_default();
        let hint = format!("dovetail audit --from {} --at {}{usage}", folder.display(), self.at);
        rows.push(("next", hint));
        facts(rows)
    }
}
