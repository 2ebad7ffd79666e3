//! One leadership: reads the world anew, then decides until it is over.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::stream::{BoxStream, StreamExt};
use tokio::sync::mpsc::UnboundedReceiver;
use tracing::{debug, error, info, warn};

use super::news::News;
use super::scheduler::Scheduler;
use super::status::Standing;
use super::{Options, Shared};
use crate::bind::{Binder, BinderSettings, Cause, Outcome, Report};
use crate::lead::Leadership;
use crate::watch::{Notice, served, watch};
use crate::world::World;

/// Without any news, the loop comes round so often.
const ROUND: Duration = Duration::from_secs(1);
/// Changes taken before the next decision, at most.
const BATCH: usize = 10_000;
/// Between two attempts to ask the server which kinds it has.
const RETRY: Duration = Duration::from_secs(1);

/// The wires of one leadership.
pub(super) struct Term {
    scheduler: Scheduler,
    notices: BoxStream<'static, Notice>,
    /// None in a dry run.
    binder: Option<(Binder, UnboundedReceiver<Report>)>,
    shared: Arc<Shared>,
    epoch: u64,
}

impl Term {
    /// Reads the world until everything is listed.
    pub(super) async fn begin(
        shared: Arc<Shared>,
        leadership: Arc<dyn Leadership>,
        options: &Options,
        epoch: u64,
    ) -> Self {
        shared.status.set(Standing::Listing);
        let kinds = loop {
            match served(&shared.clients.watches).await {
                Ok(kinds) => break kinds,
                Err(problem) => warn!(%problem, "cannot ask the server which kinds it has"),
            }
            tokio::time::sleep(RETRY).await;
        };
        let world = World::new(options.world.clone());
        let binder = (!options.dry_run).then(|| {
            let (binds, looks) = (shared.clients.binds.clone(), shared.clients.rest.clone());
            // What waits there is not looked at again before it is sent: no more than keeps it busy.
            let settings = BinderSettings { queue: options.binder.in_flight, ..options.binder };
            Binder::start(binds, looks, leadership, settings)
        });
        let mut term = Self {
            scheduler: Scheduler::new(world, options.engine.clone(), epoch),
            notices: watch(&shared.clients.watches, &kinds, options.watch),
            binder,
            shared,
            epoch,
        };
        while !term.scheduler.is_ready() {
            // Watches never end.
            if let Some(notice) = term.notices.next().await {
                term.notice(notice);
            }
            term.take_what_is_there();
        }
        term
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
            self.send();
            self.tell();
            self.wait().await;
            self.take_what_is_there();
        }
    }

    /// Sends nothing more, and waits for what is on its way.
    pub(super) async fn end(mut self) {
        self.shared.metrics.lead(None);
        let Some((binder, mut reports)) = self.binder.take() else { return };
        binder.stop().await;
        while let Ok(report) = reports.try_recv() {
            self.scheduler.outcome(report, self.shared.now_ms());
        }
        self.tell();
    }

    /// Waits until there is something to do.
    async fn wait(&mut self) {
        let now_ms = self.shared.now_ms();
        let due = self.scheduler.due_ms().map(|due_ms| due_ms.saturating_sub(now_ms));
        let pause = due.map_or(ROUND, |due_ms| ROUND.min(Duration::from_millis(due_ms)));
        let reports = async {
            match &mut self.binder {
                Some((_, reports)) => reports.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(report) = reports => self.scheduler.outcome(report, now_ms),
            Some(notice) = self.notices.next() => self.notice(notice),
            () = tokio::time::sleep(pause) => {}
        }
    }

    /// Takes everything that has arrived, so that one decision is about all of it.
    fn take_what_is_there(&mut self) {
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
            Notice::Change(change) => self.scheduler.change(change, self.shared.now_ms()),
            Notice::Interrupted { kind, problem } => {
                self.shared.metrics.interrupted(kind.name());
                warn!(kind = kind.name(), %problem, "a watch broke; it goes on after a pause");
            }
            Notice::Absent { kind } => {
                info!(kind = kind.name(), "the server has no such kind: it counts as empty");
            }
        }
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

    fn tell(&mut self) {
        for news in self.scheduler.news() {
            self.shared.metrics.count(&news);
            log(&news);
        }
        let in_flight = self.binder.as_ref().map_or(0, |(binder, _)| binder.in_flight());
        self.shared.metrics.show(self.scheduler.counts(), in_flight);
    }
}

fn log(news: &News) {
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
                Outcome::NotBound(Cause::Refused { code, message }) => {
                    warn!(%namespace, %pod, %node, %decision, code, message, "the server refuses a bind");
                }
                outcome => info!(%namespace, %pod, %node, %decision, ?outcome, "not bound"),
            }
        }
        News::WouldBind { bind, waited_ms } => {
            let (namespace, pod, node) = (&bind.namespace, &bind.pod, &bind.node);
            info!(%namespace, %pod, %node, waited_ms, "would bind");
        }
        News::Waits { pod, reason } => debug!(%pod, ?reason, "waits"),
        News::Object(report) => warn!("{report}"),
        News::Inconsistent(problem) => {
            error!(%problem, "the engine starts anew from the objects; this is a bug: report it");
        }
    }
}
