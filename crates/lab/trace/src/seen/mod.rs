//! Jobs out of what was seen: which pod had how much of which GPU, and when. That is all there is
//! of a cluster whose scheduler nobody asked.
//!
//! A job is a pod for as long as it has the same GPUs; when their number changes, the next job
//! begins. GPU-time is what was seen, to the millisecond. Pods of an owner whose pods start
//! together are one job if they had as much from the same moment to the same moment.
//!
//! Nobody saw when a pod was submitted: a job counts as submitted when it got its GPUs. Where the
//! GPU itself was not seen before (or after), the job may have had it for longer, and is marked as
//! cut.

mod amounts;
mod timeline;

use std::collections::{BTreeMap, BTreeSet};

use crate::job::{TraceJob, UnseenEnds};
use crate::trace::{KnownFields, Trace};
use amounts::{KeptAmount, PodAmounts};
use timeline::{AmountPeriod, Timeline};

/// A part of a device for some time. Times are ms on one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenPart {
    pub from_ms: u64,
    pub to_ms: u64,
    /// How much of the device, in thousandths.
    pub gpu_milli: i64,
    /// The pod that had it; `None` is nobody.
    pub pod: Option<u32>,
}

/// What is known of a pod.
#[derive(Clone, Debug, Default)]
pub struct SeenPod {
    /// Its name, the same for nobody else.
    pub name: String,
    /// Its owner, if the owner's pods start together.
    pub gang: Option<String>,
    pub queue: Option<String>,
    /// The machine-learning model.
    pub model: Option<String>,
}

/// Collects what was seen, in ascending time.
#[derive(Debug, Default)]
pub struct ObservedAllocations {
    /// When each device was seen, whoever had it.
    devices: BTreeMap<u32, Timeline>,
    /// By pod and device.
    held: BTreeMap<u32, BTreeMap<u32, Timeline>>,
    kept: BTreeMap<u32, Vec<KeptAmount>>,
}

impl ObservedAllocations {
    /// Adds what one device was, later than all that was added of it before.
    pub fn add(&mut self, device: u32, parts: &[SeenPart]) {
        let mut by_pod: BTreeMap<u32, Vec<AmountPeriod>> = BTreeMap::new();
        let mut all = Vec::with_capacity(parts.len());
        for part in parts {
            let SeenPart { from_ms, to_ms, gpu_milli, pod } = *part;
            all.push(AmountPeriod { from_ms, to_ms, gpu_milli });
            if let Some(pod) = pod {
                by_pod.entry(pod).or_default().push(AmountPeriod { from_ms, to_ms, gpu_milli });
            }
        }
        self.devices.entry(device).or_default().see(&all);
        for (pod, pieces) in by_pod {
            let of_pod = self.held.entry(pod).or_default();
            of_pod.entry(device).or_default().add_up(&pieces);
        }
    }

    /// Adds what was kept of CPU and memory for a pod between two moments: amounts times ms.
    pub fn add_kept(
        &mut self,
        pod: u32,
        (from_ms, to_ms): (u64, u64),
        cpu_milli_ms: i128,
        memory_byte_ms: i128,
    ) {
        let kept = KeptAmount { from_ms, to_ms, cpu_milli_ms, memory_byte_ms };
        self.kept.entry(pod).or_default().push(kept);
    }

    /// Pods that had a GPU.
    pub fn pods(&self) -> BTreeSet<u32> {
        self.held.keys().copied().collect()
    }

    /// The jobs, by submission and name. Moment 0 of the trace is `zero_ms`.
    pub fn jobs(&self, zero_ms: u64, name: impl Fn(u32) -> SeenPod, source: String) -> Trace {
        let mut rows = Vec::new();
        for (pod, devices) in &self.held {
            let mut is_first = true;
            let amounts = self.kept.get(pod).map(|kept| PodAmounts::of(kept, devices));
            let seen = name(*pod);
            for run in timeline::runs(devices) {
                let cut = self.cut(&run);
                for (gpu_count, gpu_milli) in shapes(&run.parts) {
                    let amounts = amounts.filter(|_| is_first || gpu_milli == 1000);
                    is_first = false;
                    rows.push(UnnamedJob {
                        from_ms: run.from_ms.saturating_sub(zero_ms),
                        duration_ms: run.to_ms - run.from_ms,
                        gang: seen.gang.clone(),
                        shape: (gpu_count, gpu_milli),
                        name: seen.name.clone(),
                        pod_count: 1,
                        amounts: amounts.unwrap_or_default(),
                        queue: seen.queue.clone(),
                        model: seen.model.clone(),
                        cut,
                    });
                }
            }
        }
        let has = |amount: fn(&PodAmounts) -> i64| rows.iter().any(|row| amount(&row.amounts) > 0);
        let known = KnownFields {
            cpu: has(|amounts| amounts.cpu_milli),
            memory: has(|amounts| amounts.memory_bytes),
            gpu_models: false,
            cuts: true,
            ..KnownFields::default()
        };
        let jobs = named(gathered(rows)).into_iter().map(UnnamedJob::job).collect();
        Trace { jobs, source, known, ..Trace::default() }
    }

    /// Whether somebody saw one of its devices right before and after.
    fn cut(&self, run: &timeline::ConstantPeriod) -> UnseenEnds {
        let any_unseen = |is_seen: &dyn Fn(&Timeline) -> bool| {
            let mut devices = run.devices.iter();
            devices.any(|device| !self.devices.get(device).is_some_and(is_seen))
        };
        let begin = any_unseen(&|timeline| timeline.has_before(run.from_ms));
        let end = any_unseen(&|timeline| timeline.has_after(run.to_ms));
        match (begin, end) {
            (false, false) => UnseenEnds::Nowhere,
            (true, false) => UnseenEnds::Begin,
            (false, true) => UnseenEnds::End,
            (true, true) => UnseenEnds::Both,
        }
    }
}

/// A job that has no name of its own yet.
#[derive(Clone, Debug)]
struct UnnamedJob {
    from_ms: u64,
    duration_ms: u64,
    gang: Option<String>,
    /// GPUs, and the part of each.
    shape: (u32, i64),
    name: String,
    pod_count: u32,
    amounts: PodAmounts,
    queue: Option<String>,
    model: Option<String>,
    cut: UnseenEnds,
}

impl UnnamedJob {
    fn job(self) -> TraceJob {
        TraceJob {
            id: self.name,
            submit_ms: self.from_ms,
            duration_ms: Some(self.duration_ms),
            pod_count: self.pod_count,
            cpu_milli: self.amounts.cpu_milli,
            memory_bytes: self.amounts.memory_bytes,
            gpu_count: self.shape.0,
            gpu_milli: self.shape.1,
            queue: self.queue,
            model: self.model,
            cut: self.cut,
            ..TraceJob::default()
        }
    }
}

/// Whole devices together, each part of one alone: a job asks for parts of one GPU only.
fn shapes(parts: &[i64]) -> Vec<(u32, i64)> {
    let whole: i64 = parts.iter().map(|milli| milli / 1000).sum();
    let whole = u32::try_from(whole).unwrap_or(u32::MAX);
    let rest = parts.iter().map(|milli| milli % 1000).filter(|milli| *milli > 0);
    (whole > 0).then_some((whole, 1000)).into_iter().chain(rest.map(|milli| (1, milli))).collect()
}

/// What pods of one job have in common: owner, begin, length, GPUs.
type Together = (String, u64, u64, (u32, i64));

/// Pods that started together and had the same as one row.
fn gathered(rows: Vec<UnnamedJob>) -> Vec<UnnamedJob> {
    let mut gangs: BTreeMap<Together, Vec<UnnamedJob>> = BTreeMap::new();
    let mut all = Vec::new();
    for row in rows {
        match &row.gang {
            Some(gang) => {
                let key = (gang.clone(), row.from_ms, row.duration_ms, row.shape);
                gangs.entry(key).or_default().push(row);
            }
            None => all.push(row),
        }
    }
    for ((gang, ..), rows) in gangs {
        let pod_count = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        let most =
            |amount: fn(&PodAmounts) -> i64| rows.iter().map(|row| amount(&row.amounts)).max();
        let amounts = PodAmounts {
            cpu_milli: most(|amounts| amounts.cpu_milli).unwrap_or(0),
            memory_bytes: most(|amounts| amounts.memory_bytes).unwrap_or(0),
        };
        let cut = rows.iter().map(|row| row.cut).fold(UnseenEnds::Nowhere, UnseenEnds::and);
        let first = rows.into_iter().next();
        all.extend(first.map(|row| UnnamedJob {
            name: if pod_count > 1 { gang } else { row.name.clone() },
            pod_count,
            amounts,
            cut,
            ..row
        }));
    }
    all
}

/// Each with a name of its own: what comes again has its number behind it.
fn named(mut rows: Vec<UnnamedJob>) -> Vec<UnnamedJob> {
    for row in &mut rows {
        let plain = row.name.chars().map(|c| if c.is_control() { '?' } else { c });
        row.name = plain.collect();
        if row.name.is_empty() {
            row.name = "?".to_owned();
        }
        for text in [&mut row.queue, &mut row.model] {
            *text = text.take().map(|text| text.chars().filter(|c| !c.is_control()).collect());
            *text = text.take().filter(|text: &String| !text.is_empty());
        }
    }
    rows.sort_by(|a, b| (a.from_ms, &a.name, a.shape).cmp(&(b.from_ms, &b.name, b.shape)));
    let mut taken: BTreeMap<String, u32> = BTreeMap::new();
    let mut names: BTreeSet<String> = BTreeSet::new();
    for row in &mut rows {
        let times = taken.entry(row.name.clone()).or_default();
        loop {
            *times += 1;
            let name = match *times {
                1 => row.name.clone(),
                times => format!("{}#{times}", row.name),
            };
            if names.insert(name.clone()) {
                row.name = name;
                break;
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests;
