//! Entries, in OpenCost's words. Amounts are added up as whole micro-dollars and become floats at
//! the very end.

use std::collections::BTreeMap;

use dovetail_account::cost::{CostSum, Paid};
use dovetail_account::device_time::{DeviceState, Span};
use dovetail_account::split::SplitMethod;
use dovetail_model::Money;
use dovetail_store::{Party, SumRow, UsedRow};
use jiff::Timestamp;
use serde::Serialize;
use thiserror::Error;

use super::aggregate::{Aggregate, TopOwner, UNALLOCATED};

/// The entry of what nobody had.
const IDLE: &str = "__idle__";

/// More entries are not answered at once: it bounds what a slow reader keeps in memory.
const MOST_ENTRIES: usize = 5_000;

/// What is sent.
#[derive(Debug, Serialize)]
pub struct AllocationResponse {
    /// Status of HTTP.
    pub code: u16,
    /// One for each step, entries by name.
    pub data: Vec<BTreeMap<String, AllocationEntry>>,
    /// What the amounts rest on.
    pub message: String,
    /// What is in no amount; absent where all was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// More entries than are answered at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "more than 5000 entries: use a shorter window, a longer step or a coarser aggregate, such as namespace"
)]
pub struct TooLong;

/// One entry. What a ledger cannot know is null.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AllocationEntry {
    name: String,
    properties: Properties,
    window: WindowOut,
    start: String,
    end: String,
    minutes: f64,
    cpu_cores: Option<f64>,
    cpu_core_request_average: Option<f64>,
    cpu_core_usage_average: Option<f64>,
    cpu_core_hours: Option<f64>,
    cpu_cost: Option<f64>,
    cpu_cost_adjustment: Option<f64>,
    cpu_efficiency: Option<f64>,
    gpu_count: f64,
    gpu_hours: f64,
    gpu_cost: Option<f64>,
    gpu_cost_adjustment: Option<f64>,
    /// Usage over request: how busy the GPUs were on average, over the time for which that was
    /// measured.
    gpu_efficiency: Option<f64>,
    network_transfer_bytes: Option<f64>,
    network_receive_bytes: Option<f64>,
    network_cost: Option<f64>,
    network_cost_adjustment: Option<f64>,
    load_balancer_cost: Option<f64>,
    load_balancer_cost_adjustment: Option<f64>,
    pv_bytes: Option<f64>,
    pv_byte_hours: Option<f64>,
    pv_cost: Option<f64>,
    pvs: Option<()>,
    pv_cost_adjustment: Option<f64>,
    ram_bytes: Option<f64>,
    ram_byte_request_average: Option<f64>,
    ram_byte_usage_average: Option<f64>,
    ram_byte_hours: Option<f64>,
    ram_cost: Option<f64>,
    ram_cost_adjustment: Option<f64>,
    ram_efficiency: Option<f64>,
    shared_cost: Option<f64>,
    external_cost: Option<f64>,
    total_cost: Option<f64>,
    total_efficiency: Option<f64>,
    /// CPU and memory together, which a ledger keeps as one amount. Not OpenCost's.
    cpu_ram_cost: Option<f64>,
    /// Of the GPU-time of which anything is known, the part that was active. Not OpenCost's.
    gpu_active_share: Option<f64>,
    /// GPU-hours held and not computing. Not OpenCost's.
    gpu_idle_hours: f64,
    /// GPU-hours held of which nobody knows. Not OpenCost's.
    gpu_unknown_hours: f64,
    /// What the idle GPU-hours cost. Not OpenCost's.
    gpu_idle_cost: Option<f64>,
    /// Whether something in it has no price, and is in no amount. Not OpenCost's.
    is_partly_unpriced: bool,
}

/// What all of an entry have in common. What it is not told apart by is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Properties {
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    controller: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    controller_kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pod: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Serialize)]
struct WindowOut {
    start: String,
    end: String,
}

/// Charges of one name.
#[derive(Debug, Default)]
struct Sum {
    properties: Properties,
    all: CostSum,
    gpus: Money,
    cpu_memory: Money,
    unknown_gpu_milli_ms: i128,
    /// GPU-time for which it was measured how busy the GPUs were, and the part that was used.
    measured_gpu_milli_ms: i128,
    used_gpu_milli_ms: i128,
}

/// The entries of one step under a method.
///
/// # Errors
/// More than are answered at once, counted together with `others`.
pub fn entries(
    step: Span,
    (rows, used): (&[SumRow], &[UsedRow]),
    aggregate: &[Aggregate],
    has_idle: bool,
    method: SplitMethod,
    team: &dyn Fn(&Party) -> Option<String>,
    others: usize,
) -> Result<BTreeMap<String, AllocationEntry>, TooLong> {
    let place = SplitMethod::ALL.iter().position(|known| *known == method).unwrap_or(0);
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    for row in rows {
        let (name, properties) = match row.party.as_deref() {
            Some(party) => named(row, party, aggregate, team),
            None if has_idle => (IDLE.to_owned(), Properties::default()),
            None => continue,
        };
        let sum = sums.entry(name).or_insert_with(|| Sum { properties, ..Sum::default() });
        sum.add(row, place);
    }
    for UsedRow { of, used_gpu_milli_ms } in used {
        let Some(party) = of.party.as_deref() else { continue };
        if let Some(sum) = sums.get_mut(&named(of, party, aggregate, team).0) {
            sum.measured_gpu_milli_ms += of.gpu_milli_ms;
            sum.used_gpu_milli_ms += used_gpu_milli_ms;
        }
    }
    if sums.len() + others > MOST_ENTRIES {
        return Err(TooLong);
    }
    Ok(sums.into_iter().map(|(name, sum)| (name.clone(), sum.entry(name, step))).collect())
}

fn named(
    row: &SumRow,
    party: &Party,
    aggregate: &[Aggregate],
    team: &dyn Fn(&Party) -> Option<String>,
) -> (String, Properties) {
    let mut properties = Properties::default();
    let parts: Vec<String> = aggregate
        .iter()
        .map(|one| {
            let part = one.part(row, party, team);
            if part != UNALLOCATED {
                properties.set(one, &part, row);
            }
            part
        })
        .collect();
    (parts.join("/"), properties)
}

impl Properties {
    fn set(&mut self, of: &Aggregate, part: &str, row: &SumRow) {
        let owner = || row.workload.as_deref().map(|workload| TopOwner::of(&workload.job));
        match of {
            Aggregate::Cluster => self.cluster = Some(part.to_owned()),
            Aggregate::Node => self.node = Some(part.to_owned()),
            Aggregate::Namespace => self.namespace = Some(part.to_owned()),
            Aggregate::Pod => self.pod = Some(part.to_owned()),
            Aggregate::ControllerKind => self.controller_kind = Some(part.to_owned()),
            Aggregate::Controller | Aggregate::OfKind(_) => {
                if let Some(owner) = owner() {
                    self.controller = Some(owner.name.to_owned());
                    self.controller_kind = Some(owner.kind).filter(|kind| !kind.is_empty());
                }
            }
            Aggregate::Label(key) => {
                self.labels.insert(key.clone(), part.to_owned());
            }
            _ => {}
        }
    }
}

impl Sum {
    fn add(&mut self, row: &SumRow, place: usize) {
        let cost = row.costs[place];
        self.all.add_rolled_up(row.paid, row.gpu_milli_ms, cost, row.charges);
        match row.paid {
            Paid::Gpus(state) => {
                self.gpus += cost.unwrap_or_default();
                if state == DeviceState::Unknown {
                    self.unknown_gpu_milli_ms += row.gpu_milli_ms;
                }
            }
            _ => self.cpu_memory += cost.unwrap_or_default(),
        }
    }

    fn entry(self, name: String, step: Span) -> AllocationEntry {
        let Self { properties, all, gpus, cpu_memory, unknown_gpu_milli_ms, .. } = self;
        let part = |part: i128, whole: i128| (whole > 0).then(|| part as f64 / whole as f64);
        let (start, end) = (time(step.from_ms), time(step.to_ms));
        let step_ms = (step.to_ms - step.from_ms) as f64;
        let known = |amount: Money| all.known(amount).map(usd);
        // Where CPU and memory cost nothing together, each costs nothing.
        let apart = known(cpu_memory).filter(|_| cpu_memory == Money::ZERO);
        let nobodys = name == IDLE;
        let time = if nobodys { all.gpu_milli_ms } else { all.allocated_gpu_milli_ms };
        let seen = all.allocated_gpu_milli_ms - unknown_gpu_milli_ms;
        AllocationEntry {
            window: WindowOut { start: start.clone(), end: end.clone() },
            start,
            end,
            minutes: step_ms / 60_000.0,
            cpu_cost: apart,
            ram_cost: apart,
            cpu_ram_cost: known(cpu_memory),
            gpu_count: time as f64 / 1000.0 / step_ms,
            gpu_hours: hours(time),
            gpu_cost: known(gpus),
            gpu_efficiency: part(self.used_gpu_milli_ms, self.measured_gpu_milli_ms),
            gpu_active_share: part(all.active_gpu_milli_ms, seen),
            total_cost: all.cost().map(usd),
            gpu_idle_hours: hours(all.idle_gpu_milli_ms),
            gpu_unknown_hours: hours(unknown_gpu_milli_ms),
            gpu_idle_cost: known(all.idle),
            is_partly_unpriced: all.has_unpriced(),
            name,
            properties,
            ..AllocationEntry::default()
        }
    }
}

fn hours(gpu_milli_ms: i128) -> f64 {
    gpu_milli_ms as f64 / 3.6e9
}

fn usd(money: Money) -> f64 {
    money.usd_micros as f64 / 1e6
}

fn time(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.map_or_else(String::new, |time| format!("{time:.0}"))
}
