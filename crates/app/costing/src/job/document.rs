//! Where a job's hours went, in the words of its JSON. Everything that was read is harmless text
//! from here on.

use std::collections::BTreeSet;

use anyhow::Result;
use dovetail_account::split::{Headline, SplitMethod};
use dovetail_console::plain::plain;
use dovetail_console::table::plural;
use dovetail_model::Money;
use dovetail_phases::job_phases::{Confidence, Evidence, METHOD, Phase, PhaseRow};
use dovetail_sources::node_prices::PriceLine;
use dovetail_sources::old_prices::old_prices;
use dovetail_units::duration::duration;
use dovetail_units::time::time;
use serde::Serialize;

use super::held::{HeldMember, JobBill, JobTime, Samples};
use crate::account::Basis;
use crate::document::{hours, share};
use crate::flags::BillTerms;

/// Name and version of the form.
const SCHEMA: &str = "dovetail-cost-job/1";

/// All that is said of a job.
#[derive(Debug, Serialize)]
pub struct Document {
    pub schema: &'static str,
    pub job: String,
    /// `run-rate` of one moment, or `sampled` over a period.
    pub basis: &'static str,
    pub from: String,
    pub to: String,
    pub days: f64,
    pub cluster: String,
    pub sources: Vec<String>,
    /// How the price of a node is split.
    pub method: String,
    /// How phases are told.
    pub phases_method: &'static str,
    pub sample_step_s: f64,
    pub sampled_hours: f64,
    pub signals: Vec<&'static str>,
    pub pods: usize,
    /// Members that worked together at one time; null where each pod is for itself.
    pub ranks: Option<u32>,
    pub gpu_hours: f64,
    /// All of it, as `cost --by job` has it.
    pub cost_usd_micros: Option<i64>,
    pub(crate) gpu_usd_micros: Option<i64>,
    /// CPU and memory of its pods, and with `--unused distributed` its part of what nobody has.
    pub other_usd_micros: Option<i64>,
    pub is_partly_unpriced: bool,
    /// Its cost by the methods with the least and the most; null where they agree, or without a
    /// price.
    pub lowest: Option<MethodOut>,
    pub highest: Option<MethodOut>,
    pub parts: Vec<PartOut>,
    pub prices: Vec<PriceLine>,
    pub notes: Vec<String>,
}

/// The cost under another method.
#[derive(Debug, Serialize)]
pub struct MethodOut {
    pub method: String,
    pub cost_usd_micros: i64,
}

impl MethodOut {
    fn of((method, cost): (SplitMethod, Money)) -> Self {
        Self { method: method.id(), cost_usd_micros: cost.usd_micros }
    }
}

/// One phase; together they are all its time and the cost of its GPUs.
#[derive(Debug, Serialize)]
pub struct PartOut {
    pub phase: Phase,
    pub gpu_hours: f64,
    pub share: f64,
    pub cost_usd_micros: Option<i64>,
    /// What at least half of it is as sure as.
    pub confidence: Confidence,
    pub(crate) confidence_gpu_hours: SureHours,
    /// Part of it that has a place in time; the rest is a share of other stretches.
    pub placed_share: f64,
    pub evidence: Evidence,
    pub remedy: Option<&'static str>,
}

/// Hours by how sure they are.
#[derive(Debug, Serialize)]
pub struct SureHours {
    pub low: f64,
    pub(crate) medium: f64,
    pub high: f64,
}

impl Document {
    /// Everything that is said; most time first.
    pub fn of(job: &JobTime, terms: &BillTerms, now_ms: u64) -> Result<Self> {
        let JobBill { mut rows, total, rest } = job.bill(terms)?;
        rows.sort_by_key(|row| (std::cmp::Reverse(row.gpu_milli_ms), row.phase));
        let account = &job.account;
        let all: i128 = rows.iter().map(|row| row.gpu_milli_ms).sum();
        let micros = |money: Option<Money>| money.map(|money| money.usd_micros);
        let cost = total.cost();
        let signals = signals(&rows);
        let mut notes = account.notes.clone();
        let prices = prices(job);
        notes.extend(old_prices(&prices, account.priced_at_ms(now_ms)));
        notes.extend(never_worked(job));
        notes.extend(for_any_holder(job));
        notes.extend(blind_notes(&signals, account.basis, &job.samples));
        if total.has_unpriced() {
            notes.push("part of it has no price and is not included in any amount".to_owned());
        }
        let range = job.range(terms)?.filter(Headline::differs);
        let Samples { step_ms, span_ms, ranks } = job.samples;
        Ok(Self {
            schema: SCHEMA,
            job: plain(&job.job.name),
            basis: account.basis.name(),
            from: time(account.span.from_ms),
            to: time(account.span.to_ms),
            days: account.days(),
            cluster: account.cluster_in_words(),
            sources: account.sources_in_words(),
            method: terms.method.id(),
            phases_method: METHOD,
            sample_step_s: step_ms as f64 / 1e3,
            sampled_hours: span_ms as f64 / 3.6e6,
            signals,
            pods: job.job.pods.len(),
            ranks: (ranks > 0).then_some(ranks),
            gpu_hours: hours(all),
            cost_usd_micros: micros(cost),
            gpu_usd_micros: micros(cost.zip(rest).map(|(cost, rest)| cost - rest)),
            other_usd_micros: micros(rest),
            is_partly_unpriced: total.has_unpriced(),
            lowest: range.map(|range| MethodOut::of(range.lowest)),
            highest: range.map(|range| MethodOut::of(range.highest)),
            parts: rows.iter().map(|row| PartOut::of(row, all)).collect(),
            prices,
            notes,
        })
    }
}

impl PartOut {
    fn of(row: &PhaseRow, all: i128) -> Self {
        let [low, medium, high] = row.by_confidence.map(hours);
        Self {
            phase: row.phase,
            gpu_hours: hours(row.gpu_milli_ms),
            share: share(row.gpu_milli_ms, all),
            cost_usd_micros: row.cost.map(|cost| cost.usd_micros),
            confidence: row.confidence(),
            confidence_gpu_hours: SureHours { low, medium, high },
            placed_share: share(row.placed_gpu_milli_ms, row.gpu_milli_ms),
            evidence: row.evidence,
            remedy: row.phase.remedy(),
        }
    }
}

/// Prices of the kinds of GPUs that the job held.
fn prices(job: &JobTime) -> Vec<PriceLine> {
    let nodes = job.members.iter().map(|member| &job.account.nodes[member.node]);
    let held: BTreeSet<&str> = nodes.map(|node| node.gpu_type.as_str()).collect();
    let prices = job.account.prices.iter();
    let is_held =
        |line: &&PriceLine| line.model.as_deref().is_none_or(|model| held.contains(model));
    prices.filter(is_held).cloned().collect()
}

/// Devices that were read and never did anything.
fn never_worked(job: &JobTime) -> Option<String> {
    const WORK: [Phase; 5] = [
        Phase::Compute,
        Phase::Synchronisation,
        Phase::BusyNotSeparable,
        Phase::Repeated,
        Phase::Hang,
    ];
    let is_read = |member: &&HeldMember| {
        member.phases.stretches.iter().any(|stretch| stretch.evidence.samples > 0)
    };
    let worked = |member: &&HeldMember| {
        let worked = member.phases.by_phase().keys().any(|phase| WORK.contains(phase));
        worked || member.is_for_any_holder
    };
    let read: Vec<&HeldMember> = job.members.iter().filter(is_read).collect();
    let idle = read.iter().filter(|member| !worked(member)).count();
    match (idle, read.len()) {
        (0, _) => None,
        (1, 1) => Some(
            "its GPU was never active while it was sampled: the job may need no GPU".to_owned(),
        ),
        (_, all) if idle == all => Some(format!(
            "none of the {all} GPUs allocated to its pods was active while they were sampled: the \
             job may need no GPU"
        )),
        (_, all) => Some(format!(
            "{idle} of the {all} GPUs allocated to its pods were never active while they were \
             sampled: the job may need fewer GPUs"
        )),
    }
}

/// Devices that computed for the job or for others that had them, too.
fn for_any_holder(job: &JobTime) -> Option<String> {
    let count = job.members.iter().filter(|member| member.is_for_any_holder).count();
    let gpus = plural(count, "GPU that it shares was", "GPUs that it shares were");
    (count > 0).then(|| {
        format!(
            "{gpus} active, but it is unknown for which of the pods, so that time counts as unknown"
        )
    })
}

/// Signals with any reading.
fn signals(rows: &[PhaseRow]) -> Vec<&'static str> {
    let any = |of: fn(&Evidence) -> Option<u64>| rows.iter().any(|row| of(&row.evidence).is_some());
    let all = [
        ("activity", any(|evidence| evidence.busy_micro_percent)),
        ("sm", any(|evidence| evidence.sm_micro_percent)),
        ("tensor", any(|evidence| evidence.tensor_micro_percent)),
        ("dram", any(|evidence| evidence.dram_micro_percent)),
        ("nvlink", any(|evidence| evidence.nvlink_bytes_per_s)),
        ("power", any(|evidence| evidence.power_milliwatts)),
        ("cpu", any(|evidence| evidence.cpu_milli)),
        ("disk", any(|evidence| evidence.disk_busy_micro_percent)),
        ("inwards", any(|evidence| evidence.in_bytes_per_s)),
        ("outwards", any(|evidence| evidence.out_bytes_per_s)),
    ];
    all.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name).collect()
}

/// What the signals do not tell.
fn blind_notes(signals: &[&str], basis: Basis, samples: &Samples) -> Vec<String> {
    let has = |name: &str| signals.contains(&name);
    let mut notes = Vec::new();
    if basis == Basis::RunRate && samples.span_ms > 0 {
        notes.push(format!(
            "hours are extrapolated from this snapshot to a month, and split among the parts in \
             proportion to {} of samples",
            duration(samples.span_ms)
        ));
    }
    if signals.is_empty() {
        notes.push(
            "GPU use of this job was not measured: the parts are derived only from the states of \
             its pods"
                .to_owned(),
        );
        return notes;
    }
    if !["tensor", "dram", "sm", "power"].into_iter().any(has) {
        notes.push(
            "only activity was measured, which does not distinguish work from waiting for other \
             members; for tensor core, memory traffic or power metrics, pass --prometheus"
                .to_owned(),
        );
    }
    if !["cpu", "inwards", "outwards"].into_iter().any(has) {
        notes.push(
            "its hosts were not measured, so what an idle GPU waited for (data, a checkpoint, a \
             user) is unknown; to find out, pass --prometheus with CPU, disk and network metrics \
             of its pods (cAdvisor), or of its nodes (node_exporter) if no other job uses their \
             GPUs"
                .to_owned(),
        );
    }
    notes
}
