//! What stopping a job costs, according to its pods: how often it saves its progress, how long
//! that and coming back take, and when it last did.

use dovetail_model::InterruptionCost;
use dovetail_objects::{Pod, labels};
use dovetail_units::duration::parse_duration;
use jiff::Timestamp;

/// Annotations of durations that are read here.
pub(super) const OF_COSTS: [&str; 4] = [
    labels::CHECKPOINT_INTERVAL,
    labels::CHECKPOINT_COST,
    labels::RESTART_COST,
    labels::SAVE_ON_NOTICE,
];

/// What a job of these pods says, of several the longest times. Any pod speaks for the job about
/// its last checkpoint: the newest counts.
pub(super) fn said_interruption<'p>(pods: impl IntoIterator<Item = &'p Pod>) -> InterruptionCost {
    let mut cost = InterruptionCost::default();
    for pod in pods {
        let [interval, writing, restart, saving] =
            OF_COSTS.map(|name| parse_duration(pod.meta.annotations.get(name)?).ok());
        let saving = saving.filter(|save_ms| *save_ms <= grace_ms(pod));
        cost.checkpoint_interval_ms = cost.checkpoint_interval_ms.max(interval);
        cost.checkpoint_cost_ms = cost.checkpoint_cost_ms.max(writing);
        cost.restart_cost_ms = cost.restart_cost_ms.max(restart);
        cost.save_on_notice_ms = cost.save_on_notice_ms.max(saving);
        cost.last_checkpoint_ms = cost.last_checkpoint_ms.max(said_checkpoint_ms(pod));
    }
    cost
}

/// How long a pod has from the notice until it is killed.
fn grace_ms(pod: &Pod) -> u64 {
    u64::from(pod.preemption.grace_s).saturating_mul(1_000)
}

/// What is wrong with the time to save on notice: the kubelet kills the pod before it is over.
pub(super) fn unbelievable_save(pod: &Pod) -> Option<String> {
    let name = labels::SAVE_ON_NOTICE;
    let text = pod.meta.annotations.get(name)?;
    let save_ms = parse_duration(text).ok()?;
    let grace_s = pod.preemption.grace_s;
    (save_ms > grace_ms(pod)).then(|| {
        format!("{name}: `{text}` is longer than terminationGracePeriodSeconds ({grace_s})")
    })
}

/// When a pod wrote the last checkpoint of its job (annotation `dovetail.dev/last-checkpoint`).
pub fn said_checkpoint_ms(pod: &Pod) -> Option<u64> {
    let time: Timestamp = pod.meta.annotations.get(labels::LAST_CHECKPOINT)?.parse().ok()?;
    u64::try_from(time.as_millisecond()).ok()
}

/// What is wrong with the time of the last checkpoint.
pub(super) fn unreadable_checkpoint(pod: &Pod) -> Option<String> {
    let name = labels::LAST_CHECKPOINT;
    let text = pod.meta.annotations.get(name)?;
    let is_time = said_checkpoint_ms(pod).is_some();
    (!is_time).then(|| format!("{name}: `{text}` is not a time such as 2026-11-30T08:00:00Z"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unreadable_run_time;

    fn pod(annotations: &[(&str, &str)]) -> Pod {
        let annotations = annotations.iter().map(|(name, value)| (*name, *value));
        let annotations: std::collections::BTreeMap<_, _> = annotations.collect();
        serde_json::from_value(serde_json::json!({"metadata": {"annotations": annotations}}))
            .expect("a pod")
    }

    #[test]
    fn the_longest_times_and_the_newest_checkpoint_of_a_gang_count() {
        let pods = [
            pod(&[
                ("dovetail.dev/checkpoint-interval", "10m"),
                ("dovetail.dev/restart-cost", "2m"),
            ]),
            pod(&[
                ("dovetail.dev/checkpoint-interval", "30m"),
                ("dovetail.dev/checkpoint-cost", "20s"),
                ("dovetail.dev/last-checkpoint", "1970-01-01T01:00:00Z"),
                ("dovetail.dev/save-on-notice", "30s"),
            ]),
            pod(&[("dovetail.dev/last-checkpoint", "1970-01-01T02:00:00+01:30")]),
        ];
        let expected = InterruptionCost {
            checkpoint_interval_ms: Some(1_800_000),
            checkpoint_cost_ms: Some(20_000),
            restart_cost_ms: Some(120_000),
            last_checkpoint_ms: Some(3_600_000),
            save_on_notice_ms: Some(30_000),
            ..InterruptionCost::default()
        };
        assert_eq!(said_interruption(&pods), expected);
        assert!(pods.iter().all(|pod| unreadable_run_time(pod).is_none()));
    }

    #[test]
    fn what_cannot_be_read_is_absent_and_named() {
        for (name, value, problem) in [
            ("checkpoint-interval", "often", "`often` is not a duration"),
            ("checkpoint-cost", "-1s", "`-1s` is not a duration"),
            ("restart-cost", "", "`` is not a duration"),
            ("save-on-notice", "31s", "`31s` is longer than terminationGracePeriodSeconds (30)"),
            ("last-checkpoint", "1796000000", "`1796000000` is not a time such as"),
            ("last-checkpoint", "1969-12-31T23:59:59Z", "`1969-12-31T23:59:59Z` is not a time"),
        ] {
            let name = format!("dovetail.dev/{name}");
            let pod = pod(&[(&name, value)]);
            assert_eq!(said_interruption([&pod]), InterruptionCost::default(), "{name} {value}");
            let said = unreadable_run_time(&pod).expect("it cannot be read");
            assert!(said.starts_with(&format!("{name}: {problem}")), "{said}");
        }
    }
}
