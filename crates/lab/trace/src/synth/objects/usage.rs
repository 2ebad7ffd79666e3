//! What GPUs did in the day before the moment of the cluster.

use std::io::{self, Write};

use super::OBJECTS_AT_S;
use super::noise::mixed;
use super::plan::{ClusterPlan, PlannedPod};
use super::pod_json::name;
use super::pools::POOLS;
use super::work::{Family, OwnedWork, Slip};

const STEP_S: u64 = 300;
const SAMPLES: u64 = 24 * 3_600 / STEP_S;
const MIB: u64 = 1 << 20;

/// Writes the samples of all pods that hold GPUs where an exporter sees them.
pub(super) fn write(plan: &ClusterPlan, out: &mut dyn Write) -> io::Result<u64> {
    writeln!(out, "timestamp_s,pod,gpu,activity_percent,memory_bytes,namespace,node")?;
    let mut samples = 0;
    for pod in &plan.pods {
        let work = &plan.work[pod.work as usize];
        let Some(node) = plan.node_of(pod).filter(|node| node.pool.is_measured) else { continue };
        if work.units == 0 {
            continue;
        }
        let (namespace, pod_name) = (plan.namespace(work.namespace), name(work, pod));
        let node_name = node.name(pod.node.unwrap_or(0) as usize);
        for gpu in 0..work.units {
            for step in 0..SAMPLES.min(work.age_minutes * 60 / STEP_S) {
                let at_s = OBJECTS_AT_S - (step + 1) * STEP_S;
                let (activity, memory_bytes) = sample(plan.seed, work, pod, gpu, step);
                writeln!(
                    out,
                    "{at_s},{pod_name},{gpu},{}.{},{memory_bytes},{namespace},{node_name}",
                    activity / 10,
                    activity % 10
                )?;
                samples += 1;
            }
        }
    }
    Ok(samples)
}

/// Activity in thousandths and memory in use, so many steps ago.
fn sample(seed: u64, work: &OwnedWork, pod: &PlannedPod, gpu: u32, step: u64) -> (u64, u64) {
    let number = u64::from(work.first_pod + pod.ordinal) << 24 | u64::from(gpu) << 12 | step;
    let noise = mixed(seed ^ number);
    // Between a half and three halves, with one decimal.
    let about = |thousandths: u64| thousandths / 2 + noise % (thousandths + 1);
    let memory = u64::from(POOLS[work.pool].gpu_memory_mib) * MIB;
    let minute_of_day = (12 * 60 + 24 * 60 - step * STEP_S / 60) % (24 * 60);
    let by_day = (8 * 60..19 * 60).contains(&minute_of_day);
    match (work.family, work.slip) {
        (_, Some(Slip::NeverUsed | Slip::SlowStart | Slip::CrashLoop)) => (0, 450 * MIB),
        (_, Some(Slip::HelperRunsOn | Slip::Stuck)) => {
            // It computed until ten hours ago.
            if step < 10 * 3_600 / STEP_S { (0, 0) } else { (about(700).min(990), memory / 2) }
        }
        (_, Some(Slip::HalfUsed)) if gpu >= work.units.div_ceil(2) => (0, 450 * MIB),
        // A checkpoint each two hours; its ranks save together.
        (Family::Train, _) if step.is_multiple_of(24) => (noise % 10, memory / 8 * 7),
        (Family::Train, _) => (880 + noise % 110, memory / 8 * 7),
        // The server keeps its memory, whether or not anybody asks.
        (Family::Serve, Some(Slip::NoRequests)) => (0, memory / 10 * 9),
        (Family::Serve, Some(Slip::SmallLoad)) => (about(120), memory / 16),
        (Family::Serve, _) => (about(if by_day { 550 } else { 250 }), memory / 10 * 9),
        (Family::Notebook, Some(Slip::Forgotten)) if step < 19 * 3_600 / STEP_S => {
            (0, 3 * 1_024 * MIB)
        }
        // People look at results most of the time.
        (Family::Notebook, _) if by_day && noise.is_multiple_of(4) => (about(400), 5 * 1_024 * MIB),
        (Family::Notebook, _) => (0, 5 * 1_024 * MIB),
        (_, _) => (about(650).min(990), memory / 2),
    }
}
