//! Objects of a cluster, from wherever the command line says.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::Args;
use dovetail_apiserver::client::{Lists, PAGE, read_lists};
use dovetail_console::app::App;
use dovetail_console::clock::now_ms;
use dovetail_console::connection::connection_runtime;
use dovetail_console::plain::plain;
use dovetail_inventory::dump::{DumpError, Sink, collected_at, dump_files, read_paths};
use dovetail_inventory::facts::Inventory;
use dovetail_settings::errors::{BadInput, UsageError};

use crate::example;
use crate::kubeconfig::ConnectionFlags;

/// Flags as written.
#[derive(Debug, Args)]
pub struct ObjectFlags {
    /// Dumps of `kubectl get nodes,pods,... -A -o json`: files, or folders with them, plain or gzip
    #[arg(long, value_name = "PATH", num_args = 1..)]
    from: Vec<PathBuf>,
    /// When the objects were read, such as 2026-11-20T12:00:00Z [default: when they were collected,
    /// else when the newest file was written]
    #[arg(long, value_name = "TIME", requires = "from")]
    at: Option<jiff::Timestamp>,
    /// Look at a generated cluster of 32 nodes, with what its GPUs did: no files, no network
    #[arg(long, conflicts_with = "from")]
    pub example: bool,
    /// Read the objects from the cluster that this file leads to
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "example"])]
    kubeconfig: Option<PathBuf>,
}

/// Objects, and where they were read.
pub struct Read {
    pub inventory: Inventory,
    pub sources: Vec<String>,
    /// The kinds of nodes and pods, where the credentials do not allow to list them.
    hidden: Vec<&'static str>,
}

impl Read {
    /// # Errors
    /// When the credentials hide nodes or pods: what is left would look like a cluster without
    /// GPUs, or like GPUs that nobody holds.
    pub fn with_all_nodes_and_pods(self) -> Result<Self> {
        if self.hidden.is_empty() {
            return Ok(self);
        }
        bail!(
            "{}: the credentials may not list {} in all namespaces, so that it is not known which GPUs there are and who \
             holds them: use credentials that may, or ask a ledger that others fill (`dovetail cost --mine --store`)",
            self.sources.join(", "),
            self.hidden.join(" and ")
        )
    }
}

impl ObjectFlags {
    /// Whether any objects are named.
    pub fn is_given(&self) -> bool {
        self.example || !self.from.is_empty() || self.server().is_some()
    }

    /// The kubeconfig of the cluster that is read, if one is.
    pub fn server(&self) -> Option<&Path> {
        self.kubeconfig.as_deref()
    }

    /// Reads all objects.
    ///
    /// # Errors
    /// Names the file that cannot be read, or what to give where there is none; `what` is done with
    /// them.
    pub fn read(&self, app: &App, what: &str) -> Result<Read> {
        let mut inventory = Inventory::new(self.now_ms(what)?);
        let complete = self.read_into(app, &mut inventory)?;
        complete.iter().for_each(|kind| inventory.all_of(kind));
        let (skipped, count) = inventory.left_out();
        for skipped in skipped.iter().take(10) {
            app.note(&format!("left out {}", plain(&skipped.to_string())));
        }
        if count > 10 {
            app.note(&format!("{count} objects left out; --output json lists them"));
        }
        let is_hidden = |kind: &&str| self.server().is_some() && !complete.contains(kind);
        let hidden = ["Node", "Pod"].into_iter().filter(is_hidden).collect();
        Ok(Read { inventory, sources: self.sources(), hidden })
    }

    /// The moment of the objects, in ms since 1970.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn now_ms(&self, what: &str) -> Result<u64> {
        if !self.is_given() {
            let text = format!(
                "name what to {what}: --kubeconfig with a cluster, --from with files of `kubectl get nodes,pods,... -A -o json`, \
                 or --example"
            );
            return Err(UsageError(text).into());
        }
        if self.example {
            return Ok(example::AT_MS);
        }
        match (self.at, self.server()) {
            (Some(at), _) => Ok(at.as_millisecond().max(0).cast_unsigned()),
            (None, Some(_)) => Ok(now_ms()),
            (None, None) => newest(&self.from),
        }
    }

    /// Hands all objects to a sink; answers with the kinds of which it was given all there are.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_into(&self, app: &App, sink: &mut dyn Sink) -> Result<Vec<&'static str>> {
        if self.example {
            return example::read_into(sink).map(|()| Vec::new());
        }
        if let Some(path) = self.server() {
            return served(app, path, sink);
        }
        let objects = read_paths(&self.from, sink).map_err(told)?;
        if objects == 0 {
            let text = "--from: there is no object in it: write it with `kubectl get nodes,pods -A -o json`";
            return Err(BadInput(text.to_owned()).into());
        }
        Ok(Vec::new())
    }

    fn sources(&self) -> Vec<String> {
        let paths = self.from.iter().map(PathBuf::as_path).chain(self.server());
        let paths = paths.map(|path| path.display().to_string());
        paths.chain(self.example.then(|| example::NAME.to_owned())).collect()
    }
}

/// All objects of a server.
fn served(app: &App, path: &Path, sink: &mut dyn Sink) -> Result<Vec<&'static str>> {
    let cluster = ConnectionFlags::of_file(path.to_owned());
    let lists = connection_runtime()?.block_on(lists_of(&cluster, sink))?;
    if !lists.refused.is_empty() {
        app.note(&format!(
            "the credentials may not list {}: what that hides is told under what was not seen",
            lists.refused.join(", ")
        ));
    }
    Ok(lists.complete)
}

/// Hands all objects of a cluster to a sink.
///
/// # Errors
/// A cluster that does not answer, named as it was given.
pub async fn lists_of(cluster: &ConnectionFlags, sink: &mut dyn Sink) -> Result<Lists> {
    let config = cluster.connect().await?;
    read_lists(&config, PAGE, sink).await.with_context(|| cluster.name())
}

/// What is no dump is bad input; what cannot be opened is not.
fn told(error: DumpError) -> anyhow::Error {
    match error {
        DumpError::Io { .. } => error.into(),
        error => BadInput(plain(&error.to_string())).into(),
    }
}

/// When the newest of the files was collected, or written.
fn newest(paths: &[PathBuf]) -> Result<u64> {
    let mut newest_ms = 0;
    for path in paths {
        for file in dump_files(path).map_err(told)? {
            let written = || {
                let metadata = fs::metadata(&file)?;
                metadata.modified().map(ms)
            };
            let at_ms = match collected_at(&file).map_err(told)? {
                Some(at_ms) => at_ms,
                None => written().with_context(|| format!("{}: cannot read it", file.display()))?,
            };
            newest_ms = newest_ms.max(at_ms);
        }
    }
    Ok(newest_ms)
}

fn ms(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(0)
}
