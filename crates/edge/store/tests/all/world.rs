//! A small cluster whose truth is known step by step, and what a source says of any part of it.

use std::collections::BTreeMap;

use dovetail_account::cost::HeldTime;
use dovetail_account::device_time::{ActiveWork, DeviceInterval, DeviceState, Span};
use dovetail_account::rollup::{HOUR_MS, NodeTerms};
use dovetail_account::signal::Signal;
use dovetail_account::split::ListPrices;
use dovetail_model::FreeCause;
use dovetail_store::{Detail, ReadDevice, ReadKept, ReadNode, ReadPod, Reading, Store, SumQuery};

/// Begin of all worlds: a day.
pub(crate) const START_HOUR: u64 = 20_000 * 24;
pub(crate) const START_MS: u64 = START_HOUR * HOUR_MS;
/// Nothing changes but at multiples of it.
pub(crate) const STEP_MS: u64 = 600_000;
const PODS: u64 = 5;

/// A cluster.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) cluster: String,
    /// When its devices were there.
    pub(crate) seed: u64,
    /// What they did.
    pub(crate) film: u64,
    pub(crate) gpus_per_node: usize,
    pub(crate) hours: u64,
}

/// Part of a device: milli-GPU, state, pod.
type Part = (i64, DeviceState, Option<u32>);

impl World {
    pub(crate) fn new(cluster: &str, seed: u64) -> Self {
        Self { cluster: cluster.to_owned(), seed, film: seed, gpus_per_node: 2, hours: 30 }
    }

    pub(crate) fn period(&self) -> Span {
        Span { from_ms: START_MS, to_ms: START_MS + self.hours * HOUR_MS }
    }

    /// What a source says of a part of the time, in whole steps.
    pub(crate) fn reading(&self, span: Span) -> Reading {
        let steps = span.from_ms / STEP_MS..span.to_ms / STEP_MS;
        let device = |(node, gpu): (usize, usize)| ReadDevice {
            node,
            name: format!("GPU-{gpu}"),
            intervals: steps.clone().flat_map(|step| self.intervals(node, gpu, step)).collect(),
        };
        let gpus = self.gpus_per_node;
        let devices = (0..3).flat_map(|node| (0..gpus).map(move |gpu| (node, gpu)));
        let ends = steps.clone().map(|step| (step + 1) * STEP_MS).filter(|end| end % HOUR_MS == 0);
        Reading {
            cluster: self.cluster.clone(),
            source: "http://prometheus.example".to_owned(),
            span,
            step_ms: Some(STEP_MS),
            nodes: (0..3).map(node).collect(),
            pods: (0..PODS).map(pod).collect(),
            devices: devices.map(device).filter(|device| !device.intervals.is_empty()).collect(),
            kept: Some(ends.flat_map(|end| self.kept(end - HOUR_MS)).collect()),
            ..Reading::default()
        }
    }

    /// How long each pod, or nobody, had which state, counted step by step; pods by name.
    pub(crate) fn times(&self, span: Span) -> BTreeMap<(Option<String>, String), i128> {
        let mut times = BTreeMap::new();
        for (node, gpu, step) in self.steps(span) {
            for (milli, state, holder) in self.parts(node, gpu, step) {
                let pod = holder.map(|number| pod(number.into()).name);
                *times.entry((pod, state.name())).or_default() +=
                    i128::from(milli) * i128::from(STEP_MS);
            }
        }
        times
    }

    /// What the nodes with a price cost, hour by hour, rounded half up: micro-USD.
    pub(crate) fn price(&self, span: Span) -> i128 {
        let mut times: BTreeMap<(usize, u64), i128> = BTreeMap::new();
        for (node, gpu, step) in self.steps(span) {
            if !self.parts(node, gpu, step).is_empty() {
                *times.entry((node, step * STEP_MS / HOUR_MS)).or_default() += i128::from(STEP_MS);
            }
        }
        let cost = |((node, _), ms): ((usize, u64), i128)| {
            let price = self::node(node).terms.usd_micros_per_gpu_hour.unwrap_or(0);
            (ms * i128::from(price) * 2 + 3_600_000) / 7_200_000
        };
        times.into_iter().map(cost).sum()
    }

    fn steps(&self, span: Span) -> impl Iterator<Item = (usize, usize, u64)> {
        let gpus = self.gpus_per_node;
        let steps = span.from_ms / STEP_MS..span.to_ms / STEP_MS;
        steps.flat_map(move |step| {
            (0..3).flat_map(move |node| (0..gpus).map(move |gpu| (node, gpu, step)))
        })
    }

    fn intervals(&self, node: usize, gpu: usize, step: u64) -> Vec<DeviceInterval> {
        let span = Span { from_ms: step * STEP_MS, to_ms: (step + 1) * STEP_MS };
        let parts = self.parts(node, gpu, step).into_iter();
        let interval = |(gpu_milli, state, holder): Part| {
            let signal = holder.map(|_| Signal::SmActive);
            DeviceInterval { span, gpu_milli, state, holder, signal }
        };
        parts.map(interval).collect()
    }

    /// What a device is in a step; it may not be there at first and at last.
    fn parts(&self, node: usize, gpu: usize, step: u64) -> Vec<Part> {
        let start = START_MS / STEP_MS;
        let place = (node * 100 + gpu) as u64;
        let late = mixed(self.seed, place, 1) % 9;
        let early = mixed(self.seed, place, 2) % 9;
        let end = start + self.hours * 6 - early;
        if step < start + late || step >= end {
            return Vec::new();
        }
        // The same for a few steps.
        let run = (step + place) / (1 + mixed(self.seed, place, 3) % 5);
        let chance = mixed(self.film, place, 10 + run);
        let pod = (chance >> 8) % PODS;
        let holder = Some(pod as u32);
        let active = DeviceState::Active(ActiveWork::NotSeparable);
        match chance % 8 {
            0 => vec![(1000, DeviceState::Free(None), None)],
            1 => vec![(1000, DeviceState::Free(Some(FreeCause::NoDemand)), None)],
            2 => vec![(1000, DeviceState::Unavailable, None)],
            3 => vec![(1000, DeviceState::Idle, holder)],
            4 => vec![(333, active, holder), (667, DeviceState::Free(None), None)],
            5 => vec![(1000, DeviceState::Unknown, holder)],
            _ => vec![(1000, active, holder)],
        }
    }

    fn kept(&self, hour_ms: u64) -> Vec<ReadKept> {
        let chance = mixed(self.film, hour_ms, 4);
        let kept = |pod: u64| ReadKept {
            hour_ms,
            node: (chance % 3) as usize,
            pod: pod as usize,
            held: HeldTime {
                cpu_milli_ms: i128::from(1 + (chance + pod) % 7) * 1000 * i128::from(HOUR_MS),
                memory_byte_ms: (i128::from(1 + pod) << 30) * i128::from(HOUR_MS),
            },
        };
        (0..chance % PODS).map(kept).collect()
    }
}

/// A ledger's answers to everything: by pod and node over hours, by workload, by group and by party
/// over days, each row as text, in order.
pub(crate) async fn everything(store: &mut Store, world: &World) -> Vec<String> {
    let mut all = Vec::new();
    let finest = Detail { workload: true, group: true, pod: true, node: true };
    let by_job = Detail { workload: true, group: true, ..Detail::default() };
    let by_group = Detail { group: true, ..Detail::default() };
    let asked = [
        (finest, world.hours),
        (by_job, 24),
        (by_group, 24),
        (Detail::default(), 24),
        (Detail::default(), world.hours),
    ];
    for (detail, hours) in asked {
        let rows = store.sums(&question(world, detail, hours)).await.expect("an answer");
        let mut rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
        rows.sort();
        all.extend(rows);
    }
    all
}

pub(crate) fn question(world: &World, detail: Detail, hours: u64) -> SumQuery {
    let cluster = Some(world.cluster.clone());
    SumQuery { cluster, from_hour: START_HOUR, to_hour: START_HOUR + hours, detail }
}

fn node(number: usize) -> ReadNode {
    // The last one has no price.
    let price = [Some(3_330_001), Some(98_765_432), None][number];
    let list_prices =
        ListPrices { usd_micros_per_vcpu_hour: 40_000, usd_micros_per_gib_hour: 5_000 };
    ReadNode {
        name: format!("node-{number}"),
        gpu_type: if number == 0 { "H100" } else { "" }.to_owned(),
        pool: "NodePool gpus".to_owned(),
        terms: NodeTerms {
            usd_micros_per_gpu_hour: price,
            cpu_milli: 64_000,
            memory_bytes: 488 << 30,
            list_prices: Some(list_prices),
        },
        instance_type: format!("type-{number}"),
        ..ReadNode::default()
    }
}

fn pod(number: u64) -> ReadPod {
    let label = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
    ReadPod {
        namespace: format!("space-{}", number % 2),
        name: format!("pod-{number} \u{0}\"é"),
        job: format!("Job space-{}/train", number % 2),
        queue: (number > 2).then(|| "q".to_owned()),
        model: None,
        namespace_labels: label("team", "vision"),
        labels: if number == 4 { label("team", "speech") } else { BTreeMap::new() },
    }
}

/// A number that looks like chance (splitmix64, <https://prng.di.unimi.it/splitmix64.c>).
pub(crate) fn mixed(seed: u64, place: u64, turn: u64) -> u64 {
    let mut z = seed
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(place.wrapping_mul(0xd1b5_4a32_d192_ed03))
        .wrapping_add(turn.wrapping_mul(0xeb44_acca_b455_d165));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
