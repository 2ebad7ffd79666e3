//! What a bill says, in the words of its JSON. Everything that was read is harmless text from here
//! on.

use std::collections::BTreeMap;

use dovetail_account::cost::CostSum;
use dovetail_account::split::{Headline, SplitMethod, Unused, is_range};
use dovetail_console::plain::plain;
use dovetail_model::Money;
use dovetail_sources::node_prices::PriceLine;
use dovetail_sources::old_prices::old_prices;
use dovetail_units::amount::{brief, percent, tenths, usd, whole};
use dovetail_units::duration::duration_of_seconds;
use dovetail_units::time::time;
use serde::Serialize;

use super::account::{Account, Basis};
use super::billed::BillOut;
use super::dimension::{Dimension, UNKNOWN};
use super::known;
use super::resolution::DayOut;
use super::statement::{Statement, StatementRow};
use super::too_recent::{SoFarOut, TooRecent};
use super::without_price::unpriced;

/// Fewer GPU-hours are not worth a word.
pub const LEAST_HOURS: f64 = 0.05;

/// Name and version of the form.
const SCHEMA: &str = "dovetail-cost/1";

/// A bill.
#[derive(Debug, Serialize)]
pub struct Document {
    pub schema: &'static str,
    /// `run-rate` of one moment, `sampled` over a period, or a `ledger`'s hours.
    pub basis: &'static str,
    pub from: String,
    pub to: String,
    pub days: f64,
    /// Distance of two samples; null for one moment and for a ledger.
    pub(crate) resolution_s: Option<f64>,
    /// How far the allocated GPU-hours may be from the truth because of that distance: each begin
    /// and end of a holder is known to one. Null for one moment and for a ledger.
    pub(crate) allocated_within_gpu_hours: Option<f64>,
    /// The same of the active GPU-hours: beside begins and ends of holders, steps in which some
    /// samples were active and others not.
    pub(crate) active_within_gpu_hours: Option<f64>,
    /// What each day rests on; empty for one moment.
    pub resolution_by_day: Vec<DayOut>,
    pub sources: Vec<String>,
    pub cluster: String,
    pub method: String,
    pub unused: &'static str,
    pub by: Vec<String>,
    pub headline: HeadlineOut,
    /// What states that are too recent to extrapolate wasted until now, by cause; in none of the
    /// amounts.
    pub so_far: Vec<SoFarOut>,
    pub total: RowOut,
    pub rows: Vec<RowOut>,
    /// What the provider billed; null where list prices are all there is.
    pub bill: Option<BillOut>,
    pub prices: Vec<PriceLine>,
    pub notes: Vec<String>,
}

/// The one line at the top, in numbers.
#[derive(Debug, Serialize)]
pub struct HeadlineOut {
    pub cost_usd_micros: Option<i64>,
    pub waste_usd_micros: Option<i64>,
    pub waste_share: f64,
    pub blind_share: f64,
    /// The part in states too recent to extrapolate.
    pub too_recent_share: f64,
    pub priced_share: f64,
    /// What those states wasted until now.
    pub waste_usd_micros_so_far: Option<i64>,
    pub waste_gpu_hours_so_far: f64,
    pub(crate) unused_cpu_memory_usd_micros: Option<i64>,
    pub lowest: Option<MethodOut>,
    pub highest: Option<MethodOut>,
}

/// The waste under another method.
#[derive(Debug, Serialize)]
pub struct MethodOut {
    pub method: String,
    pub waste_usd_micros: i64,
}

/// A row; money is null where no price is known.
#[derive(Debug, Default, Serialize)]
pub struct RowOut {
    /// By dimension; the total has none.
    pub key: BTreeMap<String, String>,
    pub gpu_hours: f64,
    pub allocated_gpu_hours: f64,
    pub active_gpu_hours: f64,
    pub idle_gpu_hours: f64,
    pub waste_gpu_hours: f64,
    pub blind_gpu_hours: f64,
    pub cost_usd_micros: Option<i64>,
    pub waste_usd_micros: Option<i64>,
    pub idle_usd_micros: Option<i64>,
    pub lowest_usd_micros: Option<i64>,
    pub highest_usd_micros: Option<i64>,
    /// Whether something in it has no price.
    pub is_partly_unpriced: bool,
    /// The part of the GPU-hours that has no price, which the amounts leave out.
    pub unpriced_gpu_hours: f64,
}

impl Document {
    /// Everything that is said.
    pub fn of(
        account: &Account,
        statement: &Statement,
        bill: Option<BillOut>,
        now_ms: u64,
    ) -> Self {
        let by: Vec<String> = statement.by.iter().map(|dimension| dimension.name()).collect();
        let mut notes = account.notes.clone();
        notes.extend(old_prices(&account.prices, account.priced_at_ms(now_ms)));
        let too_recent = TooRecent::of(account);
        notes.splice(0..0, too_recent.in_words());
        notes.extend(unpriced(account));
        notes.extend(nameless(statement));
        Self {
            schema: SCHEMA,
            basis: account.basis.name(),
            from: time(account.span.from_ms),
            to: time(account.span.to_ms),
            days: account.days(),
            resolution_s: match account.basis {
                Basis::RunRate | Basis::Ledger => None,
                Basis::Sampled { step_ms, .. } => Some(step_ms as f64 / 1e3),
            },
            allocated_within_gpu_hours: match account.basis {
                Basis::RunRate | Basis::Ledger => None,
                Basis::Sampled { step_ms, holder_changes, .. } => {
                    Some((holder_changes * step_ms) as f64 / 3.6e6)
                }
            },
            active_within_gpu_hours: match account.basis {
                Basis::RunRate | Basis::Ledger => None,
                Basis::Sampled { active_within_gpu_milli_ms, .. } => {
                    Some(hours(active_within_gpu_milli_ms))
                }
            },
            resolution_by_day: account.resolutions.iter().map(DayOut::of).collect(),
            sources: account.sources_in_words(),
            cluster: account.cluster_in_words(),
            method: statement.method.id(),
            unused: match statement.unused {
                Unused::Shown => "shown",
                Unused::Distributed => "distributed",
            },
            headline: HeadlineOut::of(statement, &too_recent, account),
            so_far: too_recent.by_cause(),
            total: RowOut::of(&[], &[], &statement.total, same_by_all_methods(&statement.total)),
            rows: statement.rows.iter().map(|row| RowOut::of_row(&by, row)).collect(),
            by,
            bill,
            prices: account.prices.clone(),
            notes,
        }
    }

    /// The headline for people.
    pub fn first_line(&self) -> String {
        let head = &self.headline;
        let per = if self.basis == "run-rate" { " a month" } else { "" };
        let range = match (&head.lowest, &head.highest) {
            (Some(lowest), Some(highest)) => {
                let amount = |of: &MethodOut| by_method(of.waste_usd_micros, &of.method);
                format!(" (waste {} to {})", amount(lowest), amount(highest))
            }
            _ => String::new(),
        };
        let unused = match head.unused_cpu_memory_usd_micros {
            Some(micros) if micros > 0 => {
                format!(
                    " The cost also includes {} for CPU and memory that no pod requested.",
                    usd(Some(micros))
                )
            }
            _ => String::new(),
        };
        let too_recent = match head.too_recent_share > 0.0 {
            true => {
                format!(
                    ", and {} is too recent or temporary to extrapolate",
                    percent(head.too_recent_share)
                )
            }
            false => String::new(),
        };
        let (cost, blind) = (usd(head.cost_usd_micros), percent(head.blind_share));
        let is_unknown =
            head.waste_usd_micros == Some(0) && head.blind_share + head.too_recent_share > 0.999;
        let waste = match is_unknown && head.cost_usd_micros.is_some() {
            true => format!(
                "; whether any of it is waste is unknown: {blind} of the GPU time is unmeasured"
            ),
            false => format!(
                ", including {} for wasted GPU time; {} of the GPU time is waste, {blind} is unmeasured",
                usd(head.waste_usd_micros),
                percent(head.waste_share),
            ),
        };
        let unpriced = match self.total.leaves_out() {
            true => format!(
                " Amounts leave out {} GPU-hours{per}, which have no price.",
                brief(self.total.unpriced_gpu_hours)
            ),
            false => String::new(),
        };
        let method = &self.method;
        format!("Cost: {cost}{per}{waste}{too_recent}.{unpriced} Method {method}{range}.{unused}")
    }

    /// What the figures are and are not.
    pub fn second_line(&self) -> String {
        let prices = match &self.bill {
            None => "list prices, no bill".to_owned(),
            Some(bill) => {
                let discount = bill.discount_share.map_or_else(String::new, |share| {
                    format!(", {} below list prices", percent(share))
                });
                let committed = match bill.committed_nodes {
                    0 => String::new(),
                    nodes => format!(", {nodes} of them at a committed rate"),
                };
                let BillOut { billed_nodes, nodes, .. } = bill;
                format!("as billed for {billed_nodes} of {nodes} nodes{committed}{discount}")
            }
        };
        if self.basis == "ledger" {
            let prices = match &self.bill {
                None => "at the prices in force when the usage was recorded",
                Some(_) => &prices,
            };
            return format!(
                "From {} to {} ({} days), hourly from a ledger, {prices}. Unmeasured time may be waste.",
                self.from,
                self.to,
                tenths(self.days)
            );
        }
        let Some(step_s) = self.resolution_s else {
            return format!(
                "Run rate: one snapshot of {}, extrapolated to {} days; {prices}. Whether unmeasured GPUs are busy \
                 is unknown.",
                self.from,
                whole(self.days)
            );
        };
        let open = |hours: Option<f64>| hours.filter(|hours| *hours > 0.0);
        let allocated = open(self.allocated_within_gpu_hours);
        let active = open(self.active_within_gpu_hours);
        let within = match (allocated, active) {
            (Some(allocated), Some(active)) => format!(
                ": allocated time is accurate to {} GPU-hours, active time to {}",
                tenths(allocated),
                tenths(active)
            ),
            (None, Some(active)) => {
                format!(": active time is accurate to {} GPU-hours", tenths(active))
            }
            (_, None) => String::new(),
        };
        format!(
            "From {} to {} ({} days), in steps of {}{within}; {prices}. Unmeasured time may be waste.",
            self.from,
            self.to,
            tenths(self.days),
            duration_of_seconds(step_s)
        )
    }
}

impl HeadlineOut {
    fn of(statement: &Statement, too_recent: &TooRecent, account: &Account) -> Self {
        let total = &statement.total;
        let so_far = too_recent.waste();
        let span_ms = i128::from(account.span.to_ms - account.span.from_ms);
        let open_gpu_milli_ms = i128::from(too_recent.gpu_milli) * span_ms;
        let micros = |money: Option<Money>| money.map(|money| money.usd_micros);
        let method = |(method, cost): (SplitMethod, Money)| MethodOut {
            method: method.id(),
            waste_usd_micros: cost.usd_micros,
        };
        let range = statement.waste.filter(Headline::differs);
        Self {
            cost_usd_micros: micros(total.cost()),
            waste_usd_micros: micros(total.known(total.waste)),
            waste_share: share(total.waste_gpu_milli_ms, total.gpu_milli_ms),
            blind_share: share(total.blind_gpu_milli_ms - open_gpu_milli_ms, total.gpu_milli_ms),
            too_recent_share: share(open_gpu_milli_ms, total.gpu_milli_ms),
            waste_usd_micros_so_far: micros(so_far.cost()),
            waste_gpu_hours_so_far: hours(so_far.gpu_milli_ms),
            priced_share: share(total.priced_gpu_milli_ms, total.gpu_milli_ms),
            unused_cpu_memory_usd_micros: micros(total.known(total.unused_cpu_memory)),
            lowest: range.map(|waste| method(waste.lowest)),
            highest: range.map(|waste| method(waste.highest)),
        }
    }
}

/// All methods split the same bill.
fn same_by_all_methods(total: &CostSum) -> Option<(Money, Money)> {
    total.cost().map(|cost| (cost, cost))
}

impl RowOut {
    /// Whether its amounts leave out GPU-hours that have no price.
    pub fn leaves_out(&self) -> bool {
        self.cost_usd_micros.is_some() && self.unpriced_gpu_hours >= LEAST_HOURS
    }

    fn of_row(by: &[String], row: &StatementRow) -> Self {
        Self::of(by, &row.key, &row.sum, row.range)
    }

    fn of(by: &[String], key: &[String], sum: &CostSum, range: Option<(Money, Money)>) -> Self {
        let micros = |money: Option<Money>| money.map(|money| money.usd_micros);
        let key = by.iter().cloned().zip(key.iter().map(|part| plain(part)));
        // Where methods differ by rounding alone both ends are the figure.
        let as_one = || same_by_all_methods(sum);
        let range = range.filter(|range| is_range(range.0, range.1)).or_else(as_one);
        Self {
            key: key.collect(),
            gpu_hours: hours(sum.gpu_milli_ms),
            allocated_gpu_hours: hours(sum.allocated_gpu_milli_ms),
            active_gpu_hours: hours(sum.active_gpu_milli_ms),
            idle_gpu_hours: hours(sum.idle_gpu_milli_ms),
            waste_gpu_hours: hours(sum.waste_gpu_milli_ms),
            blind_gpu_hours: hours(sum.blind_gpu_milli_ms),
            cost_usd_micros: micros(sum.cost()),
            waste_usd_micros: micros(known::waste(sum)),
            idle_usd_micros: micros(known::idle(sum)),
            lowest_usd_micros: micros(range.map(|range| range.0)),
            highest_usd_micros: micros(range.map(|range| range.1)),
            is_partly_unpriced: sum.has_unpriced(),
            unpriced_gpu_hours: hours(sum.gpu_milli_ms - sum.priced_gpu_milli_ms),
        }
    }
}

/// Rows of what nobody named, and where names come from.
fn nameless(statement: &Statement) -> Vec<String> {
    let sources = [
        (
            Dimension::Team,
            "map namespaces to teams in [cost.teams] of dovetail.toml, or pass --team-label LABEL",
        ),
        (
            Dimension::Queue,
            "to name the queue of a pod, set the label dovetail.dev/queue or \
             kueue.x-k8s.io/queue-name",
        ),
        (Dimension::Model, "to name the model of a pod, set the label llm-d.ai/model or model"),
        (Dimension::Cluster, "--cluster names it"),
    ];
    let mut notes = Vec::new();
    for (dimension, way) in sources {
        let place = statement.by.iter().position(|by| *by == dimension);
        let unknown = place.is_some_and(|place| {
            statement.rows.iter().any(|row| row.key.get(place).is_some_and(|part| part == UNKNOWN))
        });
        if unknown {
            notes.push(format!("{} {UNKNOWN}: {way}", dimension.name()));
        }
    }
    notes
}

/// GPU-hours of milli-GPU × ms.
pub fn hours(gpu_milli_ms: i128) -> f64 {
    gpu_milli_ms as f64 / 3.6e9
}

/// A part of a whole, from 0 to 1; 0 of nothing.
pub fn share(part: i128, whole: i128) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// The same; `None` of nothing, of which there is no share.
pub(crate) fn share_of_any(part: i128, whole: i128) -> Option<f64> {
    (whole != 0).then(|| share(part, whole))
}

/// Dollars by a split method.
pub fn by_method(usd_micros: i64, method: &str) -> String {
    format!("{} by {method}", usd(Some(usd_micros)))
}
