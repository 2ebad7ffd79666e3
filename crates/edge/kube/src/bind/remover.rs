//! The task that deletes pods of gangs that are given up.
//!
//! A deletion names the pod's UID, so it may be repeated: another pod of the same name is never deleted. One
//! that is not carried out in the end is ordered again by whoever gave the gang up.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::{info, warn};

use super::request::delete;
use crate::client::message;
use crate::lead::Leadership;
use crate::world::PodKey;

/// Deletions that wait for their turn; what comes beyond is ordered again later.
const QUEUE: usize = 4_096;
/// A deletion is tried so often.
const TRIES: u32 = 6;
/// First and longest pause between two tries.
const PAUSES_MS: (u64, u64) = (100, 5_000);

/// A running remover. Dropped, it begins nothing more.
#[derive(Debug)]
pub struct Remover {
    queue: mpsc::Sender<PodKey>,
    task: JoinHandle<()>,
}

/// What is to be done after an answer.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Done,
    Again(String),
    Leave(String),
}

impl Remover {
    /// Starts a remover that deletes pods one after the other, as long as this process leads in `epoch`.
    pub fn start(client: Client, leadership: Arc<dyn Leadership>, epoch: u64) -> Self {
        let (queue, pods) = mpsc::channel(QUEUE);
        Self { queue, task: tokio::spawn(drive(client, leadership, epoch, pods)) }
    }

    /// Accepts a pod to delete; false if there is no room for it now.
    pub fn submit(&self, pod: PodKey) -> bool {
        self.queue.try_send(pod).is_ok()
    }

    /// Begins nothing more, and waits for what is on its way.
    pub async fn stop(self) {
        drop(self.queue);
        // A panic in a task of ours is reported by the runtime.
        _ = self.task.await;
    }
}

async fn drive(
    client: Client,
    leadership: Arc<dyn Leadership>,
    epoch: u64,
    mut pods: mpsc::Receiver<PodKey>,
) {
    while let Some(pod) = pods.recv().await {
        let PodKey { namespace, name, uid } = &pod;
        let mut pause_ms = PAUSES_MS.0;
        for last in (0..TRIES).map(|tried| tried + 1 == TRIES) {
            // Whoever stops takes what is not done with it.
            if pods.is_closed() {
                return;
            }
            let permit = leadership.permit().filter(|permit| permit.epoch == epoch);
            let Some(permit) = permit else { return };
            let limit = leadership.clock().until(permit.deadline_ms);
            let answered = tokio::time::timeout(limit, delete(&client, &pod)).await;
            let next = match answered {
                Ok(Ok((code, _, body))) => judge(code, &message(&body)),
                Ok(Err(none)) => Next::Again(none.error),
                Err(_) => Next::Again(format!("no answer within {} ms", limit.as_millis())),
            };
            match next {
                Next::Done => {
                    info!(%namespace, pod = %name, %uid, "deleted: its gang is given up");
                    break;
                }
                Next::Again(problem) if !last => {
                    info!(%namespace, pod = %name, %problem, "not deleted yet");
                    tokio::time::sleep(Duration::from_millis(pause_ms)).await;
                    pause_ms = PAUSES_MS.1.min(2 * pause_ms);
                }
                Next::Again(problem) | Next::Leave(problem) => {
                    warn!(%namespace, pod = %name, %problem, "a pod of a gang that is given up is not deleted");
                    break;
                }
            }
        }
    }
}

/// 404 and 409 say that the pod, or the one with that UID, is gone.
fn judge(code: u16, message: &str) -> Next {
    let problem = || format!("the server says {code}: {message}");
    match code {
        200..=299 | 404 | 409 => Next::Done,
        429 | 500..=599 => Next::Again(problem()),
        _ => Next::Leave(problem()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_may_do_later_is_asked_again() {
        let done = [200, 202, 404, 409].map(|code| judge(code, "") == Next::Done);
        assert_eq!(done, [true; 4]);
        assert!(
            matches!(judge(503, "busy"), Next::Again(problem) if problem.contains("503: busy"))
        );
        assert!(matches!(judge(403, "no"), Next::Leave(problem) if problem.contains("403: no")));
    }
}
