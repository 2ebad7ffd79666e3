//! What an audit says, in the words of its JSON. Everything that was read is harmless text from
//! here on.

use std::collections::BTreeMap;

use dovetail_account::device_time::DeviceState;
use dovetail_account::split::{Headline, SplitMethod};
use dovetail_audit::{
    AuditReport, Check, Finding, PricedFinding, TimeByPrice, Worth, check, claim_bound_nodes,
};
use dovetail_console::plain::plain;
use dovetail_console::table::counted;
use dovetail_facts::{Facts, MONTH_MS, ObjectRef, THRESHOLDS, Thresholds, UsagePeriod};
use dovetail_inventory::facts::{Gathered, UnknownGpus};
use dovetail_model::Money;
use dovetail_sources::doubts::{
    clamped_in_words, device_doubts_in_words, gpu_counts_in_words, memory_sizes_in_words,
    nodes_not_read_in_words, other_names_in_words, unjudged_by_reason, unlisted_gpus_in_words,
    unrequested_gpus_in_words, virtual_nodes_in_words,
};
use dovetail_sources::node_prices::{PriceLine, Prices};
use dovetail_sources::old_prices::old_prices;
use dovetail_trials::safe_patches;
use dovetail_units::amount::{percent, tenths, usd};
use dovetail_units::time::time;
use serde::{Serialize, Serializer};

use super::baseline::{Baseline, BaselineObject, SCHEMA, Worth as OldWorth, object};
use super::check_words::{brings_words, fix_words, layer_words, severity_words};
use super::confirmed::{ConfirmedOut, LedgerOut};
use super::figures::{FigureOut, at_least, formula, hours, micros, unpriced_hours};
use super::patch::{PatchOut, WithheldOut};
use super::unconfirmed::why_unconfirmed;

/// Objects that a finding lists by name.
const MOST_AFFECTED: usize = 20;

/// Values that a finding rests on, listed up to so many.
const MOST_EVIDENCE: usize = 20;

const MONTH_DAYS: u64 = MONTH_MS / 86_400_000;

/// An audit.
#[derive(Debug, Serialize)]
pub struct Document {
    pub schema: &'static str,
    pub taken_at: String,
    pub sources: Vec<String>,
    pub month_days: u64,
    pub measured: Option<MeasuredOut>,
    pub headline: HeadlineOut,
    pub states: Vec<StateOut>,
    pub ladder: Vec<RungOut>,
    pub unseen: Vec<UnseenOut>,
    pub findings: Vec<FindingOut>,
    pub fixed: Option<Vec<FixedOut>>,
    pub baseline_taken_at: Option<String>,
    /// What a ledger says of what is fixed.
    pub ledger: Option<LedgerOut>,
    /// Why nothing is confirmed of what is fixed, where no ledger was asked.
    pub unconfirmed_because: Option<String>,
    /// Thresholds that somebody set.
    pub thresholds: Vec<ThresholdOut>,
    pub prices: Vec<PriceLine>,
    /// The namespace of the findings, where those of one alone are shown.
    pub namespace: Option<String>,
    /// A flag that gives GPUs of the cluster a price, where none has one.
    #[serde(skip)]
    pub price_flag: Option<String>,
    /// What is to be known of the prices.
    pub notes: Vec<String>,
    pub unexplained_waste_gpu_hours_per_month: f64,
    pub skipped: Vec<String>,
    pub(crate) skipped_objects: u64,
}

/// The period over which the use of GPUs was measured.
#[derive(Debug, Serialize)]
pub struct MeasuredOut {
    pub hours: f64,
    pub step_s: f64,
    pub until: String,
}

impl MeasuredOut {
    fn of(period: UsagePeriod) -> Self {
        let length_ms = period.span.to_ms - period.span.from_ms;
        Self {
            hours: length_ms as f64 / 3.6e6,
            step_s: period.step_ms as f64 / 1e3,
            until: time(period.span.to_ms),
        }
    }
}

/// The one line at the top, in numbers.
#[derive(Debug, Serialize)]
pub struct HeadlineOut {
    pub installed_gpus: f64,
    pub waste_share: f64,
    /// What nobody measured.
    pub blind_share: f64,
    /// What is known of now, and too recent or too short to be taken for a month.
    pub too_recent_share: f64,
    pub priced_share: f64,
    pub(crate) waste_usd_micros_per_month: Option<i64>,
    pub(crate) bill_usd_micros_per_month: Option<i64>,
    pub(crate) blind_usd_micros_per_month: Option<i64>,
    pub(crate) too_recent_usd_micros_per_month: Option<i64>,
    pub method: String,
    pub lowest: Option<MethodOut>,
    pub highest: Option<MethodOut>,
    /// What a fix returns now: a node can go, or waiting work fits.
    pub returned: FigureOut,
    /// What of it leaves the bill with nodes that can go. Pending pods take the rest, and the bill
    /// stays.
    pub removed_usd_micros_per_month: Option<i64>,
    /// The same in GPU-hours.
    pub removed_gpu_hours_per_month: f64,
    /// What findings explain beside that: money once somebody uses it.
    pub freed: FigureOut,
    /// What no finding explains.
    pub unexplained: FigureOut,
    /// Waste until now in states that cannot be taken for a month; no part of the above.
    pub waste_usd_micros_so_far: Option<i64>,
    pub waste_gpu_hours_so_far: f64,
    /// GPU-hours without a price, which every amount leaves out.
    pub unpriced_gpu_hours_per_month: f64,
    /// GPUs whose price is an estimate.
    pub estimated_gpus: f64,
    /// GPUs that pods may hold on nodes that nobody read, or that objects may have that nobody
    /// could read: neither free nor held, as far as anybody knows. Without all pods, also those
    /// that no known pod has.
    pub unknown_gpus: f64,
    /// Those of them that are not installed on a node that was read.
    #[serde(skip)]
    pub gpus_not_included: f64,
    /// Pending pods that request GPUs.
    #[serde(skip)]
    pub pending_gpu_pods: usize,
    /// Whether what is blind can only add to the waste.
    pub can_only_be_more: bool,
}

/// The waste under another method.
#[derive(Debug, Serialize)]
pub struct MethodOut {
    pub method: String,
    pub(crate) waste_usd_micros_per_month: i64,
}

/// GPUs in one state.
#[derive(Debug, Serialize)]
pub struct StateOut {
    pub state: String,
    pub is_waste: bool,
    /// Now.
    pub gpus: f64,
    /// Those of them that can be taken for a month.
    pub lasting_gpus: f64,
    pub usd_micros_per_month: Option<i64>,
    /// Of the others, until now.
    pub usd_micros_so_far: Option<i64>,
    pub gpu_hours_so_far: f64,
    pub unpriced_gpu_hours_per_month: f64,
}

/// After a layer of findings.
#[derive(Debug, Serialize)]
pub struct RungOut {
    pub layer: &'static str,
    pub findings: usize,
    pub(crate) claimed_usd_micros_per_month: Option<i64>,
    pub(crate) waste_usd_micros_per_month: Option<i64>,
    pub(crate) waste_gpus: f64,
    /// `None` where pods that may hold GPUs were not read.
    pub(crate) held_share: Option<f64>,
    pub unpriced_gpu_hours_per_month: f64,
    /// The same of what its findings claim.
    pub(crate) claimed_unpriced_gpu_hours_per_month: f64,
}

impl RungOut {
    /// Columns of the ladder for people.
    pub const HEADER: [&'static str; 5] =
        ["layer of fixes", "findings", "explained waste", "waste left", "paid GPUs allocated"];

    /// Its cells.
    pub fn cells(&self) -> Vec<String> {
        vec![
            match self.layer {
                "as it is" => "none yet".to_owned(),
                layer => layer.to_owned(),
            },
            self.findings.to_string(),
            at_least(self.claimed_usd_micros_per_month, self.claimed_unpriced_gpu_hours_per_month),
            at_least(self.waste_usd_micros_per_month, self.unpriced_gpu_hours_per_month),
            self.held_share.map_or_else(|| "unknown".to_owned(), percent),
        ]
    }
}

/// What could not be seen.
#[derive(Debug, Serialize)]
pub struct UnseenOut {
    pub what: String,
    pub hides: String,
    pub command: String,
}

/// A finding.
#[derive(Debug, Serialize)]
pub struct FindingOut {
    #[serde(rename = "id", serialize_with = "id")]
    pub check: &'static Check,
    pub severity: &'static str,
    pub title: &'static str,
    pub object: BaselineObject,
    pub evidence: Vec<EvidenceOut>,
    pub evidence_values: usize,
    pub affected: Vec<BaselineObject>,
    pub affected_objects: usize,
    pub brings: String,
    /// The part of what it claims that comes back at once.
    pub returned_usd_micros_per_month: Option<i64>,
    pub confidence: &'static str,
    /// Null where nothing may be taken for a month.
    pub usd_micros_per_month: Option<i64>,
    pub gpu_hours_per_month: Option<f64>,
    /// The part of the GPU-hours that has no price, which the dollars leave out.
    pub unpriced_gpu_hours_per_month: f64,
    /// Of states that cannot be taken for a month, until now.
    pub usd_micros_so_far: Option<i64>,
    pub gpu_hours_so_far: f64,
    /// Since when; null where nobody knows.
    pub since: Option<String>,
    pub formula: Option<String>,
    pub also_affects_gpu_hours_per_month: f64,
    pub fix: FixOut,
    /// Pods that move to other nodes, where the engine finds room for them.
    pub moves: Vec<MoveOut>,
    /// The patch of an object is with the most valuable of its findings.
    pub patches: Vec<PatchOut>,
    /// The check of the finding whose patch fixes this one too.
    pub patched_with: Option<&'static str>,
    /// Changes that would take from pods the last node that they could use.
    pub withheld: Vec<WithheldOut>,
    pub suppressed: Option<SuppressedOut>,
    /// The team of its namespace, by the labels that name teams.
    #[serde(skip)]
    pub team: Option<String>,
    pub is_new: Option<bool>,
}

/// What mends a finding.
#[derive(Debug, Serialize)]
pub struct FixOut {
    pub(crate) edits: &'static str,
    pub example: String,
}

/// A pod that moves.
#[derive(Debug, Serialize)]
pub struct MoveOut {
    pub pod: BaselineObject,
    pub from: String,
    pub to: String,
}

/// A value that a finding rests on.
#[derive(Debug, Serialize)]
pub struct EvidenceOut {
    pub what: &'static str,
    pub value: String,
}

/// Who ignores a finding.
#[derive(Debug, Serialize)]
pub struct SuppressedOut {
    pub by: String,
    pub why: String,
}

/// A finding of the baseline that is gone.
#[derive(Debug, Serialize)]
pub struct FixedOut {
    pub id: String,
    pub object: BaselineObject,
    pub usd_micros_per_month: Option<i64>,
    pub gpu_hours_per_month: Option<f64>,
    /// What a ledger says of it.
    pub ledger: Option<ConfirmedOut>,
}

impl FixedOut {
    fn of(((id, object), worth): ((String, BaselineObject), OldWorth)) -> Self {
        let OldWorth { usd_micros_per_month, gpu_hours_per_month } = worth;
        Self { id, object, usd_micros_per_month, gpu_hours_per_month, ledger: None }
    }

    /// What the earlier audit said it was worth.
    pub fn worth_words(&self) -> String {
        let is_risk = check(&self.id).is_none_or(|check| check.worth == Worth::Risk);
        match (self.usd_micros_per_month, self.gpu_hours_per_month) {
            (Some(micros), _) => format!("{} a month", usd(Some(micros))),
            (None, Some(hours)) if hours > 0.0 => {
                format!("{} GPU-hours a month, of unknown price", tenths(hours))
            }
            (None, Some(_)) if !is_risk => "no GPU time of its own".to_owned(),
            (None, Some(_)) => "a risk, without a price".to_owned(),
            (None, None) => "of unknown price".to_owned(),
        }
    }
}

/// A threshold that somebody set.
#[derive(Debug, Serialize)]
pub struct ThresholdOut {
    pub name: &'static str,
    pub value: u64,
    pub default: u64,
}

impl ThresholdOut {
    fn all_of(thresholds: &Thresholds) -> Vec<Self> {
        let all = THRESHOLDS.iter().map(|threshold| Self {
            name: threshold.name,
            value: threshold.of(thresholds),
            default: threshold.default,
        });
        all.filter(|threshold| threshold.value != threshold.default).collect()
    }
}

fn id<S: Serializer>(check: &&'static Check, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(check.id)
}

impl Document {
    /// All of it.
    pub fn of(
        sources: Vec<String>,
        gathered: &Gathered,
        report: &AuditReport,
        prices: Prices,
        baseline: Option<&Baseline>,
    ) -> Self {
        let mut findings: Vec<FindingOut> = report.findings.iter().map(FindingOut::of).collect();
        fix_safely(gathered, report, &mut findings);
        name_teams(gathered, &mut findings);
        let mut fixed = None;
        if let Some(baseline) = baseline {
            let mut left = baseline.findings.clone();
            for finding in &mut findings {
                let key = (finding.check.id.to_owned(), finding.object.clone());
                finding.is_new = Some(left.remove(&key).is_none());
            }
            fixed = Some(left.into_iter().map(FixedOut::of).collect());
        }
        Self {
            schema: SCHEMA,
            taken_at: time(gathered.facts.now_ms),
            sources: sources.iter().map(|source| plain(source)).collect(),
            month_days: MONTH_DAYS,
            measured: gathered.facts.usage.map(MeasuredOut::of),
            headline: HeadlineOut::of(report, gathered, &prices),
            states: states(report),
            ladder: ladder(report, gathered),
            unseen: unseen(gathered),
            findings,
            fixed,
            baseline_taken_at: baseline.map(|baseline| baseline.taken_at.clone()),
            ledger: None,
            unconfirmed_because: None,
            thresholds: ThresholdOut::all_of(&gathered.facts.thresholds),
            namespace: None,
            price_flag: prices.flag_without_any(),
            notes: [prices.notes, old_prices(&prices.told, gathered.facts.now_ms)].concat(),
            prices: prices.told,
            unexplained_waste_gpu_hours_per_month: hours(report.unexplained_gpu_milli_ms()),
            skipped: gathered.skipped.iter().map(|skipped| plain(&skipped.to_string())).collect(),
            skipped_objects: gathered.skipped_count,
        }
    }

    /// Leaves only findings about a namespace, or about something in it, and those that move its
    /// pods to other nodes. The headline and GPUs by state stay those of the whole cluster.
    pub fn keep_namespace(&mut self, namespace: &str) {
        let is_in = |object: &BaselineObject| object.namespace == namespace;
        let all = self.findings.len();
        self.findings.retain(|finding| {
            let moves_its_pods = finding.moves.iter().any(|moved| is_in(&moved.pod));
            is_in(&finding.object) || finding.affected.iter().any(is_in) || moves_its_pods
        });
        if let Some(fixed) = &mut self.fixed {
            fixed.retain(|fixed| is_in(&fixed.object));
        }
        let left_out = all - self.findings.len();
        self.namespace = Some(plain(namespace));
        self.notes.push(format!(
            "this report shows only the findings of namespace {} and omits {left_out} about other \
             namespaces and about nodes; capacity and states cover the whole cluster",
            plain(namespace)
        ));
    }

    /// Says so where something is fixed and no ledger was asked.
    pub fn with_doubt(mut self, baseline: Option<&Baseline>, now_ms: u64) -> Self {
        let is_fixed = self.fixed.as_ref().is_some_and(|fixed| !fixed.is_empty());
        self.unconfirmed_because = baseline
            .filter(|_| is_fixed && self.ledger.is_none())
            .map(|baseline| why_unconfirmed(baseline, now_ms));
        self
    }
}

impl HeadlineOut {
    fn of(report: &AuditReport, gathered: &Gathered, prices: &Prices) -> Self {
        let so_far = report.waste_so_far();
        let method = |(method, cost): (SplitMethod, Money)| MethodOut {
            method: method.id(),
            waste_usd_micros_per_month: cost.usd_micros,
        };
        let range = report.headline.filter(Headline::differs);
        let all = report.installed.gpu_milli_ms;
        let gpus_not_included = gathered.unknown_gpus.gpus() as f64;
        Self {
            installed_gpus: gpus(all),
            waste_share: share(report.waste.gpu_milli_ms, all),
            blind_share: share(report.blind.gpu_milli_ms, all),
            too_recent_share: share(report.open.gpu_milli_ms, all),
            priced_share: share(report.installed.priced_gpu_milli_ms, all),
            waste_usd_micros_per_month: micros(report.waste),
            bill_usd_micros_per_month: micros(report.installed),
            blind_usd_micros_per_month: micros(report.blind),
            too_recent_usd_micros_per_month: micros(report.open),
            method: SplitMethod::AllIn.id(),
            lowest: range.map(|range| method(range.lowest)),
            highest: range.map(|range| method(range.highest)),
            returned: FigureOut::of(&report.returned),
            removed_usd_micros_per_month: micros(report.removed),
            removed_gpu_hours_per_month: hours(report.removed.gpu_milli_ms),
            freed: FigureOut::of(&report.freed),
            unexplained: FigureOut::of(&report.unexplained),
            waste_usd_micros_so_far: micros(so_far),
            waste_gpu_hours_so_far: hours(so_far.gpu_milli_ms),
            unpriced_gpu_hours_per_month: unpriced_hours(report.installed),
            estimated_gpus: prices.estimated_gpus() as f64,
            unknown_gpus: gpus_not_included + gpus(perhaps_held(report, gathered)),
            gpus_not_included,
            pending_gpu_pods: pending_gpu_pods(&gathered.facts),
            can_only_be_more: gathered.can_only_be_more(),
        }
    }
}

/// The time of a month of GPUs that no known pod has, where pods that were not read may have them.
fn perhaps_held(report: &AuditReport, gathered: &Gathered) -> i128 {
    if gathered.may_lack_pods() { report.perhaps_held } else { 0 }
}

fn pending_gpu_pods(facts: &Facts) -> usize {
    let with_gpus = facts.workloads.iter().filter(|workload| workload.has_gpus());
    with_gpus.flat_map(|workload| &workload.pods).filter(|pod| pod.node.is_none()).count()
}

impl FindingOut {
    fn of(priced: &PricedFinding) -> Self {
        let PricedFinding { finding, settled, brought, so_far, by_price, since_ms } = priced;
        // What could be taken for a month is nothing where all of it could not.
        let is_of_a_month = settled.claimed.gpu_milli_ms > 0 || so_far.gpu_milli_ms == 0;
        let check = finding.check;
        let is_risk = check.worth == Worth::Risk;
        let claimed = settled.claimed;
        let cost = claimed.cost().filter(|_| !is_risk || claimed.gpu_milli_ms > 0);
        let evidence = finding.evidence.iter().take(MOST_EVIDENCE);
        Self {
            check,
            severity: severity_words(check.severity),
            title: check.title,
            object: object(&finding.object),
            evidence: evidence
                .map(|evidence| EvidenceOut { what: evidence.what, value: plain(&evidence.value) })
                .collect(),
            evidence_values: finding.evidence.len(),
            affected: finding.affected.iter().take(MOST_AFFECTED).map(object).collect(),
            affected_objects: finding.affected.len(),
            brings: brings_words(brought, claimed),
            returned_usd_micros_per_month: (brought.returned.gpu_milli_ms > 0)
                .then(|| micros(brought.returned))
                .flatten(),
            confidence: if check.is_inferred { "likely" } else { "certain" },
            usd_micros_per_month: cost
                .filter(|_| claimed.gpu_milli_ms > 0)
                .map(|cost| cost.usd_micros),
            gpu_hours_per_month: is_of_a_month.then(|| hours(claimed.gpu_milli_ms)),
            unpriced_gpu_hours_per_month: unpriced_hours(claimed),
            usd_micros_so_far: (so_far.gpu_milli_ms > 0).then(|| micros(*so_far)).flatten(),
            gpu_hours_so_far: hours(so_far.gpu_milli_ms),
            since: since_ms.map(time),
            formula: formulas(by_price),
            also_affects_gpu_hours_per_month: hours(settled.contested.gpu_milli_ms),
            fix: FixOut {
                edits: fix_words(check.fix, &finding.object.kind),
                example: finding.fix_example(),
            },
            moves: finding
                .moves
                .iter()
                .map(|of| MoveOut {
                    pod: object(&of.pod),
                    from: plain(&of.from),
                    to: plain(&of.to),
                })
                .collect(),
            patches: Vec::new(),
            patched_with: None,
            withheld: Vec::new(),
            suppressed: finding.suppressed.as_ref().map(|suppression| SuppressedOut {
                by: plain(&suppression.by),
                why: plain(&suppression.why),
            }),
            team: None,
            is_new: None,
        }
    }
}

/// Gives findings the patches that fix them; those that are ignored get none.
fn fix_safely(gathered: &Gathered, report: &AuditReport, findings: &mut [FindingOut]) {
    let open = report.findings.iter().enumerate();
    let open = open.filter(|(_, priced)| priced.finding.suppressed.is_none());
    let (places, of): (Vec<usize>, Vec<&Finding>) =
        open.map(|(place, priced)| (place, &priced.finding)).unzip();
    let source_of = |object: &ObjectRef| gathered.sources.source(object);
    let safe = safe_patches(&gathered.facts, &gathered.reach, &of, &source_of);
    for (order, patched) in safe.written.into_iter().enumerate() {
        let Some((first, others)) = patched.findings.split_first() else { continue };
        let id = findings[places[*first]].check.id;
        for other in others {
            findings[places[*other]].patched_with = Some(id);
        }
        findings[places[*first]].patches.push(PatchOut::of(patched.patch, order));
    }
    for withheld in safe.withheld {
        findings[places[withheld.finding]].withheld.push(WithheldOut::of(withheld));
    }
}

/// Notes the team of each finding: that of the labels of its namespace.
fn name_teams(gathered: &Gathered, findings: &mut [FindingOut]) {
    let facts = &gathered.facts;
    let namespaces = facts.namespaces.iter().map(|known| (&*known.name, &known.labels));
    let namespaces: BTreeMap<&str, &BTreeMap<String, String>> = namespaces.collect();
    let team = |finding: &FindingOut| {
        let labels = namespaces.get(&*finding.object.namespace)?;
        facts.team_labels.iter().find_map(|label| labels.get(label)).map(|team| plain(team))
    };
    findings.iter_mut().for_each(|finding| finding.team = team(finding));
}

/// How the amounts of a finding come about: that of a month, then that so far.
fn formulas([month, so_far]: &[TimeByPrice; 2]) -> Option<String> {
    let parts = [formula(month, "a month"), formula(so_far, "so far")];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn states(report: &AuditReport) -> Vec<StateOut> {
    let state = |(state, now): (&DeviceState, &i128)| {
        let month = report.month_of(state);
        let so_far = report.so_far.get(state).copied().unwrap_or_default();
        StateOut {
            state: state.name(),
            is_waste: state.is_waste(),
            gpus: gpus(*now),
            lasting_gpus: gpus(month.gpu_milli_ms),
            usd_micros_per_month: (month.gpu_milli_ms > 0).then(|| micros(month)).flatten(),
            usd_micros_so_far: (so_far.gpu_milli_ms > 0).then(|| micros(so_far)).flatten(),
            gpu_hours_so_far: hours(so_far.gpu_milli_ms),
            unpriced_gpu_hours_per_month: unpriced_hours(month),
        }
    };
    report.now.iter().map(state).collect()
}

fn ladder(report: &AuditReport, gathered: &Gathered) -> Vec<RungOut> {
    let is_known = perhaps_held(report, gathered) == 0;
    let rung = |rung: &dovetail_audit::Rung| RungOut {
        layer: rung.layer.map_or("as it is", layer_words),
        findings: rung.findings,
        claimed_usd_micros_per_month: micros(rung.claimed),
        waste_usd_micros_per_month: micros(rung.waste),
        waste_gpus: gpus(rung.waste.gpu_milli_ms),
        held_share: is_known.then(|| share(rung.allocated_gpu_milli_ms, rung.paid_gpu_milli_ms)),
        unpriced_gpu_hours_per_month: unpriced_hours(rung.waste),
        claimed_unpriced_gpu_hours_per_month: unpriced_hours(rung.claimed),
    };
    report.ladder.iter().map(rung).collect()
}

fn unseen(gathered: &Gathered) -> Vec<UnseenOut> {
    let held = &gathered.moment.held;
    let measured = held.iter().filter(|held| !held.uses.is_empty()).count();
    let mut unseen = Vec::new();
    unseen.extend(nodes_not_read_in_words(&gathered.unknown_gpus).map(|what| UnseenOut {
        what,
        hides: "the number and price of these GPUs, and free capacity on these nodes".to_owned(),
        command: "kubectl get nodes -o json".to_owned(),
    }));
    unseen.extend(unknown_gpus(&gathered.unknown_gpus));
    if measured < held.len() {
        let what = match gathered.facts.usage {
            None => "use of allocated GPUs".to_owned(),
            Some(_) => {
                format!("use of the GPUs of {} of {} pods", held.len() - measured, held.len())
            }
        };
        let hides =
            "idle GPUs, GPUs that are too large, sharing (REQ-04 to REQ-06, IDL-01, IDL-02)";
        let command = "--prometheus URL, or --usage FILE";
        unseen.push(UnseenOut { what, hides: hides.to_owned(), command: command.to_owned() });
    }
    unseen.extend(gathered.unseen.iter().map(|unseen| UnseenOut {
        what: unseen.what.clone(),
        hides: unseen.hides.clone(),
        command: unseen.command.clone(),
    }));
    unseen.extend(clamped_in_words(&gathered.clamped).map(|what| UnseenOut {
        what,
        hides: "how many GPUs there are, and which pods use them".to_owned(),
        command: "kubectl get nodes,pods -A -o json".to_owned(),
    }));
    unseen.extend(gpu_counts_in_words(&gathered.gpu_counts).map(|what| {
        UnseenOut {
            what,
            hides: "how many GPUs there are, and what each costs".to_owned(),
            command:
                "GPU Feature Discovery, which sets nvidia.com/gpu.count and nvidia.com/gpu.replicas"
                    .to_owned(),
        }
    }));
    unseen.extend(device_doubts_in_words(&gathered.device_doubts).map(|what| UnseenOut {
        what,
        hides: "how many GPUs there are, and which pods use them".to_owned(),
        command: "kubectl get resourceslices,resourceclaims -A -o json".to_owned(),
    }));
    unseen.extend(not_judged(&gathered.facts));
    unseen.extend(unjudged_by_reason(&gathered.unjudged).map(|pods| UnseenOut {
        what: format!("which nodes fit {} ({}): {}", pods.counted, pods.reason, pods.named),
        hides: "why GPUs that they could use are free".to_owned(),
        command: pods.command.to_owned(),
    }));
    unseen.extend(memory_sizes_in_words(&gathered.facts).map(|what| UnseenOut {
        what,
        hides: "whether another MIG layout would serve pending pods (SHR-08)".to_owned(),
        command: "GPU Feature Discovery, which sets nvidia.com/gpu.memory".to_owned(),
    }));
    unseen
}

/// What pods that use GPUs without requests hide.
const OTHERS_MAY_BE_FREE: &str = "whether other GPUs of these nodes are free";

/// What GPUs under other names hide.
const MAY_BE_ALLOCATED: &str = "whether these GPUs are allocated";

impl UnseenOut {
    /// Whether it hides which of the GPUs that were counted are free.
    pub(super) fn hides_free_gpus(&self) -> bool {
        [OTHERS_MAY_BE_FREE, MAY_BE_ALLOCATED].contains(&&*self.hides)
    }
}

/// GPUs of nodes that were read of which nobody knows whether pods have them, or how many they are.
fn unknown_gpus(unknown: &UnknownGpus) -> impl Iterator<Item = UnseenOut> {
    let told = [
        (
            unlisted_gpus_in_words(unknown),
            "the number and price of these GPUs",
            "the device plugin of these nodes, which sets status.capacity",
        ),
        (
            unrequested_gpus_in_words(unknown),
            OTHERS_MAY_BE_FREE,
            "requests for GPUs in these pods (REQ-02)",
        ),
        (
            other_names_in_words(unknown),
            MAY_BE_ALLOCATED,
            "a device plugin that offers nvidia.com/gpu, amd.com/gpu or gpu.intel.com/*, or a DRA \
             driver",
        ),
        (
            virtual_nodes_in_words(unknown),
            "the use and the price of these GPUs",
            "the bill of the provider that runs the pods",
        ),
    ];
    told.into_iter().filter_map(|(what, hides, command)| {
        Some(UnseenOut { what: what?, hides: hides.to_owned(), command: command.to_owned() })
    })
}

/// Nearly empty nodes of which no check says whether they can be removed.
fn not_judged(facts: &Facts) -> Option<UnseenOut> {
    let nodes = claim_bound_nodes(facts);
    let first = nodes.first()?;
    let (node, pod) = (plain(&first.node), plain(first.pods.first()?));
    let counted = counted(nodes.len(), "node");
    Some(UnseenOut {
        what: format!(
            "not judged: whether {counted} can be removed, because of pods with ResourceClaims \
             (for example node {node}, {pod})"
        ),
        hides: "nearly empty nodes whose pods fit elsewhere (AUT-07)".to_owned(),
        command: "kubectl get resourceclaims -A -o json".to_owned(),
    })
}

/// Milli-GPU × ms of a month as GPUs.
fn gpus(gpu_milli_ms: i128) -> f64 {
    gpu_milli_ms as f64 / MONTH_MS as f64 / 1000.0
}

fn share(part: i128, whole: i128) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
