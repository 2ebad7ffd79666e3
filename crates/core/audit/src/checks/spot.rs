//! SPT: capacity that its provider may take back.

use super::{Run, View, node_ref, pods_of};
use crate::catalogue::Check;
use crate::facts::{Class, Pod, Workload};
use crate::finding::Finding;

pub(super) const RUNS: &[Run] = &[
    ("SPT-01", loses_its_work),
    ("SPT-02", could_be_on_spot),
    ("SPT-03", serves_from_spot_alone),
    ("SPT-04", cheaper_elsewhere),
];

const HOUR_MS: u64 = 3_600_000;

/// A region that is cheaper by less than so many percent is not worth a move.
const CHEAPER_PERCENT: i128 = 10;

/// A move should pay back in so many days.
const PAYBACK_DAYS: i128 = 30;

/// What is assumed for the price of moving data to another region, in micro-USD per GB: it differs with the way, of which
/// nobody knows more than its ends. Findings say that it is assumed.
const TRANSFER_USD_MICROS_PER_GB: i128 = 100_000;

fn of_class<'a>(view: &View<'a>, class: Class) -> impl Iterator<Item = &'a Workload> {
    view.gpu_workloads().filter(move |workload| workload.class == Some(class))
}

fn loses_its_work(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for workload in of_class(view, Class::Training) {
        let template = &workload.template;
        if template.saves_progress || template.has_lasting_volume {
            continue;
        }
        let age_ms = |pod: &Pod| Some(view.facts.now_ms.saturating_sub(pod.placed_since_ms?));
        let long = view.placed(workload).filter(|(_, node)| node.is_spot == Some(true));
        let longest_ms = long.filter_map(|(pod, _)| age_ms(pod)).max().unwrap_or(0);
        if longest_ms > HOUR_MS {
            let finding = Finding::new(check, &workload.owner)
                .with("running on spot capacity for hours", longest_ms / HOUR_MS)
                .with("seconds to save its work", template.grace_s)
                .affecting(pods_of(workload));
            found.push(finding);
        }
    }
}

fn could_be_on_spot(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let saves = |workload: &&Workload| workload.template.saves_progress;
    for workload in of_class(view, Class::Training).filter(saves) {
        let placed = view.placed(workload);
        let on_demand = placed.filter(|(_, node)| node.is_spot == Some(false)).count();
        if on_demand > 0 {
            let finding = Finding::new(check, &workload.owner)
                .with("pods on on-demand capacity", on_demand)
                .affecting(pods_of(workload));
            found.push(finding);
        }
    }
}

fn serves_from_spot_alone(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for workload in of_class(view, Class::Inference) {
        let pods = view.placed(workload).count();
        if pods > 0 && view.placed(workload).all(|(_, node)| node.is_spot == Some(true)) {
            let finding = Finding::new(check, &workload.owner)
                .with("pods, all on spot capacity", pods)
                .affecting(pods_of(workload));
            found.push(finding);
        }
    }
}

fn cheaper_elsewhere(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for node in view.gpu_nodes() {
        let Some(cheapest) = &node.cheapest_region else { continue };
        let here = i128::from(cheapest.here_usd_micros_per_gpu_hour);
        let there = i128::from(cheapest.there_usd_micros_per_gpu_hour);
        if there * 100 > here * (100 - CHEAPER_PERCENT) {
            continue;
        }
        let usd = |micros: i128| format!("${:.3}", micros as f64 / 1e6);
        let saved = (here - there) * 24 * PAYBACK_DAYS;
        let gigabytes = saved / TRANSFER_USD_MICROS_PER_GB;
        let mut finding = Finding::new(check, &node.pool)
            .with("GPU-hour here", format!("{} in {}", usd(here), cheapest.here))
            .with("GPU-hour where it is cheapest", format!("{} in {}", usd(there), cheapest.there))
            .with(
                "pays back in 30 days if no more data moves",
                format!("{gigabytes} GB per GPU, at an assumed $0.10 per GB"),
            );
        if let Some(day) = &cheapest.as_of {
            finding = finding.with("list prices of", day);
        }
        found.push(finding.affecting([node_ref(node)]));
    }
}
