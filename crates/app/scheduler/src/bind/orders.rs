//! The task that carries out orders about pods other than binds: those that are stopped, and the nodes that are
//! freed for others.
//!
//! Every write names the pod's UID, so it may be repeated: another pod of the same name is never meant. A pod that
//! is stopped is told so by its condition first, then deleted with the time that it may take; a Job whose
//! `podFailurePolicy` ignores disruptions does not count it as failed. Before the first of several that are stopped
//! together, the server is asked whether it lets all of them go, and all are told. If the server refuses to delete it, the
//! condition is taken back, and the pods that were to be stopped with it are not. An order that is not carried out in
//! the end is given again by whoever gave it, if it still holds. What became of each order is reported.
//!
//! Orders that do not belong together are carried out side by side.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use dovetail_cluster::world::PodKey;
use dovetail_control::bind::{Kept, Next, Order, OrderEnd, OrderReport, Step, StopDecision, judge};
use dovetail_control::repeats::Repeats;
use futures_util::stream::{FuturesUnordered, StreamExt};
use kube::Client;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use tracing::info;

use super::ask::{ask, has_answered};
use super::mark::{could_not_be_told, mark_all};
use super::steps::{send, tell};
use super::turns::{Ended, Turn, Turns};
use crate::lead::Leadership;

/// Orders that wait to be taken, and as many that wait for their turn.
const QUEUE: usize = 4_096;
/// Orders that are carried out at once.
const AT_ONCE: usize = 32;
/// A write is tried so often.
const TRIES: u32 = 6;
/// First and longest pause between two tries.
const PAUSES_MS: (u64, u64) = (100, 5_000);
/// The same refusal is told again after so long.
const TOLD_AGAIN_MS: u64 = 300_000;
/// After a stop was in vain, no pod is touched for so long before the server has said that it lets it go.
const DOUBT_MS: u64 = 600_000;

/// A running task. Dropped, it begins nothing more.
#[derive(Debug)]
pub struct Orders {
    queue: mpsc::Sender<Order>,
    reports: mpsc::UnboundedReceiver<OrderReport>,
    task: JoinHandle<()>,
    /// As long as this is there, writes may begin.
    wanted: Arc<()>,
}

/// What every order needs.
pub(super) struct Wires {
    pub(super) client: Client,
    pub(super) leadership: Arc<dyn Leadership>,
    epoch: u64,
    /// Name of the scheduler, as pods name it.
    pub(super) scheduler: String,
    wanted: Weak<()>,
    told: Mutex<Repeats<&'static str>>,
    /// Until when it is doubted that the server lets pods go.
    doubt_until_ms: AtomicU64,
}

impl Wires {
    /// Says that a step is not carried out, unless the same was said a short while ago.
    pub(super) fn tell(&self, step: &Step<'_>, end: &OrderEnd) {
        // Who panicked left no half of a text.
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        tell(step, end, &mut told, self.leadership.clock().now_ms());
    }

    /// Whether a stop was in vain of late.
    pub(super) fn doubts(&self) -> bool {
        self.leadership.clock().now_ms() < self.doubt_until_ms.load(Ordering::Relaxed)
    }

    fn begin_to_doubt(&self) {
        let until_ms = self.leadership.clock().now_ms().saturating_add(DOUBT_MS);
        self.doubt_until_ms.store(until_ms, Ordering::Relaxed);
    }
}

impl Orders {
    /// Starts a task that carries out orders as long as this process leads in `epoch`. `scheduler` is the name by which
    /// pods ask for it.
    pub fn start(
        client: Client,
        leadership: Arc<dyn Leadership>,
        epoch: u64,
        scheduler: &str,
    ) -> Self {
        let (queue, orders) = mpsc::channel(QUEUE);
        // No more reports wait than orders were accepted.
        let (told, reports) = mpsc::unbounded_channel();
        let wanted = Arc::new(());
        let wires = Wires {
            client,
            leadership,
            epoch,
            scheduler: scheduler.to_owned(),
            wanted: Arc::downgrade(&wanted),
            told: Mutex::new(Repeats::every(TOLD_AGAIN_MS)),
            doubt_until_ms: AtomicU64::new(0),
        };
        Self { queue, reports, task: tokio::spawn(drive(wires, orders, told)), wanted }
    }

    /// Waits for what became of the next order; `None` when nothing more is carried out.
    pub async fn report(&mut self) -> Option<OrderReport> {
        self.reports.recv().await
    }

    /// How many orders it accepts now.
    pub fn room(&self) -> usize {
        self.queue.capacity()
    }

    /// Accepts an order, or returns it when there is no room for it now.
    ///
    /// # Errors
    /// The order itself, which was not accepted.
    pub fn submit(&self, order: Order) -> Result<(), Box<Order>> {
        self.queue.try_send(order).map_err(|refused| Box::new(refused.into_inner()))
    }

    /// Begins nothing more, and waits for what is on its way; what became of what was not asked about yet.
    pub async fn stop(mut self) -> Vec<OrderReport> {
        drop(self.wanted);
        drop(self.queue);
        // A panic in a task of ours is reported by the runtime.
        _ = self.task.await;
        std::iter::from_fn(|| self.reports.try_recv().ok()).collect()
    }
}

async fn drive(
    wires: Wires,
    mut orders: mpsc::Receiver<Order>,
    reports: mpsc::UnboundedSender<OrderReport>,
) {
    let (mut turns, begun) = (Turns::default(), Semaphore::new(AT_ONCE));
    let mut given = FuturesUnordered::new();
    let mut is_over = false;
    loop {
        let may_take = !is_over && given.len() < QUEUE;
        tokio::select! {
            order = orders.recv(), if may_take => match order {
                None => is_over = true,
                Some(order) => {
                    let turn = turns.give(&order);
                    given.push(in_turn(&wires, order, turn, &begun, &reports));
                }
            },
            // What is on its way comes to its end also when nothing more is begun.
            Some((ended, goes_on)) = given.next() => {
                turns.take_back(ended);
                is_over |= !goes_on;
            },
            else => return,
        }
    }
}

/// Carries out an order when its turn has come, and whether more may be written.
async fn in_turn(
    wires: &Wires,
    order: Order,
    turn: Turn,
    begun: &Semaphore,
    reports: &mpsc::UnboundedSender<OrderReport>,
) -> (Ended, bool) {
    let ended = turn.comes().await;
    // It is never closed.
    let _permit = begun.acquire().await;
    let goes_on = fulfil(wires, &order, reports).await.is_some();
    (ended, goes_on)
}

/// Carries out an order, with what is to be known before; `None` if nothing more may be written.
async fn fulfil(
    wires: &Wires,
    order: &Order,
    reports: &mpsc::UnboundedSender<OrderReport>,
) -> Option<()> {
    for (order, end) in &ask(wires, order).await? {
        finish(wires, order, Settled::not_begun(order, end), reports).await;
    }
    for (order, end) in &mark_all(wires, order).await? {
        finish(wires, order, Settled::not_begun(order, end), reports).await;
    }
    if has_answered(order) || could_not_be_told(order) {
        return Some(());
    }
    let settled = settle(wires, order).await?;
    finish(wires, order, settled, reports).await;
    Some(())
}

/// How an order was settled.
struct Settled<'a> {
    end: OrderEnd,
    /// A pod that is marked and is not about to be stopped is marked no more.
    marked_in_vain: Option<Step<'a>>,
}

impl<'a> Settled<'a> {
    /// A stop that would not have been carried out. The pod says so, as one does that was marked; one that may be
    /// stopped soon was never told anything.
    fn not_begun(order: &'a Order, end: &OrderEnd) -> Self {
        let unmark = order.stopped().and_then(|pod| unmark(pod, end));
        let marked_in_vain = unmark.filter(|step| matches!(step, Step::Unmark(_, Kept::Refused)));
        Self { end: end.clone(), marked_in_vain }
    }
}

/// What a pod says that is not stopped after all.
fn unmark<'a>(pod: &'a PodKey, end: &OrderEnd) -> Option<Step<'a>> {
    let kept = match end {
        OrderEnd::Refused { code, message } => Kept::by(*code, message),
        OrderEnd::CalledOff => Kept::ForNow,
        OrderEnd::Done | OrderEnd::Gone | OrderEnd::Unanswered { .. } => return None,
    };
    Some(Step::Unmark(pod, kept))
}

/// Reports what became of an order, and does what follows from it.
async fn finish(
    wires: &Wires,
    order: &Order,
    Settled { end, marked_in_vain }: Settled<'_>,
    reports: &mpsc::UnboundedSender<OrderReport>,
) {
    let is_in_vain = matches!(end, OrderEnd::Refused { .. } | OrderEnd::Unanswered { .. });
    if let (Order::Stop { decision, .. }, true) = (order, is_in_vain) {
        decision.call_off();
        wires.begin_to_doubt();
    }
    // Nobody listens any more when the receiver is gone.
    _ = reports.send(OrderReport { order: order.clone(), end });
    if let Some(unmark) = marked_in_vain
        && let Some(end) = carry_out(wires, &unmark).await
    {
        // Where that fails, the mark stays.
        wires.tell(&unmark, &end);
    }
}

/// Takes the steps of an order one after the other; `None` if nothing more may be written.
async fn settle<'a>(wires: &Wires, order: &'a Order) -> Option<Settled<'a>> {
    let decision = match order {
        Order::Stop { decision, .. } => Some(decision),
        _ => None,
    };
    let told = decision.and_then(StopDecision::told);
    let mut marked = order.stopped().filter(|pod| told.is_some_and(|t| t.marked.contains(pod)));
    for step in order.steps() {
        if marked.is_some() && step.marks().is_some() {
            continue;
        }
        let end = match decision.is_some_and(StopDecision::is_called_off) {
            true => OrderEnd::CalledOff,
            false => carry_out(wires, &step).await?,
        };
        if end == OrderEnd::Done {
            marked = step.marks().or(marked);
            continue;
        }
        wires.tell(&step, &end);
        let marked_in_vain = marked.and_then(|pod| unmark(pod, &end));
        return Some(Settled { end, marked_in_vain });
    }
    Some(Settled { end: OrderEnd::Done, marked_in_vain: None })
}

/// Tries one write until it is settled; `None` if nothing more may be written.
pub(super) async fn carry_out(wires: &Wires, step: &Step<'_>) -> Option<OrderEnd> {
    let mut pause_ms = PAUSES_MS.0;
    for last in (0..TRIES).map(|tried| tried + 1 == TRIES) {
        // Whoever stops takes what is not done with it.
        if wires.wanted.strong_count() == 0 {
            return None;
        }
        let permit = wires.leadership.permit().filter(|permit| permit.epoch == wires.epoch)?;
        let limit = wires.leadership.clock().until(permit.deadline_ms);
        let answered = tokio::time::timeout(limit, send(step, wires)).await;
        let next = match answered {
            Ok(Ok((code, _, body))) => judge(code, &body),
            Ok(Err(none)) => Next::Again(None, none.error),
            Err(_) => Next::Again(None, format!("no answer within {} ms", limit.as_millis())),
        };
        let ((namespace, name), what) = (step.about(), step.what());
        match next {
            Next::End(end) => {
                if end == OrderEnd::Done && !step.is_question() {
                    info!(%namespace, name, "done: {what}");
                }
                return Some(end);
            }
            // Of what these say nothing is done, whatever came of the tries before.
            Next::Again(Some(code @ (429 | 500)), message) if last => {
                return Some(OrderEnd::Refused { code, message });
            }
            Next::Again(code, problem) => {
                let says = code.map(|code| format!("the server says {code}: "));
                let problem = format!("{}{problem}", says.unwrap_or_default());
                if last {
                    return Some(OrderEnd::Unanswered { problem });
                }
                info!(%namespace, name, %problem, "tried again: {what}");
                tokio::time::sleep(Duration::from_millis(pause_ms)).await;
                pause_ms = PAUSES_MS.1.min(2 * pause_ms);
            }
        }
    }
    None
}
