//! The conformance script: what a scheduler asks of a server, and what it may be refused.

use crate::script::Step;

macro_rules! steps {
    ($($name:literal: $request:literal $(=> $body:literal)?;)*) => {
        &[$(Step { name: $name, request: $request, body: concat!($($body)?) }),*]
    };
}

/// Pods: creation, reading, lists, watches.
pub(crate) const READING: &[Step] = steps! {
    "namespace": "POST /api/v1/namespaces" => r#"{"metadata": {"name": "{ns}"}}"#;
    "pod": "POST /api/v1/namespaces/{ns}/pods" => r#"{"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p1", "labels": {"app": "a"}},
        "spec": {"schedulerName": "dovetail", "containers": [{"name": "c", "image": "i:1",
            "resources": {"limits": {"cpu": "1", "nvidia.com/gpu": "1"}}, "ports": [{"containerPort": 80}]}]}}"#;
    "the same pod again": "POST /api/v1/namespaces/{ns}/pods" => r#"{"metadata": {"name": "p1"},
        "spec": {"containers": [{"name": "c", "image": "i"}]}}"#;
    "pod in a namespace that is missing": "POST /api/v1/namespaces/{ns}-not/pods" =>
        r#"{"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}"#;
    "pod without containers": "POST /api/v1/namespaces/{ns}/pods" =>
        r#"{"metadata": {"name": "p"}, "spec": {"containers": []}}"#;
    "pod with a bad name": "POST /api/v1/namespaces/{ns}/pods" =>
        r#"{"metadata": {"name": "Bad_Name"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}"#;
    "pod for another namespace": "POST /api/v1/namespaces/{ns}/pods" =>
        r#"{"metadata": {"name": "p", "namespace": "default"},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}"#;
    "pod that has a version": "POST /api/v1/namespaces/{ns}/pods" =>
        r#"{"metadata": {"name": "p", "resourceVersion": "5"},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}"#;
    "pod of an unknown priority class": "POST /api/v1/namespaces/{ns}/pods" =>
        r#"{"metadata": {"name": "p"}, "spec": {"priorityClassName": "no-such-class",
            "containers": [{"name": "c", "image": "i"}]}}"#;
    "gated pod": "POST /api/v1/namespaces/{ns}/pods" => r#"{"metadata": {"name": "p2"},
        "spec": {"schedulingGates": [{"name": "example.com/wait"}],
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "c", "image": "i:latest",
                "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]}}"#;
    "third pod": "POST /api/v1/namespaces/{ns}/pods" => r#"{"metadata": {"name": "p3", "labels": {"app": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"memory": "1Gi"}}}]}}"#;
    "get": "GET /api/v1/namespaces/{ns}/pods/p1";
    "get what is missing": "GET /api/v1/namespaces/{ns}/pods/p9";
    "list": "GET /api/v1/namespaces/{ns}/pods";
    "list, first page": "GET /api/v1/namespaces/{ns}/pods?limit=2";
    "list, last page": "GET /api/v1/namespaces/{ns}/pods?limit=2&continue={continue}";
    "list with a bad token": "GET /api/v1/namespaces/{ns}/pods?limit=2&continue=abc";
    "list by label": "GET /api/v1/namespaces/{ns}/pods?labelSelector=app%20in%20(a,c)";
    "list without label, paged": "GET /api/v1/namespaces/{ns}/pods?labelSelector=app!=x&limit=1";
    "list by field": "GET /api/v1/namespaces/{ns}/pods?fieldSelector=spec.schedulerName=dovetail,spec.nodeName=";
    "list by an unknown field": "GET /api/v1/namespaces/{ns}/pods?fieldSelector=spec.image=i";
    "list from the cache": "GET /api/v1/namespaces/{ns}/pods?resourceVersion=0&labelSelector=app=a";
    "list of the future": "GET /api/v1/namespaces/{ns}/pods?resourceVersion=999999999";
    "list with a match but no version": "GET /api/v1/namespaces/{ns}/pods?resourceVersionMatch=Exact";
    "list that asks for initial events": "GET /api/v1/namespaces/{ns}/pods?sendInitialEvents=true";
    "version to watch from": "GET /api/v1/namespaces/{ns}/pods?limit=500";
    "label": "MERGE /api/v1/namespaces/{ns}/pods/p1" => r#"{"metadata": {"labels": {"app": "z"}}}"#;
    "the same label again": "MERGE /api/v1/namespaces/{ns}/pods/p1" => r#"{"metadata": {"labels": {"app": "z"}}}"#;
    "list at the older version": "GET /api/v1/namespaces/{ns}/pods?resourceVersion={rv:list}&resourceVersionMatch=Exact&labelSelector=app=a";
    "version after the label": "GET /api/v1/namespaces/{ns}/pods?limit=500&labelSelector=none";
    "watch what is there": "WATCH:3 /api/v1/namespaces/{ns}/pods?watch=1&timeoutSeconds=5";
    "streaming list": "WATCH:4 /api/v1/namespaces/{ns}/pods?watch=1&timeoutSeconds=5&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    "streaming list without match": "WATCH:1 /api/v1/namespaces/{ns}/pods?watch=1&sendInitialEvents=true";
    "watch until its end": "WATCH:* /api/v1/namespaces/{ns}/pods?watch=1&timeoutSeconds=1&resourceVersion={rv:list}";
};

/// Pods: changes.
pub(crate) const WRITING: &[Step] = steps! {
    "version before the changes": "GET /api/v1/namespaces/{ns}/pods?limit=500";
    "strategic patch of the status": "STRATEGIC /api/v1/namespaces/{ns}/pods/p1/status" =>
        r#"{"status": {"conditions": [{"type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": "no room", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
            "nominatedNodeName": "n7"}}"#;
    "a second condition": "STRATEGIC /api/v1/namespaces/{ns}/pods/p1/status" =>
        r#"{"status": {"conditions": [{"type": "example.com/Other", "status": "True",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}"#;
    "status is not changed by the object's path": "MERGE /api/v1/namespaces/{ns}/pods/p1" =>
        r#"{"status": {"nominatedNodeName": "elsewhere"}, "metadata": {"annotations": {"a": "1"}}}"#;
    "spec is not changed by the status path": "MERGE /api/v1/namespaces/{ns}/pods/p1/status" =>
        r#"{"spec": {"priority": 7}, "metadata": {"annotations": {"b": "2"}}}"#;
    "JSON patch": "JSON /api/v1/namespaces/{ns}/pods/p1" =>
        r#"[{"op": "test", "path": "/metadata/labels/app", "value": "z"},
            {"op": "replace", "path": "/metadata/labels/app", "value": "y"}]"#;
    "JSON patch whose test fails": "JSON /api/v1/namespaces/{ns}/pods/p1" =>
        r#"[{"op": "test", "path": "/metadata/labels/app", "value": "nothing"}]"#;
    "patch of an unknown kind": "ODD /api/v1/namespaces/{ns}/pods/p1" => r#"{}"#;
    "patch of an old version": "MERGE /api/v1/namespaces/{ns}/pods/p1" =>
        r#"{"metadata": {"resourceVersion": "1", "labels": {"app": "x"}}}"#;
    "patch of another UID": "MERGE /api/v1/namespaces/{ns}/pods/p1" =>
        r#"{"metadata": {"uid": "6f1c5d1c-0000-4000-8000-00000000beef", "labels": {"app": "x"}}}"#;
    "patch of what is missing": "MERGE /api/v1/namespaces/{ns}/pods/p9" => r#"{"metadata": {"labels": {"app": "x"}}}"#;
    "patch of the node": "MERGE /api/v1/namespaces/{ns}/pods/p1" => r#"{"spec": {"nodeName": "n1"}}"#;
    "toleration added": "MERGE /api/v1/namespaces/{ns}/pods/p2" =>
        r#"{"spec": {"tolerations": [{"operator": "Exists"}, {"key": "k", "operator": "Exists"}]}}"#;
    "put of an old version": "PUT /api/v1/namespaces/{ns}/pods/p3" =>
        r#"{"metadata": {"name": "p3", "resourceVersion": "1"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}"#;
    "put of another name": "PUT /api/v1/namespaces/{ns}/pods/p3" =>
        r#"{"metadata": {"name": "p4"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}"#;
    "put of what is missing": "PUT /api/v1/namespaces/{ns}/pods/p9" =>
        r#"{"metadata": {"name": "p9"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}"#;
    "what a watch tells of the changes": "WATCH:* /api/v1/namespaces/{ns}/pods?watch=1&resourceVersion={rv:list}&timeoutSeconds=2";
    "what a watch by label tells": "WATCH:* /api/v1/namespaces/{ns}/pods?watch=1&resourceVersion={rv:list}&timeoutSeconds=2&labelSelector=app=z";
};

/// Pods: binding, deletion, eviction.
pub(crate) const BINDING: &[Step] = steps! {
    "bind of another UID": "POST /api/v1/namespaces/{ns}/pods/p1/binding" =>
        r#"{"metadata": {"name": "p1", "uid": "6f1c5d1c-0000-4000-8000-00000000beef"}, "target": {"name": "n1"}}"#;
    "bind of an old version": "POST /api/v1/namespaces/{ns}/pods/p1/binding" =>
        r#"{"metadata": {"name": "p1", "resourceVersion": "1"}, "target": {"name": "n1"}}"#;
    "bind of another name": "POST /api/v1/namespaces/{ns}/pods/p1/binding" =>
        r#"{"metadata": {"name": "p2"}, "target": {"name": "n1"}}"#;
    "bind for another namespace": "POST /api/v1/namespaces/{ns}/pods/p1/binding" =>
        r#"{"metadata": {"name": "p1", "namespace": "default"}, "target": {"name": "n1"}}"#;
    "bind to nothing": "POST /api/v1/namespaces/{ns}/pods/p1/binding" =>
        r#"{"metadata": {"name": "p1"}, "target": {}}"#;
    "bind to something else": "POST /api/v1/namespaces/{ns}/pods/p1/binding" =>
        r#"{"metadata": {"name": "p1"}, "target": {"kind": "Pod", "name": "p2"}}"#;
    "bind to a bad name": "POST /api/v1/namespaces/{ns}/pods/p1/binding" =>
        r#"{"metadata": {"name": "p1"}, "target": {"name": "No_Node"}}"#;
    "bind of a gated pod": "POST /api/v1/namespaces/{ns}/pods/p2/binding" =>
        r#"{"metadata": {"name": "p2"}, "target": {"name": "n1"}}"#;
    "bind of what is missing": "POST /api/v1/namespaces/{ns}/pods/p9/binding" =>
        r#"{"metadata": {"name": "p9"}, "target": {"name": "n1"}}"#;
    "bind in a namespace that is missing": "POST /api/v1/namespaces/{ns}-not/pods/p1/binding" =>
        r#"{"metadata": {"name": "p1"}, "target": {"name": "n1"}}"#;
    "bind": "POST /api/v1/namespaces/{ns}/pods/p1/binding" =>
        r#"{"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p1", "uid": "{uid:p1}",
            "annotations": {"dovetail.dev/epoch": "3", "a": "from the bind"}, "labels": {"zone": "z1"}},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"}}"#;
    "the bound pod": "GET /api/v1/namespaces/{ns}/pods/p1";
    "second bind": "POST /api/v1/namespaces/{ns}/pods/p1/binding" =>
        r#"{"metadata": {"name": "p1", "uid": "{uid:p1}"}, "target": {"name": "n2"}}"#;
    "the same bind again": "POST /api/v1/namespaces/{ns}/pods/p1/binding" =>
        r#"{"metadata": {"name": "p1", "uid": "{uid:p1}"}, "target": {"name": "n1"}}"#;
    "gate removed": "MERGE /api/v1/namespaces/{ns}/pods/p2" => r#"{"spec": {"schedulingGates": null}}"#;
    "deletion of another UID": "DELETE /api/v1/namespaces/{ns}/pods/p1" =>
        r#"{"preconditions": {"uid": "6f1c5d1c-0000-4000-8000-00000000beef"}}"#;
    "deletion of an old version": "DELETE /api/v1/namespaces/{ns}/pods/p1" =>
        r#"{"preconditions": {"resourceVersion": "1"}}"#;
    "version before the deletions": "GET /api/v1/namespaces/{ns}/pods?limit=500";
    "trial of a mark": "STRATEGIC /api/v1/namespaces/{ns}/pods/p1/status?dryRun=All" =>
        r#"{"metadata": {"uid": "{uid:p1}"}, "status": {"conditions": [{"type": "DisruptionTarget", "status": "True",
            "reason": "Tried", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}"#;
    "trial of a mark for another UID": "STRATEGIC /api/v1/namespaces/{ns}/pods/p1/status?dryRun=All" =>
        r#"{"metadata": {"uid": "6f1c5d1c-0000-4000-8000-00000000beef"}, "status": {"phase": "Failed"}}"#;
    "trial of a deletion": "DELETE /api/v1/namespaces/{ns}/pods/p1" =>
        r#"{"dryRun": ["All"], "preconditions": {"uid": "{uid:p1}"}}"#;
    "trial of a deletion of another UID": "DELETE /api/v1/namespaces/{ns}/pods/p1" =>
        r#"{"dryRun": ["All"], "preconditions": {"uid": "6f1c5d1c-0000-4000-8000-00000000beef"}}"#;
    "trial of a deletion in the address": "DELETE /api/v1/namespaces/{ns}/pods/p1?dryRun=All";
    "trial of the deletion of an unbound pod": "DELETE /api/v1/namespaces/{ns}/pods/p2" => r#"{"dryRun": ["All"]}"#;
    "trial of the deletion of what is missing": "DELETE /api/v1/namespaces/{ns}/pods/p9" => r#"{"dryRun": ["All"]}"#;
    "what was tried left no trace": "GET /api/v1/namespaces/{ns}/pods/p1";
    "nor there": "GET /api/v1/namespaces/{ns}/pods/p2";
    "graceful deletion, and a trial in the address": "DELETE /api/v1/namespaces/{ns}/pods/p1?dryRun=All" =>
        r#"{"gracePeriodSeconds": 20, "preconditions": {"uid": "{uid:p1}"}}"#;
    "longer grace changes nothing": "DELETE /api/v1/namespaces/{ns}/pods/p1" => r#"{"gracePeriodSeconds": 30}"#;
    "shorter grace": "DELETE /api/v1/namespaces/{ns}/pods/p1" => r#"{"gracePeriodSeconds": 10}"#;
    "bind of a pod that is being deleted": "POST /api/v1/namespaces/{ns}/pods/p1/binding" =>
        r#"{"metadata": {"name": "p1"}, "target": {"name": "n1"}}"#;
    "the end of a graceful deletion": "DELETE /api/v1/namespaces/{ns}/pods/p1" => r#"{"gracePeriodSeconds": 0}"#;
    "it is gone": "GET /api/v1/namespaces/{ns}/pods/p1";
    "deletion of what is missing": "DELETE /api/v1/namespaces/{ns}/pods/p1";
    "an unbound pod goes at once": "DELETE /api/v1/namespaces/{ns}/pods/p2";
    "pod with a finalizer": "POST /api/v1/namespaces/{ns}/pods" => r#"{"metadata": {"name": "p5",
        "finalizers": ["example.com/keep"]}, "spec": {"containers": [{"name": "c", "image": "i"}]}}"#;
    "it stays": "DELETE /api/v1/namespaces/{ns}/pods/p5";
    "the same pod while it goes": "POST /api/v1/namespaces/{ns}/pods" =>
        r#"{"metadata": {"name": "p5"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}"#;
    "until the finalizer goes": "MERGE /api/v1/namespaces/{ns}/pods/p5" => r#"{"metadata": {"finalizers": null}}"#;
    "then it is gone": "GET /api/v1/namespaces/{ns}/pods/p5";
    "what a watch tells of the deletions": "WATCH:* /api/v1/namespaces/{ns}/pods?watch=1&resourceVersion={rv:list}&timeoutSeconds=2";
};

/// Evictions.
pub(crate) const EVICTING: &[Step] = steps! {
    "guarded pod": "POST /api/v1/namespaces/{ns}/pods" => r#"{"metadata": {"name": "e1", "labels": {"app": "e"}},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}}"#;
    "it runs": "STRATEGIC /api/v1/namespaces/{ns}/pods/e1/status" => r#"{"status": {"phase": "Running",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}"#;
    "budget": "POST /apis/policy/v1/namespaces/{ns}/poddisruptionbudgets" => r#"{"metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "e"}}}}"#;
    "eviction before the budget is known": "POST /api/v1/namespaces/{ns}/pods/e1/eviction" =>
        r#"{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "e1"}}"#;
    "budget that is used up": "MERGE /apis/policy/v1/namespaces/{ns}/poddisruptionbudgets/b/status" =>
        r#"{"status": {"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1,
            "expectedPods": 1, "disruptionsAllowed": 0}}"#;
    "eviction against the budget": "POST /api/v1/namespaces/{ns}/pods/e1/eviction" =>
        r#"{"metadata": {"name": "e1"}}"#;
    "eviction of another name": "POST /api/v1/namespaces/{ns}/pods/e1/eviction" => r#"{"metadata": {"name": "e2"}}"#;
    "eviction of what is missing": "POST /api/v1/namespaces/{ns}/pods/e9/eviction" => r#"{"metadata": {"name": "e9"}}"#;
    "budget with room": "MERGE /apis/policy/v1/namespaces/{ns}/poddisruptionbudgets/b/status" =>
        r#"{"status": {"currentHealthy": 2, "disruptionsAllowed": 1}}"#;
    "eviction of another UID": "POST /api/v1/namespaces/{ns}/pods/e1/eviction" => r#"{"metadata": {"name": "e1"},
        "deleteOptions": {"preconditions": {"uid": "6f1c5d1c-0000-4000-8000-00000000beef"}}}"#;
    "room again": "MERGE /apis/policy/v1/namespaces/{ns}/poddisruptionbudgets/b/status" =>
        r#"{"status": {"disruptionsAllowed": 1, "disruptedPods": null, "conditions": null}}"#;
    "eviction within the budget": "POST /api/v1/namespaces/{ns}/pods/e1/eviction" => r#"{"metadata": {"name": "e1"}}"#;
    "the evicted pod": "GET /api/v1/namespaces/{ns}/pods/e1";
    "the budget after it": "GET /apis/policy/v1/namespaces/{ns}/poddisruptionbudgets/b";
    "eviction of a pending pod": "POST /api/v1/namespaces/{ns}/pods/p3/eviction" => r#"{"metadata": {"name": "p3"}}"#;
    "it went at once": "GET /api/v1/namespaces/{ns}/pods/p3";
    "budget removed": "DELETE /apis/policy/v1/namespaces/{ns}/poddisruptionbudgets/b";
    "several at once": "DELETE /api/v1/namespaces/{ns}/pods?labelSelector=app=e" => r#"{"gracePeriodSeconds": 0}"#;
    "nothing is left": "GET /api/v1/namespaces/{ns}/pods?limit=500";
};

/// Leases, nodes, events.
pub(crate) const AROUND: &[Step] = steps! {
    "lease": "POST /apis/coordination.k8s.io/v1/namespaces/{ns}/leases" => r#"{"metadata": {"name": "l"},
        "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 0,
            "acquireTime": "2026-01-01T00:00:00.000000Z", "renewTime": "2026-01-01T00:00:00.000000Z"}}"#;
    "the other comes second": "POST /apis/coordination.k8s.io/v1/namespaces/{ns}/leases" => r#"{"metadata": {"name": "l"},
        "spec": {"holderIdentity": "b", "leaseDurationSeconds": 15}}"#;
    "lease put without version": "PUT /apis/coordination.k8s.io/v1/namespaces/{ns}/leases/l" =>
        r#"{"metadata": {"name": "l"}, "spec": {"holderIdentity": "b", "leaseDurationSeconds": 15}}"#;
    "take-over": "PUT /apis/coordination.k8s.io/v1/namespaces/{ns}/leases/l" =>
        r#"{"metadata": {"name": "l", "resourceVersion": "{rv:l}"},
            "spec": {"holderIdentity": "b", "leaseDurationSeconds": 15, "leaseTransitions": 1}}"#;
    "renewal by the one who lost it": "PUT /apis/coordination.k8s.io/v1/namespaces/{ns}/leases/l" =>
        r#"{"metadata": {"name": "l", "resourceVersion": "1"},
            "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 0}}"#;
    "the lease": "GET /apis/coordination.k8s.io/v1/namespaces/{ns}/leases/l";
    "lease removed": "DELETE /apis/coordination.k8s.io/v1/namespaces/{ns}/leases/l";
    "node": "POST /api/v1/nodes" => r#"{"metadata": {"name": "{ns}-node", "labels": {"pool": "gpu"}},
        "status": {"capacity": {"cpu": "8", "nvidia.com/gpu": "8", "pods": "110"}}}"#;
    "node status": "MERGE /api/v1/nodes/{ns}-node/status" => r#"{"status": {"allocatable": {"nvidia.com/gpu": "7"}}}"#;
    "node cordoned": "MERGE /api/v1/nodes/{ns}-node" => r#"{"spec": {"unschedulable": true, "taints": null}}"#;
    "nodes by field": "GET /api/v1/nodes?fieldSelector=spec.unschedulable=true&labelSelector=pool=gpu";
    "node removed": "DELETE /api/v1/nodes/{ns}-node";
    "event": "POST /api/v1/namespaces/{ns}/events" => r#"{"metadata": {"name": "e.1"}, "reason": "Scheduled",
        "involvedObject": {"kind": "Pod", "name": "p1", "namespace": "{ns}", "apiVersion": "v1"},
        "type": "Normal", "message": "bound", "count": 1, "reportingComponent": "dovetail", "reportingInstance": "x"}"#;
    "newer event": "POST /apis/events.k8s.io/v1/namespaces/{ns}/events" => r#"{"metadata": {"name": "e.2"},
        "reason": "Scheduled", "action": "Binding", "type": "Normal", "note": "bound",
        "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "dovetail.dev/scheduler",
        "reportingInstance": "x", "regarding": {"kind": "Pod", "name": "p1", "namespace": "{ns}"}}"#;
};

/// Custom resources.
pub(crate) const CUSTOM: &[Step] = steps! {
    "definition": "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions" => r#"{
        "metadata": {"name": "things.conformance.dovetail.dev"},
        "spec": {"group": "conformance.dovetail.dev", "scope": "Cluster",
            "names": {"kind": "Thing", "listKind": "ThingList", "plural": "things", "singular": "thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]}}"#;
    "until it is served": "AWAIT /apis/conformance.dovetail.dev/v1/things";
    "thing": "POST /apis/conformance.dovetail.dev/v1/things" => r#"{"apiVersion": "conformance.dovetail.dev/v1",
        "kind": "Thing", "metadata": {"name": "t"}, "spec": {"size": 1}, "status": {"ready": true}}"#;
    "thing without status": "GET /apis/conformance.dovetail.dev/v1/things/t";
    "status of the thing": "MERGE /apis/conformance.dovetail.dev/v1/things/t/status" =>
        r#"{"status": {"ready": false}, "spec": {"size": 9}, "metadata": {"labels": {"l": "1"}}}"#;
    "new spec": "MERGE /apis/conformance.dovetail.dev/v1/things/t" => r#"{"spec": {"size": 2}, "status": {"ready": true}}"#;
    "put without version": "PUT /apis/conformance.dovetail.dev/v1/things/t" =>
        r#"{"apiVersion": "conformance.dovetail.dev/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"size": 3}}"#;
    "strategic patch": "STRATEGIC /apis/conformance.dovetail.dev/v1/things/t" => r#"{"spec": {"size": 4}}"#;
    "things": "GET /apis/conformance.dovetail.dev/v1/things";
    "thing removed": "DELETE /apis/conformance.dovetail.dev/v1/things/t";
    "definition removed": "DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.conformance.dovetail.dev";
};

/// A version that the server has forgotten.
pub(crate) const EXPIRED: &[Step] = steps! {
    "watch from a version long gone": "WATCH:* /api/v1/namespaces/{ns}/pods?watch=1&timeoutSeconds=1&resourceVersion=1";
};
