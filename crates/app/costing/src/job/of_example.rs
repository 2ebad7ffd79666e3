//! Generated jobs of which every signal is known, for readers without a cluster.

use dovetail_objects::labels;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use dovetail_account::cost::NodeBill;
use dovetail_account::device_time::{ActiveWork, DeviceState, Span};
use dovetail_account::split::NodeParts;
use dovetail_console::app::App;
use dovetail_model::Money;
use dovetail_phases::job_phases::{PhaseRule, job_phases};
use dovetail_price::{canonical_gpu_model, node_place};
use dovetail_signals::{Case, Collected, Half, JobBehavior};
use dovetail_sources::example;
use dovetail_sources::node_prices::NodeToPrice;

use super::held::{HeldMember, JobTime, Samples};
use super::name::{Job, WantedJob};
use crate::account::{Account, Basis, CostNode, CostPod, Stretch};
use crate::flags::AccountFlags;

const NAMESPACE: &str = "signals";
/// Every example is the same.
const SEED: u64 = 7;
const STEP_MS: u64 = 30_000;
const MODEL: &str = "NVIDIA-H100-80GB-HBM3";

/// The kind of job that is asked for.
pub fn kind(wanted: &WantedJob<'_>) -> Option<JobBehavior> {
    let name = wanted.name.strip_prefix("signals/").unwrap_or(wanted.name);
    let in_namespace = wanted.namespace.is_none_or(|namespace| namespace == NAMESPACE);
    JobBehavior::ALL.into_iter().find(|kind| in_namespace && name == name_of(*kind))
}

fn name_of(kind: JobBehavior) -> String {
    format!("{kind:?}").to_lowercase()
}

/// A job of the kind on one node, at list prices.
pub fn time(app: &App, flags: &AccountFlags, kind: JobBehavior) -> Result<JobTime> {
    let record = Case::run(kind, SEED, Half::HeldOut).record(STEP_MS, Collected::All);
    let split = job_phases(&record, &PhaseRule::default()).context("a generated job")?;
    let mut pods: Vec<CostPod> = Vec::new();
    let mut members = Vec::new();
    let mut gpus: BTreeMap<(Option<u32>, DeviceState), i128> = BTreeMap::new();
    let name = name_of(kind);
    for (number, (member, phases)) in record.members.iter().zip(split.members).enumerate() {
        let gpu_milli_ms =
            i128::from(member.gpu_milli) * i128::from(member.held.to_ms - member.held.from_ms);
        let pod = number as u32;
        pods.push(CostPod {
            namespace: NAMESPACE.to_owned(),
            name: format!("{name}-{number}"),
            job: format!("Job {NAMESPACE}/{name}"),
            ..CostPod::default()
        });
        let state = DeviceState::Active(ActiveWork::NotSeparable);
        *gpus.entry((Some(pod), state)).or_default() += gpu_milli_ms;
        members.push(HeldMember { pod, node: 0, gpu_milli_ms, phases, is_for_any_holder: false });
    }
    let end_ms = record.members.iter().map(|member| member.held.to_ms).max();
    let span = Span { from_ms: record.from_ms, to_ms: end_ms.unwrap_or(record.from_ms) };
    let job = Job {
        name: format!("Job {NAMESPACE}/{name}"),
        pods: (0..pods.len() as u32).collect::<BTreeSet<u32>>(),
    };
    let account = account(app, flags, pods, gpus, span)?;
    let samples =
        Samples { step_ms: STEP_MS, span_ms: span.to_ms - span.from_ms, ranks: record.ranks };
    Ok(JobTime { account, job, members, samples })
}

fn account(
    app: &App,
    flags: &AccountFlags,
    pods: Vec<CostPod>,
    gpus: BTreeMap<(Option<u32>, DeviceState), i128>,
    span: Span,
) -> Result<Account> {
    const PROVIDER_ID: &str = "aws:///us-east-1a/i-example";
    let labels = [(labels::INSTANCE_TYPE, "p5.48xlarge"), (labels::REGION, "us-east-1")];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let labels: BTreeMap<String, String> = labels.into_iter().collect();
    let node = NodeToPrice {
        gpus: 8,
        of_machine: None,
        model: Some(MODEL),
        labels: &labels,
        provider_id: PROVIDER_ID,
        resources: &[],
    };
    let prices = flags.prices.of(&[node], &app.settings)?;
    let time: i128 = gpus.values().sum();
    let price = prices.of_nodes[0];
    let bill = NodeBill {
        price: price.usd_micros_per_gpu_hour.map(|price| Money::of_gpu_time(time, price)),
        billed_ms: span.to_ms - span.from_ms,
        offered: NodeParts { cpu_milli: 0, memory_bytes: 0, gpu_milli: 8_000 },
        gpus,
        ..NodeBill::default()
    };
    Ok(Account {
        nodes: vec![CostNode {
            name: NAMESPACE.to_owned(),
            gpu_type: canonical_gpu_model(MODEL),
            provider_id: PROVIDER_ID.to_owned(),
            gpus: 8,
            price,
            place: node_place(&labels, PROVIDER_ID),
            ..CostNode::default()
        }],
        pods,
        stretches: vec![Stretch {
            span,
            bills: vec![(0, bill)],
            billed: BTreeMap::new(),
            seen: BTreeMap::new(),
        }],
        span,
        basis: Basis::Sampled {
            step_ms: STEP_MS,
            holder_changes: 0,
            active_within_gpu_milli_ms: 0,
        },
        cluster: example::NAME.to_owned(),
        sources: vec![format!("{} (dovetail-signals)", example::NAME)],
        prices: prices.told,
        notes: vec![
            "generated job: its true phases are known; docs/benchmarks.md shows how often the \
             method identifies them"
                .to_owned(),
        ],
        ..Account::default()
    })
}
