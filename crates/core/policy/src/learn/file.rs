//! The form in which what was learned is written down: a file of `--save-learned`, and the
//! ConfigMap of a scheduler.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Learnt, LearntError};

/// Marks the form; another number is another form.
const FORMAT: &str = "dovetail-learnt-1";

/// [`Learnt`] as it is written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LearntFile {
    format: String,
    learnt: Learnt,
}

/// What was written down is of no use.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LearntFileError {
    #[error("format {found}, expected {FORMAT}")]
    Format { found: String },
    #[error(transparent)]
    Number(#[from] LearntError),
}

impl LearntFile {
    /// To be written.
    pub fn of(learnt: Learnt) -> Self {
        Self { format: FORMAT.to_owned(), learnt }
    }

    /// What it holds.
    ///
    /// # Errors
    /// When it has another form, or a number that no engine learns.
    pub fn into_learnt(self) -> Result<Learnt, LearntFileError> {
        if self.format != FORMAT {
            return Err(LearntFileError::Format { found: self.format });
        }
        self.learnt.check()?;
        Ok(self.learnt)
    }
}
