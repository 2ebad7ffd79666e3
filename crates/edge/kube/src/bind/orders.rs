//! The task that carries out orders about pods other than binds: those that are stopped, and the nodes that are
//! freed for others.
//!
//! Every write names the pod's UID, so it may be repeated: another pod of the same name is never meant. A pod that
//! is stopped is told so by its condition first, then deleted with the time that it may take; a Job whose
//! `podFailurePolicy` ignores disruptions does not count it as failed. If the server refuses to delete it, the
//! condition is taken back, and the pods that were to be stopped with it are not. An order that is not carried out in
//! the end is given again by whoever gave it, if it still holds. What became of each order is reported.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::{info, warn};

use super::nominate::nominate;
use super::request::{delete, mark, select_node, unmark};
use super::stop::{Kept, Stop, StopDecision};
use crate::announce::Condition;
use crate::client::{Answered, is_about_identity, lacked_right, message};
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

/// What is to be done after an answer.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    End(OrderEnd),
    /// The server's code, if it has answered, and what went wrong.
    Again(Option<u16>, String),
}

/// What every order needs.
struct Wires {
    client: Client,
    leadership: Arc<dyn Leadership>,
    epoch: u64,
    /// Name of the scheduler, as pods name it.
    scheduler: String,
}

/// One write about a pod or a claim.
enum Step<'a> {
    Mark(&'a PodKey, Stop),
    Delete(&'a PodKey),
    /// With why it is not stopped.
    Unmark(&'a PodKey, Kept),
    Nominate(&'a PodKey, &'a str, Option<&'a Condition>),
    SelectNode(&'a ClaimKey, &'a str, &'a str),
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
    while let Some(order) = orders.recv().await {
        let Some(Settled { end, marked_in_vain }) =
            settle(&wires, &order, &orders, &mut told).await
        else {
            return;
        };
        let is_in_vain = matches!(end, OrderEnd::Refused { .. } | OrderEnd::Unanswered { .. });
        if let (Order::Stop { decision, .. }, true) = (&order, is_in_vain) {
            decision.call_off();
        }
        // Nobody listens any more when the receiver is gone.
        _ = reports.send(OrderReport { order: order.clone(), end });
        if let Some(unmark) = marked_in_vain
            && let Some(end) = carry_out(&wires, &unmark, &orders).await
        {
            // Where that fails, the mark stays.
            unmark.tell(&end, &mut told, wires.leadership.clock().now_ms());
        }
    }
}

/// How an order was settled.
struct Settled<'a> {
    end: OrderEnd,
    /// A pod that is marked and is not about to be stopped is marked no more.
    marked_in_vain: Option<Step<'a>>,
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
        let kept = match &end {
            OrderEnd::Refused { code, message } => Some(Kept::by(*code, message)),
            OrderEnd::CalledOff => Some(Kept::ForNow),
            _ => None,
        };
        let unmark = marked.zip(kept).map(|(pod, kept)| Step::Unmark(pod, kept));
        return Some(Settled { end, marked_in_vain: unmark });
    }
    Some(Settled { end: OrderEnd::Done, marked_in_vain: None })
}

/// Tries one write until it is settled; `None` if nothing more may be written.
async fn carry_out(
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
        let (namespace, name, what) = (step.namespace(), step.name(), step.what());
        match next {
            Next::End(end) => {
                if end == OrderEnd::Done {
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

impl<'a> Step<'a> {
    fn namespace(&self) -> &str {
        match self {
            Self::Mark(pod, _)
            | Self::Delete(pod)
            | Self::Unmark(pod, _)
            | Self::Nominate(pod, ..) => &pod.namespace,
            Self::SelectNode(claim, ..) => &claim.namespace,
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Mark(pod, _)
            | Self::Delete(pod)
            | Self::Unmark(pod, _)
            | Self::Nominate(pod, ..) => &pod.name,
            Self::SelectNode(claim, ..) => &claim.name,
        }
    }

    /// The pod that it marks as one that is about to be stopped.
    fn marks(&self) -> Option<&'a PodKey> {
        match self {
            Self::Mark(pod, _) => Some(pod),
            _ => None,
        }
    }

    /// The right that the write needs, as roles name it.
    fn right(&self) -> &'static str {
        match self {
            Self::Mark(..) | Self::Unmark(..) | Self::Nominate(..) => "patch on pods/status",
            Self::Delete(_) => "delete on pods",
            Self::SelectNode(..) => "patch on persistentvolumeclaims",
        }
    }

    /// Says that it is not carried out, unless the same was said a short while ago.
    fn tell(&self, end: &OrderEnd, told: &mut Repeats<&'static str>, now_ms: u64) {
        let (namespace, name, what) = (self.namespace(), self.name(), self.what());
        let (code, problem) = match end {
            OrderEnd::Done | OrderEnd::Gone | OrderEnd::CalledOff => return,
            OrderEnd::Refused { code, message } => {
                if let Some(lacked) = lacked_right(*code, message) {
                    let right = self.right();
                    if told.is_due(right, lacked, now_ms) {
                        warn!(
                            %namespace, name, code,
                            "cannot {what}: the scheduler's account has not the right to {right} (deploy/rbac.yaml \
                             has it): {message}"
                        );
                    }
                    return;
                }
                (Some(*code), message)
            }
            OrderEnd::Unanswered { problem } => (None, problem),
        };
        if told.is_due(what, problem, now_ms) {
            match code {
                Some(code) => {
                    warn!(%namespace, name, code, "cannot {what}: the server refuses it: {problem}");
                }
                None => warn!(%namespace, name, %problem, "cannot {what}"),
            }
        }
    }

    /// What is done, after `cannot`.
    fn what(&self) -> &'static str {
        match self {
            Self::Mark(_, Stop::GangGivenUp) => "mark the pod: its gang is given up",
            Self::Mark(_, Stop::Preempted) => {
                "mark the pod: it is stopped for one of a higher priority"
            }
            Self::Delete(_) => "delete the pod",
            Self::Unmark(..) => "take back the mark of the pod: it is not stopped",
            Self::Nominate(_, "", _) => "tell the pod that no node is freed for it",
            Self::Nominate(..) => "tell the pod which node is freed for it",
            Self::SelectNode(..) => "tell the claim for which node it is to get its volume",
        }
    }

    async fn send(&self, wires: &Wires) -> Answered {
        match self {
            Self::Mark(pod, why) => {
                let message = why.message(&wires.scheduler);
                mark(&wires.client, pod, why.reason(), &message).await
            }
            Self::Delete(pod) => delete(&wires.client, pod).await,
            Self::Unmark(pod, kept) => {
                let message = kept.message(&wires.scheduler);
                unmark(&wires.client, pod, kept.reason(), &message).await
            }
            Self::Nominate(pod, node, says) => nominate(&wires.client, pod, node, *says).await,
            Self::SelectNode(claim, version, node) => {
                select_node(&wires.client, claim, version, node).await
            }
        }
    }
}

/// 404 and 409 say that the object, or the one with that UID or of that version, is gone; so does 422 about its
/// identity. Every other 4xx is a refusal: of a validating policy it is 422 unless it says otherwise.
fn judge(code: u16, body: &[u8]) -> Next {
    match code {
        200..=299 => Next::End(OrderEnd::Done),
        404 | 409 => Next::End(OrderEnd::Gone),
        422 if is_about_identity(body) => Next::End(OrderEnd::Gone),
        429 | 500..=599 => Next::Again(Some(code), message(body)),
        _ => Next::End(OrderEnd::Refused { code, message: message(body) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_may_do_later_is_asked_again() {
        let done = Next::End(OrderEnd::Done);
        assert!([200, 202].iter().all(|code| judge(*code, b"") == done));
        let busy = judge(503, br#"{"message": "busy"}"#);
        assert!(matches!(busy, Next::Again(Some(503), problem) if problem == "busy"));
    }

    #[test]
    fn what_is_refused_is_told_from_what_is_gone() {
        let gone = Next::End(OrderEnd::Gone);
        assert!([404, 409].iter().all(|code| judge(*code, b"") == gone));
        let other = br#"{"message": "m", "details": {"causes": [{"field": "metadata.uid"}]}}"#;
        assert_eq!(judge(422, other), gone);
        for code in [400, 403, 422] {
            let refused = OrderEnd::Refused { code, message: "no".to_owned() };
            assert_eq!(judge(code, br#"{"message": "no"}"#), Next::End(refused));
        }
    }
}
