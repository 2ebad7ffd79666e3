//! Gangs that wait for instances: a plan serves as many pods of a gang as start together, or none.
//!
//! How many that are, the object of the gang says; if it was not read, all pods start together. A
//! gang of which a pod has a node, and did not fail there, has started: its further pods start one
//! by one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_objects::{Pod, PodPhase};
use dovetail_partition::PartitionPlan;
use dovetail_translate::gang::{GangName, GangTerms, gang_of};

use crate::eligible::is_mig;
use crate::fleet::Fleet;
use crate::objects::{Objects, is_pending};
use crate::waiting::WaitingGang;

/// Why nothing is planned for a pod of a gang.
const IN_PART: &str = "no plan was found that serves all pending pods of its gang";
const TOO_FEW_PODS: &str = "its gang has fewer pods than its minimum size";

/// Which gangs a plan is for.
#[derive(Clone, Debug, Default)]
pub(crate) struct GangChoice {
    /// Nothing is planned for them.
    pub(crate) left_out: BTreeSet<GangName>,
    /// Their pods are served before all others.
    pub(crate) first: BTreeSet<GangName>,
}

impl GangChoice {
    /// Whether it treats all gangs alike.
    pub(crate) fn is_none(&self) -> bool {
        self.left_out.is_empty() && self.first.is_empty()
    }
}

/// A gang of which a plan serves fewer pods than start together.
pub(crate) struct GangInPart<'f> {
    pub(crate) name: &'f GangName,
    /// The plan serves some of its pods.
    pub(crate) has_some: bool,
}

/// Gangs that are part of the demand and of which a plan serves fewer pods than start together, in
/// the order in which they are planned for.
pub(crate) fn in_part<'f>(fleet: &'f Fleet, planned: &PartitionPlan) -> Vec<GangInPart<'f>> {
    let mut counts = vec![(0u32, 0u32); fleet.gangs.len()];
    for ((pods, count), accepted) in fleet.waiting.iter().zip(&planned.accepted) {
        if let Some(gang) = pods.gang {
            let (asked, served) = &mut counts[gang];
            *asked = asked.saturating_add(*count);
            *served = served.saturating_add(*accepted);
        }
    }
    let gangs = fleet.gangs.iter().zip(counts);
    let in_part = gangs.filter(|(gang, (asked, served))| *asked > 0 && *served < gang.needed());
    let of = |(gang, (_, served)): (&'f WaitingGang, (u32, u32))| GangInPart {
        name: &gang.name,
        has_some: served > 0,
    };
    in_part.map(of).collect()
}

/// Whether a plan serves each gang as a whole or not at all.
pub(crate) fn are_whole(fleet: &Fleet, planned: &PartitionPlan) -> bool {
    in_part(fleet, planned).iter().all(|gang| !gang.has_some)
}

/// The gangs that ask for instances and have not started.
#[derive(Default)]
pub(crate) struct WaitingGangs {
    /// Those that are planned for, in this order: by priority, then by age.
    pub(crate) gangs: Vec<WaitingGang>,
    places: BTreeMap<GangName, usize>,
    left_out: BTreeMap<GangName, &'static str>,
}

impl WaitingGangs {
    pub(crate) fn of(objects: &Objects, choice: &GangChoice) -> Self {
        let mut waiting = Self::default();
        let mut in_order: Vec<((Reverse<i32>, u64), WaitingGang)> = Vec::new();
        for (name, pods) in members(objects) {
            let Some(order) = order_of(&pods) else { continue };
            let terms = objects.gangs.terms(&name, &pods);
            let min = terms.as_ref().map(|terms| terms.min);
            if min.is_some_and(|min| min <= 1) {
                continue;
            }
            if min.is_some_and(|min| min > count(&pods)) {
                waiting.left_out.insert(name, TOO_FEW_PODS);
            } else if choice.left_out.contains(&name) {
                waiting.left_out.insert(name, IN_PART);
            } else {
                let fewest = fewest(terms.as_ref(), &pods);
                in_order.push((order, WaitingGang::new(name, fewest)));
            }
        }
        in_order.sort_by(|(one, gang), (other, next)| (one, &gang.name).cmp(&(other, &next.name)));
        waiting.gangs = in_order.into_iter().map(|(_, gang)| gang).collect();
        waiting.places = waiting.gangs.iter().map(|gang| gang.name.clone()).zip(0..).collect();
        waiting
    }

    /// The place of a gang among those that are planned for.
    pub(crate) fn place(&self, name: &GangName) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// Why nothing is planned for a gang, if nothing is.
    pub(crate) fn why_left_out(&self, name: &GangName) -> Option<&'static str> {
        self.left_out.get(name).copied()
    }
}

/// The gangs that have not started, each with its pods.
fn members(objects: &Objects) -> BTreeMap<GangName, Vec<&Pod>> {
    let mut members: BTreeMap<GangName, Vec<&Pod>> = BTreeMap::new();
    let mut started: BTreeSet<GangName> = BTreeSet::new();
    for pod in objects.pods.values().filter(|pod| pod.phase != PodPhase::Failed) {
        let Some(name) = gang_of(pod).ok().flatten() else { continue };
        if !pod.node.is_empty() {
            started.insert(name);
        } else if !pod.meta.is_deleting() {
            members.entry(name).or_default().push(pod);
        }
    }
    members.retain(|name, _| !started.contains(name));
    members
}

/// When a gang is planned for that has these pods; `None` if none of them waits for instances.
fn order_of(pods: &[&Pod]) -> Option<(Reverse<i32>, u64)> {
    let waiting = pods.iter().filter(|pod| is_pending(pod) && asks_for_instances(pod));
    waiting.map(|pod| (Reverse(pod.priority), pod.meta.created_ms)).min()
}

/// Fewest pods with instances that start together, of a gang that has these pods; `None` if all
/// have to, or if roles say how many.
fn fewest(terms: Option<&GangTerms>, pods: &[&Pod]) -> Option<u32> {
    let terms = terms.filter(|terms| terms.roles.is_empty() && terms.min < count(pods))?;
    let others = pods.iter().filter(|pod| !asks_for_instances(pod)).count();
    Some(terms.min.saturating_sub(u32::try_from(others).unwrap_or(u32::MAX)))
}

fn count(pods: &[&Pod]) -> u32 {
    u32::try_from(pods.len()).unwrap_or(u32::MAX)
}

/// Whether a pod requests MIG instances.
pub(crate) fn asks_for_instances(pod: &Pod) -> bool {
    pod.requests.extended.iter().any(|(name, count)| is_mig(name) && *count > 0)
}

#[cfg(test)]
mod tests {
    use dovetail_inventory::dump::{RawObject, Sink};
    use serde_json::{Value, json};

    use super::*;
    use crate::planned::Planned;
    use crate::planned::tests::{node, of, pod};

    const NO_QUOTA: &str = "waits for the quota of its queue";

    fn see(objects: &mut Objects, object: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, api_version) = (text(&object["kind"]), text(&object["apiVersion"]));
        let meta = &object["metadata"];
        let (namespace, name) = (text(&meta["namespace"]), text(&meta["name"]));
        let json = object.to_string();
        objects.object(&RawObject {
            kind: &kind,
            api_version: &api_version,
            namespace: &namespace,
            name: &name,
            version: None,
            json: &json,
            file: "test",
        });
        assert!(objects.skipped.is_empty(), "{:?}", objects.skipped);
    }

    /// A plan for three pods with these labels, for two of which a node has room.
    fn plan(labels: &Value, described: &[Value]) -> Planned {
        let nodes = [node("one", &json!({}))].into_iter().collect();
        let mut objects = Objects { nodes, ..Objects::default() };
        for name in ["a", "b", "c"] {
            let (key, mut pod) = pod(name, "", "3g.40gb");
            pod.scheduler = "dovetail".into();
            pod.meta.labels = serde_json::from_value(labels.clone()).expect("labels");
            objects.pods.insert(key, pod);
        }
        described.iter().for_each(|object| see(&mut objects, object));
        of(&objects)
    }

    fn served(planned: &Planned) -> u32 {
        planned.plan.accepted.iter().sum()
    }

    fn of_group() -> Value {
        json!({"scheduling.x-k8s.io/pod-group": "gang"})
    }

    /// A group of which so many pods start together.
    fn group(min: u32) -> Value {
        json!({"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
            "metadata": {"name": "gang", "namespace": "n",
                "labels": {"dovetail.dev/queue": "small"}},
            "spec": {"minMember": min}})
    }

    #[test]
    fn a_gang_is_served_with_as_many_pods_as_start_together() {
        assert_eq!(served(&plan(&of_group(), &[])), 0);
        let with_group = |min: u32| served(&plan(&of_group(), &[group(min)]));
        assert_eq!([0, 1, 2, 3].map(with_group), [2, 2, 2, 0]);
        // Another scheduler's group of this name describes other gangs.
        let mut of_volcano = group(2);
        of_volcano["apiVersion"] = json!("scheduling.volcano.sh/v1beta1");
        assert_eq!(served(&plan(&of_group(), &[of_volcano])), 0);
        let indexed = json!({"batch.kubernetes.io/job-name": "job",
            "batch.kubernetes.io/job-completion-index": "0"});
        let with_job = |completions: u32| {
            let job = json!({"apiVersion": "batch/v1", "kind": "Job",
                "metadata": {"name": "job", "namespace": "n"},
                "spec": {"completions": completions, "parallelism": 3,
                    "completionMode": "Indexed"}});
            served(&plan(&indexed, &[job]))
        };
        assert_eq!([3, 9].map(with_job), [0, 2]);
    }

    #[test]
    fn no_layout_changes_for_a_gang_that_lacks_pods() {
        let planned = plan(&of_group(), &[group(4)]);
        assert_eq!((served(&planned), planned.plan.created()), (0, 0));
        let left = BTreeMap::from([(TOO_FEW_PODS.to_owned(), 3)]);
        assert_eq!(planned.fleet.not_planned, left);
    }

    /// The label of the group names the queue.
    #[test]
    fn a_gang_needs_quota_only_for_the_pods_that_start_together() {
        let with_limit = |limit: u32| {
            let queue = json!({"apiVersion": "dovetail.dev/v1alpha1", "kind": "Queue",
                "metadata": {"name": "small"},
                "spec": {"limit": {"nvidia.com/mig-3g.40gb": limit}},
                "status": {"used": {}}});
            let planned = plan(&of_group(), &[group(2), queue]);
            (served(&planned), planned.fleet.not_planned)
        };
        let left = |why: &str, pods: usize| BTreeMap::from([(why.to_owned(), pods)]);
        assert_eq!(with_limit(3), (2, BTreeMap::new()));
        assert_eq!(with_limit(2), (2, left(NO_QUOTA, 1)));
        assert_eq!(with_limit(1), (0, left(IN_PART, 3)));
        assert_eq!(with_limit(0), (0, left(NO_QUOTA, 3)));
    }
}
