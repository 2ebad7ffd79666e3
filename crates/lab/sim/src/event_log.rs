//! The event log: what happened and what was decided, line by line, and its hash.
//!
//! Equal inputs give equal logs. The hash is SHA-256 over the lines, so that two runs can be compared
//! without keeping either.

use std::fmt::Write as _;

use dovetail_model::Action;
use sha2::{Digest, Sha256};

/// A log of which only the hash is kept.
#[derive(Clone, Debug, Default)]
pub struct EventLog {
    hasher: Sha256,
    line: String,
}

impl EventLog {
    /// Adds something that happened: its time, what it is, and whom it concerns.
    pub fn happened(&mut self, now_ms: u64, what: &str, whom: &str) {
        self.line.clear();
        writeln!(self.line, "{now_ms} {what} {whom}").expect("writing to a string");
        self.hasher.update(self.line.as_bytes());
    }

    /// Adds a decision.
    pub fn decided(&mut self, action: &Action) {
        self.line.clear();
        let line = &mut self.line;
        let written = match action {
            Action::Bind { pod, node, devices } => {
                let mut written =
                    write!(line, "bind {}.{}.{} {node}", pod.job.0, pod.pod_set, pod.ordinal);
                for (index, amount) in devices {
                    written = written.and(write!(
                        line,
                        " {index}:{}:{}:{}:{}",
                        amount.compute_milli,
                        amount.memory_bytes,
                        amount.replicas,
                        amount.slice_mask
                    ));
                }
                written
            }
            Action::Wait { job, reason } => write!(line, "wait {} {reason:?}", job.0),
            Action::Lost { job } => write!(line, "lost {}", job.0),
            Action::Publish { version, learnt } => write!(line, "publish {version} {learnt}"),
        };
        written.expect("writing to a string");
        line.push('\n');
        self.hasher.update(self.line.as_bytes());
    }

    /// The hash so far, in hexadecimal.
    pub fn hash(&self) -> String {
        let digest = self.hasher.clone().finalize();
        digest.iter().fold(String::with_capacity(64), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to a string");
            text
        })
    }
}
