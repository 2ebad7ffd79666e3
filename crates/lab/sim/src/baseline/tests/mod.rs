//! Tests of the baselines: worked by hand, against a naive replay, and against published figures.

mod hand_worked;
mod input_errors;
mod naive;
mod properties;
mod published;

use dovetail_trace::StopCosts;

use super::*;

/// A job in whole seconds, named by its position in the worked example.
fn job(name: &str, submit_s: u64, service_s: u64, num_gpu: u32) -> BaselineJob {
    BaselineJob {
        name: name.to_owned(),
        submit_us: submit_s * MICROS_PER_SECOND,
        service_us: service_s * MICROS_PER_SECOND,
        num_gpu,
        model: Some("bert".to_owned()),
        stop_costs: None,
    }
}

/// A start-overhead table out of its CSV form.
fn overheads(text: &str) -> Result<StartOverheads, dovetail_trace::TraceError> {
    StartOverheads::read("table.csv", std::io::Cursor::new(text.to_owned().into_bytes()))
}

fn cluster(gpus_per_node: &[u32]) -> BaselineCluster {
    BaselineCluster::new(gpus_per_node.to_vec()).expect("a cluster with GPUs")
}

fn replay(
    jobs: &[BaselineJob],
    gpus_per_node: &[u32],
    order: BaselineOrder,
    overheads: Option<&StartOverheads>,
) -> (BaselineRun, Vec<BaselineEvent>) {
    let mut events = Vec::new();
    let run = replay_baseline(jobs, &cluster(gpus_per_node), order, overheads, &mut |event| {
        events.push(event);
    });
    (run.expect("valid input"), events)
}
