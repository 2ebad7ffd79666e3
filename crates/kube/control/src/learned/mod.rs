//! What engines learn, kept in a ConfigMap so that it outlives the process: the next leader goes on
//! where the last one stopped.
//!
//! A leader reads it before it decides for the first time, and writes it every ten minutes and when
//! it stops. Whatever goes wrong costs what was learned, and nothing else.
//!
//! | file | what |
//! |---|---|
//! | `keeping` | when it is read and written, and what follows from the answers |
//! | `text` | the data of the ConfigMap |
//! | `cohorts` | what of it is about jobs that came together |

mod cohorts;
mod keeping;
mod text;

use serde::{Deserialize, Serialize};

pub(crate) use keeping::Keeping;

/// Name of a ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ConfigMapName {
    pub namespace: String,
    pub name: String,
}

/// What became of what was learned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LearnedNews {
    /// The leader goes on with it.
    Read,
    /// There is no ConfigMap: it is lost with the process.
    Missing,
    /// It cannot be read, or is of no use: it is learned anew.
    NotRead { problem: String },
    /// It is not written this time.
    NotWritten { problem: String },
}
