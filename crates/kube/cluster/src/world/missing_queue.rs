//! A queue that is not there and in which pods run, as people read of it.

use std::fmt;

use crate::queues::QUEUE_LABEL;

/// A queue that is not there, with the pods that run in it or below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingQueue {
    pub name: String,
    /// Whether it was seen before it was deleted.
    pub is_known: bool,
    /// The queue that was above it, as far as is known.
    pub parent: Option<String>,
    /// Pods that run in it or below it.
    pub pods: usize,
    /// Units of the resource of whole GPUs that these hold.
    pub gpus: i64,
    /// The name of that resource.
    pub gpu_resource: String,
}

impl MissingQueue {
    /// The answer to a question about a cluster of which the queue's past was not seen. A scheduler
    /// may have.
    pub fn to_who_asks(&self) -> String {
        match self.is_known {
            true => self.to_string(),
            false => self.text(
                "its quota and parent are unknown here, but a running scheduler that has read the \
                 queue still applies both",
            ),
        }
    }

    fn text(&self, how: &str) -> String {
        let Self { name, pods, gpus, gpu_resource, .. } = self;
        let run = match pods {
            1 => "1 pod runs".to_owned(),
            _ => format!("{pods} pods run"),
        };
        let with = match gpus {
            0 => String::new(),
            _ => format!(", with {gpus} {gpu_resource}"),
        };
        format!(
            "queue {name} does not exist, and {run} in it or below it{with}: {how}; create it again, or name another \
             queue in label {QUEUE_LABEL}"
        )
    }
}

impl fmt::Display for MissingQueue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (they_count, end) = match self.pods {
            1 => ("it counts", "it finishes"),
            _ => ("they count", "they finish"),
        };
        let how = match (&self.parent, self.is_known) {
            (Some(parent), _) => {
                format!("{they_count} toward its usage and that of its parent {parent} until {end}")
            }
            (None, true) => format!("{they_count} toward its usage until {end}"),
            (None, false) => format!("{they_count} under its name, but toward no parent queue"),
        };
        formatter.write_str(&self.text(&how))
    }
}
