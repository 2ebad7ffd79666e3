//! What inference servers counted, from whatever answers Prometheus' query API.

use dovetail_facts::{ServedModel, Workload, WorkloadClass};
use dovetail_inventory::facts::Gathered;
use dovetail_metrics::serving::{SERVER_SERIES, ServedRequests, ServingCounter};

use crate::prometheus::Asker;

const DAY_MS: u64 = 86_400_000;

/// Asks for every counter over the asker's period; what could not be read is a note.
pub fn read(asker: &mut Asker, notes: &mut Vec<String>) -> ServedRequests {
    read_some(asker, notes, |_| true)
}

/// How many requests the servers of each workload answer in a day, and which models they name,
/// where the period is a day or longer: an hour says little about the night.
pub fn mark(asker: &mut Asker, gathered: &mut Gathered, notes: &mut Vec<String>) {
    let workloads = &mut gathered.facts.workloads;
    let serves = |workload: &Workload| {
        workload.class == Some(WorkloadClass::Inference) && workload.has_gpus()
    };
    let period_ms = asker.period.to_ms - asker.period.from_ms;
    if period_ms < DAY_MS || !workloads.iter().any(serves) {
        return;
    }
    let served = read_some(asker, notes, |counted| counted == ServingCounter::Requests);
    for workload in workloads.iter_mut().filter(|workload| serves(workload)) {
        let of_pods = workload.pods.iter().filter_map(|pod| {
            served.pods.get(&(workload.owner.namespace.clone(), pod.name.clone()))
        });
        let of_pods: Vec<_> = of_pods.collect();
        let counts =
            of_pods.iter().filter_map(|of_pod| of_pod.counts.get(&ServingCounter::Requests));
        let all: f64 = counts.sum();
        if !of_pods.is_empty() {
            workload.requests_per_day = Some((all * DAY_MS as f64 / period_ms as f64) as u64);
        }
        let names = of_pods.iter().flat_map(|of_pod| &of_pod.models);
        let named = names.filter_map(|name| ServedModel::of_name(name)).max();
        workload.template.model = workload.template.model.or(named);
    }
}

fn read_some(
    asker: &mut Asker,
    notes: &mut Vec<String>,
    is_wanted: impl Fn(ServingCounter) -> bool,
) -> ServedRequests {
    let mut served = ServedRequests::default();
    let window_ms = asker.period.to_ms - asker.period.from_ms;
    for asked in SERVER_SERIES.into_iter().filter(|asked| is_wanted(asked.counted)) {
        match asker.instant(&asked.query(window_ms), asker.period.to_ms.saturating_sub(1)) {
            Ok(series) => served.take(asked, series),
            Err(error) => notes.push(format!("{} could not be read: {error}", asked.series)),
        }
    }
    served
}
