//! Replicas of whole GPUs: how NVIDIA's device plugin lets several pods use one GPU.

use dovetail_model::labels::NVIDIA_GPU;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How pods take turns on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    TimeSlicing,
    Mps,
}

impl Method {
    /// As policies and the label of feature discovery spell it.
    pub fn word(self) -> &'static str {
        match self {
            Self::TimeSlicing => "time-slicing",
            Self::Mps => "mps",
        }
    }

    /// The method of this name.
    pub fn named(word: &str) -> Option<Self> {
        [Self::TimeSlicing, Self::Mps].into_iter().find(|method| method.word() == word)
    }
}

/// How many pods share each GPU of a node, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replicas {
    pub method: Method,
    /// Pods on each GPU.
    pub count: u32,
}

impl Replicas {
    /// The replicas of one GPU in words.
    pub fn words(self) -> String {
        format!("{} replicas ({})", self.count, self.method.word())
    }
}

/// The resource of replicas, once they are renamed.
pub fn shared_resource() -> String {
    format!("{NVIDIA_GPU}.shared")
}

/// A name that follows from the settings alone.
pub(crate) fn name(replicas: Option<Replicas>) -> String {
    match replicas {
        None => "dovetail-whole".to_owned(),
        Some(Replicas { method, count }) => format!("dovetail-{}-{count}", method.word()),
    }
}

/// The settings as the device plugin reads them (its configuration, version v1). Replicas have a
/// name of their own, so that no pod which asks for a whole GPU gets a part of one, and a pod that
/// asks for two replicas fails: both could be of one GPU.
pub(crate) fn settings(replicas: Option<Replicas>) -> Value {
    let mut settings = json!({"version": "v1", "flags": {"migStrategy": "mixed"}});
    if let Some(Replicas { method, count }) = replicas {
        let key = match method {
            Method::TimeSlicing => "timeSlicing",
            Method::Mps => "mps",
        };
        settings["sharing"] = json!({key: {
            "renameByDefault": true,
            "failRequestsGreaterThanOne": true,
            "resources": [{"name": NVIDIA_GPU, "replicas": count}],
        }});
    }
    settings
}
