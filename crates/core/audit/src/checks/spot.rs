//! SPT: capacity that its provider may take back.

use super::{Run, View, pods_of};
use crate::catalogue::Check;
use crate::facts::{Class, Pod, Workload};
use crate::finding::Finding;

pub(super) const RUNS: &[Run] =
    &[("SPT-01", loses_its_work), ("SPT-02", could_be_on_spot), ("SPT-03", serves_from_spot_alone)];

const HOUR_MS: u64 = 3_600_000;

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
