//! The task of one leadership: it receives, steps and dispatches.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dovetail_apiserver::client::with_causes;
use dovetail_apiserver::watch::{self as watches, Notice, served, watch};
use dovetail_cluster::world::Change;
use dovetail_control::Control;
use dovetail_control::control::{Credits, Input, Output};
use dovetail_control::request::Now;
use dovetail_objects::Kind;
use futures_util::FutureExt;
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::task::unconstrained;
use tracing::{info, warn};

use super::first_lists::{FirstLists, ListPatience};
use super::log::show;
use super::look::{answer, refusal, resource};
use super::status::Standing;
use super::wires::{BINDS_AT_ONCE, Wires};
use super::{Options, Shared};
use crate::lead::{Clock, Leadership, wall_ms};

/// Without any news, the loop comes round so often.
const ROUND: Duration = Duration::from_secs(1);
/// What is taken before the next decision, at most.
const BATCH: usize = 10_000;
/// Between two attempts to ask the server which kinds it has.
const RETRY: Duration = Duration::from_secs(1);

/// What is asked first.
const KINDS: &str = "the kinds that the server has";

/// At the end, what is owed is written for so long.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// One leadership.
pub(super) struct Term {
    control: Control,
    notices: BoxStream<'static, Notice>,
    /// `None` in a dry run, which sends nothing.
    wires: Option<Wires>,
    shared: Arc<Shared>,
    epoch: u64,
    watching: watches::Settings,
    lists: FirstLists,
    clock: Clock,
    /// What the next step is about.
    inputs: Vec<Input>,
}

/// The cluster cannot be read; why, for people.
pub(super) struct Unlisted(pub(super) String);

impl Term {
    /// A leadership that has heard nothing yet.
    pub(super) fn new(
        shared: Arc<Shared>,
        leadership: Arc<dyn Leadership>,
        options: &Options,
        epoch: u64,
    ) -> Self {
        let wires = || Wires::new(shared.clients.clone(), leadership.clone(), epoch, BINDS_AT_ONCE);
        Self {
            control: Control::new(options.control()),
            notices: stream::pending().boxed(),
            wires: (!options.dry_run).then(wires),
            watching: options.watch,
            lists: FirstLists::default(),
            clock: leadership.clock().clone(),
            inputs: vec![Input::Won { epoch }],
            shared,
            epoch,
        }
    }

    /// Reads the world until everything is listed.
    ///
    /// # Errors
    /// When a list has failed for longer than there is patience; without a limit it is tried for ever.
    pub(super) async fn begin(&mut self, patience: Option<ListPatience>) -> Result<(), Unlisted> {
        self.shared.status.set(Standing::Listing);
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
        // Nothing may be written before the leadership knows that everything was read.
        while !self.step(Credits::default()).decides {
            // Watches never end; what has failed for long must be seen without news, too.
            if let Ok(Some(notice)) = tokio::time::timeout(RETRY, self.notices.next()).await {
                self.notice(notice);
            }
            self.take_what_is_there();
            self.tell_refusals();
            self.are_listed(patience)?;
        }
        Ok(())
    }

    /// Tells which kinds the user may not see.
    fn tell_refusals(&mut self) {
        if let Some(told) = self.lists.refusals(self.clock.now_ms()) {
            warn!(server = self.shared.server, "{told}");
        }
    }

    /// Shows what fails; an error when that has lasted for too long.
    fn are_listed(&self, patience: Option<ListPatience>) -> Result<(), Unlisted> {
        let trouble = self.lists.trouble();
        self.shared.status.set_with(Standing::Listing, trouble.clone());
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
            warn!(server, "cannot list and watch {what}; it is tried again: {problem}");
        }
    }

    /// Decides until it is cancelled.
    pub(super) async fn run(&mut self) {
        info!(epoch = self.epoch, "everything is listed: deciding");
        self.shared.metrics.lead(Some(self.epoch));
        loop {
            self.shared.status.set(Standing::Deciding);
            let begun = Instant::now();
            let output = self.step(self.credits());
            self.shared.metrics.cycle(begun.elapsed());
            self.wait(output.wait_ms).await;
            self.take_what_is_there();
            self.tell_refusals();
        }
    }

    /// Begins nothing more, waits for what is on its way, and writes for a while what is owed.
    pub(super) async fn end(mut self) {
        self.shared.metrics.lead(None);
        self.inputs.push(Input::Stop);
        self.wires.iter().for_each(Wires::stop);
        let mut last_words = Duration::MAX;
        loop {
            let announcements = self.credits().announcements;
            let output = self.step(Credits { announcements, ..Credits::default() });
            if output.is_over {
                break;
            }
            // What is on its way to pods ends by its deadline.
            if output.is_idle {
                last_words = last_words.min(LAST_WORDS);
            }
            let begun = Instant::now();
            if tokio::time::timeout(last_words, self.answer()).await.is_err() {
                break;
            }
            last_words = last_words.saturating_sub(begun.elapsed());
        }
        self.inputs.push(Input::End);
        self.step(Credits::default());
    }

    /// Waits for the next answer.
    async fn answer(&mut self) {
        match &mut self.wires {
            Some(wires) => self.inputs.push(Input::Answered(wires.next().await)),
            None => std::future::pending().await,
        }
    }

    fn credits(&self) -> Credits {
        self.wires.as_ref().map_or_else(Credits::default, Wires::credits)
    }

    /// Hands everything that has arrived to the scheduler, and sends what it asks for.
    fn step(&mut self, credits: Credits) -> Output {
        let inputs = std::mem::take(&mut self.inputs);
        let now = Now { wall_ms: wall_ms(), own_ms: self.clock.now_ms() };
        let mut output = self.control.step(inputs, credits, now);
        show(&output, &self.shared.metrics);
        if let Some(wires) = &mut self.wires {
            output.requests.drain(..).for_each(|request| wires.send(request));
        }
        let binding = self.wires.as_ref().map_or(0, Wires::binding);
        self.shared.metrics.show(output.counts, binding);
        output
    }

    /// Waits until there is something to do.
    async fn wait(&mut self, wait_ms: Option<u64>) {
        let pause = wait_ms.map_or(ROUND, |wait_ms| ROUND.min(Duration::from_millis(wait_ms)));
        let wires = &mut self.wires;
        let answer = async {
            match wires {
                Some(wires) => wires.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            answer = answer => self.inputs.push(Input::Answered(answer)),
            Some(notice) = self.notices.next() => self.notice(notice),
            () = tokio::time::sleep(pause) => {}
        }
    }

    /// Takes everything that has arrived, so that one decision is about all of it.
    fn take_what_is_there(&mut self) {
        for _ in 0..BATCH {
            // All that is answered, however much that is.
            let known = |wires: &mut Wires| unconstrained(wires.next()).now_or_never();
            let answer = self.wires.as_mut().and_then(known);
            let notice = self.notices.next().now_or_never().flatten();
            if answer.is_none() && notice.is_none() {
                return;
            }
            self.inputs.extend(answer.map(Input::Answered));
            notice.into_iter().for_each(|notice| self.notice(notice));
        }
    }

    fn notice(&mut self, notice: Notice) {
        match notice {
            Notice::Change(change) => {
                if let Some(kind) = arrived(&change) {
                    self.lists.listed(kind);
                }
                self.inputs.push(Input::Change(change));
            }
            Notice::Interrupted { kind, problem } => {
                self.shared.metrics.interrupted(kind.name());
                if let Some(message) = refusal(&problem) {
                    return self.lists.refused(kind, message, self.clock.now_ms());
                }
                let told = answer(&problem).map(|(code, message)| format!("{code}: {message}"));
                let told = told.unwrap_or_else(|| with_causes(&*problem));
                let is_due = self.lists.failed(kind, &told, self.clock.now_ms());
                self.tell_failure(is_due, &resource(kind), &told);
            }
            Notice::Absent { kind } => {
                info!(kind = kind.name(), "the server has no such kind: it counts as empty");
            }
        }
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
