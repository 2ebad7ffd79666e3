//! Kueue's groups of plain pods: a label names the group, an annotation says how many pods it has.
//! All of them start together. Kueue holds them by scheduling gates until it admits them; where
//! they may go by its own topology it writes into them, so that nothing more is read.

use dovetail_objects::Pod;
use dovetail_objects::labels;
use dovetail_objects::labels::KUEUE_TOTAL_COUNT as TOTAL_COUNT;

use super::{GangName, GangTerms, NotYet, count, impossible, on_lost_member, same, sizes};

const GROUP: &str = labels::KUEUE_GROUP;

pub(super) fn name_in(pod: &Pod) -> &str {
    pod.meta.labels.get(GROUP).unwrap_or("")
}

pub(super) fn terms(gang: &GangName, members: &[&Pod]) -> Result<GangTerms, NotYet> {
    same(gang, members, TOTAL_COUNT, |pod| pod.meta.annotations.get(TOTAL_COUNT).unwrap_or(""))?;
    let total = members.first().and_then(|pod| pod.meta.annotations.get(TOTAL_COUNT));
    let total = count(gang, TOTAL_COUNT, total)?.ok_or_else(|| {
        let problem = format!(
            "the number of its pods is unknown: set annotation {TOTAL_COUNT} on all of them"
        );
        impossible(gang, problem)
    })?;
    let own = format!("annotation {TOTAL_COUNT} is {total}");
    sizes::check_fewest(gang, &own, None, members, total)?;
    sizes::check_most(gang, &own, None, members, total)?;
    Ok(GangTerms {
        min: total,
        expected: total,
        max: None,
        roles: Vec::new(),
        on_lost_member: on_lost_member(gang, None, members)?,
        ..GangTerms::default()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{pod, read};

    #[test]
    fn all_pods_of_a_group_start_together() {
        let member = |name: &str, total: &str| {
            let meta = json!({"labels": {"kueue.x-k8s.io/pod-group-name": "train",
                    "kueue.x-k8s.io/queue-name": "team"},
                "annotations": {"kueue.x-k8s.io/pod-group-total-count": total}});
            pod(name, json!({"metadata": meta}))
        };
        let terms = read(None, &[member("p0", "4"), member("p1", "4")]).unwrap();
        assert_eq!((terms.min, terms.expected, terms.max), (4, 4, None));
        assert_eq!(
            read(None, &[member("p0", "4"), member("p1", "5")]).unwrap_err(),
            "the pods of Kueue pod group blue/train differ in kueue.x-k8s.io/pod-group-total-count: \
             p0 has `4`, p1 has `5`; give all of them the same value"
        );
        let with = |min: &str| {
            let mut pod = member("p0", "4");
            pod.meta.annotations = serde_json::from_value(json!({"dovetail.dev/min-members": min,
                "kueue.x-k8s.io/pod-group-total-count": "4"}))
            .unwrap();
            pod
        };
        assert_eq!(read(None, &[with("4")]).unwrap().min, 4);
        assert_eq!(
            read(None, &[with("3")]).unwrap_err(),
            "Kueue pod group blue/train: annotation dovetail.dev/min-members is 3, and annotation \
             kueue.x-k8s.io/pod-group-total-count is 4: make them equal or keep only one"
        );
    }
}
