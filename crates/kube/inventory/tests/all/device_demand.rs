//! What waits for GPUs in ways that nobody can hold against nodes, or asks for them by the name of
//! a device class: no GPU is free for lack of such demand.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::device_claims::{
    DRIVER, GPU, claim, gathered, held, mig, node, pod, slice, states, whole,
};
use crate::facts::{node as plugin_node, pod as plugin_pod};

fn class(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec})
}

fn selecting(expression: &str) -> Value {
    json!([{"cel": {"expression": expression}}])
}

fn expected(states: &[(&str, i64)]) -> BTreeMap<String, i64> {
    states.iter().map(|(state, milli)| ((*state).to_owned(), *milli)).collect()
}

/// Four GPUs, and a pod that waits by a claim: states and reasons.
fn with(claim: Option<Value>, more: &[Value]) -> (BTreeMap<String, i64>, Vec<String>) {
    let devices: Vec<Value> = (0..4).map(|place| whole(&format!("gpu-{place}"))).collect();
    let mut objects = vec![node("n1"), slice("n1", 1, &devices), pod("w-0", "", &["gpus=c"])];
    objects.extend(claim);
    objects.extend(more.iter().cloned());
    let mut found = gathered(&objects);
    let reasons = found.unjudged.iter().map(|unjudged| unjudged.reason.clone()).collect();
    (states(&mut found), reasons)
}

#[test]
fn what_nobody_can_tell_of_demand_leaves_the_cause_open() {
    let open = expected(&[("free_of_unknown_cause", 4000)]);
    let none = expected(&[("free_no_demand", 4000)]);
    let of = |class: &str| claim("c", (class, 1), &[], &[]);
    let mut all = of(DRIVER);
    all["spec"]["devices"]["requests"][0]["exactly"]["allocationMode"] = json!("All");
    let mut others = all.clone();
    others["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = json!("gpu.amd.com");
    let big = |expression| class("big", json!({"selectors": selecting(expression)}));
    let whose = "device class big does not specify the driver of its devices";
    for (claim, more, expected, reason) in [
        (
            Some(all),
            vec![],
            &open,
            "its claim requests all devices of a node, whatever their number",
        ),
        (None, vec![], &open, "it refers to a resource claim that was not read"),
        (
            Some(of("big")),
            vec![],
            &open,
            "device class big, of which it requests a device, was not read",
        ),
        (Some(of("big")), vec![class("big", json!({}))], &open, whose),
        (Some(of("big")), vec![big("device.driver.startsWith('gpu.')")], &open, whose),
        (Some(of("big")), vec![big("device.allowMultipleAllocations == false")], &open, whose),
        // Of those whose devices it may want none is here.
        (Some(of("big")), vec![big("device.driver != 'gpu.nvidia.com'")], &none, ""),
        (Some(others), vec![], &none, ""),
        (Some(of("big")), vec![big("device.driver == 'net.example.com'")], &none, ""),
    ] {
        let (states, reasons) = with(claim, &more);
        assert_eq!(states, *expected, "{reason}");
        assert_eq!(reasons.concat(), reason);
    }
}

/// Each reason has the command that shows what is missing.
#[test]
fn what_is_not_known_of_a_waiting_pod_comes_with_what_shows_it() {
    let of = |class: &str| claim("c", (class, 1), &[], &[]);
    let mut all = of(DRIVER);
    all["spec"]["devices"]["requests"][0]["exactly"]["allocationMode"] = json!("All");
    for (claim, command) in [
        (Some(of("big")), "kubectl get deviceclasses -o json"),
        (None, "kubectl get resourceclaims,resourceclaimtemplates -A -o json"),
        (Some(all), "kubectl describe pod -n NAMESPACE POD"),
    ] {
        let mut objects =
            vec![node("n1"), slice("n1", 1, &[whole("gpu-0")]), pod("w-0", "", &["gpus=c"])];
        objects.extend(claim);
        let found = gathered(&objects).unjudged;
        let commands: Vec<&str> = found.iter().map(|unjudged| &*unjudged.command).collect();
        assert_eq!(commands, [command], "{found:?}");
    }
}

/// Three GPUs for sure, and devices of which nobody knows how many or which: it starts with all or
/// not at all.
#[test]
fn what_is_sure_of_demand_counts_beside_what_nobody_can_tell() {
    let request = |class: &str, mode: &str, count: u32| json!({"name": class, "exactly": {"deviceClassName": class, "allocationMode": mode, "count": count}});
    let of = |requests: &[&Value]| {
        let mut found = claim("c", (DRIVER, 1), &[], &[]);
        found["spec"]["devices"]["requests"] = json!(requests);
        found
    };
    let others =
        class("others", json!({"selectors": selecting("device.driver != 'gpu.nvidia.com'")}));
    let (sure, unclear) = (request(DRIVER, "ExactCount", 3), request("others", "ExactCount", 1));
    let three = expected(&[("free_no_demand", 1000), ("free_of_unknown_cause", 3000)]);
    for requests in [[&sure, &unclear], [&unclear, &sure]] {
        let (states, reasons) = with(Some(of(&requests)), std::slice::from_ref(&others));
        assert_eq!(states, three);
        assert_eq!(reasons.len(), 1, "{reasons:?}");
    }
    // All of two vendors, of which one is here.
    let (amd, nvidia) = (request("gpu.amd.com", "All", 1), request(DRIVER, "All", 1));
    for requests in [[&amd, &nvidia], [&nvidia, &amd]] {
        let (states, reasons) = with(Some(of(&requests)), &[]);
        assert_eq!(states, expected(&[("free_of_unknown_cause", 4000)]));
        assert_eq!(reasons.len(), 1, "{reasons:?}");
    }
    // By two claims.
    let mut second = of(&[&amd]);
    second["metadata"]["name"] = json!("d");
    let devices: Vec<Value> = (0..4).map(|place| whole(&format!("gpu-{place}"))).collect();
    let pod = pod("w-0", "", &["a=d", "b=c"]);
    let objects = [node("n1"), slice("n1", 1, &devices), second, of(&[&nvidia]), pod];
    assert_eq!(states(&mut gathered(&objects)), expected(&[("free_of_unknown_cause", 4000)]));
}

/// Of four whole GPUs one could be cut for the part that is wanted; and where a plugin counts four,
/// a pod asks for one in a way that nobody judges.
#[test]
fn demand_whose_size_is_known_leaves_no_more_open_than_that() {
    let mut devices: Vec<Value> = (0..4).map(|place| whole(&format!("gpu-{place}"))).collect();
    devices.push(mig("part-0", "gpu-0"));
    let mut part = claim("part", ("mig.nvidia.com", 1), &[], &[]);
    let third = "device.attributes['gpu.nvidia.com'].profile == '3g.40gb'";
    part["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = selecting(third);
    let of_part = [node("n1"), slice("n1", 1, &devices), part, pod("w-0", "", &["gpus=part"])];
    let mut fraction = plugin_pod("w-0", "Job/w", 1, "");
    fraction["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpucores"] = json!(30);
    let of_fraction = [plugin_node("n1", 4), fraction];
    for (objects, told) in
        [(&of_part[..], "nvidia.com/mig-3g.40gb"), (&of_fraction[..], "gpucores")]
    {
        let mut found = gathered(objects);
        assert_eq!(found.unjudged.len(), 1, "{:?}", found.unjudged);
        assert!(found.unjudged[0].reason.contains(told), "{:?}", found.unjudged);
        let expected = expected(&[("free_no_demand", 3000), ("free_of_unknown_cause", 1000)]);
        assert_eq!(states(&mut found), expected);
    }
}

/// A pod that asks for a resource by its name instead of `nvidia.com/gpu`.
fn asking(name: &str, resource: &str, count: u32, node: &str) -> Value {
    let mut pod = plugin_pod(name, &format!("Job/{name}"), 0, node);
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "4", "memory": "32Gi", resource: count}, "limits": {resource: count}});
    pod
}

/// Of four GPUs two are held, one of them by a claim that was read; of the two that are free a pod
/// would get one, and three others are wanted together.
#[test]
fn what_classes_serve_is_held_and_waited_for_under_the_name_of_their_gpus() {
    let devices: Vec<Value> = (0..4).map(|place| whole(&format!("gpu-{place}"))).collect();
    let named = json!({"extendedResourceName": "example.com/gpu",
        "selectors": selecting("device.driver == 'gpu.nvidia.com'")});
    let mut made = claim("h-0-extended", (DRIVER, 1), &["n1/gpu-1"], &["h-0"]);
    made["metadata"]["annotations"] =
        json!({"resource.kubernetes.io/extended-resource-claim": "true"});
    let objects = [
        node("n1"),
        slice("n1", 1, &devices),
        class("own", named),
        made,
        asking("h-0", "example.com/gpu", 1, "n1"),
        asking("h-1", "deviceclass.resource.kubernetes.io/own", 1, "n1"),
        asking("w-0", "example.com/gpu", 3, ""),
        asking("w-1", "deviceclass.resource.kubernetes.io/gpu.nvidia.com", 1, ""),
    ];
    let mut found = gathered(&objects);
    assert_eq!(found.unjudged, []);
    assert_eq!(held(&found), [("h-0", GPU, 1, None), ("h-1", GPU, 1, None)]);
    let lives: Vec<(&str, Option<i64>)> =
        found.lives.iter().map(|life| (&*life.pod, life.gpu_milli)).collect();
    assert_eq!(
        lives,
        [("h-0", Some(1000)), ("h-1", Some(1000)), ("w-0", Some(3000)), ("w-1", Some(1000))]
    );
    let wants: Vec<BTreeMap<&str, i64>> =
        found.facts.workloads.iter().map(|workload| workload.gpus_per_pod()).collect();
    assert!(wants.contains(&BTreeMap::from([(GPU, 3)])), "{wants:?}");
    let expected =
        expected(&[("free_fragmented", 1000), ("free_reserved", 1000), ("unknown", 2000)]);
    assert_eq!(states(&mut found), expected);
}

/// On a node whose plugin offers the resource it is the plugin's, and no GPU that anybody counts.
#[test]
fn what_a_plugin_offers_is_no_device_of_a_class() {
    let named = json!({"extendedResourceName": "example.com/gpu",
        "selectors": selecting("device.driver == 'gpu.nvidia.com'")});
    let mut by_plugin = node("n1");
    by_plugin["status"]["allocatable"]["example.com/gpu"] = json!("2");
    let mut found = gathered(&[
        by_plugin,
        slice("n1", 1, &[whole("gpu-0")]),
        class("own", named),
        asking("h-0", "example.com/gpu", 1, "n1"),
        asking("w-0", "example.com/gpu", 1, ""),
    ]);
    assert_eq!(held(&found), []);
    assert_eq!(found.unjudged.len(), 1, "{:?}", found.unjudged);
    assert_eq!(states(&mut found), expected(&[("free_of_unknown_cause", 1000)]));
}

/// Two classes of the same second serve one resource, the first with GPUs, the other with what is
/// none.
#[test]
fn what_decides_between_classes_of_the_same_age_outlives_their_names() {
    let serving = |first: &str, second: &str| {
        let of = |name: &str, driver: &str| {
            let expression = format!("device.driver == '{driver}'");
            class(
                name,
                json!({"extendedResourceName": "example.com/gpu", "selectors": selecting(&expression)}),
            )
        };
        let mut found = gathered(&[
            node("n1"),
            slice("n1", 1, &[whole("gpu-0")]),
            of(first, "gpu.nvidia.com"),
            of(second, "nic.example.com"),
            asking("w-0", "example.com/gpu", 1, ""),
        ]);
        states(&mut found)
    };
    assert_eq!(serving("a", "b"), expected(&[("free_reserved", 1000)]));
    assert_eq!(serving("b", "a"), serving("a", "b"));
}

/// Both pods of a suspended job want two GPUs by a claim that is made for each of them.
#[test]
fn pods_of_suspended_jobs_want_what_their_claims_say() {
    let devices: Vec<Value> = (0..8).map(|place| whole(&format!("gpu-{place}"))).collect();
    let mut template = claim("two", (DRIVER, 2), &[], &[]);
    template["kind"] = json!("ResourceClaimTemplate");
    template["spec"] = json!({"spec": template["spec"]});
    let spec = pod("x", "", &["gpus=two>"])["spec"].clone();
    let job = json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "later", "namespace": "research"},
        "spec": {"suspend": true, "parallelism": 2, "template": {"spec": spec}}});
    let mut found = gathered(&[node("n1"), slice("n1", 1, &devices), template, job]);
    assert_eq!(found.unjudged, []);
    let expected = expected(&[("free_no_demand", 4000), ("free_reserved", 4000)]);
    assert_eq!(states(&mut found), expected);
}

/// Two claims that nobody can tell, and one for a GPU that a pod which goes shares with one that
/// stays.
#[test]
fn what_is_being_deleted_waits_for_nothing() {
    let devices: Vec<Value> = (0..4).map(|place| whole(&format!("gpu-{place}"))).collect();
    let deleted = |mut pod: Value| {
        pod["metadata"]["deletionTimestamp"] = json!("2026-08-31T12:00:00Z");
        pod
    };
    let goes = [
        node("n1"),
        slice("n1", 1, &devices),
        claim("one", (DRIVER, 1), &[], &[]),
        deleted(pod("a-0", "", &["gpus=gone"])),
        deleted(pod("a-1", "", &["gpus=one"])),
    ];
    let mut found = gathered(&goes);
    assert_eq!(found.unjudged, []);
    assert_eq!(states(&mut found), expected(&[("free_no_demand", 4000)]));

    let mut found = gathered(&[&goes[..], &[pod("b-0", "", &["gpus=one"])]].concat());
    assert_eq!(found.unjudged, []);
    let expected = expected(&[("free_no_demand", 3000), ("free_reserved", 1000)]);
    assert_eq!(states(&mut found), expected);
}

#[test]
fn waiting_pods_that_nobody_can_judge_are_all_listed() {
    let mut objects = vec![node("n1"), slice("n1", 1, &[whole("gpu-0")])];
    objects.extend(
        (0..150).map(|place| pod(&format!("w-{place}"), "", &[&format!("gpus=gone-{place}")])),
    );
    assert_eq!(gathered(&objects).unjudged.len(), 150);
}

/// Of two pods that wait since the same second one fits where four GPUs are free, and then the
/// other does not.
#[test]
fn what_decides_between_pods_of_the_same_age_outlives_their_names() {
    let waiting = |first: &str, second: &str| {
        let mut held = plugin_pod("held", "Job/h", 4, "n1");
        held["status"]["phase"] = json!("Running");
        let objects = [
            plugin_node("n1", 8),
            held,
            plugin_pod(first, &format!("Job/{first}"), 2, ""),
            plugin_pod(second, &format!("Job/{second}"), 3, ""),
        ];
        states(&mut gathered(&objects))
    };
    assert_eq!(waiting("w-a", "w-b"), waiting("w-b", "w-a"));
}

/// The same GPUs of two nodes, of which one has another model: the one that came first is free for
/// an unknown cause.
#[test]
fn the_order_of_nodes_outlives_their_names() {
    let free = |first: &str, second: &str| {
        let mut wants = plugin_pod("w-0", "Job/w", 1, "");
        wants["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpucores"] = json!(30);
        let found = gathered(&[plugin_node(first, 2), plugin_node(second, 4), wants]);
        let world = &found.moment.demand[0].world;
        let in_world = world.nodes.iter().map(|node| node.name.to_string());
        let in_moment = found.moment.nodes.iter().map(|node| node.node.clone());
        in_world.chain(in_moment).collect::<Vec<_>>()
    };
    for [first, second] in [["a", "b"], ["b", "a"]] {
        assert_eq!(free(first, second), [first, second, first, second]);
    }
}

/// Eight free GPUs beside 190 cores and 2000 GiB, and two free ones of another pool.
#[test]
fn a_pod_that_is_larger_than_each_node_that_it_may_use_explains_no_free_gpu() {
    let of = |gpus: u32, change: &dyn Fn(&mut Value)| {
        let mut small = plugin_node("n2", 2);
        small["metadata"]["labels"]["pool"] = json!("small");
        let mut waits = plugin_pod("w-0", "Job/w", gpus, "");
        change(&mut waits["spec"]);
        states(&mut gathered(&[plugin_node("n1", 8), small, waits]))
    };
    let requests = |resource: &'static str, amount: &'static str| {
        move |spec: &mut Value| {
            spec["containers"][0]["resources"]["requests"][resource] = json!(amount);
        }
    };
    let of_pool = |spec: &mut Value| spec["nodeSelector"] = json!({"pool": "small"});
    let none = expected(&[("free_no_demand", 10_000)]);
    assert_eq!(of(9, &|_| {}), none);
    assert_eq!(of(4, &requests("cpu", "191")), none);
    assert_eq!(of(4, &requests("memory", "2001Gi")), none);
    assert_eq!(of(4, &of_pool), none);
    assert_eq!(of(8, &requests("cpu", "190"))["free_reserved"], 8_000);
    assert_eq!(of(2, &of_pool)["free_reserved"], 2_000);
}
