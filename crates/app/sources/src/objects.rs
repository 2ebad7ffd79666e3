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
use dovetail_console::progress::Progress;
use dovetail_console::table::{counted, plural};
use dovetail_inventory::dump::{
    DumpError, RawObject, ReadDump, STDIN, SeveralVersions, Sink, Skipped, collected_at,
    dump_files, read_paths,
};
use dovetail_inventory::facts::Inventory;
use dovetail_settings::errors::BadInput;
use dovetail_units::time::time;

use crate::example;
use crate::kubeconfig::{ConnectionFlags, NoKubeconfig};
use crate::period::timestamp;

/// Objects that are newer than the time that was given for them by more than this are told: clocks
/// differ, and writing a dump takes a while.
const LATER_MS: u64 = 86_400_000;

/// Flags as written.
#[derive(Debug, Args)]
pub struct ObjectFlags {
    /// Dumps of `kubectl get nodes,pods,... -A -o json` instead of a cluster: files or folders,
    /// plain or gzip; `-` is standard input
    #[arg(long, value_name = "PATH", num_args = 1.., conflicts_with_all = ["kubeconfig", "context"])]
    from: Vec<PathBuf>,
    /// Time of the dump, such as 2026-11-20T12:00:00Z [default: when it was collected, else when
    /// the newest file was written]
    #[arg(long, value_name = "TIME", requires = "from", value_parser = timestamp)]
    at: Option<jiff::Timestamp>,
    /// Use a generated cluster of 32 nodes with GPU activity: no files, no network
    #[arg(long, conflicts_with_all = ["from", "kubeconfig", "context"])]
    pub example: bool,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// Objects, and where they were read.
pub struct Read {
    pub inventory: Inventory,
    pub sources: Vec<String>,
    is_file: bool,
    /// Nodes and pods, where the credentials do not allow to list them.
    hidden: Vec<&'static str>,
}

impl Read {
    /// Says so where pods of one namespace alone were read from files; an audit says it in its
    /// first sentence.
    #[must_use]
    pub fn noting_its_only_namespace(self, app: &App) -> Self {
        if let Some(namespace) = self.inventory.only_namespace().filter(|_| self.is_file) {
            app.note(&format!(
                "all pods of the input are in namespace {namespace}, so which GPUs are free is \
                 unknown: add the pods and service accounts of all namespaces (kubectl get \
                 pods,serviceaccounts -A)",
                namespace = plain(namespace)
            ));
        }
        self
    }

    /// # Errors
    /// When the credentials hide nodes or pods: what is left would look like a cluster without
    /// GPUs, or like free GPUs.
    pub fn with_all_nodes_and_pods(self) -> Result<Self> {
        if self.hidden.is_empty() {
            return Ok(self);
        }
        bail!(
            "{}: your credentials are not allowed to list {} in all namespaces, so the GPUs and \
             the pods that use them are unknown: use credentials with the ClusterRole of \
             deploy/serve/rbac.yaml, or read a ledger that a dovetail server fills (`dovetail \
             cost --mine --store LEDGER`)",
            self.sources.join(", "),
            self.hidden.join(" and ")
        )
    }
}

impl ObjectFlags {
    /// Whether any objects are named; without, those of kubectl's current context are read.
    pub fn is_given(&self) -> bool {
        self.example || !self.from.is_empty() || self.connection.is_given()
    }

    /// The cluster that is read, if one is named.
    pub fn named_server(&self) -> Option<&ConnectionFlags> {
        self.server().filter(|cluster| cluster.is_given())
    }

    /// The cluster that is read, if one is.
    pub fn server(&self) -> Option<&ConnectionFlags> {
        (!self.example && self.from.is_empty()).then_some(&self.connection)
    }

    /// Reads all objects.
    ///
    /// # Errors
    /// Names the file or cluster that cannot be read.
    pub fn read(&self, app: &App) -> Result<Read> {
        let mut inventory = Inventory::new(self.now_ms()?);
        let complete = self.read_into(app, &mut inventory)?;
        complete.iter().for_each(|kind| inventory.all_of(kind));
        let (skipped, count) = inventory.left_out();
        for skipped in skipped.iter().take(10) {
            app.note(&format!("skipped {}", plain(&skipped.to_string())));
        }
        if count > 10 {
            app.note(&format!("{count} objects ignored; -o json lists them"));
        }
        let is_file = self.server().is_none();
        if let (Some(first), true) = (inventory.left_out().0.first(), inventory.is_empty()) {
            let objects = counted(usize::try_from(count).unwrap_or(0), "object");
            return Err(BadInput(plain(&format!(
                "no Kubernetes object could be read, {objects} ignored: {first}: create the file \
                 with `kubectl get \
                 nodes,pods -A -o json`"
            )))
            .into());
        }
        // A list without any object is a cluster without nodes.
        let lacks_nodes = !inventory.is_empty() && !inventory.was_read("Node");
        if is_file && lacks_nodes && inventory.left_out().1 == 0 {
            let text = format!(
                "{} has no nodes, so which GPUs there are is unknown: add the output of `kubectl \
                 get nodes -o json`",
                self.sources().join(", ")
            );
            return Err(BadInput(text).into());
        }
        self.note_later_objects(app, &inventory);
        let is_hidden = |kind: &str| self.server().is_some() && !complete.contains(&kind);
        let kinds = [("Node", "nodes"), ("Pod", "pods")].into_iter();
        let hidden = kinds.filter(|(kind, _)| is_hidden(kind)).map(|(_, plural)| plural).collect();
        Ok(Read { inventory, sources: self.sources(), is_file, hidden })
    }

    /// Says so where objects were created after the time that was given for them: ages and waste
    /// would be those of another moment.
    fn note_later_objects(&self, app: &App, inventory: &Inventory) {
        let Some(at) = self.at else { return };
        let at_ms = at.as_millisecond().max(0).cast_unsigned();
        let Some((count, newest, newest_ms)) = inventory.created_after(at_ms + LATER_MS) else {
            return;
        };
        let others = match count - 1 {
            0 => String::new(),
            others => format!(" and {}", plural(others, "other", "others")),
        };
        app.note(&format!(
            "--at {at} is before objects in the input were created: {} ({}){others}; pass the time \
             of the dump",
            plain(&newest),
            time(newest_ms)
        ));
    }

    /// The moment of the objects, in ms since 1970.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn now_ms(&self) -> Result<u64> {
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
        let progress = Progress::counting("objects read");
        let mut sink = CountingSink { sink, progress: &progress, may_lack_nodes: false };
        if self.example {
            return example::read_into(&mut sink).map(|()| Vec::new());
        }
        if let Some(cluster) = self.server() {
            return served(app, cluster, &mut sink).map_err(with_example);
        }
        let read = read_paths(&self.from, &mut sink).map_err(told)?;
        note_what_is_left_out(app, &read);
        let objects = read.objects;
        if objects == 0 && sink.may_lack_nodes {
            let sources = self.sources().join(", ");
            app.note(&format!("{}: the list contains no objects", plain(&sources)));
        } else if objects == 0 {
            let text = "--from: the files contain no Kubernetes objects; create them with `kubectl \
                 get nodes,pods -A -o json`";
            return Err(BadInput(text.to_owned()).into());
        }
        Ok(Vec::new())
    }

    fn sources(&self) -> Vec<String> {
        let path = |path: &PathBuf| match path == Path::new(STDIN) {
            true => "standard input".to_owned(),
            false => path.display().to_string(),
        };
        let sources = self.from.iter().map(path).chain(self.server().map(ConnectionFlags::name));
        sources.chain(self.example.then(|| example::NAME.to_owned())).collect()
    }
}

/// Shows how many objects have been read.
struct CountingSink<'c> {
    sink: &'c mut dyn Sink,
    progress: &'c Progress,
    /// Whether a list that could hold nodes has no object.
    may_lack_nodes: bool,
}

impl Sink for CountingSink<'_> {
    fn object(&mut self, object: &RawObject<'_>) {
        self.progress.advance(1);
        self.sink.object(object);
    }

    fn objects(&mut self, objects: &[RawObject<'_>]) {
        self.progress.advance(objects.len() as u64);
        self.sink.objects(objects);
    }

    fn skipped(&mut self, skipped: Skipped) {
        self.sink.skipped(skipped);
    }

    fn empty_list(&mut self, kind: &str) {
        self.may_lack_nodes |= kind.is_empty() || kind == "Node";
        self.sink.empty_list(kind);
    }

    fn begin_again(&mut self) -> bool {
        self.sink.begin_again()
    }
}

fn served(app: &App, cluster: &ConnectionFlags, sink: &mut dyn Sink) -> Result<Vec<&'static str>> {
    let lists = connection_runtime()?.block_on(lists_of(cluster, sink))?;
    if !lists.refused.is_empty() {
        app.note(&format!(
            "see the ClusterRole in deploy/serve/rbac.yaml: your credentials are not allowed to \
             list {}",
            lists.refused.join(", ")
        ));
    }
    Ok(lists.complete)
}

/// A missing kubeconfig, with what to try without one.
pub fn with_example(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<NoKubeconfig>() {
        Some(missing) => anyhow::anyhow!("{missing}, or pass --example to try a generated cluster"),
        None => error,
    }
}

/// Hands all objects of a cluster to a sink.
///
/// # Errors
/// A cluster that does not answer, named as it was given.
pub async fn lists_of(cluster: &ConnectionFlags, sink: &mut dyn Sink) -> Result<Lists> {
    let config = cluster.connect().await?;
    let read = read_lists(&config, PAGE, sink).await;
    read.with_context(|| format!("cannot read the cluster of {}", cluster.name()))
}

/// Says so where files have several versions of objects, or are not read.
fn note_what_is_left_out(app: &App, read: &ReadDump) {
    if let Some(SeveralVersions { objects, example }) = &read.several {
        app.note(&format!(
            "the input has several versions of {}, such as {}: the highest resourceVersion of \
             each counts, else the last version",
            counted(*objects, "object"),
            plain(example)
        ));
    }
    for (folder, files) in &read.yaml {
        app.note(&format!(
            "{}: {} ignored: dumps must be JSON, as `kubectl get nodes,pods,... -A -o json` \
             writes them",
            plain(&folder.display().to_string()),
            counted(*files, "YAML file")
        ));
    }
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
            if file == Path::new(STDIN) {
                newest_ms =
                    newest_ms.max(collected_at(&file).map_err(told)?.unwrap_or_else(now_ms));
                continue;
            }
            let written = || {
                let metadata = fs::metadata(&file)?;
                metadata.modified().map(ms)
            };
            let at_ms = match collected_at(&file).map_err(told)? {
                Some(at_ms) => at_ms,
                None => written()
                    .with_context(|| format!("{}: cannot read the file", file.display()))?,
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
