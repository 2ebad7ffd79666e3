//! Sends what is to be announced.

use std::sync::Arc;

use futures_util::FutureExt;
use kube::Client;
use tokio::task::JoinSet;

use super::request::send;
use super::{Source, Write};
use crate::client::{Answered, NoAnswer, message};
use crate::lead::Leadership;

/// What became of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is there, or was before.
    Done,
    /// The pod is not what it was: gone, another one, or changed.
    Changed,
    /// The server will refuse it again, such as for missing rights.
    Refused {
        /// HTTP code.
        code: u16,
        /// What the server says.
        message: String,
    },
    /// The server asks for a pause, failed, or did not answer.
    Troubled {
        /// Its `Retry-After`, if it gave one.
        retry_after_ms: Option<u64>,
    },
    /// This process does not lead any more. Nothing was sent.
    NotLeading,
}

/// A write and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The write.
    pub write: Write,
    /// Its outcome.
    pub written: Written,
}

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

    /// Writes on their way.
    pub fn in_flight(&self) -> usize {
        self.running.len()
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

    /// An outcome that is known already.
    pub fn known_outcome(&mut self) -> Option<Report> {
        self.outcome().now_or_never()
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

fn judge(write: &Write, answered: &Answered) -> Written {
    let Ok((code, retry_after_s, body)) = answered else {
        return Written::Troubled { retry_after_ms: None };
    };
    let is_event = matches!(write, Write::Event(..));
    match code {
        200..=299 => Written::Done,
        // An event of this name says the same.
        409 if is_event => Written::Done,
        // 422 is a pod of the same name with another UID.
        404 | 409 => Written::Changed,
        // So is the test of an identity that fails, and an object whose version was not the one expected.
        422 if !is_event => Written::Changed,
        400..=499 if *code != 429 => Written::Refused { code: *code, message: message(body) },
        _ => {
            let retry_after_ms = retry_after_s.map(|seconds| seconds.saturating_mul(1_000));
            Written::Troubled { retry_after_ms }
        }
    }
}
