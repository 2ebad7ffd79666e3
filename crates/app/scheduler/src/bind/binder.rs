//! The task that sends binds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dovetail_apiserver::pods::{get, post};
use dovetail_control::answer::{Answered, NoAnswer};
use dovetail_control::bind::{Bind, Cause, Outcome, Report, Verdict, of_bind, of_pod};
use dovetail_control::lead::Permit;
use kube::Client;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::lead::Leadership;

/// First and longest pause between two looks at a pod that cannot be read.
const LOOK_PAUSES_MS: (u64, u64) = (100, 5_000);
/// A look is given up after this time.
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);

/// Limits of a binder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BinderSettings {
    /// Bind requests on their way at any time.
    pub in_flight: usize,
    /// Decisions beyond those whose outcome is still looked for. At the limit nothing more is sent.
    pub in_doubt: usize,
    /// Decisions that wait for their turn.
    pub queue: usize,
}

impl Default for BinderSettings {
    fn default() -> Self {
        Self { in_flight: 64, in_doubt: 256, queue: 4_096 }
    }
}

/// A running binder.
#[derive(Debug)]
pub struct Binder {
    queue: mpsc::Sender<Bind>,
    stop: watch::Sender<bool>,
    sending: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

/// What every decision needs.
struct Wires {
    binds: Client,
    looks: Client,
    leadership: Arc<dyn Leadership>,
    stopped: watch::Receiver<bool>,
    /// Requests on their way.
    sending: Arc<AtomicUsize>,
}

impl Binder {
    /// Starts a binder. `binds` must not retry by itself; `looks` is another client, so that looking
    /// after pods never waits behind binds. Reports come in the order of their outcomes, one per
    /// accepted decision, until [`Binder::stop`] or the drop of the binder.
    pub fn start(
        binds: Client,
        looks: Client,
        leadership: Arc<dyn Leadership>,
        settings: BinderSettings,
    ) -> (Self, mpsc::UnboundedReceiver<Report>) {
        let (queue, decisions) = mpsc::channel(settings.queue.max(1));
        // No more reports wait than decisions were accepted.
        let (reports, reported) = mpsc::unbounded_channel();
        let (stop, stopped) = watch::channel(false);
        let in_flight = settings.in_flight.max(1);
        let slots = Arc::new(Semaphore::new(in_flight));
        let sending = Arc::<AtomicUsize>::default();
        let wires = Wires { binds, looks, leadership, stopped, sending: sending.clone() };
        let outstanding = in_flight + settings.in_doubt;
        let task = tokio::spawn(drive(wires.into(), slots, decisions, reports, outstanding));
        (Self { queue, stop, sending, task }, reported)
    }

    /// Accepts a decision, or returns it when the queue is full.
    ///
    /// # Errors
    /// The decision itself, which was not accepted.
    pub fn submit(&self, bind: Bind) -> Result<(), Box<Bind>> {
        self.queue.try_send(bind).map_err(|refused| Box::new(refused.into_inner()))
    }

    /// How many decisions it accepts now.
    pub fn room(&self) -> usize {
        self.queue.capacity()
    }

    /// Bind requests on their way now.
    pub fn in_flight(&self) -> usize {
        self.sending.load(Ordering::Relaxed)
    }

    /// Sends nothing more, waits for what is on its way, and returns when every accepted decision
    /// has its report. What is in doubt then is [`Outcome::Unknown`].
    pub async fn stop(self) {
        self.stop.send_replace(true);
        drop(self.queue);
        // A panic in a task of ours is reported by the runtime.
        _ = self.task.await;
    }
}

async fn drive(
    wires: Arc<Wires>,
    slots: Arc<Semaphore>,
    mut decisions: mpsc::Receiver<Bind>,
    reports: mpsc::UnboundedSender<Report>,
    outstanding: usize,
) {
    let mut running = JoinSet::new();
    loop {
        let slot = loop {
            if running.len() < outstanding {
                tokio::select! {
                    biased;
                    Some(_) = running.join_next() => {}
                    // Nobody closes the semaphore.
                    slot = slots.clone().acquire_owned() => break slot.ok(),
                }
            } else {
                running.join_next().await;
            }
        };
        let bind = tokio::select! {
            bind = decisions.recv() => bind,
            // Collects what ended while nothing is to be sent.
            Some(_) = running.join_next() => continue,
        };
        let (Some(slot), Some(bind)) = (slot, bind) else { break };
        let (wires, reports) = (wires.clone(), reports.clone());
        running.spawn(async move {
            let report = settle(&wires, bind, slot).await;
            // Nobody listens any more when the receiver is gone.
            _ = reports.send(report);
        });
    }
    while running.join_next().await.is_some() {}
}

/// Takes one decision to its outcome. The slot is free again when the request is over.
async fn settle(wires: &Wires, bind: Bind, slot: OwnedSemaphorePermit) -> Report {
    let not_sent =
        |bind, cause| Report { bind, outcome: Outcome::NotBound(cause), answered_in_ms: None };
    if *wires.stopped.borrow() {
        return not_sent(bind, Cause::Stopped);
    }
    let permit = wires.leadership.permit().filter(|permit| permit.epoch == bind.epoch);
    let Some(permit) = permit else { return not_sent(bind, Cause::NotLeading) };
    let clock = wires.leadership.clock();
    let sent_ms = clock.now_ms();
    wires.sending.fetch_add(1, Ordering::Relaxed);
    let answered = send(wires, &bind, permit).await;
    wires.sending.fetch_sub(1, Ordering::Relaxed);
    drop(slot);
    let answered_in_ms = answered.is_ok().then(|| clock.now_ms() - sent_ms);
    let outcome = match of_bind(&answered) {
        Verdict::Final(outcome) => outcome,
        Verdict::LookNow(cause) => look(wires, &bind, Duration::ZERO, &cause).await,
        Verdict::LookLater(cause) => {
            look(wires, &bind, clock.until(permit.deadline_ms), &cause).await
        }
    };
    Report { bind, outcome, answered_in_ms }
}

/// The write itself, over by the permit's deadline.
async fn send(wires: &Wires, bind: &Bind, permit: Permit) -> Answered {
    let limit = wires.leadership.clock().until(permit.deadline_ms);
    // The server counts from the arrival of the request: an eighth is left for the way there.
    let sent = post(&wires.binds, bind, (limit - limit / 8).as_millis());
    tokio::time::timeout(limit, sent).await.unwrap_or_else(|_| {
        let error = format!("no answer within {} ms", limit.as_millis());
        Err(NoAnswer { unsent: false, error })
    })
}

/// Reads the pod until it tells what happened.
async fn look(wires: &Wires, bind: &Bind, wait: Duration, cause: &Cause) -> Outcome {
    let mut stopped = wires.stopped.clone();
    let looking = async {
        tokio::time::sleep(wait).await;
        let (mut pause_ms, longest_ms) = LOOK_PAUSES_MS;
        loop {
            let answered =
                tokio::time::timeout(LOOK_TIMEOUT, get(&wires.looks, &bind.namespace, &bind.pod))
                    .await;
            if let Some(outcome) = answered.ok().and_then(|answered| of_pod(bind, &answered, cause))
            {
                return outcome;
            }
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            pause_ms = (pause_ms * 2).min(longest_ms);
        }
    };
    tokio::select! {
        biased;
        outcome = looking => outcome,
        // The sender lives as long as the binder; without it nothing is to be learnt either.
        _ = stopped.wait_for(|stopped| *stopped) => Outcome::Unknown,
    }
}
