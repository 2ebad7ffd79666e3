//! Native pod groups (`scheduling.k8s.io/v1beta1`, Kubernetes 1.37): the pod names its group, the
//! group says how many start together and where.
//!
//! As in kube-scheduler the group's priority, if it has one, is that of its pods. It says nothing
//! about how many pods there will be: with `minCount` of them it starts.

use dovetail_objects::{Pod, PodGroup};

use super::{GangName, GangTerms, NotYet, on_lost_member, priority, sizes};

/// Where a group says how many start together.
const MIN_COUNT: &str = "spec.schedulingPolicy.gang.minCount";

pub(super) fn name_in(pod: &Pod) -> &str {
    &pod.pod_group
}

pub(super) fn terms(
    gang: &GangName,
    group: &PodGroup,
    members: &[&Pod],
) -> Result<GangTerms, NotYet> {
    priority::check(gang, group, members)?;
    let min = group.min_count.unwrap_or(0);
    let terms = GangTerms {
        min,
        expected: min,
        max: None,
        roles: Vec::new(),
        on_lost_member: on_lost_member(gang, Some(&group.meta), members)?,
        ..GangTerms::default()
    };
    sizes::beside_group(gang, MIN_COUNT, &group.meta, members, terms)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::OnLostMember;
    use super::super::tests::{pod, read};
    use super::*;

    fn member(name: &str, priority: i32) -> Pod {
        let spec = json!({"priority": priority, "schedulingGroup": {"podGroupName": "train"}});
        pod(name, json!({"spec": spec}))
    }

    fn group(spec: Value) -> Option<Value> {
        let annotations = json!({"dovetail.dev/on-lost-member": "restart"});
        Some(json!({"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
            "metadata": {"name": "train", "namespace": "blue", "annotations": annotations},
            "spec": spec}))
    }

    #[test]
    fn a_group_says_how_many_start_together_and_where() {
        let members = [member("p0", 5), member("p1", 5)];
        let spec = json!({"schedulingPolicy": {"gang": {"minCount": 2}}, "priority": 5,
            "schedulingConstraints": {"topology": [{"key": "example.com/rack"}]}});
        let terms = read(group(spec), &members).unwrap();
        assert_eq!((terms.min, terms.expected, terms.max), (2, 2, None));
        assert_eq!(terms.topology.required.as_deref(), Some("rack"));
        assert_eq!(terms.on_lost_member, OnLostMember::Restart);
        let basic = read(group(json!({"schedulingPolicy": {"basic": {}}})), &members).unwrap();
        assert_eq!(basic.min, 0);
    }

    #[test]
    fn what_cannot_hold_is_said_with_both_sides() {
        let gang = json!({"gang": {"minCount": 2}});
        let members = [member("p0", 5), member("p1", 5)];
        let refused = |spec: Value| read(group(spec), &members).unwrap_err();
        assert_eq!(
            refused(json!({"schedulingPolicy": gang, "priority": 7})),
            "podgroup blue/train: it has priority 7, and its pod p0 has 5"
        );
        let zones = json!({"topology": [{"key": "zone"}]});
        assert_eq!(
            refused(json!({"schedulingPolicy": gang, "schedulingConstraints": zones})),
            "podgroup blue/train: its topology key zone does not belong to a topology level: add it \
             to one in dovetail.toml, or use the label of one of these: rack"
        );
        assert_eq!(
            read(None, &members).unwrap_err(),
            "podgroup blue/train does not exist: create it"
        );
        assert_eq!(
            read(group(json!({"schedulingPolicy": gang})), &[member("p0", 5), member("p1", 6)])
                .unwrap_err(),
            "the pods of podgroup blue/train differ in priority: p0 has `5`, p1 has `6`; give all \
             of them the same value"
        );
    }
}
