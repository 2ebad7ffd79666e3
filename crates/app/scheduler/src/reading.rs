//! What the server says of the objects, as inputs; and what it does not say.

use std::sync::Arc;
use std::time::Duration;

use dovetail_apiserver::client::with_causes;
use dovetail_apiserver::watch::{self as watches, Notice, served, watch};
use dovetail_cluster::world::Change;
use dovetail_control::control::Input;
use dovetail_objects::Kind;
use futures_util::FutureExt;
use futures_util::stream::{self, BoxStream, StreamExt};
use tracing::{info, warn};

use super::Shared;
use super::first_lists::{FirstLists, ListPatience};
use super::look::{answer, refusal, resource};
use super::status::ProcessPhase;
use crate::lead::Clock;

/// Between two attempts to ask the server which kinds it has.
const RETRY: Duration = Duration::from_secs(1);
/// What is asked first.
const KINDS: &str = "the kinds that the server has";

/// The watches of one leadership.
pub(super) struct WatchReader {
    notices: BoxStream<'static, Notice>,
    watching: watches::Settings,
    lists: FirstLists,
    shared: Arc<Shared>,
    clock: Clock,
}

/// The cluster cannot be read; why, for people.
pub(super) struct Unlisted(pub(super) String);

impl WatchReader {
    /// Nothing is watched yet.
    pub(super) fn new(shared: Arc<Shared>, watching: watches::Settings, clock: Clock) -> Self {
        let (notices, lists) = (stream::pending().boxed(), FirstLists::default());
        Self { notices, watching, lists, shared, clock }
    }

    /// Watches all kinds that the server has.
    ///
    /// # Errors
    /// When it has not said which for longer than there is patience; without a limit it is tried
    /// for ever.
    pub(super) async fn begin(&mut self, patience: Option<ListPatience>) -> Result<(), Unlisted> {
        let kinds = loop {
            match served(&self.shared.clients.watches).await {
                Ok(kinds) => break kinds,
                Err(problem) => {
                    let (told, now_ms) = (with_causes(&problem), self.clock.now_ms());
                    let is_due = self.lists.has_failed(KINDS, &told, now_ms);
                    self.tell_failure(is_due, KINDS, &told);
                }
            }
            self.are_listed(patience)?;
            tokio::time::sleep(RETRY).await;
        };
        self.lists.arrived(KINDS);
        self.notices = watch(&self.shared.clients.watches, &kinds, self.watching);
        Ok(())
    }

    /// Waits for what comes next, and not for long: what has failed for long must be seen without
    /// news, too.
    pub(super) async fn next_or_pause(&mut self) -> Option<Input> {
        // Watches never end.
        tokio::time::timeout(RETRY, self.next()).await.ok().flatten()
    }

    /// Waits for what comes next; nothing where it is no change.
    pub(super) async fn next(&mut self) -> Option<Input> {
        let notice = self.notices.next().await?;
        self.take(notice)
    }

    /// What has come already; `None`: nothing more.
    pub(super) fn next_at_hand(&mut self) -> Option<Option<Input>> {
        let notice = self.notices.next().now_or_never().flatten()?;
        Some(self.take(notice))
    }

    /// Tells which kinds the user may not see.
    pub(super) fn tell_refusals(&mut self) {
        if let Some(told) = self.lists.refusals(self.clock.now_ms()) {
            warn!(server = self.shared.server, "{told}");
        }
    }

    /// Shows what fails; an error when that has lasted for too long.
    pub(super) fn are_listed(&self, patience: Option<ListPatience>) -> Result<(), Unlisted> {
        let trouble = self.lists.trouble();
        self.shared.status.set_with(ProcessPhase::Listing, trouble.clone());
        let now_ms = self.clock.now_ms();
        let is_hopeless = patience.is_some_and(|patience| self.lists.is_hopeless(patience, now_ms));
        match trouble.filter(|_| is_hopeless) {
            Some(trouble) => Err(Unlisted(trouble)),
            None => Ok(()),
        }
    }

    fn tell_failure(&self, is_due: bool, what: &str, problem: &str) {
        if is_due {
            let server = &self.shared.server;
            warn!(server, "cannot list and watch {what}, retrying: {problem}");
        }
    }

    fn take(&mut self, notice: Notice) -> Option<Input> {
        match notice {
            Notice::Change(change, json) => {
                if let Some(kind) = arrived(&change) {
                    self.lists.listed(kind);
                }
                return Some(Input::Change(change, json));
            }
            Notice::Interrupted { kind, problem } => {
                self.shared.metrics.interrupted(kind.name());
                if let Some(message) = refusal(&problem) {
                    self.lists.refused(kind, message, self.clock.now_ms());
                    return None;
                }
                let told = answer(&problem).map(|(code, message)| format!("{code}: {message}"));
                let told = told.unwrap_or_else(|| with_causes(&*problem));
                let is_due = self.lists.failed(kind, &told, self.clock.now_ms());
                self.tell_failure(is_due, &resource(kind), &told);
            }
            Notice::Absent { kind } => {
                info!(
                    kind = kind.name(),
                    "the server does not have this kind: dovetail treats it as empty"
                );
            }
        }
        None
    }
}

/// The kind of which something has arrived: that a list begins says nothing yet.
fn arrived(change: &Change) -> Option<Kind> {
    match change {
        Change::Applied(object) => Some(object.kind()),
        Change::Deleted(kind, _) | Change::Listed(kind) | Change::Absent(kind) => Some(*kind),
        Change::Listing(_) => None,
    }
}
