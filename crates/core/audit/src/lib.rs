//! What wastes GPUs in a cluster: checks, findings, and who claims which wasted second.
//!
//! `dovetail-facts` says what is known of a cluster. [`audit`] runs every check of the
//! [`CATALOGUE`] on it. [`settle`] gives each wasted device-second to one finding at most, so that
//! what findings promise together is never more than what is wasted. What nobody knows triggers
//! nothing.
//!
//! | module | what |
//! |---|---|
//! | `catalogue` | every check with severity, explanation, evidence and fix |
//! | `checks` | the checks, one file for each family |
//! | `health` | what marks a node that needs a repair |
//! | `finding` | a check that triggered, grouped by top owner, and the wasted time that it explains |
//! | `example` | what fixes a finding, by example, with the names of nodes and pods |
//! | `remedy` | what a check would change, as values: `dovetail-patches` makes patches of them |
//! | `losses` | what work loses when its pods are evicted |
//! | `names`, `notation` | names of objects, taints and amounts in commands and sentences |
//! | `suppress` | findings that somebody ignores, and who |
//! | `attribution` | wasted time, claimed once |
//! | `confirm` | what a ledger says of findings that are fixed |
//! | `report` | all of it in money, and what is left after each layer of findings |

mod attribution;
mod catalogue;
mod checks;
mod confirm;
mod example;
mod finding;
mod health;
mod losses;
mod names;
mod notation;
mod remedy;
mod report;
mod suppress;
mod trial;

pub use attribution::{Settled, all_waste, settle};
pub use catalogue::{CATALOGUE, Check, FixKind, Layer, Reach, Severity, Worth, check};
pub use checks::{
    ClaimBoundNode, ForEach, PLAIN_TAINT_VALUES, audit, claim_bound_nodes, comes_and_goes,
    findings, jobs_without_node, nodes_without_memory_size,
};
pub use confirm::{
    Confirmation, Confirmed, FixVerdict, FixedFinding, LedgerPeriod, LedgerRow, Rate, confirm,
    equal_periods,
};
pub use example::Example;
pub use finding::{Attribution, Evidence, Finding, Move, group};
pub use health::{names_a_repair, repair_word};
pub use losses::{lost_by_eviction, lost_files};
pub use names::{first_of, is_name};
pub use notation::{amount_text, taint_text};
pub use remedy::{LimitChange, PatchChange, Remedy};
pub use report::{
    AuditReport, Brought, MonthFigure, NodePrice, PricedFinding, Rung, TimeByPrice, report,
    report_of,
};
pub use suppress::{Suppression, SuppressionPolicy, suppress};
