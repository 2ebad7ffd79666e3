//! The task that carries out orders about pods other than binds: those that are stopped, and the nodes that are
//! freed for others.
//!
//! Every write names the pod's UID, so it may be repeated: another pod of the same name is never meant. A pod that
//! is stopped is told so by its condition first, then deleted with the time that it may take; a Job whose
//! `podFailurePolicy` ignores disruptions does not count it as failed. An order that is not carried out in
//! the end is given again by whoever gave it, if it still holds.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::{info, warn};

use super::request::{delete, mark, nominate};
use crate::client::{Answered, message};
use crate::lead::Leadership;
use crate::world::PodKey;

/// Orders that wait for their turn.
const QUEUE: usize = 4_096;
/// A write is tried so often.
const TRIES: u32 = 6;
/// First and longest pause between two tries.
const PAUSES_MS: (u64, u64) = (100, 5_000);

/// What is to be done with a pod.
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
    task: JoinHandle<()>,
}

/// What is to be done after an answer.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Done,
    Gone,
    Again(String),
    Leave(String),
}

/// What every order needs.
struct Wires {
    client: Client,
    leadership: Arc<dyn Leadership>,
    epoch: u64,
    /// Name of the scheduler, as pods name it.
    scheduler: String,
}

/// One write about a pod.
enum Step<'a> {
    Mark(&'a PodKey, Stop),
    Delete(&'a PodKey),
    Nominate(&'a PodKey, &'a str),
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
        let wires = Wires { client, leadership, epoch, scheduler: scheduler.to_owned() };
        Self { queue, task: tokio::spawn(drive(wires, orders)) }
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

async fn drive(wires: Wires, mut orders: mpsc::Receiver<Order>) {
    while let Some(order) = orders.recv().await {
        let steps = match &order {
            Order::Stop { pod, why } => vec![Step::Mark(pod, *why), Step::Delete(pod)],
            Order::Nominate { pod, node } => vec![Step::Nominate(pod, node)],
        };
        for step in steps {
            match carry_out(&wires, &step, &orders).await {
                Some(Next::Done) => {}
                Some(Next::Gone) => break,
                Some(Next::Again(problem) | Next::Leave(problem)) => {
                    let (pod, what) = (step.pod(), step.what());
                    warn!(namespace = %pod.namespace, pod = %pod.name, %problem, "a pod is not {what}");
                    break;
                }
                None => return,
            }
        }
    }
}

/// Tries one write until it is settled; `None` if nothing more may be written.
async fn carry_out(wires: &Wires, step: &Step<'_>, orders: &mpsc::Receiver<Order>) -> Option<Next> {
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
            Ok(Ok((code, _, body))) => judge(code, &message(&body)),
            Ok(Err(none)) => Next::Again(none.error),
            Err(_) => Next::Again(format!("no answer within {} ms", limit.as_millis())),
        };
        let (pod, what) = (step.pod(), step.what());
        let (namespace, name, uid) = (&pod.namespace, &pod.name, &pod.uid);
        match next {
            Next::Done => {
                info!(%namespace, pod = %name, %uid, "{what}");
                return Some(Next::Done);
            }
            Next::Again(problem) if !last => {
                info!(%namespace, pod = %name, %problem, "not {what} yet");
                tokio::time::sleep(Duration::from_millis(pause_ms)).await;
                pause_ms = PAUSES_MS.1.min(2 * pause_ms);
            }
            other => return Some(other),
        }
    }
    None
}

impl Step<'_> {
    fn pod(&self) -> &PodKey {
        match self {
            Self::Mark(pod, _) | Self::Delete(pod) | Self::Nominate(pod, _) => pod,
        }
    }

    fn what(&self) -> &'static str {
        match self {
            Self::Mark(_, Stop::GangGivenUp) => "marked: its gang is given up",
            Self::Mark(_, Stop::Preempted) => "marked: it is stopped for one of a higher priority",
            Self::Delete(_) => "deleted",
            Self::Nominate(_, "") => "told that no node is freed for it",
            Self::Nominate(..) => "told which node is freed for it",
        }
    }

    async fn send(&self, wires: &Wires) -> Answered {
        match self {
            Self::Mark(pod, why) => {
                let message = why.message(&wires.scheduler);
                mark(&wires.client, pod, why.reason(), &message).await
            }
            Self::Delete(pod) => delete(&wires.client, pod).await,
            Self::Nominate(pod, node) => nominate(&wires.client, pod, node).await,
        }
    }
}

/// 404, 409 and 422 say that the pod, or the one with that UID, is gone.
fn judge(code: u16, message: &str) -> Next {
    let problem = || format!("the server says {code}: {message}");
    match code {
        200..=299 => Next::Done,
        404 | 409 | 422 => Next::Gone,
        429 | 500..=599 => Next::Again(problem()),
        _ => Next::Leave(problem()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_may_do_later_is_asked_again() {
        assert_eq!([200, 202].map(|code| judge(code, "")), [Next::Done, Next::Done]);
        let gone = [404, 409, 422].map(|code| judge(code, "") == Next::Gone);
        assert_eq!(gone, [true; 3]);
        assert!(
            matches!(judge(503, "busy"), Next::Again(problem) if problem.contains("503: busy"))
        );
        assert!(matches!(judge(403, "no"), Next::Leave(problem) if problem.contains("403: no")));
    }
}
