//! Reads a cluster once and decides once, for questions about it. Nothing is written.

use std::collections::BTreeMap;
use std::time::Duration;

use dovetail_apiserver::client::{ClientError, to_watch};
use dovetail_apiserver::perform;
use dovetail_apiserver::watch::{Notice, served, watch};
use dovetail_control::Control;
use dovetail_control::answer::NoAnswer;
use dovetail_control::control::{Credits, Input, LogEntry, Settings};
use dovetail_control::learned::{ConfigMapName, LearnedNews};
use dovetail_control::request::{ApiResponse, Now};
use dovetail_objects::Kind;
use futures_util::StreamExt;
use kube::runtime::watcher;
use kube::{Client, Config};
use thiserror::Error;
use tokio::time::Instant;

use super::Options;

/// The read of what was learned is given up after this time.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// After one kind was refused, others are refused within this time.
pub(super) const OTHERS_WITHIN_MS: u64 = 1_000;

/// Why a cluster cannot be read.
#[derive(Debug, Error)]
pub enum LookError {
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server cannot be asked which kinds it has.
    #[error("cannot list the API resources of the server")]
    Kinds(#[source] kube::Error),
    /// Kinds may not be listed.
    #[error(
        "your user is not allowed to list and watch {}: grant this permission, as the ClusterRole \
         of deploy/viewer.yaml does; the server's message about the first kind: {message}",
        .kinds.join(", ")
    )]
    Refused {
        /// The resources as roles name them, in their order.
        kinds: Vec<String>,
        /// What the server says of the first one.
        message: String,
    },
    /// It takes too long.
    #[error(
        "the API server has not sent all objects within {} s: use a longer timeout or a closer \
         server",
        .limit.as_secs()
    )]
    Late {
        /// How long was waited.
        limit: Duration,
    },
}

/// The cluster as it was seen.
pub struct Looked {
    /// Has decided once.
    pub control: Control,
    /// Why it is not known what the leader has learned; `None` if it is, or nothing is kept.
    pub unlearned: Option<String>,
}

/// The cluster as it is at `now_ms`, with every decision that the scheduler of these options would
/// take about it, by what their leader has learned.
///
/// # Errors
/// When the server cannot be reached or refuses to list something.
pub async fn look(
    config: &Config,
    options: &Options,
    limit: Duration,
    now_ms: u64,
) -> Result<Looked, LookError> {
    let client = to_watch(config)?;
    let reading = read(&client, options, now_ms);
    let read = tokio::time::timeout(limit, reading).await;
    read.map_err(|_| LookError::Late { limit })?
}

async fn read(client: &Client, options: &Options, now_ms: u64) -> Result<Looked, LookError> {
    let kinds = served(client).await.map_err(LookError::Kinds)?;
    let mut control = Control::new(Settings { only_asks: true, ..options.control() });
    // Nothing depends on any other clock where nothing is written.
    let now = Now { wall_ms: now_ms, own_ms: 0 };
    let unlearned = read_learned(client, &mut control, now).await;
    let mut step = |input| control.step(vec![input], Credits::default(), now).decides;
    let mut has_decided = false;
    let mut notices = watch(client, &kinds, options.watch);
    let mut refused: BTreeMap<String, String> = BTreeMap::new();
    // Who may not list one kind may often not list others: all are named at once.
    let mut until = None;
    while !has_decided {
        let notice = match until {
            // Watches never end.
            None => notices.next().await,
            Some(until) => match tokio::time::timeout_at(until, notices.next()).await {
                Ok(notice) => notice,
                Err(_) => break,
            },
        };
        match notice {
            Some(Notice::Change(change, json)) => has_decided = step(Input::Change(change, json)),
            Some(Notice::Interrupted { kind, problem }) => {
                if let Some(message) = refusal(&problem) {
                    let others_within = Duration::from_millis(OTHERS_WITHIN_MS);
                    until.get_or_insert_with(|| Instant::now() + others_within);
                    refused.entry(resource(kind)).or_insert(message);
                }
            }
            Some(Notice::Absent { .. }) | None => {}
        }
    }
    let first = refused.values().next().cloned();
    match first {
        None => Ok(Looked { control, unlearned }),
        Some(message) => Err(LookError::Refused { kinds: refused.into_keys().collect(), message }),
    }
}

/// Begins, and reads what the leader has learned; why that cannot be read.
async fn read_learned(client: &Client, control: &mut Control, now: Now) -> Option<String> {
    let mut unlearned = None;
    let mut inputs = vec![Input::Won { epoch: 0 }];
    while !inputs.is_empty() {
        let output = control.step(std::mem::take(&mut inputs), Credits::default(), now);
        unlearned = unlearned.or_else(|| output.log.iter().find_map(problem_of));
        for request in output.requests {
            let number = request.number;
            let answered = tokio::time::timeout(READ_TIMEOUT, perform(client, request, None)).await;
            let answered = answered.unwrap_or_else(|_| {
                let error = format!("no answer within {} s", READ_TIMEOUT.as_secs());
                Err(NoAnswer { unsent: false, error })
            });
            let answered = Some(answered);
            inputs.push(Input::Answered(ApiResponse { number, answered, took_ms: 0, over_ms: 0 }));
        }
    }
    unlearned
}

/// Without a ConfigMap nothing is kept: the leader may have begun just now.
fn problem_of(entry: &LogEntry) -> Option<String> {
    match entry {
        LogEntry::Learned { at, news: LearnedNews::NotRead { problem } } => {
            let ConfigMapName { namespace, name } = at;
            Some(format!("cannot read ConfigMap {namespace}/{name}: {problem}"))
        }
        _ => None,
    }
}

/// A kind as roles name it.
pub(super) fn resource(kind: Kind) -> String {
    match kind.group() {
        "" => kind.plural().to_owned(),
        group => format!("{}.{group}", kind.plural()),
    }
}

/// What the server says if it does not let the user see a kind.
pub(super) fn refusal(problem: &watcher::Error) -> Option<String> {
    let (_, message) = answer(problem).filter(|(code, _)| matches!(code, 401 | 403))?;
    Some(message)
}

/// Code and message of the server's answer, if that is why a watch has not begun.
pub(super) fn answer(problem: &watcher::Error) -> Option<(u16, String)> {
    let (watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) =
        problem
    else {
        return None;
    };
    match error {
        kube::Error::Api(status) => Some((status.code, status.message.clone())),
        _ => None,
    }
}
