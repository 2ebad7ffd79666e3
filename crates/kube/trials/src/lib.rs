//! Patches that harm no pod.
//!
//! Every patch is applied to the objects that were read, translated, and the engine is asked: a
//! patch that takes from a pod, running or pending, the last node that it could use is not written.
//! What is written instead is the list of those pods and a safe order. Each patch is judged after
//! all patches before it, so that any prefix of the list is harmless too.
//!
//! | module | what |
//! |---|---|
//! | `safe_patches` | the patches of all findings, judged one after the other |
//! | `candidate`, `template` | a patch that is tried, with what it changes of templates and pods |
//! | `trial`, `trial_nodes` | nodes and pods with the patches before; the engine that is asked |
//! | `room`, `moves` | what is free on nodes, and pods that move |
//! | `rollout`, `rolling_update`, `jams` | whether the new pods of a template start |
//! | `admission` | whether LimitRanges and quotas let them in |
//! | `displaced`, `company` | pods that lose their node, and pods that need others beside them |
//! | `group_index` | groups of pods by owner, and those that keep each other apart |
//! | `order` | in which order patches are applied, and what comes first |

mod admission;
mod candidate;
mod company;
mod displaced;
mod group_index;
mod jams;
mod moves;
mod order;
mod rolling_update;
mod rollout;
mod room;
mod safe_patches;
mod template;
mod trial;
mod trial_nodes;

pub use safe_patches::{SafePatch, SafePatches, Withheld, safe_patches};
