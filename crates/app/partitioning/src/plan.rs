//! `dovetail partition plan` as a document, and as text.

use std::collections::BTreeMap;

use dovetail_console::table::{facts, plural, table, whole, wrapped};
use dovetail_model::MigTable;
use dovetail_partition::{GpuPlan, Instance, PartitionPlan};
use dovetail_units::amount::usd;
use serde::Serialize;

use crate::changes::reason;
use crate::cluster::not_listed_words;
use crate::fleet::Fleet;
use crate::move_row::{MoveRow, move_lines};
use crate::planned::Planned;
use crate::profile_names::other_name;

/// Hours of the month of every figure in dollars.
const HOURS_PER_MONTH: i64 = 720;

/// Price of a GPU-hour by node, in micro-USD; `None` is one that is not known.
pub type HourPrices = BTreeMap<String, Option<i64>>;

/// What `dovetail partition plan` answers.
#[derive(Debug, Serialize)]
pub struct Document {
    pub gpus: Vec<GpuRow>,
    /// Instances of the pods that are served, by profile.
    pub accepted: BTreeMap<String, u64>,
    pub accepted_compute_slices: i64,
    pub upper_bound_compute_slices: i64,
    pub created: usize,
    pub removed: usize,
    pub unavailable_gpu_s: f64,
    /// Price of the GPU-time that the served pods use in a month; null if one is unknown.
    pub usd_per_month: Option<f64>,
    /// The same of the pods that the plan could serve.
    pub demand: BTreeMap<String, u64>,
    pub steps: u64,
    pub is_proved_best: bool,
    pub left_alone: BTreeMap<String, usize>,
    pub not_planned: BTreeMap<String, usize>,
    /// Pods that would move off the node that changes.
    pub moves: Vec<MoveRow>,
    pub moved_gpu_s: f64,
    /// Why the budget for moves does not allow it now; null if it does.
    pub moves_held_back: Option<String>,
}

/// A GPU that changes.
#[derive(Debug, Serialize)]
pub struct GpuRow {
    pub node: String,
    pub index: usize,
    pub model: String,
    pub from: Vec<InstanceRow>,
    pub to: Vec<InstanceRow>,
    /// Pods served by profile.
    pub served: BTreeMap<String, u64>,
    pub unavailable_s: f64,
    /// Work that the new instances can do within the planning horizon, in GPU-seconds.
    pub gain_gpu_s: f64,
    pub usd_per_month: Option<f64>,
}

/// A MIG instance of a GPU, before or after the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InstanceRow {
    pub profile: String,
    /// First memory slice; null where the driver has not said it.
    pub start: Option<u8>,
    pub state: InstanceState,
}

/// What becomes of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum InstanceState {
    /// In use.
    Held,
    /// Not in use.
    Idle,
    /// To be created.
    New,
}

fn document_of(fleet: &Fleet, planned: &PartitionPlan, prices: &HourPrices) -> Document {
    let gpus: Vec<GpuRow> = (0..fleet.world.gpus.len())
        .map(|number| row(fleet, number, &planned.gpus[number], prices))
        .collect();
    let mut demand: BTreeMap<String, u64> = BTreeMap::new();
    let mut not_planned = fleet.not_planned.clone();
    for (entry, (asked, served)) in fleet.world.demand.iter().zip(&planned.accepted).enumerate() {
        let mut count = asked.count;
        if served < &count
            && asked.waiting_ms > 0
            && let Some(why) = why_left(fleet, entry)
        {
            *not_planned.entry(why).or_default() += (count - served) as usize;
            count = *served;
        }
        *demand.entry(asked.profile.clone()).or_default() += u64::from(count);
    }
    let priced: Option<Vec<f64>> = gpus.iter().map(|row| row.usd_per_month).collect();
    Document {
        accepted: accepted(fleet, planned),
        accepted_compute_slices: planned.accepted_compute_slices,
        upper_bound_compute_slices: planned.upper_bound_compute_slices,
        created: planned.created(),
        removed: planned.removed(),
        unavailable_gpu_s: planned.unavailable_gpu_ms() as f64 / 1e3,
        usd_per_month: priced.map(|priced| sum(priced.into_iter())),
        demand,
        steps: planned.steps,
        is_proved_best: planned.is_best,
        left_alone: fleet.left_alone.clone(),
        not_planned,
        moves: Vec::new(),
        moved_gpu_s: 0.0,
        moves_held_back: None,
        gpus,
    }
}

/// Why a plan leaves pods of an entry of the demand, if it is not that other pods have the room.
fn why_left(fleet: &Fleet, entry: usize) -> Option<String> {
    let profile = &fleet.world.demand[entry].profile;
    // They could get idle instances alone, of which there are not enough.
    if !fleet.may_create(profile) {
        return Some(not_listed_words(profile));
    }
    let (pods, _) = fleet.waiting.get(entry)?;
    let other = other_name(fleet, &pods.nodes, profile)?;
    Some(format!(
        "GPUs that provide the profile `{profile}` under this name have no room for the pod, and \
         others that it may use provide it as `{other}`"
    ))
}

/// A sum that is 0 of nothing: the standard library's is -0.
fn sum(amounts: impl Iterator<Item = f64>) -> f64 {
    amounts.sum::<f64>() + 0.0
}

/// Writes down a plan, for which pods may move.
pub fn document(planned: &Planned, prices: &HourPrices) -> Document {
    let before = document_of(&planned.fleet, &planned.plan, prices);
    let Some(moved) = &planned.moved else { return before };
    let mut after = document_of(&moved.fleet, &moved.plan, prices);
    for (row, before) in after.gpus.iter_mut().zip(before.gpus) {
        row.from = before.from;
    }
    after.left_alone = before.left_alone;
    after.moves = moved.change.moves.iter().map(MoveRow::of).collect();
    after.moved_gpu_s = sum(after.moves.iter().map(|row| row.lost_gpu_s));
    let held_back = moved.change.held_back.as_ref();
    after.moves_held_back = held_back.map(|why| reason(why).to_owned());
    after
}

fn accepted(fleet: &Fleet, planned: &PartitionPlan) -> BTreeMap<String, u64> {
    let mut accepted: BTreeMap<String, u64> = BTreeMap::new();
    for (demand, count) in fleet.world.demand.iter().zip(&planned.accepted) {
        *accepted.entry(demand.profile.clone()).or_default() += u64::from(*count);
    }
    accepted
}

fn row(fleet: &Fleet, number: usize, planned: &GpuPlan, prices: &HourPrices) -> GpuRow {
    let gpu = &fleet.world.gpus[number];
    let table = &fleet.world.tables[gpu.table];
    let (node, index) = fleet.names[number].clone();
    let starts_known = fleet.starts_known[number];
    let price = prices.get(&node).copied().flatten();
    let rows = |instances: &[Instance], state| -> Vec<InstanceRow> {
        let one = |instance: &Instance| InstanceRow {
            profile: table.profiles[instance.profile].name.clone(),
            start: Some(instance.start).filter(|_| starts_known),
            state,
        };
        instances.iter().map(one).collect()
    };
    let sorted = |lists: [Vec<InstanceRow>; 3]| {
        let mut all = lists.concat();
        let size = |row: &InstanceRow| {
            table.profile(&row.profile).map(|p| table.profiles[p].compute_slices)
        };
        all.sort_by(|one, other| (one.start, size(other)).cmp(&(other.start, size(one))));
        all
    };
    let mut served: BTreeMap<String, u64> = BTreeMap::new();
    for (entry, count) in &planned.served {
        let profile = fleet.world.demand[*entry].profile.clone();
        *served.entry(profile).or_default() += u64::from(*count);
    }
    GpuRow {
        node,
        index,
        model: fleet.models[number].clone(),
        from: sorted([
            rows(&gpu.held, InstanceState::Held),
            rows(&gpu.idle, InstanceState::Idle),
            Vec::new(),
        ]),
        to: sorted([
            rows(&gpu.held, InstanceState::Held),
            rows(&planned.kept, InstanceState::Idle),
            rows(&planned.created, InstanceState::New),
        ]),
        usd_per_month: usd_per_month(table, &served, price),
        served,
        unavailable_s: planned.unavailable_gpu_ms as f64 / 1e3,
        gain_gpu_s: planned.gain_gpu_ms as f64 / 1e3,
    }
}

/// The GPU's price for the compute slices that are served, in a month.
fn usd_per_month(
    table: &MigTable,
    served: &BTreeMap<String, u64>,
    price: Option<i64>,
) -> Option<f64> {
    let slices: u64 = served
        .iter()
        .filter_map(|(name, count)| {
            let profile = &table.profiles[table.profile(name)?];
            Some(u64::from(profile.compute_slices) * count)
        })
        .sum();
    if slices == 0 {
        return Some(0.0);
    }
    let micros = price?;
    let share = slices as f64 / f64::from(table.compute_slices);
    Some(share * micros as f64 / 1e6 * HOURS_PER_MONTH as f64)
}

/// So many equal instances beside each other are drawn one by one.
const LONG_RUN: usize = 3;

/// A layout as people read it: `[3g][2g][1g]`, `[1g]×7`; a GPU without instances is `-`.
pub(crate) fn drawn(instances: &[InstanceRow], is_whole: bool) -> String {
    if is_whole && instances.is_empty() {
        return "whole".to_owned();
    }
    if instances.is_empty() {
        return "-".to_owned();
    }
    // Profiles of one compute slice differ in memory.
    let short = |row: &InstanceRow| {
        let (compute, memory) = row.profile.split_once('.').unwrap_or((&row.profile, ""));
        let is_plain = compute != "1g"
            || !instances
                .iter()
                .any(|other| other.profile.starts_with("1g.") && other.profile != row.profile);
        if is_plain && !memory.contains('+') { compute.to_owned() } else { row.profile.clone() }
    };
    // A long run of equal instances is one word: tables break no line within.
    let runs = instances.chunk_by(|one, other| one.profile == other.profile);
    let run = |run: &[InstanceRow]| {
        let one = format!("[{}]", short(&run[0]));
        match run.len() {
            count if count > LONG_RUN => format!("{one}×{count}"),
            count => one.repeat(count),
        }
    };
    runs.map(run).collect()
}

/// The document as text.
pub fn text(document: &Document, fleet: &Fleet) -> String {
    let mut rows = Vec::new();
    for (row, gpu) in document.gpus.iter().zip(&fleet.world.gpus) {
        if row.from == row.to && row.served.is_empty() {
            continue;
        }
        let served = row.served.iter().map(|(profile, count)| format!("{profile} × {count}"));
        rows.push(vec![
            row.node.clone(),
            row.index.to_string(),
            row.model.clone(),
            drawn(&row.from, gpu.is_whole),
            drawn(&row.to, gpu.is_whole),
            served.collect::<Vec<_>>().join(", "),
            format!("{:.0}", row.unavailable_s),
            dollars(row.usd_per_month),
        ]);
    }
    let mut text = String::new();
    if !rows.is_empty() {
        let header =
            ["node", "GPU", "model", "before", "after", "serves", "seconds lost", "USD a month"];
        text += &table(&header, rows);
    }
    let changed = document.gpus.iter().filter(|row| row.from != row.to).count();
    let all = plural(fleet.gpus, "GPU changes", "GPUs change");
    text += &format!("{} of {all}\n\n", whole(changed as u64));
    // Each pod counts once, however many instances it has.
    let more = fleet.pinned.instances_beyond_first();
    let asked = document.demand.values().sum::<u64>().saturating_sub(more);
    let served = document.accepted.values().sum::<u64>().saturating_sub(more);
    let bound = document.upper_bound_compute_slices;
    let proof = match bound - document.accepted_compute_slices {
        _ if !document.moves.is_empty() => "pods move off one node".to_owned(),
        0 => "no plan serves more".to_owned(),
        _ if document.is_proved_best => {
            format!("best for pods with a higher priority first; {bound} regardless of priority")
        }
        _ => format!("no plan serves more than {bound}"),
    };
    let lost = format!(
        "{:.0} GPU-seconds: GPUs are unavailable while their layout changes",
        document.unavailable_gpu_s
    );
    text += &match asked {
        0 => "no pending pod requests a MIG instance that these GPUs can provide\n".to_owned(),
        _ => facts(vec![
            ("pods served", format!("{} of {}", whole(served), whole(asked))),
            ("compute slices", format!("{} ({proof})", document.accepted_compute_slices)),
            ("instances", format!("{} created, {} removed", document.created, document.removed)),
            ("seconds lost", lost),
            ("put to use", format!("{} a month", dollars(document.usd_per_month))),
        ]),
    };
    text += &move_lines(&document.moves);
    if let Some(why) = &document.moves_held_back {
        text += &wrapped(&format!("not now: {why}"), 0);
    }
    for (why, gpus) in &document.left_alone {
        text +=
            &wrapped(&format!("{}: {why}", plural(*gpus, "GPU unchanged", "GPUs unchanged")), 0);
    }
    for (why, pods) in &document.not_planned {
        text += &wrapped(
            &format!("{}: {why}", plural(*pods, "pod not planned for", "pods not planned for")),
            0,
        );
    }
    text
}

fn dollars(amount: Option<f64>) -> String {
    match amount {
        Some(amount) => usd(Some((amount * 1e6).round() as i64)),
        None => "unknown".to_owned(),
    }
}
