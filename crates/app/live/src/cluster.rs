//! The cluster as it is, read once.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use dovetail_console::app::App;
use dovetail_console::clock::now_ms;
use dovetail_console::connection::connection_runtime;
use dovetail_control::Control;
use dovetail_control::ask::{GangLine, NodeLine, PodQuestion, Question, QueueLines, Reply, Why};
use dovetail_objects::harmless;
use dovetail_partitioning::for_pod::{self, LayoutChange};
use dovetail_scheduler::{Looked, Options, look};
use dovetail_sources::kubeconfig::ConnectionFlags;

/// The engine refuses what the objects say.
const UNDECIDED: &str = "the engine failed for this cluster; this is a bug: report it";

/// The cluster as it is, and when that was.
pub struct ClusterSnapshot {
    control: Control,
    connection: ConnectionFlags,
    now_ms: u64,
    /// Why it is not known what the scheduler has learned.
    unlearned: Option<String>,
    /// The namespace of the connection.
    pub(crate) namespace: String,
}

impl ClusterSnapshot {
    /// Reads all objects and lets the engine of these options decide once.
    ///
    /// # Errors
    /// When there is no connection, and when not all objects came within the limit.
    pub fn read(connection: &ConnectionFlags, options: Options, limit: Duration) -> Result<Self> {
        connection_runtime()?.block_on(async {
            let config = connection.connect().await?;
            let now_ms = now_ms();
            let looked = look(&config, &options, limit, now_ms).await;
            let Looked { control, unlearned } = looked.with_context(|| {
                let (server, name) = (&config.cluster_url, connection.name());
                format!("cannot read the cluster at {server} ({name})")
            })?;
            let (connection, namespace) = (connection.clone(), config.default_namespace);
            Ok(Self { control, connection, now_ms, unlearned, namespace })
        })
    }

    /// Notes beside an answer with expected starts what these do without.
    pub(crate) fn note_unlearned(&self, app: &App) {
        if let Some(problem) = &self.unlearned {
            let starts = "expected starts do not use the run times that the scheduler has learned";
            app.note(&harmless(&format!("{starts}: {problem}")));
        }
    }

    /// Why a pod or a gang is pending; `None` if there is none of the name.
    pub(crate) fn why(&mut self, name: &str, namespace: Option<&str>) -> Result<Option<Why>> {
        let question = PodQuestion {
            name: name.to_owned(),
            namespace: namespace.map(str::to_owned),
            default_namespace: self.namespace.clone(),
        };
        match self.ask(&Question::Pod(question)) {
            Some(Reply::Pod(why)) => Ok(why.map(|why| *why)),
            _ => bail!(UNDECIDED),
        }
    }

    /// The changes of layouts for the slices that a pending pod or gang requests. Notes why they
    /// are not known.
    pub(crate) fn layout_changes(&self, app: &App, why: &Why) -> Vec<LayoutChange> {
        if why.in_line.is_none() {
            return Vec::new();
        }
        let waiting = |gang: &GangLine| -> Vec<String> {
            let members = gang.members.iter().filter(|member| member.state == "waits");
            members.map(|member| member.pod.clone()).collect()
        };
        let pods = why.gang.as_ref().map_or_else(|| vec![why.name.clone()], waiting);
        let names: Vec<(&str, &str)> = pods.iter().filter_map(|pod| pod.split_once('/')).collect();
        let Some((namespace, _)) = names.first() else { return Vec::new() };
        let names: Vec<&str> = names.iter().map(|(_, name)| *name).collect();
        let read = for_pod::read(app, &self.connection, (namespace, &names), self.now_ms);
        read.unwrap_or_else(|error| {
            let problem = "cannot read which changes of layouts are planned";
            app.note(&harmless(&format!("{problem}: {error:#}")));
            Vec::new()
        })
    }

    /// What queues hold, and who waits in them; with `starts`, also when these are expected to
    /// start.
    pub(crate) fn queues(&mut self, starts: bool) -> Result<QueueLines> {
        match self.ask(&Question::Queues { starts }) {
            Some(Reply::Queues(queues)) => Ok(queues),
            _ => bail!(UNDECIDED),
        }
    }

    /// What nodes have, and who holds it; with `all`, also those without GPUs.
    pub(crate) fn nodes(&mut self, all: bool) -> Result<Vec<NodeLine>> {
        match self.ask(&Question::Nodes { all }) {
            Some(Reply::Nodes(nodes)) => Ok(nodes),
            _ => bail!(UNDECIDED),
        }
    }

    fn ask(&mut self, question: &Question) -> Option<Reply> {
        self.control.ask(question, self.now_ms)
    }
}
