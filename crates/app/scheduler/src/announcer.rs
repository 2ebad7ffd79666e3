//! Sends what is to be announced.

use std::sync::Arc;

use dovetail_apiserver::announcements::send;
use dovetail_control::announce::{Report, Source, Write, Written, judge};
use dovetail_control::answer::NoAnswer;
use kube::Client;
use tokio::task::JoinSet;

use crate::lead::Leadership;

/// Writes on their way, each ended by the leadership's deadline.
pub struct Announcer {
    wires: Arc<Wires>,
    running: JoinSet<Report>,
}

struct Wires {
    client: Client,
    leadership: Arc<dyn Leadership>,
    epoch: u64,
    source: Source,
}

impl Announcer {
    /// An announcer within one leadership. The client must not retry by itself.
    pub fn new(
        client: Client,
        leadership: Arc<dyn Leadership>,
        epoch: u64,
        source: Source,
    ) -> Self {
        let wires = Arc::new(Wires { client, leadership, epoch, source });
        Self { wires, running: JoinSet::new() }
    }

    /// Begins a write.
    pub fn send(&mut self, write: Write) {
        let wires = self.wires.clone();
        self.running.spawn(async move {
            let written = wires.write(&write).await;
            Report { write, written }
        });
    }

    /// The next outcome; waits for ever while nothing is on its way.
    pub async fn outcome(&mut self) -> Report {
        loop {
            match self.running.join_next().await {
                Some(Ok(report)) => return report,
                // A panic in a task of ours is reported by the runtime.
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }
}

impl Wires {
    async fn write(&self, write: &Write) -> Written {
        let permit = self.leadership.permit().filter(|permit| permit.epoch == self.epoch);
        let Some(permit) = permit else { return Written::NotLeading };
        let limit = self.leadership.clock().until(permit.deadline_ms);
        // The server counts from the arrival of the request: an eighth is left for the way there.
        let timeout_ms = (limit - limit / 8).as_millis();
        let sending = send(&self.client, write, &self.source, timeout_ms);
        let answered = tokio::time::timeout(limit, sending).await;
        let late = || NoAnswer { unsent: false, error: "no answer in time".to_owned() };
        judge(write, &answered.unwrap_or_else(|_| Err(late())))
    }
}
