//! What a recommender knows of a workload: requests that are guesses, and CPU that starves a GPU.

use dovetail_facts::{ActiveShare, Advice, Container, Recommended, Workload};

use super::{View, percent_of, pods_of};
use crate::catalogue::Check;
use crate::finding::Finding;
use crate::remedy::{LimitChange, PatchChange};

const MIB: i64 = 1 << 20;
const GIB: i64 = 1 << 30;

/// Requests that people write when they guess: thousandths of a core, bytes.
const ROUND_CPU: [i64; 8] = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000];
const ROUND_MEMORY_GIB: [i64; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/// Containers of workloads with GPUs of which a recommender knows something.
fn advised<'a>(
    view: &View<'a>,
) -> impl Iterator<Item = (&'a Workload, &'a Advice, &'a Container, &'a Recommended)> {
    let advice = view.facts.advice.as_ref();
    let workloads: Vec<&Workload> = view.gpu_workloads().collect();
    workloads.into_iter().flat_map(move |workload| {
        let advice = advice.and_then(|advice| advice.get(&workload.owner));
        advice.into_iter().flat_map(move |advice| {
            let containers = workload.template.containers.iter();
            containers.filter_map(move |container| {
                Some((workload, advice, container, advice.containers.get(&container.name)?))
            })
        })
    })
}

fn unit(resource: &str) -> &'static str {
    if resource == "cpu" { "thousandths of a core" } else { "bytes" }
}

/// Rounded up to what people write.
fn rounded(resource: &str, amount: i64) -> i64 {
    let step = if resource == "cpu" { 10 } else { MIB };
    amount.saturating_add(step - 1) / step * step
}

pub(super) fn too_much(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let limits = &view.facts.thresholds;
    for (workload, advice, container, recommended) in advised(view) {
        for resource in ["cpu", "memory"] {
            let Some(asked) = container.requests.get(resource).copied() else { continue };
            let Some(upper) = recommended.upper.get(resource).copied() else { continue };
            let is_round = match resource {
                "cpu" => ROUND_CPU.contains(&asked),
                _ => ROUND_MEMORY_GIB.contains(&(asked / GIB)) && asked % GIB == 0,
            };
            let generous = percent_of(upper, limits.over_request_percent);
            if !is_round || upper <= 0 || asked <= generous {
                continue;
            }
            // What is needed nearly always, and headroom.
            let target = recommended.target.get(resource).copied().unwrap_or(upper);
            let more = percent_of(target, limits.request_headroom_percent);
            let request = rounded(resource, target.saturating_add(more));
            let change = PatchChange::Amount {
                container: container.name.clone(),
                resource,
                request,
                limit: LimitChange::Stays,
            };
            let finding = Finding::new(check, &workload.owner)
                .with("container", &container.name)
                .with("resource", format!("{resource} in {}", unit(resource)))
                .with("request", asked)
                .with("needed at most", upper)
                .with("by VerticalPodAutoscaler", &advice.by.name)
                .mended_in(workload, [change]);
            found.push(finding.affecting(pods_of(workload)));
        }
    }
}

pub(super) fn too_little_cpu(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for (workload, advice, container, recommended) in advised(view) {
        let limit = container.limits.get("cpu").copied();
        let target = recommended.target.get("cpu").copied();
        let (Some(limit), Some(target)) = (limit, target) else { continue };
        let Some(active) = active_share(workload) else { continue };
        if target <= limit || active.percent >= view.facts.thresholds.starved_active_percent {
            continue;
        }
        let change = PatchChange::Amount {
            container: container.name.clone(),
            resource: "cpu",
            request: rounded("cpu", target),
            limit: LimitChange::Goes,
        };
        let finding = Finding::new(check, &workload.owner)
            .with("container", &container.name)
            .with("limit in thousandths of a core", limit)
            .with("needed", target)
            .with("by VerticalPodAutoscaler", &advice.by.name)
            .with("GPU active", active)
            .mended_in(workload, [change]);
        found.push(finding.affecting(pods_of(workload)));
    }
}

/// How much of the time the GPUs of a workload computed; `None` where nobody measured, or where
/// nobody saw them do it.
fn active_share(workload: &Workload) -> Option<ActiveShare> {
    let uses = workload.pods.iter().flat_map(|pod| &pod.uses);
    let is_used = uses.clone().any(|used| used.active_ms > 0);
    ActiveShare::of(uses).filter(|_| is_used)
}
