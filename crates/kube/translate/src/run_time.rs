//! How long a job is expected to run, and since when it does.

use dovetail_model::Estimate;
use dovetail_model::job::EstimateSource;
use dovetail_objects::{Pod, labels};
use dovetail_units::duration::parse_duration;

use super::checkpoints::{OF_COSTS, unbelievable_save, unreadable_checkpoint};
use super::time_limit::unreadable_limit;

/// What the annotation `dovetail.dev/runtime` of its pods says, of several the longest; `None` if
/// none has one that can be read.
pub fn said_run_time<'p>(pods: impl IntoIterator<Item = &'p Pod>) -> Option<Estimate> {
    let said = |pod: &Pod| parse_duration(pod.meta.annotations.get(labels::RUNTIME)?).ok();
    let run_ms = pods.into_iter().filter_map(said).max()?;
    Some(Estimate { p50_ms: run_ms, p90_ms: run_ms, source: EstimateSource::User })
}

/// How long a pod is to run before a queue that wants its quota back may stop it (annotation
/// `dovetail.dev/min-runtime`).
pub(super) fn said_min_run_ms(pod: &Pod) -> Option<u64> {
    parse_duration(pod.meta.annotations.get(labels::MIN_RUNTIME)?).ok()
}

/// How often the job of a pod may be preempted for other reasons than priority (annotation
/// `dovetail.dev/max-preemptions`).
pub(super) fn said_most_preemptions(pod: &Pod) -> Option<u32> {
    pod.meta.annotations.get(labels::MAX_PREEMPTIONS)?.parse().ok()
}

/// What is wrong with the first annotation or label of a pod about run times, time limits,
/// checkpoints and preemptions that cannot be read.
pub fn unreadable_run_time(pod: &Pod) -> Option<String> {
    let mut names = [labels::RUNTIME, labels::MIN_RUNTIME].into_iter().chain(OF_COSTS);
    let of_times = names.find_map(|name| {
        let problem = parse_duration(pod.meta.annotations.get(name)?).err()?;
        Some(format!("{name}: {problem}"))
    });
    let of_times = of_times.or_else(|| unreadable_limit(&pod.meta));
    of_times.or_else(|| unbelievable_save(pod)).or_else(|| unreadable_checkpoint(pod)).or_else(
        || {
            let name = labels::MAX_PREEMPTIONS;
            let text = pod.meta.annotations.get(name)?;
            text.parse::<u32>().err().map(|_| format!("{name}: `{text}` is not a whole number"))
        },
    )
}

/// Since when a pod that runs has had its node, as far as it says.
pub fn started_ms(pod: &Pod) -> u64 {
    pod.scheduled_ms.max(pod.meta.created_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(runtime: &str) -> Pod {
        annotated("dovetail.dev/runtime", runtime)
    }

    fn annotated(name: &str, value: &str) -> Pod {
        let text = serde_json::json!({
            "metadata": { "name": "p", "annotations": { name: value } }
        });
        serde_json::from_value(text).expect("a pod")
    }

    #[test]
    fn the_longest_run_time_of_a_gang_counts_and_one_that_cannot_be_read_is_absent() {
        let pods = [pod("90m"), pod("2h"), pod("soon")];
        let said = said_run_time(&pods).map(|said| (said.p50_ms, said.p90_ms));
        assert_eq!(said, Some((7_200_000, 7_200_000)));
        assert_eq!(said_run_time(&pods[2..]), None);
        assert_eq!(unreadable_run_time(&pods[0]), None);
        let problem = unreadable_run_time(&pods[2]).expect("not a duration");
        assert!(problem.starts_with("dovetail.dev/runtime: `soon` is not a duration"), "{problem}");
        let least = ["20m", "1h", "soon"].map(|text| annotated("dovetail.dev/min-runtime", text));
        let rules = crate::preemption_rules(&least);
        assert_eq!(rules.min_run_ms, Some(3_600_000));
        let problem = unreadable_run_time(&least[2]).expect("not a duration");
        assert!(problem.starts_with("dovetail.dev/min-runtime: `soon`"), "{problem}");
        let most = ["3", "1", "-1"].map(|text| annotated("dovetail.dev/max-preemptions", text));
        assert_eq!(crate::preemption_rules(&most).max_preemptions, Some(1));
        let problem = unreadable_run_time(&most[2]).expect("not a number");
        assert_eq!(problem, "dovetail.dev/max-preemptions: `-1` is not a whole number");
    }
}
