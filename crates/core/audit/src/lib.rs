//! What wastes GPUs in a cluster: checks, findings, and who claims which wasted second.
//!
//! [`Facts`] say what is known of a cluster, as plain data that a reader fills. [`audit`] runs
//! every check of the [`CATALOGUE`] on them. [`settle`] gives each wasted device-second to one
//! finding at most, so that what findings promise together is never more than what is wasted. What
//! nobody knows triggers nothing.
//!
//! | module | what |
//! |---|---|
//! | `facts` | nodes, workloads, namespaces, budgets, autoscalers as the checks see them |
//! | `catalogue` | every check with severity, explanation, evidence and fix |
//! | `checks` | the checks, one file for each family |
//! | `usage`, `measured_use` | what GPUs did while pods held them |
//! | `hang` | time in which all members of a job waited for each other |
//! | `health` | what marks a node that needs a repair |
//! | `served_model` | how large a served model is, by its name |
//! | `finding` | a check that triggered, grouped by top owner |
//! | `example` | what fixes a finding, by example, with the names of nodes and pods |
//! | `remedy` | what a check would change, as values: `dovetail-patches` makes patches of them |
//! | `losses` | what work loses when its pods are evicted |
//! | `names`, `notation` | names of objects, taints and amounts in commands and sentences |
//! | `thresholds` | from where on something is a finding |
//! | `suppress` | findings that somebody ignores, and who |
//! | `claim` | wasted time, claims on it, and what it costs |
//! | `attribution` | wasted time, claimed once |
//! | `confirm` | what a ledger says of findings that are fixed |
//! | `node_removal` | when an autoscaler removes empty nodes |
//! | `moment` | one moment as a month: what every part of every GPU is |
//! | `report` | all of it in money, and what is left after each layer of findings |

mod attribution;
mod catalogue;
mod checks;
mod claim;
mod confirm;
mod example;
mod facts;
mod finding;
mod hang;
mod health;
mod losses;
mod measured_use;
mod moment;
mod names;
mod node_removal;
mod notation;
mod remedy;
mod report;
mod served_model;
mod suppress;
mod thresholds;
mod trial;
mod usage;

pub use attribution::{Settled, all_waste, settle};
pub use catalogue::{CATALOGUE, Check, FixKind, Layer, Reach, Severity, Worth, check};
pub use checks::{
    ClaimBoundNode, ForEach, PLAIN_TAINT_VALUES, audit, claim_bound_nodes, comes_and_goes,
    findings, jobs_without_node, nodes_without_memory_size,
};
pub use claim::{Attribution, DeviceWaste, PricedTime};
pub use confirm::{
    Confirmation, Confirmed, FixVerdict, FixedFinding, LedgerPeriod, LedgerRow, Rate, confirm,
    equal_periods,
};
pub use example::Example;
pub use facts::{
    Advice, Autoscaler, Budget, BudgetLimit, CheapestRegion, Container, ContainerKind, Facts, Gpus,
    HostPorts, MemoryKills, Namespace, Node, NumaPolicy, ObjectRef, Pod, PodTemplate, Recommended,
    Scoring, SharedMemory, ToCome, Workload, WorkloadClass,
};
pub use finding::{Evidence, Finding, Move, group};
pub use hang::Hang;
pub use health::{names_a_repair, repair_word};
pub use losses::{lost_by_eviction, lost_files};
pub use measured_use::{Matched, measure};
pub use moment::{
    DeviceStates, GangCounts, GpuTimes, HeldGpus, HeldState, Lasting, MONTH_MS, Moment, NodeGpus,
    NodePart, NodeStates, PendingDemand, PendingGang, PodName, Recent, Units, Untold,
    device_states, gpu_times, node_parts, recent,
};
pub use names::{first_of, is_name};
pub use node_removal::{RemovalRule, ZeroBudget};
pub use notation::{amount_text, taint_text};
pub use remedy::{LimitChange, PatchChange, Remedy};
pub use report::{
    AuditReport, Brought, MonthFigure, NodePrice, PricedFinding, Rung, TimeByPrice, report,
    report_of,
};
pub use served_model::ServedModel;
pub use suppress::{Suppression, SuppressionPolicy, suppress};
pub use thresholds::{THRESHOLDS, Threshold, Thresholds, threshold, thresholds_of};
pub use usage::{GpuUse, UsagePeriod, UsesOfPods};
