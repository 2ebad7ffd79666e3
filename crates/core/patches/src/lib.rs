//! What a finding would change, ready to be applied: to the object that a person edits, and never
//! to what is made from it.
//!
//! Checks attach a [`dovetail_audit::Remedy`] to what they find. With the [`SourceObject`] of the
//! object it becomes a [`Patch`] in the narrowest form that is exact:
//!
//! | what changes | form |
//! |---|---|
//! | fields alone, or a list as a whole | merge patch (RFC 7386) |
//! | items of lists that the server merges by name (containers of a Deployment) | strategic merge patch |
//! | items of lists in other kinds | JSON patch (RFC 6902), after tests that each item is still the one meant |
//!
//! A list that is written whole is guarded by the version of the object that was read: where
//! somebody changed it since, the server refuses. A workload without a source, or whose template
//! has another shape, has no patch.
//!
//! | module | what |
//! |---|---|
//! | `of_findings` | the patches of findings about one object |
//! | `form` | a patch, in the forms that it can have |
//! | `source` | the object that a person edits, as it was read |
//! | `json` | JSON as a plain tree |
//! | `edit` | single changes, and the one patch that they come to |
//! | `template`, `pool`, `object` | changes of pod templates, of node pools, of all else |
//! | `command` | commands that a person copies into a shell |
//! | `risk` | what is at risk when a patch is applied |
//! | `owned` | facts by owner and by budget |

mod command;
mod edit;
mod form;
mod json;
mod node_names;
mod object;
mod of_findings;
mod owned;
mod pool;
mod risk;
mod source;
mod template;
#[cfg(test)]
mod tests;

pub use form::{Edited, Form, NodeChange, Operation, Patch};
pub use json::Json;
pub use of_findings::patches;
pub use owned::FactsByOwner;
pub use source::{Manager, SourceObject, Tool};
