//! SPT: capacity that its provider may take back.

use dovetail_facts::{Pod, Workload, WorkloadClass};
use dovetail_units::amount::{unit_usd, usd};
use dovetail_units::duration::duration_at_least;

use super::{Run, View, node_ref, pods_of};
use crate::catalogue::Check;
use crate::finding::Finding;

pub(super) const RUNS: &[Run] = &[
    ("SPT-01", loses_its_work),
    ("SPT-02", could_be_on_spot),
    ("SPT-03", serves_from_spot_alone),
    ("SPT-04", cheaper_elsewhere),
];

const MINUTE_MS: u64 = 60_000;

const USD_MICROS_PER_CENT: i128 = 10_000;

fn of_class<'a>(view: &View<'a>, class: WorkloadClass) -> impl Iterator<Item = &'a Workload> {
    view.gpu_workloads().filter(move |workload| workload.class == Some(class))
}

fn loses_its_work(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for workload in of_class(view, WorkloadClass::Training) {
        let template = &workload.template;
        if template.saves_progress || template.has_lasting_volume {
            continue;
        }
        let age_ms = |pod: &Pod| Some(view.facts.now_ms.saturating_sub(pod.placed_since_ms?));
        let long = view.placed(workload).filter(|(_, node)| node.is_spot == Some(true));
        let longest_ms = long.filter_map(|(pod, _)| age_ms(pod)).max().unwrap_or(0);
        if longest_ms > view.facts.thresholds.spot_unsaved_minutes * MINUTE_MS {
            let finding = Finding::new(check, &workload.owner)
                .with("running on spot capacity for", duration_at_least(longest_ms))
                .with("seconds to save its work", template.grace_s)
                .affecting(pods_of(workload));
            found.push(finding);
        }
    }
}

fn could_be_on_spot(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let saves = |workload: &&Workload| workload.template.saves_progress;
    for workload in of_class(view, WorkloadClass::Training).filter(saves) {
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
    for workload in of_class(view, WorkloadClass::Inference) {
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
    let limits = &view.facts.thresholds;
    let days = i128::from(limits.transfer_payback_days);
    // It differs with the way, of which nobody knows more than its ends: findings say that it is
    // assumed.
    let per_gb = i128::from(limits.transfer_cents_per_gb) * USD_MICROS_PER_CENT;
    for node in view.gpu_nodes() {
        let Some(cheapest) = &node.cheapest_region else { continue };
        let [here_usd, there_usd] =
            [cheapest.here_usd_micros_per_gpu_hour, cheapest.there_usd_micros_per_gpu_hour];
        let (here, there) = (i128::from(here_usd), i128::from(there_usd));
        if there * 100 > here * (100 - i128::from(limits.cheaper_region_percent)) {
            continue;
        }
        let gigabytes = (here - there) * 24 * days / per_gb;
        let assumed = usd(i64::try_from(per_gb).ok());
        let mut finding = Finding::new(check, &node.pool)
            .with(
                "price of a GPU-hour here",
                format!("{} in {}", unit_usd(here_usd), cheapest.here),
            )
            .with(
                "price of a GPU-hour where it is cheapest",
                format!("{} in {}", unit_usd(there_usd), cheapest.there),
            )
            .with(
                "pays back if at most this much data moves",
                format!("{gigabytes} GB per GPU in {days} days, at an assumed {assumed} per GB"),
            );
        if let Some(day) = &cheapest.as_of {
            finding = finding.with("list prices of", day);
        }
        found.push(finding.affecting([node_ref(node)]));
    }
}
