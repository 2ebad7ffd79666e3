//! The task that carries out orders about pods other than binds: those that are stopped, and the nodes that are
//! freed for others.
//!
//! Every write names the pod's UID, so it may be repeated: another pod of the same name is never meant. A pod that
//! is stopped is told so by its condition first, then deleted with the time that it may take; a Job whose
//! `podFailurePolicy` ignores disruptions does not count it as failed. If the server refuses to delete it, the
//! condition is taken back. An order that is not carried out in the end is given again by whoever gave it, if it still
//! holds. What became of each order is reported.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::{info, warn};

use super::nominate::nominate;
use super::request::{delete, mark, select_node, unmark};
use crate::announce::Condition;
use crate::client::{Answered, is_about_identity, message};
use crate::lead::Leadership;
use crate::world::{ClaimKey, PodKey};

/// Orders that wait for their turn.
const QUEUE: usize = 4_096;
/// A write is tried so often.
const TRIES: u32 = 6;
/// First and longest pause between two tries.
const PAUSES_MS: (u64, u64) = (100, 5_000);

/// What is to be done with a pod, or with a claim of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Stop it.
    Stop {
        /// The pod.
        pod: PodKey,
        /// Why.
        why: Stop,
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
            Self::Stop { .. } | Self::SelectNode { .. } => None,
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
    /// The server refuses it, such as for missing rights or by admission, and will again.
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

/// Why a pod is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Its gang stayed below its smallest size.
    GangGivenUp,
    /// For a pod of a higher priority.
    Preempted,
}

impl Stop {
    /// Reason of the condition `DisruptionTarget`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::GangGivenUp => "GangIncomplete",
            Self::Preempted => crate::object::PREEMPTION_BY_SCHEDULER,
        }
    }

    /// Message of the condition.
    pub fn message(self, scheduler: &str) -> String {
        match self {
            Self::GangGivenUp => {
                format!("{scheduler}: its gang stayed below its smallest size and is started anew")
            }
            Self::Preempted => {
                format!("{scheduler}: preempting to accommodate a higher priority pod")
            }
        }
    }
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
    Again(String),
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
    Unmark(&'a PodKey),
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

    /// Begins nothing more, and waits for what is on its way.
    pub async fn stop(self) {
        drop(self.queue);
        // A panic in a task of ours is reported by the runtime.
        _ = self.task.await;
    }
}

async fn drive(
    wires: Wires,
    mut orders: mpsc::Receiver<Order>,
    reports: mpsc::UnboundedSender<OrderReport>,
) {
    while let Some(order) = orders.recv().await {
        let steps = match &order {
            Order::Stop { pod, why } => vec![Step::Mark(pod, *why), Step::Delete(pod)],
            Order::Nominate { pod, node, says } => {
                vec![Step::Nominate(pod, node, says.as_deref())]
            }
            Order::SelectNode { claim, version, node } => {
                vec![Step::SelectNode(claim, version, node)]
            }
        };
        let mut end = OrderEnd::Done;
        let mut marked_in_vain = None;
        for step in steps {
            let Some(came_of_it) = carry_out(&wires, &step, &orders).await else { return };
            end = came_of_it;
            if end != OrderEnd::Done {
                step.tell(&end);
                let is_refused = matches!(end, OrderEnd::Refused { .. });
                marked_in_vain = step.deletes().filter(|_| is_refused).cloned();
                break;
            }
        }
        // Nobody listens any more when the receiver is gone.
        _ = reports.send(OrderReport { order, end });
        if let Some(pod) = marked_in_vain {
            take_back(&wires, &pod, &orders).await;
        }
    }
}

/// A pod that is marked and that the server does not let go is not about to be stopped: its mark is taken off. Where
/// that fails, it stays.
async fn take_back(wires: &Wires, pod: &PodKey, orders: &mpsc::Receiver<Order>) {
    let unmark = Step::Unmark(pod);
    if let Some(end) = carry_out(wires, &unmark, orders).await {
        unmark.tell(&end);
    }
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
            Ok(Err(none)) => Next::Again(none.error),
            Err(_) => Next::Again(format!("no answer within {} ms", limit.as_millis())),
        };
        let (namespace, name, what) = (step.namespace(), step.name(), step.what());
        match next {
            Next::End(end) => {
                if end == OrderEnd::Done {
                    info!(%namespace, name, "{what}");
                }
                return Some(end);
            }
            Next::Again(problem) if last => return Some(OrderEnd::Unanswered { problem }),
            Next::Again(problem) => {
                info!(%namespace, name, %problem, "not {what} yet");
                tokio::time::sleep(Duration::from_millis(pause_ms)).await;
                pause_ms = PAUSES_MS.1.min(2 * pause_ms);
            }
        }
    }
    None
}

impl Step<'_> {
    fn namespace(&self) -> &str {
        match self {
            Self::Mark(pod, _)
            | Self::Delete(pod)
            | Self::Unmark(pod)
            | Self::Nominate(pod, ..) => &pod.namespace,
            Self::SelectNode(claim, ..) => &claim.namespace,
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Mark(pod, _)
            | Self::Delete(pod)
            | Self::Unmark(pod)
            | Self::Nominate(pod, ..) => &pod.name,
            Self::SelectNode(claim, ..) => &claim.name,
        }
    }

    /// The pod that it deletes.
    fn deletes(&self) -> Option<&PodKey> {
        match self {
            Self::Delete(pod) => Some(pod),
            _ => None,
        }
    }

    /// The right that the write needs, as roles name it.
    fn right(&self) -> &'static str {
        match self {
            Self::Mark(..) | Self::Unmark(_) | Self::Nominate(..) => "patch on pods/status",
            Self::Delete(_) => "delete on pods",
            Self::SelectNode(..) => "patch on persistentvolumeclaims",
        }
    }

    /// Says that it is not carried out.
    fn tell(&self, end: &OrderEnd) {
        let (namespace, name, what) = (self.namespace(), self.name(), self.what());
        match end {
            OrderEnd::Done | OrderEnd::Gone => {}
            OrderEnd::Refused { code: 403, message } => {
                let right = self.right();
                warn!(
                    %namespace, name, code = 403,
                    "not {what}: the server refuses it, by admission or because the scheduler has not the right \
                     to {right} (deploy/rbac.yaml has it): {message}"
                );
            }
            OrderEnd::Refused { code, message } => {
                warn!(%namespace, name, code, "not {what}: the server refuses it: {message}");
            }
            OrderEnd::Unanswered { problem } => warn!(%namespace, name, %problem, "not {what}"),
        }
    }

    fn what(&self) -> &'static str {
        match self {
            Self::Mark(_, Stop::GangGivenUp) => "marked: its gang is given up",
            Self::Mark(_, Stop::Preempted) => "marked: it is stopped for one of a higher priority",
            Self::Delete(_) => "deleted",
            Self::Unmark(_) => "marked no more: it is not stopped",
            Self::Nominate(_, "", _) => "told that no node is freed for it",
            Self::Nominate(..) => "told which node is freed for it",
            Self::SelectNode(..) => "a claim that is told for which node it is to get its volume",
        }
    }

    async fn send(&self, wires: &Wires) -> Answered {
        match self {
            Self::Mark(pod, why) => {
                let message = why.message(&wires.scheduler);
                mark(&wires.client, pod, why.reason(), &message).await
            }
            Self::Delete(pod) => delete(&wires.client, pod).await,
            Self::Unmark(pod) => unmark(&wires.client, pod, &wires.scheduler).await,
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
        429 | 500..=599 => Next::Again(format!("the server says {code}: {}", message(body))),
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
        assert!(matches!(busy, Next::Again(problem) if problem.contains("503: busy")));
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
