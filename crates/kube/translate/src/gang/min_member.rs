//! Pod groups of scheduler-plugins, Volcano and KAI: the pod names its group, the group says
//! `minMember`.
//!
//! A group of Volcano may say beside it how many pods of each task it needs (`minTaskMember`). As
//! for Volcano that counts unless these are more together than `minMember`, which then is all that
//! is asked for.
//!
//! What is asked of groups that are divided is in [`super::parts`].

use dovetail_objects::labels::VOLCANO_TASK;
use dovetail_objects::{Pod, PodGroup};

use super::{
    GangName, GangSource, GangTerms, NotYet, RoleTerms, impossible, on_lost_member, priority,
};

/// The task of a pod of Volcano; empty if it does not say.
pub(super) fn task_of(pod: &Pod) -> &str {
    let meta = &pod.meta;
    meta.labels.get(VOLCANO_TASK).or_else(|| meta.annotations.get(VOLCANO_TASK)).unwrap_or("")
}

pub(super) fn terms(
    gang: &GangName,
    group: &PodGroup,
    members: &[&Pod],
) -> Result<GangTerms, NotYet> {
    priority::check(gang, group, members)?;
    if gang.source == GangSource::Volcano {
        check_tasks(gang, members)?;
    }
    // Without it each pod starts by itself, as with those schedulers.
    let min = group.min_count.unwrap_or(0);
    let of_tasks = group.min_tasks.iter().fold(0_u32, |sum, (_, min)| sum.saturating_add(*min));
    let tasks = group.min_tasks.iter().filter(|_| of_tasks <= min);
    let roles = tasks.map(|(name, min)| RoleTerms::anywhere(name, *min));
    Ok(GangTerms {
        min,
        expected: min,
        max: None,
        roles: roles.collect(),
        on_lost_member: on_lost_member(gang, Some(&group.meta), members)?,
        ..GangTerms::default()
    })
}

/// Refuses pods whose label and annotation name two tasks.
fn check_tasks(gang: &GangName, members: &[&Pod]) -> Result<(), NotYet> {
    for pod in members {
        let meta = &pod.meta;
        let (label, annotation) =
            (meta.labels.get(VOLCANO_TASK), meta.annotations.get(VOLCANO_TASK));
        if let (Some(one), Some(other)) = (label, annotation)
            && one != other
        {
            let name = &meta.name;
            let problem = format!(
                "{VOLCANO_TASK} of its pod {name} is `{one}` as a label and `{other}` as an \
                 annotation: keep only one"
            );
            return Err(impossible(gang, problem));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::gang_of;
    use super::super::tests::{pod, read};
    use super::*;

    /// A pod of a group, as each of the three marks it.
    fn marked(source: GangSource) -> Pod {
        let meta = match source {
            GangSource::SchedulerPlugins => {
                json!({"labels": {"scheduling.x-k8s.io/pod-group": "train"}})
            }
            GangSource::Volcano => {
                json!({"annotations": {"scheduling.k8s.io/group-name": "train"}})
            }
            _ => json!({"annotations": {"pod-group-name": "train"}}),
        };
        pod("p0", json!({"metadata": meta}))
    }

    fn group(version: &str, spec: Value) -> Option<Value> {
        Some(json!({"apiVersion": version, "kind": "PodGroup",
            "metadata": {"name": "train", "namespace": "blue"}, "spec": spec}))
    }

    #[test]
    fn min_member_says_how_many_start_together() {
        let all = [
            (
                GangSource::SchedulerPlugins,
                group(
                    "scheduling.x-k8s.io/v1alpha1",
                    json!({"minMember": 3, "scheduleTimeoutSeconds": 60}),
                ),
            ),
            (
                GangSource::Volcano,
                group(
                    "scheduling.volcano.sh/v1beta1",
                    json!({"minMember": 3, "queue": "default", "minResources": {"cpu": "3"}}),
                ),
            ),
            (
                GangSource::Kai,
                group(
                    "scheduling.run.ai/v2alpha2",
                    json!({"minMember": 3, "queue": "team", "priorityClassName": "train"}),
                ),
            ),
        ];
        for (source, group) in all {
            let pod = marked(source);
            assert_eq!(gang_of(&pod).unwrap().map(|gang| gang.source), Some(source));
            let terms = read(group, &[pod]).unwrap();
            assert_eq!((terms.min, terms.expected, terms.max), (3, 3, None));
        }
    }

    #[test]
    fn tasks_of_volcano_have_smallest_sizes_of_their_own() {
        let roles = |spec: Value| {
            let group = group("scheduling.volcano.sh/v1beta1", spec);
            let terms = read(group, &[marked(GangSource::Volcano)]).unwrap();
            terms.roles.into_iter().map(|role| (role.name, role.min)).collect::<Vec<_>>()
        };
        let tasks = json!({"ps": 1, "worker": 2});
        let both = vec![("ps".into(), 1), ("worker".into(), 2)];
        assert_eq!(roles(json!({"minMember": 3, "minTaskMember": tasks})), both);
        assert_eq!(roles(json!({"minMember": 2, "minTaskMember": tasks})), []);
        let meta = json!({"annotations": {"scheduling.k8s.io/group-name": "train",
            "volcano.sh/task-spec": "ps"}});
        assert_eq!(task_of(&pod("p0", json!({"metadata": meta.clone()}))), "ps");
        let mut two = meta;
        two["labels"] = json!({"volcano.sh/task-spec": "worker"});
        let group = group("scheduling.volcano.sh/v1beta1", json!({"minMember": 1}));
        assert_eq!(
            read(group, &[pod("p0", json!({"metadata": two}))]).unwrap_err(),
            "podgroup.scheduling.volcano.sh blue/train: volcano.sh/task-spec of its pod p0 is \
             `worker` as a label and `ps` as an annotation: keep only one"
        );
    }

    #[test]
    fn a_group_that_does_not_exist_is_asked_for() {
        let refused = |group| read(group, &[marked(GangSource::Kai)]).unwrap_err();
        assert_eq!(
            refused(None),
            "podgroup.scheduling.run.ai blue/train does not exist: create it"
        );
    }
}
