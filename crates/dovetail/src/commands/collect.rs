//! `dovetail collect`: writes what `audit` and `cost` read, and nothing else.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{ArgGroup, Args};
use dovetail_console::app::App;
use dovetail_console::file::{check_place, write_whole};
use dovetail_console::places::refuse_shared;
use dovetail_console::plain::plain;
use dovetail_console::table::whole;
use dovetail_inventory::dump::{COLLECTION, Keeper, Pseudonyms, RawObject, Sink, Skipped};
use dovetail_settings::errors::BadInput;
use dovetail_sources::objects::ObjectFlags;
use serde_json::{Value, json};

/// Flags as written.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("task").required(true).args(["to", "translate"])))]
pub(crate) struct CollectFlags {
    #[command(flatten)]
    objects: ObjectFlags,
    /// File to write, one object per line; gzip if named *.gz [required without --translate]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Replace names with hashes; --names saves the table that restores them
    #[arg(long, requires = "names", alias = "anonymise")]
    anonymize: bool,
    /// File with the original names and the key of their hashes; written by --anonymize, reused if
    /// it exists [required with --anonymize or --translate]
    #[arg(long, value_name = "FILE")]
    names: Option<PathBuf>,
    /// Print this report with the original names, restored from --names
    #[arg(long, value_name = "REPORT", requires = "names", conflicts_with_all = ["to", "anonymize"])]
    translate: Option<PathBuf>,
}

/// Reads objects and writes what is kept of them, or translates a report.
pub(crate) fn run(app: &App, flags: &CollectFlags) -> Result<()> {
    if let (Some(report), Some(names)) = (&flags.translate, &flags.names) {
        let names = read_names(names)?;
        let text = fs::read_to_string(report)
            .with_context(|| format!("{}: cannot read the file", report.display()))?;
        return app.print(&names.translate(&text));
    }
    let to = flags.to.as_deref().context("--to is required")?;
    let names_file = flags.names.as_deref().filter(|_| flags.anonymize);
    refuse_shared(&[], &[("--to", Some(to)), ("--names", names_file)])?;
    let names = names_file.map(names).transpose()?;
    check_place(to)?;
    let at_ms = flags.objects.now_ms()?;
    let mut unread = None;
    let written = write_whole(to, |file| -> Result<(u64, Option<Pseudonyms>)> {
        let mut writer =
            Writer { app, file, keeper: Keeper::default(), names, objects: 0, error: None };
        writer.line(&collection(at_ms, &[]));
        let complete = match flags.objects.read_into(app, &mut writer) {
            Ok(complete) => complete,
            // It is about the cluster or the input, not about the file.
            Err(error) => {
                unread = Some(error);
                return Err(std::io::Error::other("nothing to write").into());
            }
        };
        writer.line(&collection(at_ms, &complete));
        match writer.error.take() {
            Some(error) => Err(error).context("cannot write the collection"),
            None => Ok((writer.objects, writer.names)),
        }
    });
    if let Some(error) = unread {
        return Err(error);
    }
    let (objects, names) = written?;
    if let (Some(path), Some(names)) = (names_file, names) {
        write_secret(path, &names.to_json())?;
        app.note(&format!("{} restores the names in reports: keep it private", path.display()));
    }
    app.note(&format!("wrote {} objects to {}", whole(objects), to.display()));
    Ok(())
}

/// The table that is there, or a new one.
fn names(path: &Path) -> Result<Pseudonyms> {
    if path.exists() {
        return read_names(path);
    }
    let mut key = [0; 32];
    let mut random = File::open("/dev/urandom").context("cannot read random bytes for a key")?;
    random.read_exact(&mut key).context("cannot read random bytes for a key")?;
    Ok(Pseudonyms::new(key))
}

fn read_names(path: &Path) -> Result<Pseudonyms> {
    let text = fs::read_to_string(path).with_context(|| {
        let path = path.display();
        format!("--names {path}: cannot read the file; pass the one that `dovetail collect --anonymize` wrote")
    })?;
    Pseudonyms::from_json(&text)
        .map_err(|error| BadInput(format!("{}: {error}", path.display())).into())
}

/// Writes a file that only its owner may read.
fn write_secret(path: &Path, text: &str) -> Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.with_context(|| format!("{}: cannot be written", path.display()))
}

/// What the collection says of itself.
fn collection(at_ms: u64, complete: &[&str]) -> Value {
    let at = i64::try_from(at_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    json!({
        "kind": COLLECTION,
        "apiVersion": "dovetail.dev/v1",
        "metadata": {"name": "collection"},
        "collectedAt": at.unwrap_or_default().to_string(),
        "complete": complete,
    })
}

/// Writes one object a line.
struct Writer<'w> {
    app: &'w App,
    file: &'w mut dyn Write,
    keeper: Keeper,
    names: Option<Pseudonyms>,
    objects: u64,
    error: Option<std::io::Error>,
}

impl Writer<'_> {
    fn line(&mut self, object: &Value) {
        if self.error.is_none() {
            self.error = writeln!(self.file, "{object}").err();
        }
    }
}

impl Sink for Writer<'_> {
    fn object(&mut self, raw: &RawObject<'_>) {
        let object = match serde_json::from_str::<Value>(raw.json) {
            Ok(object) => object,
            // Readers pass over fields that they do not need; here each is looked at.
            Err(error) => return self.skipped(raw.skipped("", &error.to_string())),
        };
        let Some(mut kept) = self.keeper.keep(raw.kind, raw.api_version, &object) else { return };
        if let Some(names) = &mut self.names {
            kept = names.replace(&kept);
        }
        self.objects += 1;
        self.line(&kept);
    }

    fn skipped(&mut self, skipped: Skipped) {
        self.app.note(&format!("skipped {}", plain(&skipped.to_string())));
    }
}
