//! A ledger in memory: nodes with their prices, pods with their owners, and for each stretch of
//! time who had what. Bills, FOCUS datasets and answers are made from it; one on disk fills it
//! where it is asked node by node.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::cost::{Charge, NodeBill};
use dovetail_account::device_time::Span;
use dovetail_account::rollup::DAY_MS;
use dovetail_account::split::ListPrices;
use dovetail_audit::NodePrice;
use dovetail_bill::focus::Pricing;
use dovetail_bill::import::Commitment;
use dovetail_console::plain::plain;
use dovetail_facts::Recent;
use dovetail_model::Money;
use dovetail_price::NodePlace;
use dovetail_sources::node_prices::PriceLine;

use crate::dimension::{ChargeKeys, NO_GPUS, PodNames, UNKNOWN};

/// All of it.
#[derive(Debug, Default)]
pub struct Account {
    pub nodes: Vec<CostNode>,
    /// Holders of bills are places in this list.
    pub pods: Vec<CostPod>,
    /// In ascending time.
    pub stretches: Vec<Stretch>,
    /// The whole period.
    pub span: Span,
    pub basis: Basis,
    pub cluster: String,
    pub sources: Vec<String>,
    pub prices: Vec<PriceLine>,
    /// What each day rests on, by cluster; empty for one moment.
    pub(crate) resolutions: Vec<DayOf>,
    /// Of a moment: parts of GPUs that the bill of a month has as unmeasured, since their state is
    /// too recent or ends by itself, with the pods that hold them.
    pub(crate) too_recent: Vec<(Option<u32>, Recent)>,
    /// Only pods of these namespaces are charged; `None` is everything.
    pub only: Option<BTreeSet<String>>,
    /// Whether it is among the notes that node names went to another machine: a run that reads the
    /// period tells it.
    pub(crate) are_machines_told: bool,
    /// What is known of the figures and what they leave out.
    pub notes: Vec<String>,
}

impl Account {
    /// Leaves all but pods of some namespaces out, and says so.
    pub fn restrict_to(&mut self, only: Option<Only>) {
        let Some(only) = only else { return };
        self.notes.push(only.in_words());
        if let Only::Named(name) = &only
            && self.basis == Basis::RunRate
            && !self.pods.iter().any(|pod| pod.namespace == *name)
        {
            let name = plain(name);
            self.notes.push(format!(
                "namespace {name} has no pods on the nodes of the input: check the name"
            ));
        }
        self.only = Some(match only {
            Only::Named(name) => BTreeSet::from([name]),
            Only::Own(names) => names,
        });
    }

    /// Its cluster for people.
    pub(crate) fn cluster_in_words(&self) -> String {
        if self.cluster.is_empty() { UNKNOWN.to_owned() } else { plain(&self.cluster) }
    }

    /// Its sources for people.
    pub(crate) fn sources_in_words(&self) -> Vec<String> {
        self.sources.iter().map(|source| plain(source)).collect()
    }

    /// How many days it covers.
    pub(crate) fn days(&self) -> f64 {
        (self.span.to_ms - self.span.from_ms) as f64 / DAY_MS as f64
    }

    /// When its prices count: at its moment, else at the present.
    pub(crate) fn priced_at_ms(&self, now_ms: u64) -> u64 {
        match self.basis {
            Basis::RunRate => self.span.from_ms,
            Basis::Ledger | Basis::Sampled { .. } => now_ms,
        }
    }

    /// What a charge of a node is told apart by.
    pub(crate) fn names(&self, node: usize, charge: &Charge) -> ChargeKeys<'_> {
        let node = &self.nodes[node];
        let pod = charge.holder.map(|number| &self.pods[number as usize]);
        ChargeKeys {
            cluster: &self.cluster,
            gpu_type: if node.gpus == 0 { NO_GPUS } else { &node.gpu_type },
            pool: &node.pool,
            node: &node.name,
            paid: charge.paid,
            pod: pod.map(|pod| PodNames {
                namespace: &pod.namespace,
                name: &pod.name,
                team: pod.team.as_deref().map(Cow::Borrowed),
                queue: pod.queue.as_deref(),
                job: &pod.job,
                model: pod.model.as_deref(),
            }),
        }
    }

    /// Whether a payer is among those that are charged; nobody is not, where some are named.
    pub fn charges(&self, namespace: Option<&str>) -> bool {
        let Some(only) = &self.only else { return true };
        namespace.is_some_and(|namespace| only.contains(namespace))
    }
}

/// The namespaces whose pods alone are charged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Only {
    Named(String),
    /// Those in which the credentials used may list pods.
    Own(BTreeSet<String>),
}

impl Only {
    fn in_words(&self) -> String {
        const LEFT_OUT: &str = "unallocated capacity is not included";
        match self {
            Self::Named(name) => {
                let name = plain(name);
                format!("rows and total include only pods of namespace {name}; {LEFT_OUT}")
            }
            Self::Own(names) => {
                const MOST: usize = 10;
                let named: Vec<&str> = names.iter().take(MOST).map(String::as_str).collect();
                let more = match names.len().saturating_sub(MOST) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let named = plain(&named.join(", "));
                format!(
                    "only pods in namespaces where you may list pods: {named}{more}; {LEFT_OUT}"
                )
            }
        }
    }
}

/// What the samples of one day of a cluster are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayOf {
    pub cluster: String,
    /// The day (UTC), counted since 1970.
    pub day: u64,
    /// Hours of it of which something was read.
    pub hours_read: u32,
    /// Those of them of which nobody knows how far apart their samples were.
    pub(crate) hours_unknown: u32,
    /// Shortest and longest distance of two samples in the others.
    pub step_ms: Option<(u64, u64)>,
}

/// What the times of an account are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Basis {
    /// One moment, as if it lasted for the period.
    #[default]
    RunRate,
    /// Hours that a ledger has kept.
    Ledger,
    /// Samples so far apart.
    Sampled {
        /// Distance of two samples.
        step_ms: u64,
        /// Begins and ends of holders within the period; each is known to one distance.
        holder_changes: u64,
        /// How far the active time may be from that of all samples, in milli-GPU × ms.
        active_within_gpu_milli_ms: i128,
    },
}

impl Basis {
    /// Its name in documents.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::RunRate => "run-rate",
            Self::Ledger => "ledger",
            Self::Sampled { .. } => "sampled",
        }
    }
}

/// A node.
#[derive(Clone, Debug, Default)]
pub struct CostNode {
    pub name: String,
    /// Its pool or group; empty where nobody knows.
    pub pool: String,
    /// Model of its GPUs; empty where it has none or nobody knows.
    pub gpu_type: String,
    pub provider_id: String,
    pub gpus: i64,
    pub price: NodePrice,
    pub place: NodePlace,
    /// The list price of a GPU-hour on demand, of a node that is bought at a committed rate and
    /// where it is known.
    pub(crate) list_usd_micros_per_gpu_hour: Option<i64>,
}

impl CostNode {
    /// Who it is to its provider, as datasets of FOCUS have it; of a node without such an identity
    /// its name.
    pub(crate) fn id_of_provider(&self) -> &str {
        if self.provider_id.is_empty() { &self.name } else { &self.provider_id }
    }
}

/// A pod; what nobody knows is `None`.
#[derive(Clone, Debug, Default)]
pub struct CostPod {
    pub namespace: String,
    pub name: String,
    pub team: Option<String>,
    pub queue: Option<String>,
    /// Its top owner: kind, namespace and name.
    pub job: String,
    /// Which of the pods that had this name one after the other, counted from 0.
    pub turn: u32,
    pub model: Option<String>,
    /// Whether it asks for GPUs, also where its node does not let it have them.
    pub(crate) asks_for_gpus: bool,
}

/// What nodes were for some time; each by its place in the list of nodes.
#[derive(Debug)]
pub struct Stretch {
    pub span: Span,
    pub bills: Vec<(usize, NodeBill)>,
    /// Nodes whose price is what was billed.
    pub billed: BTreeMap<usize, Billed>,
    /// When each node was seen first and last; of nodes that are not in it, all the time.
    pub seen: BTreeMap<usize, Span>,
}

/// What a bill says of a node beside what it cost.
#[derive(Clone, Debug, Default)]
pub struct Billed {
    pub(crate) invoiced: Money,
    /// At list prices, and at negotiated ones; `None` where the bill does not say it.
    pub list: Option<Money>,
    pub(crate) contracted: Option<Money>,
    /// The list price that it replaced, where there is one.
    pub(crate) replaced: Option<Money>,
    /// How it was bought, and under which commitment.
    pub bought: Option<Pricing>,
    pub(crate) commitment: Option<Commitment>,
}

/// What a node without GPUs costs where CPU and memory are sold alone.
pub(crate) fn list_price(bill: &NodeBill, prices: &ListPrices) -> Money {
    let of = |amount: u64, usd_micros: u32, units: i128| {
        i128::from(amount) * i128::from(usd_micros) * i128::from(bill.billed_ms)
            / (units * 3_600_000)
    };
    // Objects name any size; no node has more than a million vCPUs or a PiB.
    let cpu_milli = bill.offered.cpu_milli.min(1_000_000_000);
    let memory_bytes = bill.offered.memory_bytes.min(1 << 50);
    let cpu = of(cpu_milli, prices.usd_micros_per_vcpu_hour, 1000);
    let memory = of(memory_bytes, prices.usd_micros_per_gib_hour, 1 << 30);
    Money::micros(i64::try_from(cpu + memory).unwrap_or(i64::MAX))
}

/// A period cut at the ends of days (UTC).
pub(crate) fn days_of(period: Span) -> Vec<Span> {
    cut(period, DAY_MS)
}

/// A span in parts, each but the last ending with a multiple of `every_ms`.
pub fn cut(span: Span, every_ms: u64) -> Vec<Span> {
    let mut parts = Vec::new();
    let mut from_ms = span.from_ms;
    while from_ms < span.to_ms {
        let to_ms = ((from_ms / every_ms + 1) * every_ms).min(span.to_ms);
        parts.push(Span { from_ms, to_ms });
        from_ms = to_ms;
    }
    parts
}
