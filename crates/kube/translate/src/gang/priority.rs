//! The priority of a group, which is that of its pods.
//!
//! Groups say it by a number, which Kubernetes writes into the native ones, or by a class. Objects
//! of classes are not watched: the value of a class is known if it is Kubernetes' own or if a pod
//! of the gang has it. A class that nothing is known of is not compared with pods that name none;
//! with pods that name another one it is.

use dovetail_objects::{Pod, PodGroup};

use super::{GangName, GangSource, NotYet, impossible};

/// The classes that every cluster has, with their values (Kubernetes' `pkg/apis/scheduling`).
const SYSTEM_CLASSES: [(&str, i32); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

/// Refuses a group with another priority than its pods.
pub(super) fn check(gang: &GangName, group: &PodGroup, members: &[&Pod]) -> Result<(), NotYet> {
    let class = &*group.priority_class;
    let of_system = SYSTEM_CLASSES.iter().find(|(name, _)| *name == class).map(|(_, value)| *value);
    let (said, own) = match (group.priority, of_system) {
        (Some(priority), _) => (Some(priority), format!("it has priority {priority}")),
        (None, Some(value)) => {
            (Some(value), format!("its priorityClassName {class} is priority {value}"))
        }
        (None, None) => (None, String::new()),
    };
    if let Some(said) = said {
        let others = members.iter().filter(|pod| pod.priority != said);
        let Some(pod) = others.min_by_key(|pod| &pod.meta.name) else { return Ok(()) };
        let (name, priority) = (&pod.meta.name, pod.priority);
        let mends = what_mends(gang, group, pod);
        return Err(impossible(gang, format!("{own}, and its pod {name} has {priority}{mends}")));
    }
    // All members have one priority: that of the class is theirs if one of them names it.
    if class.is_empty() || members.iter().any(|pod| *pod.priority_class == *class) {
        return Ok(());
    }
    let named = members.iter().filter(|pod| !pod.priority_class.is_empty());
    let Some(pod) = named.min_by_key(|pod| &pod.meta.name) else {
        return Ok(());
    };
    let (name, its_class, priority) = (&pod.meta.name, &pod.priority_class, pod.priority);
    let problem = format!(
        "its priorityClassName is {class}, and that of its pod {name} is {its_class} (priority {priority}): name the \
         same class in both"
    );
    Err(impossible(gang, problem))
}

/// What its owner is to do where that is plain: a server gives a native group without a class the
/// priority 0, and it can only be made anew with one.
fn what_mends(gang: &GangName, group: &PodGroup, pod: &Pod) -> String {
    let class = &pod.priority_class;
    let is_plain =
        gang.source == GangSource::Native && group.priority_class.is_empty() && !class.is_empty();
    match is_plain {
        true => format!(
            ": create the PodGroup with spec.priorityClassName {class}, the class of its pods; \
             without one, the API server sets priority 0"
        ),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::{pod, read};

    fn refusal(api: &str, group: &Value, pod_spec: Value) -> Option<String> {
        let meta = json!({"labels": {"scheduling.x-k8s.io/pod-group": "train"}});
        let meta = match api {
            "scheduling.x-k8s.io/v1alpha1" => meta,
            "scheduling.volcano.sh/v1beta1" => {
                json!({"annotations": {"scheduling.k8s.io/group-name": "train"}})
            }
            _ => json!({"annotations": {"pod-group-name": "train"}}),
        };
        let pod = pod("p0", json!({"metadata": meta, "spec": pod_spec}));
        let group = json!({"apiVersion": api, "kind": "PodGroup",
            "metadata": {"name": "train", "namespace": "blue"}, "spec": group});
        read(Some(group), &[pod]).err()
    }

    #[test]
    fn a_class_of_a_group_is_that_of_its_pods_as_far_as_it_is_known() {
        for api in [
            "scheduling.x-k8s.io/v1alpha1",
            "scheduling.volcano.sh/v1beta1",
            "scheduling.run.ai/v2alpha2",
        ] {
            let high = json!({"minMember": 1, "priorityClassName": "high"});
            let system = json!({"minMember": 1, "priorityClassName": "system-node-critical"});
            let low = json!({"priority": 5, "priorityClassName": "low"});
            let told = refusal(api, &high, low).expect("a refusal");
            assert!(
                told.ends_with(
                    "blue/train: its priorityClassName is high, and that of its pod p0 is low (priority 5): name the \
                     same class in both"
                ),
                "{told}"
            );
            let told = refusal(api, &system, json!({"priority": 5})).expect("a refusal");
            assert!(
                told.ends_with(
                    "its priorityClassName system-node-critical is priority 2000001000, and its pod p0 has 5"
                ),
                "{told}"
            );
            let same = json!({"priority": 7, "priorityClassName": "high"});
            assert_eq!(refusal(api, &high, same), None);
            assert_eq!(refusal(api, &high, json!({"priority": 5})), None, "its value is not known");
            assert_eq!(refusal(api, &system, json!({"priority": 2_000_001_000})), None);
        }
    }
}
