//! After how long Kubernetes, Kueue or Slurm ends a job: no estimate of its run time, but none can
//! be longer.

use dovetail_objects::{Meta, labels};

const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60_000;

/// The shortest time limit that an object has: by its `activeDeadlineSeconds`, the label
/// `kueue.x-k8s.io/max-exec-time-seconds`, or the annotation
/// `slurmjob.slinky.slurm.net/timelimit`, which is in minutes. `None`: it has none that can be
/// read.
pub fn time_limit_ms(meta: &Meta, active_deadline_s: Option<u32>) -> Option<u64> {
    let by_field = active_deadline_s.map(|seconds| u64::from(seconds) * SECOND_MS);
    let limits = [by_field, of_kueue(meta), of_slurm(meta)];
    limits.into_iter().flatten().filter(|limit_ms| *limit_ms > 0).min()
}

fn of_kueue(meta: &Meta) -> Option<u64> {
    let seconds: u32 = meta.labels.get(labels::KUEUE_TIME_LIMIT)?.parse().ok()?;
    Some(u64::from(seconds) * SECOND_MS)
}

fn of_slurm(meta: &Meta) -> Option<u64> {
    let minutes: u32 = meta.annotations.get(labels::SLINKY_TIME_LIMIT)?.parse().ok()?;
    Some(u64::from(minutes) * MINUTE_MS)
}

/// What is wrong with the first time limit of an object that cannot be read.
pub(super) fn unreadable_limit(meta: &Meta) -> Option<String> {
    let wrong = |name: &str, text: Option<&str>, unit: &str| {
        let text = text?;
        let is_number = text.parse::<u32>().is_ok_and(|number| number > 0);
        (!is_number).then(|| format!("{name}: `{text}` is not a whole number of {unit}"))
    };
    let kueue = labels::KUEUE_TIME_LIMIT;
    let slurm = labels::SLINKY_TIME_LIMIT;
    wrong(kueue, meta.labels.get(kueue), "seconds")
        .or_else(|| wrong(slurm, meta.annotations.get(slurm), "minutes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(labels: &[(&str, &str)], annotations: &[(&str, &str)]) -> Meta {
        let map = |pairs: &[(&str, &str)]| -> serde_json::Value {
            let pair =
                |(key, value): &(&str, &str)| ((*key).to_owned(), serde_json::Value::from(*value));
            pairs.iter().map(pair).collect()
        };
        let object = serde_json::json!({"labels": map(labels), "annotations": map(annotations)});
        serde_json::from_value(object).expect("metadata")
    }

    const KUEUE: &str = "kueue.x-k8s.io/max-exec-time-seconds";
    const SLURM: &str = "slurmjob.slinky.slurm.net/timelimit";

    #[test]
    fn the_shortest_of_all_limits_counts_each_in_its_unit() {
        assert_eq!(time_limit_ms(&meta(&[], &[]), None), None);
        assert_eq!(time_limit_ms(&meta(&[], &[]), Some(90)), Some(90_000));
        assert_eq!(time_limit_ms(&meta(&[(KUEUE, "60")], &[]), Some(90)), Some(60_000));
        let all = meta(&[(KUEUE, "7200")], &[(SLURM, "30")]);
        assert_eq!(time_limit_ms(&all, Some(3_600)), Some(1_800_000));
        assert_eq!(time_limit_ms(&meta(&[], &[]), Some(0)), None);
    }

    #[test]
    fn a_limit_that_cannot_be_read_is_absent_and_named() {
        for (meta, problem) in [
            (
                meta(&[(KUEUE, "1h")], &[]),
                format!("{KUEUE}: `1h` is not a whole number of seconds"),
            ),
            (meta(&[], &[(SLURM, "0")]), format!("{SLURM}: `0` is not a whole number of minutes")),
            (
                meta(&[], &[(SLURM, "1-0")]),
                format!("{SLURM}: `1-0` is not a whole number of minutes"),
            ),
        ] {
            assert_eq!(time_limit_ms(&meta, None), None);
            assert_eq!(unreadable_limit(&meta), Some(problem));
        }
        assert_eq!(unreadable_limit(&meta(&[(KUEUE, "60")], &[(SLURM, "5")])), None);
    }
}
