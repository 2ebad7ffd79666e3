//! The requests of single writes about pods and claims. Each names the UID, so that it may be sent
//! again: another object of the same name is never meant.

use dovetail_cluster::world::{
    ClaimKey, ClaimPart, ClaimWrite, LastingOwner, PodKey, SuspendedJob,
};
use dovetail_objects::labels::{PREEMPTION, SUSPENDED};
use dovetail_objects::{DISRUPTION_TARGET, SELECTED_NODE};
use dovetail_objects::{Kind, WorkloadKind};
use serde_json::{Value, json};

use super::eviction::{EvictionCause, Leaves};
use super::step::OrderWrite;
use crate::announce::{PodCondition, condition_patch, timestamp};
use crate::request::{ApiRequest, JSON, JSON_PATCH, MERGE, Method, RequestClass, STRATEGIC_MERGE};

/// How a node is named that is freed for a pod, and what the pod says of that: in one write, so
/// that people never read of two nodes. The condition is written to the version of the pod that was
/// seen waiting, else to the one that is there, if that has no node. If others go on writing to the
/// pod, the node is written alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Nomination {
    /// Node and condition, to the version that was seen.
    Both,
    /// The pod is read for its version.
    Reading,
    /// Node and condition, to this version.
    BothTo(String),
    /// The node alone.
    Alone,
}

impl Nomination {
    /// The first try.
    pub(super) fn first(step: &OrderWrite) -> Self {
        match step {
            OrderWrite::Nominate(_, _, Some(_)) => Self::Both,
            _ => Self::Alone,
        }
    }

    /// What comes next where the answer to this one is not the last word.
    pub(super) fn next(&self, pod: &PodKey, code: u16, body: &[u8]) -> Option<Self> {
        match (self, code) {
            (Self::Both, 409) => Some(Self::Reading),
            (Self::Reading, 200) => version_that_waits(body, pod).map(Self::BothTo),
            (Self::BothTo(_), 409) => Some(Self::Alone),
            _ => None,
        }
    }
}

/// The request of a step. `scheduler`: name of the scheduler, as pods name it.
pub(super) fn request(
    step: &OrderWrite,
    nomination: &Nomination,
    scheduler: &str,
    wall_ms: u64,
) -> ApiRequest {
    match step {
        OrderWrite::WouldMark(pod, why) => {
            let target = target("True", why.reason(), &why.message(scheduler), wall_ms);
            patch_status(pod, "?dryRun=All", &with_uid(pod, &target))
        }
        OrderWrite::Mark(pod, why) | OrderWrite::SayWhy(pod, why) => {
            let target = target("True", why.reason(), &why.message(scheduler), wall_ms);
            patch_status(pod, "", &with_uid(pod, &target))
        }
        OrderWrite::Unmark(pod, kept) => {
            let target = target("False", kept.reason(), &kept.message(scheduler), wall_ms);
            patch_status(pod, "", &with_uid(pod, &target))
        }
        // Where a request has options in its body, the server reads none in the address.
        OrderWrite::WouldLeave(pod, how) => leave(
            pod,
            *how,
            &json!({"kind": "DeleteOptions", "apiVersion": "v1",
            "preconditions": {"uid": pod.uid}, "dryRun": ["All"]}),
        ),
        OrderWrite::Leave(pod, how) => leave(
            pod,
            *how,
            &json!({"kind": "DeleteOptions", "apiVersion": "v1",
            "preconditions": {"uid": pod.uid}}),
        ),
        OrderWrite::WouldSuspend(_, job, why) => suspend(job, *why, "?dryRun=All", wall_ms),
        OrderWrite::Suspend(_, job, why) => suspend(job, *why, "", wall_ms),
        OrderWrite::Resume(job) => resume(job),
        OrderWrite::Nominate(pod, node, says) => nominate(pod, node, says.as_deref(), nomination),
        OrderWrite::SelectNode(claim, version, node) => select_node(claim, version, node),
        OrderWrite::WriteClaim(write) => write_claim(write),
    }
}

fn nominate(
    pod: &PodKey,
    node: &str,
    says: Option<&PodCondition>,
    nomination: &Nomination,
) -> ApiRequest {
    let node = json!((!node.is_empty()).then_some(node));
    let patch = match (nomination, says) {
        (Nomination::Reading, _) => return ApiRequest::read_pod(pod),
        (Nomination::Both, Some(says)) => both(&node, says),
        (Nomination::BothTo(version), Some(says)) => {
            both(&node, &PodCondition { resource_version: version.clone(), ..says.clone() })
        }
        (Nomination::Alone, _) | (_, None) => with_uid(pod, &json!({"nominatedNodeName": node})),
    };
    patch_status(pod, "", &patch)
}

/// A patch of both.
fn both(node: &Value, says: &PodCondition) -> Value {
    let mut patch = condition_patch(says);
    patch["status"]["nominatedNodeName"] = node.clone();
    patch
}

/// The version of a pod as it was read, if it is this one and has no node.
fn version_that_waits(read: &[u8], pod: &PodKey) -> Option<String> {
    let read: Value = serde_json::from_slice(read).ok()?;
    let has_node = read["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let waits = read["metadata"]["uid"] == *pod.uid && !has_node;
    read["metadata"]["resourceVersion"].as_str().filter(|_| waits).map(str::to_owned)
}

/// A status with the condition `DisruptionTarget`.
fn target(status: &str, reason: &str, message: &str, wall_ms: u64) -> Value {
    let now = format!("{:.0}", timestamp(wall_ms));
    let condition = json!({"type": DISRUPTION_TARGET, "status": status, "reason": reason,
        "message": message, "lastTransitionTime": now});
    json!({"conditions": [condition]})
}

fn with_uid(pod: &PodKey, status: &Value) -> Value {
    json!({"metadata": {"uid": pod.uid}, "status": status})
}

fn patch_status(pod: &PodKey, options: &str, patch: &Value) -> ApiRequest {
    let path = format!("/api/v1/namespaces/{}/pods/{}/status{options}", pod.namespace, pod.name);
    let body = (STRATEGIC_MERGE, patch.to_string().into_bytes());
    ApiRequest::new(RequestClass::Order, Method::Patch, path, body)
}

fn leave(pod: &PodKey, how: Leaves, options: &Value) -> ApiRequest {
    let PodKey { namespace, name, .. } = pod;
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
    let (method, path, body) = match how {
        Leaves::Deleted => (Method::Delete, path, options.to_string()),
        Leaves::Evicted => {
            let eviction = json!({"kind": "Eviction", "apiVersion": "policy/v1",
                "metadata": {"namespace": namespace, "name": name}, "deleteOptions": options});
            (Method::Post, format!("{path}/eviction"), eviction.to_string())
        }
    };
    ApiRequest::new(RequestClass::Order, method, path, (JSON, body.into_bytes()))
}

/// In one write the Job or JobSet is suspended and says so, if it still wants that and nobody else
/// has suspended it: what it says is what it is resumed by. That it wants it is an annotation, so
/// that there are annotations to add to. Where the answer is lost, the same write again is refused:
/// the pods leave all the same, and the Job is resumed by what it says.
///
/// The server sets no default in a JobSet: a test for `false` fails where it says nothing. Tested
/// is then that it was not suspended by dovetail before.
fn suspend(job: &LastingOwner, why: EvictionCause, options: &str, wall_ms: u64) -> ApiRequest {
    let mark = format!("{} {:.3}", why.reason(), timestamp(wall_ms));
    let is_running = match job.kind {
        Kind::Workload(WorkloadKind::JobSet) => {
            json!({"op": "test", "path": annotation(SUSPENDED), "value": null})
        }
        _ => json!({"op": "test", "path": "/spec/suspend", "value": false}),
    };
    let patch = json!([
        {"op": "test", "path": "/metadata/uid", "value": job.uid},
        {"op": "test", "path": annotation(PREEMPTION), "value": "suspend"},
        is_running,
        {"op": "add", "path": "/spec/suspend", "value": true},
        {"op": "add", "path": annotation(SUSPENDED), "value": mark},
    ]);
    patch_job(job, options, &patch)
}

/// A Job whose owner has taken the mark away, or has resumed it, stays as it is.
fn resume(SuspendedJob { job, mark }: &SuspendedJob) -> ApiRequest {
    let patch = json!([
        {"op": "test", "path": "/metadata/uid", "value": job.uid},
        {"op": "test", "path": annotation(SUSPENDED), "value": mark},
        {"op": "test", "path": "/spec/suspend", "value": true},
        {"op": "replace", "path": "/spec/suspend", "value": false},
        {"op": "remove", "path": annotation(SUSPENDED)},
    ]);
    patch_job(job, "", &patch)
}

/// The place of an annotation in an object.
fn annotation(name: &str) -> String {
    format!("/metadata/annotations/{}", name.replace('/', "~1"))
}

fn patch_job(job: &LastingOwner, options: &str, patch: &Value) -> ApiRequest {
    let LastingOwner { kind, namespace, name, .. } = job;
    let (group, version, plural) = (kind.group(), kind.version(), kind.plural());
    let path = format!("/apis/{group}/{version}/namespaces/{namespace}/{plural}/{name}{options}");
    let body = (JSON_PATCH, patch.to_string().into_bytes());
    ApiRequest::new(RequestClass::Order, Method::Patch, path, body)
}

fn write_claim(write: &ClaimWrite) -> ApiRequest {
    let ClaimKey { namespace, name, uid } = &write.claim;
    let all = format!("/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims");
    let patch = write.patch.to_string();
    let (method, path, body) = match &write.what {
        ClaimPart::New => (Method::Post, all, (JSON, patch)),
        ClaimPart::Metadata => (Method::Patch, format!("{all}/{name}"), (MERGE, patch)),
        ClaimPart::Status => (Method::Patch, format!("{all}/{name}/status"), (MERGE, patch)),
        ClaimPart::Deletion => {
            let options = json!({"kind": "DeleteOptions", "apiVersion": "v1",
                "preconditions": {"uid": uid}});
            (Method::Delete, format!("{all}/{name}"), (JSON, options.to_string()))
        }
        ClaimPart::Pod(pod) => {
            let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/status");
            (Method::Patch, path, (MERGE, patch))
        }
    };
    let (content, body) = body;
    ApiRequest::new(RequestClass::Claim, method, path, (content, body.into_bytes()))
}

fn select_node(claim: &ClaimKey, version: &str, node: &str) -> ApiRequest {
    let ClaimKey { namespace, name, uid } = claim;
    let path = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}");
    let body = json!({"metadata": {"uid": uid, "resourceVersion": version,
        "annotations": {SELECTED_NODE: node}}});
    ApiRequest::new(
        RequestClass::Claim,
        Method::Patch,
        path,
        (MERGE, body.to_string().into_bytes()),
    )
}

#[cfg(test)]
mod tests {
    use dovetail_model::{PendingReason, PreemptReason};

    use super::*;
    use crate::status::WaitingReason;

    fn key() -> PodKey {
        PodKey { namespace: "n".into(), name: "p".into(), uid: "u".into() }
    }

    fn nomination() -> OrderWrite {
        let text = str::to_owned;
        let waiting =
            WaitingReason::pending(PendingReason::WaitingForReservation, text("kept on n1"));
        let says =
            PodCondition { pod: key(), resource_version: text("7"), waiting, since_ms: Some(0) };
        OrderWrite::Nominate(key(), text("n1"), Some(Box::new(says)))
    }

    fn body(step: &OrderWrite, nomination: &Nomination) -> Value {
        serde_json::from_slice(&request(step, nomination, "s", 0).body).unwrap_or_default()
    }

    #[test]
    fn one_patch_names_the_node_and_says_so_to_one_version_of_the_pod() {
        let condition = json!({"type": "PodScheduled", "status": "False",
            "reason": "WaitingForReservation", "message": "kept on n1",
            "lastTransitionTime": "1970-01-01T00:00:00Z"});
        let expected = json!({"metadata": {"uid": "u", "resourceVersion": "7"},
            "status": {"conditions": [condition], "nominatedNodeName": "n1"}});
        assert_eq!(body(&nomination(), &Nomination::Both), expected);
    }

    #[test]
    fn a_pod_that_changed_is_read_and_if_it_goes_on_changing_its_node_is_written_alone() {
        let pod = |uid: &str, node: &str| {
            let pod = json!({"metadata": {"uid": uid, "resourceVersion": "9"},
                "spec": {"nodeName": node}});
            pod.to_string().into_bytes()
        };
        let first = Nomination::first(&nomination());
        let reading = first.next(&key(), 409, b"").expect("a read");
        let read = request(&nomination(), &reading, "s", 0);
        assert_eq!((read.class, read.method), (RequestClass::Read, Method::Get));
        let versions = [("u", ""), ("u", "n0"), ("other", "")]
            .map(|(uid, node)| reading.next(&key(), 200, &pod(uid, node)));
        let again = Nomination::BothTo("9".to_owned());
        assert_eq!(versions, [Some(again.clone()), None, None]);
        assert_eq!(body(&nomination(), &again)["metadata"]["resourceVersion"], "9");
        let alone = again.next(&key(), 409, b"").expect("the node alone");
        let expected = json!({"metadata": {"uid": "u"}, "status": {"nominatedNodeName": "n1"}});
        assert_eq!(body(&nomination(), &alone), expected);
        assert_eq!(alone.next(&key(), 409, b""), None);
    }

    #[test]
    fn a_question_changes_nothing() {
        let mark = request(
            &OrderWrite::WouldMark(key(), EvictionCause::Preempted(PreemptReason::Priority)),
            &Nomination::Alone,
            "s",
            0,
        );
        assert!(mark.path.ends_with("/status?dryRun=All"), "{}", mark.path);
        for (how, options) in [(Leaves::Deleted, ""), (Leaves::Evicted, "/deleteOptions")] {
            let options = |step: &OrderWrite| {
                let body = body(step, &Nomination::Alone);
                body.pointer(options).cloned().unwrap_or_default()
            };
            assert_eq!(options(&OrderWrite::WouldLeave(key(), how))["dryRun"], json!(["All"]));
            assert_eq!(options(&OrderWrite::Leave(key(), how))["dryRun"], Value::Null);
            assert_eq!(options(&OrderWrite::Leave(key(), how))["preconditions"]["uid"], "u");
        }
    }

    #[test]
    fn each_part_of_a_claim_is_written_at_its_own_address() {
        let claim = ClaimKey { namespace: "n".into(), name: "c".into(), uid: "u".into() };
        let made = |what| {
            let (claim, version) = (claim.clone(), "7".into());
            let write = Box::new(ClaimWrite { claim, version, what, patch: json!({"a": 1}) });
            request(&OrderWrite::WriteClaim(write), &Nomination::Alone, "s", 0)
        };
        let all = "/apis/resource.k8s.io/v1/namespaces/n/resourceclaims";
        for (what, method, path) in [
            (ClaimPart::New, Method::Post, all.to_owned()),
            (ClaimPart::Metadata, Method::Patch, format!("{all}/c")),
            (ClaimPart::Status, Method::Patch, format!("{all}/c/status")),
            (ClaimPart::Deletion, Method::Delete, format!("{all}/c")),
            (
                ClaimPart::Pod("p".into()),
                Method::Patch,
                "/api/v1/namespaces/n/pods/p/status".to_owned(),
            ),
        ] {
            let made = made(what);
            assert_eq!((made.method, made.path), (method, path));
        }
        let deletion: Value = serde_json::from_slice(&made(ClaimPart::Deletion).body).unwrap();
        assert_eq!(deletion["preconditions"]["uid"], "u", "never another claim of its name");
    }

    #[test]
    fn only_priority_deletes_a_pod_and_budgets_are_asked_for_every_other_reason() {
        let made = |reason| {
            let step = OrderWrite::Leave(key(), EvictionCause::Preempted(reason).leaves());
            let made = request(&step, &Nomination::Alone, "s", 0);
            (made.method, made.path)
        };
        let pod = "/api/v1/namespaces/n/pods/p".to_owned();
        assert_eq!(made(PreemptReason::Priority), (Method::Delete, pod.clone()));
        for reason in [PreemptReason::Order, PreemptReason::Reclaim] {
            assert_eq!(made(reason), (Method::Post, format!("{pod}/eviction")));
        }
    }
}
