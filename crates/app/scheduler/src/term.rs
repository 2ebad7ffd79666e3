//! The wires of one leadership: what arrives is handed to [`Control`], and what it asks for is
//! sent.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dovetail_apiserver::client::with_causes;
use dovetail_apiserver::watch::{self as watches, Notice, served, watch};
use dovetail_cluster::world::Change;
use dovetail_control::Control;
use dovetail_control::announce::Source;
use dovetail_control::bind::Report;
use dovetail_control::control::{Credits, Input, Output};
use dovetail_objects::Kind;
use futures_util::FutureExt;
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::unconstrained;
use tracing::{info, warn};

use super::first_lists::{FirstLists, ListPatience};
use super::log::show;
use super::look::{answer, refusal, resource};
use super::status::Standing;
use super::{Options, Shared};
use crate::Announcer;
use crate::bind::{Binder, BinderSettings, Orders};
use crate::lead::{Clock, Leadership};

/// Without any news, the loop comes round so often.
const ROUND: Duration = Duration::from_secs(1);
/// What is taken before the next decision, at most.
const BATCH: usize = 10_000;
/// Between two attempts to ask the server which kinds it has.
const RETRY: Duration = Duration::from_secs(1);

/// What is asked first.
const KINDS: &str = "the kinds that the server has";

/// Announcements on their way while no bind is.
const ANNOUNCEMENTS: usize = 32;
/// At the end, what is owed is written for so long.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What is sent, and by whom. There is none in a dry run.
struct Writers {
    binder: Binder,
    reports: UnboundedReceiver<Report>,
    announcer: Announcer,
    orders: Orders,
    /// What is written to claims, which may be many: others are not to wait for it.
    claims: Orders,
}

/// The wires of one leadership.
pub(super) struct Term {
    control: Control,
    notices: BoxStream<'static, Notice>,
    writers: Option<Writers>,
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

impl Writers {
    fn start(
        shared: &Shared,
        leadership: &Arc<dyn Leadership>,
        options: &Options,
        epoch: u64,
    ) -> Self {
        let clients = &shared.clients;
        let controller = options.world.scheduler.clone();
        let named = Some(&options.instance).filter(|name| !name.is_empty());
        let source = Source { instance: named.unwrap_or(&controller).clone(), controller };
        let announcer =
            Announcer::new(clients.announcements.clone(), leadership.clone(), epoch, source);
        let orders = || {
            let name = &options.world.scheduler;
            Orders::start(clients.rest.clone(), leadership.clone(), epoch, name)
        };
        // What waits there is not looked at again before it is sent: no more than keeps it busy.
        let settings = BinderSettings { queue: options.binder.in_flight, ..options.binder };
        let (binds, looks) = (clients.binds.clone(), clients.rest.clone());
        let (binder, reports) = Binder::start(binds, looks, leadership.clone(), settings);
        Self { binder, reports, announcer, orders: orders(), claims: orders() }
    }

    fn credits(&self) -> Credits {
        Credits {
            binds: self.binder.room(),
            orders: self.orders.room(),
            claims: self.claims.room(),
            announcements: ANNOUNCEMENTS,
            binds_on_their_way: self.binder.in_flight(),
        }
    }

    /// Sends what a step asks for, which is no more than it was told that there is room for.
    fn dispatch(&mut self, output: &mut Output) {
        for bind in output.binds.drain(..) {
            _ = self.binder.submit(bind);
        }
        for order in output.orders.drain(..) {
            _ = self.orders.submit(order);
        }
        for order in output.claims.drain(..) {
            _ = self.claims.submit(order);
        }
        output.announcements.drain(..).for_each(|write| self.announcer.send(write));
    }

    /// What becomes of something that was sent.
    async fn next(&mut self) -> Input {
        tokio::select! {
            Some(report) = self.reports.recv() => Input::Bound(report),
            Some(report) = self.orders.report() => Input::Ordered(report),
            Some(report) = self.claims.report() => Input::Ordered(report),
            report = self.announcer.outcome() => Input::Announced(report),
        }
    }
}

impl Term {
    /// Wires without news yet.
    pub(super) fn new(
        shared: Arc<Shared>,
        leadership: Arc<dyn Leadership>,
        options: &Options,
        epoch: u64,
    ) -> Self {
        let writers =
            (!options.dry_run).then(|| Writers::start(&shared, &leadership, options, epoch));
        Self {
            control: Control::new(options.control()),
            notices: stream::pending().boxed(),
            writers,
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
            self.wait(output.due_ms).await;
            self.take_what_is_there();
            self.tell_refusals();
        }
    }

    /// Sends nothing more, and waits for what is on its way.
    pub(super) async fn end(mut self) {
        self.shared.metrics.lead(None);
        self.inputs.push(Input::Stop);
        if let Some(writers) = self.writers.take() {
            let Writers { binder, mut reports, mut announcer, orders, claims } = writers;
            for orders in [orders, claims] {
                self.inputs.extend(orders.stop().await.into_iter().map(Input::Ordered));
            }
            binder.stop().await;
            while let Ok(report) = reports.try_recv() {
                self.inputs.push(Input::Bound(report));
            }
            // What is not written by then is given up.
            _ = tokio::time::timeout(LAST_WORDS, self.last_words(&mut announcer)).await;
        }
        self.inputs.push(Input::End);
        self.step(Credits::default());
    }

    async fn last_words(&mut self, announcer: &mut Announcer) {
        let credits = Credits { announcements: ANNOUNCEMENTS, ..Credits::default() };
        loop {
            let output = self.step(credits);
            output.announcements.into_iter().for_each(|write| announcer.send(write));
            if output.is_over {
                return;
            }
            let outcome = announcer.outcome().await;
            self.inputs.push(Input::Announced(outcome));
        }
    }

    fn credits(&self) -> Credits {
        self.writers.as_ref().map_or_else(Credits::default, Writers::credits)
    }

    /// Hands everything that has arrived to the scheduler, and sends what it asks for.
    fn step(&mut self, credits: Credits) -> Output {
        let inputs = std::mem::take(&mut self.inputs);
        let mut output = self.control.step(inputs, credits, self.shared.now_ms());
        show(&output, &self.shared.metrics);
        if let Some(writers) = &mut self.writers {
            writers.dispatch(&mut output);
        }
        let in_flight = self.writers.as_ref().map_or(0, |writers| writers.binder.in_flight());
        self.shared.metrics.show(output.counts, in_flight);
        output
    }

    /// Waits until there is something to do.
    async fn wait(&mut self, due_ms: Option<u64>) {
        let due = due_ms.map(|due_ms| due_ms.saturating_sub(self.shared.now_ms()));
        let pause = due.map_or(ROUND, |due_ms| ROUND.min(Duration::from_millis(due_ms)));
        let writers = &mut self.writers;
        let ended = async {
            match writers {
                Some(writers) => writers.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            input = ended => self.inputs.push(input),
            Some(notice) = self.notices.next() => self.notice(notice),
            () = tokio::time::sleep(pause) => {}
        }
    }

    /// Takes everything that has arrived, so that one decision is about all of it.
    fn take_what_is_there(&mut self) {
        for _ in 0..BATCH {
            // All that has ended, however much that is.
            let known = |writers: &mut Writers| unconstrained(writers.next()).now_or_never();
            let ended = self.writers.as_mut().and_then(known);
            let notice = self.notices.next().now_or_never().flatten();
            if ended.is_none() && notice.is_none() {
                return;
            }
            self.inputs.extend(ended);
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
