//! The task that carries out orders about pods other than binds: those that are stopped, and the nodes that are
//! freed for others.
//!
//! Every write names the pod's UID, so it may be repeated: another pod of the same name is never meant. A pod that
//! is stopped is told so by its condition first, then deleted with the time that it may take; a Job whose
//! `podFailurePolicy` ignores disruptions does not count it as failed. Before the first of several that are stopped
//! together, the server is asked whether it lets all of them go. If the server refuses to delete it, the
//! condition is taken back, and the pods that were to be stopped with it are not. An order that is not carried out in
//! the end is given again by whoever gave it, if it still holds. What became of each order is reported.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::info;

use super::ask::Asked;
use super::step::{Next, Step, judge};
use super::stop::{Kept, Stop, StopDecision};
use crate::announce::Condition;
use crate::lead::Leadership;
use crate::repeats::Repeats;
use crate::world::{ClaimKey, PodKey};

/// Orders that wait for their turn.
const QUEUE: usize = 4_096;
/// A write is tried so often.
const TRIES: u32 = 6;
/// First and longest pause between two tries.
const PAUSES_MS: (u64, u64) = (100, 5_000);
/// The same refusal is told again after so long.
const TOLD_AGAIN_MS: u64 = 300_000;

/// What is to be done with a pod, or with a claim of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Stop it.
    Stop {
        /// The pod.
        pod: PodKey,
        /// Why.
        why: Stop,
        /// With which others.
        decision: StopDecision,
    },
    /// Take back that it is about to be stopped.
    TakeBack {
        /// The pod.
        pod: PodKey,
    },
    /// Say which node is freed for it; none any more if `node` is empty.
    Nominate {
        /// The pod.
        pod: PodKey,
        /// Name of the node.
        node: String,
        /// What it says of that in the same write, as far as it has not got a node meanwhile.
        says: Option<Box<Condition>>,
    },
    /// Say for which node a claim is to get its volume.
    SelectNode {
        /// The claim.
        claim: ClaimKey,
        /// Its version: of another version nothing is changed.
        version: Box<str>,
        /// Name of the node.
        node: String,
    },
}

impl Order {
    /// Say that no node is freed for a pod.
    pub(crate) fn nominate_nowhere(pod: PodKey) -> Self {
        Self::Nominate { pod, node: String::new(), says: None }
    }

    /// The pod that is to be told which node is freed for it.
    pub(crate) fn nominated(&self) -> Option<&PodKey> {
        match self {
            Self::Nominate { pod, .. } => Some(pod),
            Self::Stop { .. } | Self::TakeBack { .. } | Self::SelectNode { .. } => None,
        }
    }

    /// The pod that is to be stopped.
    fn stopped(&self) -> Option<&PodKey> {
        match self {
            Self::Stop { pod, .. } => Some(pod),
            Self::TakeBack { .. } | Self::Nominate { .. } | Self::SelectNode { .. } => None,
        }
    }
}

/// What became of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderReport {
    /// The order.
    pub order: Order,
    /// Its end.
    pub end: OrderEnd,
}

/// How an order ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderEnd {
    /// It is carried out.
    Done,
    /// The object is gone, or has another version than the order names.
    Gone,
    /// It is a stop, and those decided with it were called off before it began.
    CalledOff,
    /// The server refuses it, such as for missing rights or by admission, and will again; or it has again and again
    /// (429, 500).
    Refused {
        /// HTTP code.
        code: u16,
        /// What the server says.
        message: String,
    },
    /// The server failed to answer again and again.
    Unanswered {
        /// What went wrong.
        problem: String,
    },
}

/// A running task. Dropped, it begins nothing more.
#[derive(Debug)]
pub struct Orders {
    queue: mpsc::Sender<Order>,
    reports: mpsc::UnboundedReceiver<OrderReport>,
    task: JoinHandle<()>,
}

/// What every order needs.
pub(super) struct Wires {
    pub(super) client: Client,
    pub(super) leadership: Arc<dyn Leadership>,
    epoch: u64,
    /// Name of the scheduler, as pods name it.
    pub(super) scheduler: String,
}

impl Orders {
    /// Starts a task that carries out one order after the other, as long as this process leads in `epoch`.
    /// `scheduler` is the name by which pods ask for it.
    pub fn start(
        client: Client,
        leadership: Arc<dyn Leadership>,
        epoch: u64,
        scheduler: &str,
    ) -> Self {
        let (queue, orders) = mpsc::channel(QUEUE);
        // No more reports wait than orders were accepted.
        let (told, reports) = mpsc::unbounded_channel();
        let wires = Wires { client, leadership, epoch, scheduler: scheduler.to_owned() };
        Self { queue, reports, task: tokio::spawn(drive(wires, orders, told)) }
    }

    /// Waits for what became of the next order; `None` when nothing more is carried out.
    pub async fn report(&mut self) -> Option<OrderReport> {
        self.reports.recv().await
    }

    /// What became of an order, if that is known.
    pub fn known_report(&mut self) -> Option<OrderReport> {
        self.reports.try_recv().ok()
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
    let mut told = Repeats::every(TOLD_AGAIN_MS);
    let mut asked = Asked::default();
    while let Some(order) = orders.recv().await {
        let Some(kept) = asked.ask(&wires, &order, &orders, &mut told).await else { return };
        for (order, end) in &kept {
            finish(&wires, order, Settled::not_begun(order, end), &orders, &reports, &mut told)
                .await;
        }
        if asked.has_answered(&order) {
            continue;
        }
        let Some(settled) = settle(&wires, &order, &orders, &mut told).await else { return };
        finish(&wires, &order, settled, &orders, &reports, &mut told).await;
    }
}

/// How an order was settled.
struct Settled<'a> {
    end: OrderEnd,
    /// A pod that is marked and is not about to be stopped is marked no more.
    marked_in_vain: Option<Step<'a>>,
}

impl<'a> Settled<'a> {
    /// A stop that would not have been carried out. The pod says so, as one does that was marked.
    fn not_begun(order: &'a Order, end: &OrderEnd) -> Self {
        let marked_in_vain = order.stopped().and_then(|pod| unmark(pod, end));
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
    orders: &mpsc::Receiver<Order>,
    reports: &mpsc::UnboundedSender<OrderReport>,
    told: &mut Repeats<&'static str>,
) {
    let is_in_vain = matches!(end, OrderEnd::Refused { .. } | OrderEnd::Unanswered { .. });
    if let (Order::Stop { decision, .. }, true) = (order, is_in_vain) {
        decision.call_off();
    }
    // Nobody listens any more when the receiver is gone.
    _ = reports.send(OrderReport { order: order.clone(), end });
    if let Some(unmark) = marked_in_vain
        && let Some(end) = carry_out(wires, &unmark, orders).await
    {
        // Where that fails, the mark stays.
        unmark.tell(&end, told, wires.leadership.clock().now_ms());
    }
}

/// Takes the steps of an order one after the other; `None` if nothing more may be written.
async fn settle<'a>(
    wires: &Wires,
    order: &'a Order,
    orders: &mpsc::Receiver<Order>,
    told: &mut Repeats<&'static str>,
) -> Option<Settled<'a>> {
    let decision = match order {
        Order::Stop { decision, .. } => Some(decision),
        _ => None,
    };
    let mut marked = None;
    for step in order.steps() {
        let end = match decision.is_some_and(StopDecision::is_called_off) {
            true => OrderEnd::CalledOff,
            false => carry_out(wires, &step, orders).await?,
        };
        if end == OrderEnd::Done {
            marked = step.marks().or(marked);
            continue;
        }
        step.tell(&end, told, wires.leadership.clock().now_ms());
        let marked_in_vain = marked.and_then(|pod| unmark(pod, &end));
        return Some(Settled { end, marked_in_vain });
    }
    Some(Settled { end: OrderEnd::Done, marked_in_vain: None })
}

/// Tries one write until it is settled; `None` if nothing more may be written.
pub(super) async fn carry_out(
    wires: &Wires,
    step: &Step<'_>,
    orders: &mpsc::Receiver<Order>,
) -> Option<OrderEnd> {
    let mut pause_ms = PAUSES_MS.0;
    for last in (0..TRIES).map(|tried| tried + 1 == TRIES) {
        // Whoever stops takes what is not done with it.
        if orders.is_closed() {
            return None;
        }
        let permit = wires.leadership.permit().filter(|permit| permit.epoch == wires.epoch)?;
        let limit = wires.leadership.clock().until(permit.deadline_ms);
        let answered = tokio::time::timeout(limit, step.send(wires)).await;
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

impl Order {
    fn steps(&self) -> Vec<Step<'_>> {
        match self {
            Self::Stop { pod, why, .. } => vec![Step::Mark(pod, *why), Step::Delete(pod)],
            Self::TakeBack { pod } => vec![Step::Unmark(pod, Kept::ForNow)],
            Self::Nominate { pod, node, says } => {
                vec![Step::Nominate(pod, node, says.as_deref())]
            }
            Self::SelectNode { claim, version, node } => {
                vec![Step::SelectNode(claim, version, node)]
            }
        }
    }
}
