//! Gangs in parts: pods of one part have a smallest number and a place of their own within the
//! gang. KAI's subgroups and Volcano's subgroup policies stand in the group; slices, of Kueue and
//! of KAI (which calls them segments), in annotations.
//!
//! A part is a role with a place. What roles cannot say is refused: that some parts are enough,
//! whichever these are, and that parts of parts have sizes or places of their own.

use std::borrow::Cow;
use std::collections::BTreeSet;

use dovetail_model::TopologyRequest;
use dovetail_objects::{LabelSelector, Pod, PodGroup, SubGroup, SubGroupPolicy};

use super::{GangName, GangSource, GangTerms, NotYet, RoleSource, RoleTerms, impossible, topology};
use crate::levels::KnownLevels;

/// Label of a pod: its subgroup (KAI).
const SUB_GROUP: &str = "kai.scheduler/subgroup-name";

impl RoleSource {
    /// The role of a pod in its gang; empty if it has none.
    pub fn role_of<'p>(&self, source: GangSource, pod: &'p Pod) -> Cow<'p, str> {
        match self {
            Self::Roles => source.role_of(pod),
            Self::SubGroups => Cow::Borrowed(pod.meta.labels.get(SUB_GROUP).unwrap_or("")),
            Self::Policies(policies) => {
                let part = policies.iter().find_map(|policy| part_of(policy, pod));
                part.map_or(Cow::Borrowed(""), |part| Cow::Owned(part.into_string()))
            }
            Self::Slices(slices) => slices.role_of(source, pod),
        }
    }

    /// Whether parts have places of their own.
    pub fn have_places(&self) -> bool {
        *self != Self::Roles
    }
}

/// The terms of a group with the subgroups that it is divided into.
pub(super) fn divide(
    gang: &GangName,
    group: &PodGroup,
    members: &[&Pod],
    levels: KnownLevels<'_>,
    terms: GangTerms,
) -> Result<GangTerms, NotYet> {
    if let Some(min) = group.min_sub_groups {
        return Err(some_of(gang, "spec.minSubGroup", min));
    }
    match (group.sub_groups.is_empty(), group.sub_group_policies.is_empty()) {
        (true, true) => Ok(terms),
        (false, true) => sub_groups(gang, group, members, levels, terms),
        (true, false) => policies(gang, group, members, levels, terms),
        (false, false) => {
            let problem = "it has spec.subGroups and spec.subGroupPolicy: keep only one".to_owned();
            Err(impossible(gang, problem))
        }
    }
}

/// That some parts are enough, whichever these are, is not placed.
fn some_of(gang: &GangName, field: &str, min: u32) -> NotYet {
    let problem = format!(
        "{field} is {min}, and dovetail cannot choose yet which subgroups start; remove the field \
         to start all"
    );
    impossible(gang, problem)
}

/// Subgroups of KAI. Those that others are part of have no pods of their own.
fn sub_groups(
    gang: &GangName,
    group: &PodGroup,
    members: &[&Pod],
    levels: KnownLevels<'_>,
    terms: GangTerms,
) -> Result<GangTerms, NotYet> {
    let parents: BTreeSet<&str> = group.sub_groups.iter().map(|part| &*part.parent).collect();
    let (outer, inner): (Vec<&SubGroup>, Vec<&SubGroup>) =
        group.sub_groups.iter().partition(|part| parents.contains(&*part.name));
    let mut roles = Vec::with_capacity(inner.len());
    for part in &group.sub_groups {
        if let Some(min) = part.min_sub_groups {
            return Err(some_of(gang, &format!("minSubGroup of subgroup {}", part.name), min));
        }
    }
    if let Some(part) = outer.iter().find(|part| part.topology != Default::default()) {
        let problem = format!(
            "subgroup {} has a topologyConstraint and subgroups of its own, which dovetail does \
             not support yet: set the constraint on these or on the whole group",
            part.name
        );
        return Err(impossible(gang, problem));
    }
    for part in inner {
        let min = part.min_member.ok_or_else(|| {
            impossible(gang, format!("subgroup {} has no minMember: set it", part.name))
        })?;
        let topology = topology::constraint(&part.topology, levels)
            .map_err(|problem| impossible(gang, format!("subgroup {}: {problem}", part.name)))?;
        roles.push(RoleTerms { name: part.name.clone(), min, topology });
    }
    let named = |pod: &&&Pod| {
        let name = pod.meta.labels.get(SUB_GROUP).unwrap_or("");
        !name.is_empty() && !roles.iter().any(|role| *role.name == *name)
    };
    if let Some(pod) = members.iter().find(named) {
        let name = pod.meta.labels.get(SUB_GROUP).unwrap_or("");
        let problem = format!(
            "label {SUB_GROUP} of its pod {} is `{name}`, but it has no such subgroup with pods of its own",
            pod.meta.name
        );
        return Err(impossible(gang, problem));
    }
    Ok(with(terms, roles, RoleSource::SubGroups))
}

/// Subgroups of Volcano, as far as their pods have appeared. Each starts whole; that needs all of
/// them to start.
fn policies(
    gang: &GangName,
    group: &PodGroup,
    members: &[&Pod],
    levels: KnownLevels<'_>,
    terms: GangTerms,
) -> Result<GangTerms, NotYet> {
    let mut roles = Vec::new();
    for policy in &group.sub_group_policies {
        let wrong = |problem: String| {
            impossible(gang, format!("spec.subGroupPolicy {}: {problem}", policy.name))
        };
        if let LabelSelector::Unreadable(problem) = &policy.pods {
            return Err(wrong(format!("its labelSelector is not supported: {problem}")));
        }
        let size = policy.size.filter(|size| *size > 0);
        let size = size.ok_or_else(|| wrong("it has no subGroupSize: set it".to_owned()))?;
        let (required, preferred) =
            topology::of_network(policy.topology.as_ref(), levels).map_err(wrong)?;
        let parts: BTreeSet<Box<str>> =
            members.iter().filter_map(|pod| part_of(policy, pod)).collect();
        if let Some(min) = policy.min_sub_groups.filter(|min| (*min as usize) < parts.len()) {
            return Err(some_of(gang, &format!("minSubGroups of policy {}", policy.name), min));
        }
        let topology = TopologyRequest { required, preferred };
        let role = |name| RoleTerms { name, min: size, topology: topology.clone() };
        roles.extend(parts.into_iter().map(role));
    }
    let in_parts = roles.iter().fold(0_u32, |sum, role| sum.saturating_add(role.min));
    let all_are_needed =
        group.sub_group_policies.iter().all(|policy| policy.min_sub_groups.is_some());
    if in_parts > terms.min && !all_are_needed {
        let problem = format!(
            "its subgroups have {in_parts} pods and spec.minMember is {}: dovetail cannot choose \
             yet which subgroups start: set minMember to {in_parts}, or set minSubGroups of each \
             policy",
            terms.min
        );
        return Err(impossible(gang, problem));
    }
    Ok(with(terms, roles, RoleSource::Policies(group.sub_group_policies.clone())))
}

/// The subgroup of a pod by a policy; `None` if the policy is not about it.
fn part_of(policy: &SubGroupPolicy, pod: &Pod) -> Option<Box<str>> {
    let labels = &pod.meta.labels;
    let is_meant = policy.pods == LabelSelector::Nothing || policy.pods.matches(labels);
    let values = policy.keys.iter().map(|key| labels.get(key));
    let values = values.collect::<Option<Vec<&str>>>().filter(|_| is_meant)?;
    let name = std::iter::once(&*policy.name).chain(values);
    Some(name.collect::<Vec<&str>>().join("/").into())
}

/// Terms with these parts. A gang needs at least what its parts need.
fn with(terms: GangTerms, roles: Vec<RoleTerms>, parts: RoleSource) -> GangTerms {
    let needed = roles.iter().fold(0_u32, |sum, role| sum.saturating_add(role.min));
    let min = terms.min.max(needed);
    GangTerms { min, expected: terms.expected.max(min), roles, parts, ..terms }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::{pod, read};
    use super::*;

    fn kai(spec: Value) -> Option<Value> {
        Some(json!({"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup",
            "metadata": {"name": "train", "namespace": "blue"}, "spec": spec}))
    }

    fn of_kai(name: &str, sub_group: &str) -> Pod {
        pod(
            name,
            json!({"metadata": {"annotations": {"pod-group-name": "train"},
            "labels": {"kai.scheduler/subgroup-name": sub_group}}}),
        )
    }

    fn volcano(spec: Value) -> Option<Value> {
        Some(json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
            "metadata": {"name": "train", "namespace": "blue"}, "spec": spec}))
    }

    fn of_volcano(name: &str, ring: &str) -> Pod {
        pod(
            name,
            json!({"metadata": {"annotations": {"scheduling.k8s.io/group-name": "train"},
            "labels": {"task": "trainer", "ring-id": ring}}}),
        )
    }

    /// Each role with its smallest size and the level that it requires.
    fn roles(terms: &GangTerms) -> Vec<(&str, u32, Option<&str>)> {
        terms
            .roles
            .iter()
            .map(|role| (&*role.name, role.min, role.topology.required.as_deref()))
            .collect()
    }

    #[test]
    fn subgroups_of_kai_have_sizes_and_places_of_their_own() {
        let racks = json!({"topology": "cluster", "requiredTopologyLevel": "example.com/rack"});
        let spec = json!({"minMember": 3, "topologyConstraint": {"preferredTopologyLevel": "example.com/rack"},
            "subGroups": [{"name": "all"},
                {"name": "decode", "parent": "all", "minMember": 2, "topologyConstraint": racks},
                {"name": "prefill", "parent": "all", "minMember": 4}]});
        let pods = [of_kai("p0", "decode"), of_kai("p1", "prefill")];
        let terms = read(kai(spec), &pods).unwrap();
        assert_eq!(roles(&terms), [("decode", 2, Some("rack")), ("prefill", 4, None)]);
        assert_eq!((terms.min, terms.expected), (6, 6));
        assert_eq!(terms.topology.preferred.as_deref(), Some("rack"));
        assert_eq!(terms.parts.role_of(GangSource::Kai, &pods[0]), "decode");
    }

    #[test]
    fn what_kai_asks_beyond_that_is_refused_by_the_name_of_its_field() {
        let refused =
            |spec: Value, sub_group: &str| read(kai(spec), &[of_kai("p0", sub_group)]).unwrap_err();
        let only = |part: Value| json!({"minMember": 1, "subGroups": [part]});
        let fields = [
            (
                json!({"minSubGroup": 1, "subGroups": [{"name": "a", "minMember": 1}]}),
                "spec.minSubGroup is 1",
            ),
            (only(json!({"name": "a"})), "subgroup a has no minMember"),
            (only(json!({"name": "a", "minSubGroup": 2})), "minSubGroup of subgroup a is 2"),
            (
                only(json!({"name": "b", "minMember": 1})),
                "label kai.scheduler/subgroup-name of its pod p0 is `a`",
            ),
            (
                json!({"subGroups": [{"name": "a", "minMember": 1, "parent": "b"},
                    {"name": "b", "topologyConstraint": {"requiredTopologyLevel": "example.com/rack"}}]}),
                "subgroup b has a topologyConstraint and subgroups of its own",
            ),
            (
                only(json!({"name": "a", "minMember": 1, "topologyConstraint":
                    {"requiredTopologyLevel": "example.com/row"}})),
                "subgroup a: its topology key example.com/row does not belong to a topology level",
            ),
        ];
        for (spec, problem) in fields {
            let text = refused(spec, "a");
            let start = format!("podgroup.scheduling.run.ai blue/train: {problem}");
            assert!(text.starts_with(&start), "{text}");
        }
    }

    #[test]
    fn subgroups_of_volcano_start_whole_each_in_its_place() {
        let policy = |more: Value| {
            let mut policy = json!({"name": "trainers", "subGroupSize": 2, "matchLabelKeys": ["ring-id"],
                "labelSelector": {"matchLabels": {"task": "trainer"}},
                "networkTopology": {"mode": "hard", "highestTierAllowed": 1}});
            let more = more.as_object().unwrap().clone();
            policy.as_object_mut().unwrap().extend(more);
            policy
        };
        let pods = ["0", "0", "1"].map(|ring| of_volcano(&format!("p{ring}"), ring));
        let spec = json!({"minMember": 4, "subGroupPolicy": [policy(json!({}))]});
        let terms = read(volcano(spec), &pods).unwrap();
        let racks = [("trainers/0", 2, Some("rack")), ("trainers/1", 2, Some("rack"))];
        assert_eq!((roles(&terms), terms.min), (racks.to_vec(), 4));
        assert_eq!(terms.parts.role_of(GangSource::Volcano, &pods[2]), "trainers/1");
        let all = json!({"minMember": 1, "subGroupPolicy": [policy(json!({"minSubGroups": 2}))]});
        assert_eq!(read(volcano(all), &pods).unwrap().min, 4);
        let refused = |min_member: u32, more: Value| {
            let spec = json!({"minMember": min_member, "subGroupPolicy": [policy(more)]});
            read(volcano(spec), &pods).unwrap_err()
        };
        let some = refused(2, json!({"minSubGroups": 1}));
        assert!(
            some.contains("minSubGroups of policy trainers is 1, and dovetail cannot choose"),
            "{some}"
        );
        let some = refused(2, json!({}));
        assert!(some.contains("its subgroups have 4 pods and spec.minMember is 2"), "{some}");
        let no_size = refused(4, json!({"subGroupSize": null}));
        assert!(
            no_size.contains("spec.subGroupPolicy trainers: it has no subGroupSize"),
            "{no_size}"
        );
    }
}
