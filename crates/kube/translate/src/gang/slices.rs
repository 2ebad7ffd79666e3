//! Slices: pods of one role by number, so many at a time, each slice in a domain of its own or with
//! others. Kueue calls them podset slices, KAI segments.

use std::borrow::Cow;
use std::collections::BTreeMap;

use dovetail_model::TopologyRequest;
use dovetail_objects::labels::{
    JOB_SET_EXCLUSIVE_TOPOLOGY as EXCLUSIVE_TOPOLOGY, KAI_SEGMENT_PREFERRED, KAI_SEGMENT_REQUIRED,
    KAI_SEGMENT_SIZE, KUEUE_PREFERRED, KUEUE_REQUIRED, KUEUE_SLICE_CONSTRAINTS,
    KUEUE_SLICE_REQUIRED, KUEUE_SLICE_SIZE,
};
use dovetail_objects::{Pod, WorkloadKind, has_exclusive_domains};

use super::job::COMPLETION_INDEX;
use super::{
    GangName, GangSource, GangTerms, NotYet, RoleSource, RoleTerms, Slices, count, impossible, same,
};
use crate::levels::KnownLevels;

/// Label of pods whose domains Kueue itself has chosen: it writes them into their node selectors.
const PLACED_BY_KUEUE: &str = "kueue.x-k8s.io/tas";

/// How a tool writes slices: required level, preferred level, size.
const WRITTEN: [(&str, &str, &str); 2] = [
    (KUEUE_SLICE_REQUIRED, "", KUEUE_SLICE_SIZE),
    (KAI_SEGMENT_REQUIRED, KAI_SEGMENT_PREFERRED, KAI_SEGMENT_SIZE),
];

impl Slices {
    /// The role of a pod with the number of its slice, if its role has slices.
    pub(super) fn role_of<'p>(&self, source: GangSource, pod: &'p Pod) -> Cow<'p, str> {
        let role = source.role_of(pod);
        match (self.0.get(&*role), number_of(source, pod)) {
            (Some(size), Some((outer, number))) => Cow::Owned(slice(&role, outer, number / size)),
            _ => role,
        }
    }
}

/// The terms of a gang with the slices that its pods ask for. Parts must be told by roles.
pub(super) fn divide(
    gang: &GangName,
    members: &[&Pod],
    levels: KnownLevels<'_>,
    terms: GangTerms,
) -> Result<GangTerms, NotYet> {
    let mut by_role: BTreeMap<Box<str>, Vec<&Pod>> = BTreeMap::new();
    for pod in members {
        let role = gang.source.role_of(pod);
        by_role.entry((&*role).into()).or_default().push(pod);
    }
    let mut wanted: Vec<(Box<str>, u32, TopologyRequest)> = Vec::new();
    for (role, pods) in &by_role {
        if let Some((size, topology)) = asked(gang, pods, levels)? {
            wanted.push((role.clone(), size, topology));
        }
    }
    if wanted.is_empty() {
        return Ok(terms);
    }
    if terms.parts.have_places() || terms.min != terms.expected {
        let problem = "its pods request slices, which dovetail does not support yet in a gang that \
             has subgroups or may start with fewer pods than it has: keep only one";
        return Err(impossible(gang, problem.to_owned()));
    }
    let mut roles = match terms.roles.is_empty() {
        true if by_role.len() == 1 => vec![RoleTerms::anywhere("", terms.min)],
        _ => terms.roles.clone(),
    };
    let mut slices = Slices::default();
    for (name, size, topology) in wanted {
        let at = roles.iter().position(|role| role.name == name);
        let at = at.ok_or_else(|| {
            let problem =
                "its pods request slices, but the number of its pods is unknown".to_owned();
            impossible(gang, problem)
        })?;
        let pods = roles.remove(at).min;
        if pods == 0 {
            let problem = "its pods request slices, but each of them starts by itself".to_owned();
            return Err(impossible(gang, problem));
        }
        let of_role = by_role.get(&name).map_or(&[] as &[_], Vec::as_slice);
        let each = pods / of_role.first().map_or(1, |pod| alike(gang.source, pod));
        if !each.is_multiple_of(size) {
            let problem = format!(
                "slices of {size} pods do not divide {each} pods evenly: use a size that does"
            );
            return Err(impossible(gang, problem));
        }
        slices.0.insert(name.clone(), size);
        for (outer, number) in of_role.iter().filter_map(|pod| number_of(gang.source, pod)) {
            let name: Box<str> = slice(&name, outer, number / size).into();
            if !roles.iter().any(|role| role.name == name) {
                roles.push(RoleTerms { name, min: size, topology: topology.clone() });
            }
        }
    }
    roles.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(GangTerms { roles, parts: RoleSource::Slices(slices), ..terms })
}

/// The slices that the pods of one role ask for: their size and where each must and should be.
fn asked(
    gang: &GangName,
    pods: &[&Pod],
    levels: KnownLevels<'_>,
) -> Result<Option<(u32, TopologyRequest)>, NotYet> {
    let by_kueue = |pod: &&&Pod| pod.meta.labels.get(PLACED_BY_KUEUE).is_some();
    let Some(first) = pods.first().filter(|pod| !by_kueue(pod)) else { return Ok(None) };
    let of = |pod: &Pod, annotation: &str| pod.meta.annotations.get(annotation).map(str::to_owned);
    let refused = |problem: String| Err(impossible(gang, problem));
    if of(first, KUEUE_SLICE_CONSTRAINTS).is_some() {
        return refused(format!(
            "annotation {KUEUE_SLICE_CONSTRAINTS} requests slices of slices, which dovetail does \
             not support yet: use {KUEUE_SLICE_REQUIRED} with {KUEUE_SLICE_SIZE}"
        ));
    }
    let mut found = None;
    for (required, preferred, size) in WRITTEN {
        for annotation in [required, preferred, size].into_iter().filter(|a| !a.is_empty()) {
            same(gang, pods, annotation, |pod| pod.meta.annotations.get(annotation).unwrap_or(""))?;
        }
        let level = |annotation: &str| {
            let label = of(first, annotation);
            let level = label.map(|label| levels.labelled(&label)).transpose();
            level.map_err(|problem| impossible(gang, problem))
        };
        let topology = TopologyRequest { required: level(required)?, preferred: level(preferred)? };
        let is_placed = topology != TopologyRequest::default();
        match (count(gang, size, of(first, size).as_deref())?, is_placed) {
            (None, false) => {}
            (Some(_), true) if found.is_some() => {
                return refused(format!(
                    "both {KUEUE_SLICE_SIZE} and {size} are set: keep only one"
                ));
            }
            (Some(size), true) => found = Some((size, topology)),
            (None, true) => {
                return refused(format!(
                    "annotation {size} is missing: set it to the number of pods in a slice"
                ));
            }
            (Some(_), false) => {
                return refused(format!(
                    "annotation {size} is set without {required}: set both or neither"
                ));
            }
        }
    }
    if let Some((size, topology)) = found {
        return beside(gang, pods).map(|()| Some((size, topology)));
    }
    Ok(None)
}

/// That nothing stands beside slices which goes against them, and that each pod says in which one
/// it is.
fn beside(gang: &GangName, pods: &[&Pod]) -> Result<(), NotYet> {
    let refused = |problem: String| Err(impossible(gang, problem));
    let has =
        |annotation: &str| pods.iter().any(|pod| pod.meta.annotations.get(annotation).is_some());
    if let Some(annotation) = [KUEUE_REQUIRED, KUEUE_PREFERRED].into_iter().find(|one| has(one)) {
        return refused(format!(
            "annotation {annotation} is set together with slices, which dovetail does not support \
             yet: request the level of the whole gang with dovetail.dev/topology-required or \
             dovetail.dev/topology-preferred"
        ));
    }
    if let Some(pod) = pods.iter().find(|pod| number_of(gang.source, pod).is_none()) {
        return refused(format!(
            "its pods request slices, but its pod {} has no index label, which determines its \
             slice",
            pod.meta.name
        ));
    }
    match pods.iter().any(|pod| has_exclusive_domains(&pod.meta)) {
        true => refused(format!("its pods request slices and {EXCLUSIVE_TOPOLOGY}: keep only one")),
        false => Ok(()),
    }
}

/// The role of the pods of a slice.
fn slice(role: &str, outer: &str, number: u32) -> String {
    let place = [role, outer].into_iter().filter(|part| !part.is_empty());
    place.chain(["slice"]).collect::<Vec<_>>().join("/") + &format!("-{number}")
}

/// How many alike there are of what a pod is part of: the Jobs of a replicated Job.
fn alike(source: GangSource, pod: &Pod) -> u32 {
    match source {
        GangSource::Workload(WorkloadKind::JobSet) => {
            let replicas = pod.meta.labels.get("jobset.sigs.k8s.io/replicatedjob-replicas");
            replicas.and_then(|replicas| replicas.parse().ok()).unwrap_or(1).max(1)
        }
        _ => 1,
    }
}

/// Which of several alike a pod is part of, and its number there.
fn number_of(source: GangSource, pod: &Pod) -> Option<(&str, u32)> {
    let labels = &pod.meta.labels;
    let (outer, label) = match source {
        GangSource::Kueue => ("", "kueue.x-k8s.io/pod-group-pod-index"),
        GangSource::Workload(WorkloadKind::Job) => ("", COMPLETION_INDEX),
        GangSource::Workload(WorkloadKind::JobSet) => {
            (labels.get("jobset.sigs.k8s.io/job-index")?, COMPLETION_INDEX)
        }
        GangSource::Workload(WorkloadKind::RayCluster | WorkloadKind::LeaderWorkerSet) => {
            return None;
        }
        GangSource::Workload(_) => ("", "training.kubeflow.org/replica-index"),
        _ => ("", COMPLETION_INDEX),
    };
    Some((outer, labels.get(label)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::{pod, read, read_workload};
    use super::*;

    /// A pod of a group of four or so, as Kueue numbers them.
    fn member(number: u32, annotations: Value) -> Pod {
        let mut all = json!({"kueue.x-k8s.io/pod-group-total-count": "4"});
        all.as_object_mut().unwrap().extend(annotations.as_object().unwrap().clone());
        let labels = json!({"kueue.x-k8s.io/pod-group-name": "train",
            "kueue.x-k8s.io/pod-group-pod-index": number.to_string()});
        pod(&format!("p{number}"), json!({"metadata": {"labels": labels, "annotations": all}}))
    }

    fn terms_of(annotations: Value) -> Result<GangTerms, String> {
        read(None, &[0, 1, 2, 3].map(|number| member(number, annotations.clone())))
    }

    fn roles(terms: &GangTerms) -> Vec<(&str, u32, Option<&str>)> {
        let roles = terms.roles.iter();
        roles.map(|r| (&*r.name, r.min, r.topology.required.as_deref())).collect()
    }

    #[test]
    fn so_many_pods_by_number_share_a_domain() {
        let slices = [("slice-0", 2, Some("rack")), ("slice-1", 2, Some("rack"))];
        let kueue = json!({"kueue.x-k8s.io/podset-slice-required-topology": "example.com/rack",
            "kueue.x-k8s.io/podset-slice-size": "2"});
        let terms = terms_of(kueue).unwrap();
        assert_eq!((roles(&terms), terms.min), (slices.to_vec(), 4));
        let role = |number| {
            terms.parts.role_of(GangSource::Kueue, &member(number, json!({}))).into_owned()
        };
        assert_eq!([0, 1, 2, 3].map(role), ["slice-0", "slice-0", "slice-1", "slice-1"]);
        let kai = json!({"kai.scheduler/segment-topology-required-placement": "example.com/rack",
            "kai.scheduler/segment-size": "2"});
        assert_eq!(roles(&terms_of(kai).unwrap()), slices);
    }

    #[test]
    fn slices_of_a_job_set_are_within_its_jobs() {
        let annotations = json!({"kueue.x-k8s.io/podset-slice-required-topology": "kubernetes.io/hostname",
            "kueue.x-k8s.io/podset-slice-size": "2"});
        let member = |job: u32, index: u32| {
            let labels = json!({"jobset.sigs.k8s.io/jobset-name": "train",
                "jobset.sigs.k8s.io/replicatedjob-name": "workers",
                "jobset.sigs.k8s.io/replicatedjob-replicas": "2",
                "jobset.sigs.k8s.io/job-index": job.to_string(),
                "batch.kubernetes.io/job-completion-index": index.to_string()});
            let meta = json!({"labels": labels, "annotations": annotations});
            pod(&format!("w-{job}-{index}"), json!({"metadata": meta}))
        };
        let job_set = |pods: u32| {
            let template = json!({"spec": {"parallelism": pods, "completions": pods,
                "completionMode": "Indexed"}});
            let jobs = json!([{"name": "workers", "replicas": 2, "template": template}]);
            Some(
                json!({"metadata": {"name": "train", "namespace": "blue"}, "spec": {"replicatedJobs": jobs}}),
            )
        };
        let pods = [member(0, 0), member(0, 3), member(1, 1)];
        let terms = read_workload(WorkloadKind::JobSet, job_set(4), &pods).unwrap();
        let node = Some("node");
        assert_eq!(
            roles(&terms),
            [
                ("workers/0/slice-0", 2, node),
                ("workers/0/slice-1", 2, node),
                ("workers/1/slice-0", 2, node)
            ]
        );
        assert_eq!(terms.min, 8);
        let uneven = read_workload(WorkloadKind::JobSet, job_set(3), &pods).unwrap_err();
        assert!(uneven.contains("slices of 2 pods do not divide 3 pods evenly"), "{uneven}");
    }

    #[test]
    fn what_slices_cannot_say_is_refused_by_the_name_of_its_annotation() {
        let required = "kueue.x-k8s.io/podset-slice-required-topology";
        let size = "kueue.x-k8s.io/podset-slice-size";
        let rack = "example.com/rack";
        let table = [
            (json!({required: rack}), format!("annotation {size} is missing")),
            (json!({size: "2"}), format!("annotation {size} is set without {required}")),
            (
                json!({required: rack, size: "3"}),
                "slices of 3 pods do not divide 4 pods evenly".to_owned(),
            ),
            (json!({required: rack, size: "0"}), format!("annotation {size} is `0`")),
            (
                json!({required: rack, size: "2", "kueue.x-k8s.io/podset-required-topology": rack}),
                "annotation kueue.x-k8s.io/podset-required-topology is set together with slices"
                    .to_owned(),
            ),
            (
                json!({"kueue.x-k8s.io/podset-slice-required-topology-constraints": "[]"}),
                "annotation kueue.x-k8s.io/podset-slice-required-topology-constraints requests"
                    .to_owned(),
            ),
        ];
        for (annotations, problem) in table {
            let text = terms_of(annotations).unwrap_err();
            assert!(text.starts_with(&format!("Kueue pod group blue/train: {problem}")), "{text}");
        }
    }
}
