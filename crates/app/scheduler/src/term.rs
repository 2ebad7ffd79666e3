//! One leadership: reads the world anew, then decides until it is over.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dovetail_apiserver::client::with_causes;
use dovetail_apiserver::watch::{self as watches, Notice, served, watch};
use dovetail_cluster::world::{self, Change, Unwinding, World};
use dovetail_control::announce::Source;
use dovetail_control::answer::lacked_right;
use dovetail_control::bind::{Cause, Order, OrderReport, Outcome, Report, Stop, StopDecision};
use dovetail_control::repeats::Repeats;
use dovetail_control::schedule::{Comparison, News, Preempts, Recording, Scheduler};
use dovetail_objects::Kind;
use futures_util::FutureExt;
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::mpsc::UnboundedReceiver;
use tracing::{debug, error, info, warn};

use super::announcing::Announcing;
use super::first_lists::{FirstLists, ListPatience};
use super::look::{answer, refusal, resource};
use super::status::Standing;
use super::would_wait::WouldWait;
use super::{Options, Shared};
use crate::Announcer;
use crate::bind::{Binder, BinderSettings, Orders};
use crate::lead::{Clock, Leadership};

/// Without any news, the loop comes round so often.
const ROUND: Duration = Duration::from_secs(1);
/// Changes taken before the next decision, at most.
const BATCH: usize = 10_000;
/// Between two attempts to ask the server which kinds it has.
const RETRY: Duration = Duration::from_secs(1);

/// What is asked first.
const KINDS: &str = "the kinds that the server has";

/// Announcements on their way while no bind is.
const ANNOUNCEMENTS: usize = 32;
/// The same refusal of a bind is told again after so long.
const REFUSED_AGAIN_MS: u64 = 300_000;
/// At the end, what is owed is written for so long.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The wires of one leadership.
pub(super) struct Term {
    scheduler: Scheduler,
    notices: BoxStream<'static, Notice>,
    /// None in a dry run.
    binder: Option<(Binder, UnboundedReceiver<Report>)>,
    /// None in a dry run.
    announcing: Option<Announcing>,
    /// Only in a dry run.
    would_wait: Option<WouldWait>,
    comparison: Option<Arc<Mutex<Comparison>>>,
    recording: Option<Recording>,
    /// None in a dry run.
    orders: Option<Orders>,
    /// What is written to claims, which may be many: others are not to wait for it. None in a dry run.
    claims: Option<Orders>,
    shared: Arc<Shared>,
    epoch: u64,
    watching: watches::Settings,
    lists: FirstLists,
    clock: Clock,
    /// Refusals of binds that were told of late.
    refusals: Repeats<&'static str>,
}

/// The cluster cannot be read; why, for people.
pub(super) struct Unlisted(pub(super) String);

impl Term {
    /// Wires without news yet.
    pub(super) fn new(
        shared: Arc<Shared>,
        leadership: Arc<dyn Leadership>,
        options: &Options,
        epoch: u64,
    ) -> Self {
        let world = World::new(options.world.clone());
        let announcing = (!options.dry_run).then(|| {
            let controller = options.world.scheduler.clone();
            let named = Some(&options.instance).filter(|name| !name.is_empty());
            let source = Source { instance: named.unwrap_or(&controller).clone(), controller };
            let client = shared.clients.announcements.clone();
            let announcer = Announcer::new(client, leadership.clone(), epoch, source);
            Announcing::new(announcer, ANNOUNCEMENTS)
        });
        let orders = || {
            let (client, name) = (shared.clients.rest.clone(), &options.world.scheduler);
            (!options.dry_run).then(|| Orders::start(client, leadership.clone(), epoch, name))
        };
        let (orders, claims) = (orders(), orders());
        let binder = (!options.dry_run).then(|| {
            let (binds, looks) = (shared.clients.binds.clone(), shared.clients.rest.clone());
            // What waits there is not looked at again before it is sent: no more than keeps it busy.
            let settings = BinderSettings { queue: options.binder.in_flight, ..options.binder };
            Binder::start(binds, looks, leadership.clone(), settings)
        });
        let mut scheduler = Scheduler::new(world, options.engine.clone(), epoch);
        scheduler.wait_for_volumes(options.volumes.wait_ms);
        if options.dry_run {
            scheduler.only_pretend();
        }
        if let Some(recording) = &options.recording {
            scheduler.record(recording.clone());
        }
        Self {
            scheduler,
            comparison: options.comparison.clone(),
            recording: options.recording.clone(),
            notices: stream::pending().boxed(),
            watching: options.watch,
            lists: FirstLists::default(),
            clock: leadership.clock().clone(),
            refusals: Repeats::every(REFUSED_AGAIN_MS),
            binder,
            announcing,
            would_wait: options.dry_run.then(WouldWait::default),
            orders,
            claims,
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
        while !self.scheduler.is_ready() {
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
            let now_ms = self.shared.now_ms();
            self.scheduler.wake(now_ms);
            self.scheduler.decide(now_ms);
            self.shared.metrics.cycle(begun.elapsed());
            self.shared.metrics.searched(self.scheduler.searches());
            let is_broken = self.recording.as_ref().is_some_and(|to| to.get().is_broken());
            self.shared.metrics.recording_broken(is_broken);
            self.send();
            self.give_up();
            self.order();
            self.tell();
            self.announce();
            self.wait().await;
            self.take_what_is_there();
            self.tell_refusals();
        }
    }

    /// Sends nothing more, and waits for what is on its way.
    pub(super) async fn end(mut self) {
        self.shared.metrics.lead(None);
        for orders in [self.orders.take(), self.claims.take()].into_iter().flatten() {
            for OrderReport { order, end } in orders.stop().await {
                self.scheduler.order_ended(&order, end, self.shared.now_ms());
            }
        }
        let Some((binder, mut reports)) = self.binder.take() else { return self.scheduler.end() };
        binder.stop().await;
        while let Ok(report) = reports.try_recv() {
            self.scheduler.outcome(report, self.shared.now_ms());
        }
        self.tell();
        // What is not written by then is given up.
        _ = tokio::time::timeout(LAST_WORDS, self.last_words()).await;
        self.scheduler.end();
    }

    async fn last_words(&mut self) {
        loop {
            self.announce();
            let Some(announcing) = &mut self.announcing else { return };
            if announcing.is_done() {
                return;
            }
            let report = announcing.outcome().await;
            announcing.settle(report, self.shared.now_ms(), &self.shared.metrics);
        }
    }

    /// Announces as much as there is time for.
    fn announce(&mut self) {
        let is_busy = self.is_busy();
        let now_ms = self.shared.now_ms();
        if let Some(would_wait) = &mut self.would_wait {
            would_wait.tell(&mut self.scheduler, now_ms);
        }
        let Some(announcing) = &mut self.announcing else { return };
        announcing.go_on(&mut self.scheduler, is_busy, now_ms, &self.shared.metrics);
    }

    /// Whether binds go out.
    fn is_busy(&self) -> bool {
        let Some((binder, _)) = &self.binder else { return false };
        binder.in_flight() > 0 || self.scheduler.counts().to_send > 0
    }

    /// Waits until there is something to do.
    async fn wait(&mut self) {
        let now_ms = self.shared.now_ms();
        let is_busy = self.is_busy();
        let announcing_ms = self.announcing.as_ref().and_then(|all| all.due_ms(is_busy));
        let would_wait_ms = self.would_wait.as_ref().and_then(WouldWait::due_ms);
        let due_ms = self.scheduler.due_ms().into_iter().chain(announcing_ms).chain(would_wait_ms);
        let due_ms = due_ms.min();
        let due = due_ms.map(|due_ms| due_ms.saturating_sub(now_ms));
        let pause = due.map_or(ROUND, |due_ms| ROUND.min(Duration::from_millis(due_ms)));
        let reports = async {
            match &mut self.binder {
                Some((_, reports)) => reports.recv().await,
                None => std::future::pending().await,
            }
        };
        let announced = async {
            match &mut self.announcing {
                Some(announcing) => announcing.outcome().await,
                None => std::future::pending().await,
            }
        };
        let (orders, claims) = (&mut self.orders, &mut self.claims);
        tokio::select! {
            Some(report) = reports => self.scheduler.outcome(report, now_ms),
            report = ended(orders) => self.scheduler.order_ended(&report.order, report.end, now_ms),
            report = ended(claims) => self.scheduler.order_ended(&report.order, report.end, now_ms),
            report = announced => self.announced(report),
            Some(notice) = self.notices.next() => self.notice(notice),
            () = tokio::time::sleep(pause) => {}
        }
    }

    fn announced(&mut self, report: dovetail_control::announce::Report) {
        if let Some(announcing) = &mut self.announcing {
            announcing.settle(report, self.shared.now_ms(), &self.shared.metrics);
        }
    }

    /// Takes everything that has arrived, so that one decision is about all of it.
    fn take_what_is_there(&mut self) {
        let all = [&mut self.orders, &mut self.claims];
        for orders in all.into_iter().flatten() {
            while let Some(OrderReport { order, end }) = orders.known_report() {
                self.scheduler.order_ended(&order, end, self.shared.now_ms());
            }
        }
        for _ in 0..BATCH {
            let report = self.binder.as_mut().and_then(|(_, reports)| reports.try_recv().ok());
            let notice = self.notices.next().now_or_never().flatten();
            if report.is_none() && notice.is_none() {
                return;
            }
            if let Some(report) = report {
                self.scheduler.outcome(report, self.shared.now_ms());
            }
            if let Some(notice) = notice {
                self.notice(notice);
            }
        }
    }

    fn notice(&mut self, notice: Notice) {
        match notice {
            Notice::Change(change) => {
                if let Some(kind) = arrived(&change) {
                    self.lists.listed(kind);
                }
                let now_ms = self.shared.now_ms();
                if let Some(mut comparison) = self.comparison() {
                    comparison.see(&change, self.scheduler.world(), now_ms);
                }
                self.scheduler.change(change, now_ms);
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

    fn comparison(&self) -> Option<MutexGuard<'_, Comparison>> {
        let comparison = self.comparison.as_ref()?;
        Some(comparison.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sends as much as may be sent.
    fn send(&mut self) {
        let now_ms = self.shared.now_ms();
        while let Some(bind) = self.scheduler.next_bind(now_ms) {
            let Some((binder, _)) = &self.binder else {
                self.scheduler.keep(&bind);
                continue;
            };
            if let Err(bind) = binder.submit(bind) {
                return self.scheduler.put_back(&bind);
            }
        }
    }

    /// Has the pods of gangs deleted that stayed short for too long.
    fn give_up(&mut self) {
        for Unwinding { gang, pods, min } in self.scheduler.unwinding() {
            self.shared.metrics.given_up();
            let placed = pods.len();
            warn!(%gang, placed, min, "a gang stayed below its smallest size: it is given up");
            let Some(orders) = &self.orders else { continue };
            let stop =
                |pod| Order::Stop { pod, why: Stop::GangGivenUp, decision: StopDecision::alone() };
            // What finds no room is ordered again.
            let mut given = pods.into_iter().map(|pod| orders.submit(stop(pod)));
            while given.next().is_some_and(|given| given.is_ok()) {}
        }
    }

    /// Has pods stopped for others, nodes named that are freed, and nodes chosen for claims.
    fn order(&mut self) {
        let (Some(orders), Some(claims)) = (&self.orders, &self.claims) else { return };
        while let Some(order) = self.scheduler.next_order() {
            let orders = if matches!(order, Order::SelectNode { .. }) { claims } else { orders };
            if let Err(order) = orders.submit(order) {
                return self.scheduler.put_back_order(*order);
            }
        }
    }

    /// Whether a bind is refused as others were, or as before: it is tried again with pauses.
    fn is_told_of_late(&mut self, news: &News) -> bool {
        let News::NotBound(Report { outcome, .. }) = news else { return false };
        let Outcome::NotBound(Cause::Refused { code, message }) = outcome else { return false };
        let cause = lacked_right(*code, message).unwrap_or(message);
        !self.refusals.is_due("bind", cause, self.clock.now_ms())
    }

    fn tell(&mut self) {
        for news in self.scheduler.news() {
            self.shared.metrics.count(&news);
            let is_known = self.is_told_of_late(&news);
            log(&news, is_known);
            if let Some(announcing) = &mut self.announcing {
                announcing.hear(&news, self.shared.now_ms());
            }
            if let Some(would_wait) = &mut self.would_wait {
                would_wait.hear(&news, self.shared.now_ms());
            }
            if let (News::WouldBind { bind, .. }, Some(mut comparison)) = (&news, self.comparison())
            {
                comparison.decided(bind, self.scheduler.world(), self.shared.now_ms());
            }
        }
        let in_flight = self.binder.as_ref().map_or(0, |(binder, _)| binder.in_flight());
        self.shared.metrics.show(self.scheduler.counts(), in_flight);
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

/// Waits for what became of an order.
async fn ended(orders: &mut Option<Orders>) -> OrderReport {
    if let Some(orders) = orders
        && let Some(report) = orders.report().await
    {
        return report;
    }
    std::future::pending().await
}

/// `is_known`: the same was told of late.
fn log(news: &News, is_known: bool) {
    match news {
        News::Bound { report, waited_ms } => {
            let bind = &report.bind;
            let (namespace, pod, node, decision) =
                (&bind.namespace, &bind.pod, &bind.node, &bind.tag);
            debug!(%namespace, %pod, %node, %decision, waited_ms, "bound");
        }
        News::NotBound(report) => {
            let bind = &report.bind;
            let (namespace, pod, node, decision) =
                (&bind.namespace, &bind.pod, &bind.node, &bind.tag);
            match &report.outcome {
                Outcome::NotBound(Cause::Refused { code, message }) if !is_known => {
                    warn!(%namespace, %pod, %node, %decision, code, message, "the server refuses a bind");
                }
                outcome => info!(%namespace, %pod, %node, %decision, ?outcome, "not bound"),
            }
        }
        News::WouldBind { bind, waited_ms } => {
            let (namespace, pod, node) = (&bind.namespace, &bind.pod, &bind.node);
            info!(%namespace, %pod, %node, waited_ms, "would bind");
        }
        News::Preempts(preempts) => {
            let Preempts { preemptor, victims, nodes, cost, is_dry_run, .. } = &**preempts;
            let victims: Vec<String> = victims
                .iter()
                .map(|(pod, node)| format!("{}/{} on {node}", pod.namespace, pod.name))
                .collect();
            let (victims, nodes) = (victims.join(", "), nodes.join(", "));
            let (violations, highest) = (cost.budget_violations, cost.highest_priority);
            let what = if *is_dry_run { "would stop" } else { "is to stop" };
            info!(%preemptor, %victims, %nodes, violations, highest, "{what} pods of lower priority");
        }
        // Who carries out orders has said so.
        News::StopRefused(_)
        | News::Stopped(_)
        | News::GangGivenUp { .. }
        | News::Preempted { .. } => {}
        News::Waits { pod, reason, .. } => debug!(%pod, ?reason, "waits"),
        News::Object(
            report @ (world::Report::WaitsForMembers { .. }
            | world::Report::WaitsForVolumes { .. }
            | world::Report::WaitsForVolumesOfOthers { .. }
            | world::Report::GroupWaitsForVolumes { .. }
            | world::Report::GroupWaits { .. }
            | world::Report::GroupHasItsSize { .. }),
        ) => info!("{report}"),
        News::Object(report @ world::Report::Refused { reason, .. })
            if reason.is_held_back() || reason.is_for_its_turn() =>
        {
            info!("{report}");
        }
        News::Object(
            report @ (world::Report::Refused { is_repeat: true, .. }
            | world::Report::Contradiction { is_repeat: true, .. }),
        ) => debug!("{report}"),
        News::Object(report) => warn!("{report}"),
        News::Inconsistent(problem) => {
            error!(%problem, "the engine starts anew from the objects; this is a bug: report it");
        }
    }
}
