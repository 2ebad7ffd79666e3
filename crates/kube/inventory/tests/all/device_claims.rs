//! GPUs that drivers offer by resource slices and claims give away: as facts, beside device
//! plugins, and in collections.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::device_states;
use dovetail_inventory::dump::{Keeper, Pseudonyms, read_objects};
use dovetail_inventory::facts::{Gathered, Inventory};
use dovetail_model::{GpuFraction, GpuParts};
use serde_json::{Value, json};

use crate::facts::{ended_pod, node as plugin_node, pod as plugin_pod};

const NOW_MS: u64 = 1_795_176_000_000;
pub(crate) const GPU: &str = "nvidia.com/gpu";
pub(crate) const DRIVER: &str = "gpu.nvidia.com";

pub(crate) fn gathered(objects: &[Value]) -> Gathered {
    let mut inventory = Inventory::new(NOW_MS);
    if objects.iter().all(|object| object["kind"] != "Pod") {
        // The cluster has none.
        inventory.all_of("Pod");
    }
    let items: Vec<Value> = objects.iter().cloned().chain([ended_pod()]).collect();
    let list = json!({"kind": "List", "items": items}).to_string();
    read_objects(list.as_bytes(), "dump.json", &mut inventory).expect("it is JSON");
    let found = inventory.facts_and_tenants(BTreeSet::new(), Some(&BTreeSet::new()));
    assert_eq!(found.skipped, []);
    found
}

/// A node whose plugin is gone: the kubelet still knows the name of what it offered.
pub(crate) fn node(name: &str) -> Value {
    let mut node = plugin_node(name, 0);
    let labels = node["metadata"]["labels"].as_object_mut().expect("labels");
    labels.remove("nvidia.com/gpu.product");
    node
}

/// A pod with claims: `name=claim`, or `name=template>claim` where the claim was made from a
/// template.
pub(crate) fn pod(name: &str, node: &str, claims: &[&str]) -> Value {
    let mut pod = plugin_pod(name, &format!("Job/{name}-job"), 0, node);
    pod["spec"]["containers"][0]["resources"] =
        json!({"requests": {"cpu": "4", "memory": "32Gi"}, "claims": [{"name": "gpus"}]});
    let (mut asked, mut made) = (Vec::new(), Vec::new());
    for claim in claims {
        let (name, claim) = claim.split_once('=').expect("a name");
        match claim.split_once('>') {
            None => asked.push(json!({"name": name, "resourceClaimName": claim})),
            Some((template, claim)) => {
                asked.push(json!({"name": name, "resourceClaimTemplateName": template}));
                made.push(json!({"name": name, "resourceClaimName": claim}));
            }
        }
    }
    pod["spec"]["resourceClaims"] = json!(asked);
    pod["status"]["resourceClaimStatuses"] = json!(made);
    pod
}

pub(crate) fn whole(name: &str) -> Value {
    json!({"name": name,
        "attributes": {"type": {"string": "gpu"}, "uuid": {"string": format!("GPU-canary-{name}")},
            "productName": {"string": "NVIDIA H100 80GB HBM3"}, "driverVersion": {"version": "580.0.0"}},
        "capacity": {"memory": {"value": "80Gi"}}})
}

pub(crate) fn mig(name: &str, parent: &str) -> Value {
    json!({"name": name,
        "attributes": {"type": {"string": "mig"}, "uuid": {"string": format!("MIG-canary-{name}")},
            "parentUUID": {"string": format!("GPU-canary-{parent}")}, "profile": {"string": "3g.40gb"},
            "productName": {"string": "NVIDIA H100 80GB HBM3"}},
        "capacity": {"memory": {"value": "40Gi"}}})
}

pub(crate) fn slice(node: &str, generation: u32, devices: &[Value]) -> Value {
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
        "metadata": {"name": format!("{node}-{generation}")},
        "spec": {"driver": DRIVER, "nodeName": node, "devices": devices,
            "pool": {"name": node, "generation": generation, "resourceSliceCount": 1}}})
}

/// A claim for so many devices of a class; with what it was given as `node/device`, and the pods
/// that it is for.
pub(crate) fn claim(
    name: &str,
    (class, count): (&str, u32),
    given: &[&str],
    pods: &[&str],
) -> Value {
    let results = given.iter().map(|given| {
        let (pool, device) = given.split_once('/').expect("a pool");
        json!({"request": "r", "driver": DRIVER, "pool": pool, "device": device})
    });
    let pods = pods.iter().map(|pod| json!({"resource": "pods", "name": pod, "uid": pod}));
    let mut claim = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "research"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly":
            {"deviceClassName": class, "allocationMode": "ExactCount", "count": count}}]}}});
    if !given.is_empty() {
        claim["status"] = json!({"reservedFor": pods.collect::<Vec<_>>(),
            "allocation": {"devices": {"results": results.collect::<Vec<_>>()}}});
    }
    claim
}

/// Two nodes of four GPUs: on the first a job has two and two pods share one; on the second one is
/// cut in two, of which a pod has one. Somebody looks on, and a pod waits for two.
fn world() -> Vec<Value> {
    let cut =
        [whole("gpu-0"), whole("gpu-1"), whole("gpu-2"), mig("mig-0", "x"), mig("mig-1", "x")];
    let mut looks_on = claim("watch", (DRIVER, 1), &["n1/gpu-3", "n2/gpu-0"], &["watch-0"]);
    let results = &mut looks_on["status"]["allocation"]["devices"]["results"];
    for result in results.as_array_mut().expect("results") {
        result["adminAccess"] = json!(true);
    }
    let mut template = claim("two", (DRIVER, 2), &[], &[]);
    template["kind"] = json!("ResourceClaimTemplate");
    template["spec"] = json!({"spec": template["spec"]});
    vec![
        node("n1"),
        node("n2"),
        slice("n1", 2, &[whole("gpu-0"), whole("gpu-1"), whole("gpu-2"), whole("gpu-3")]),
        // What a driver has not taken away yet counts no more.
        slice("n1", 1, &[whole("old-0"), whole("old-1")]),
        slice("n2", 1, &cut),
        claim("train-0-x", (DRIVER, 2), &["n1/gpu-0", "n1/gpu-1"], &["train-0"]),
        pod("train-0", "n1", &["gpus=two>train-0-x"]),
        claim("pair", (DRIVER, 1), &["n1/gpu-2"], &["a-0", "b-0"]),
        pod("a-0", "n1", &["gpus=pair"]),
        pod("b-0", "n1", &["gpus=pair"]),
        claim("part", ("mig.nvidia.com", 1), &["n2/mig-1"], &["mig-0"]),
        pod("mig-0", "n2", &["gpus=part"]),
        looks_on,
        pod("watch-0", "n1", &["gpus=watch"]),
        template,
        pod("wait-0", "", &["gpus=two>"]),
    ]
}

/// Milli-GPU by state, and the pods that would fit against the word of their scheduler.
pub(crate) fn states(found: &mut Gathered) -> BTreeMap<String, i64> {
    let states = device_states(&mut found.facts, &found.moment).expect("a legal world");
    let mut by_state = BTreeMap::new();
    for waste in &states.intervals {
        *by_state.entry(waste.interval.state.name().to_owned()).or_default() +=
            waste.interval.gpu_milli;
    }
    by_state
}

pub(crate) fn held(found: &Gathered) -> Vec<(&str, &str, i64, Option<i64>)> {
    let held = found.moment.held.iter();
    held.map(|held| (&*held.pod, &*held.resource, held.units, held.gpu_milli)).collect()
}

/// Held are 2 + 1 + 3/7 GPUs, cut off at 428 thousandths; the other part has 429 up to 857, what is
/// left of that GPU 143, of which nobody knows. Three whole ones are free on the second node and
/// one on the first: two are kept.
#[test]
fn gpus_by_claims_are_installed_held_and_free_like_any_other() {
    let mut found = gathered(&world());
    assert_eq!(found.device_doubts, Vec::<String>::new());
    assert_eq!(found.unjudged, []);
    let shared = "nvidia.com/gpu.shared";
    let mut holders = held(&found);
    holders.sort_unstable();
    let expected = [
        ("a-0", shared, 1, Some(500)),
        ("b-0", shared, 1, Some(500)),
        ("mig-0", "nvidia.com/mig-3g.40gb", 1, None),
        ("train-0", GPU, 2, None),
    ];
    assert_eq!(holders, expected);
    let gpus: Vec<(&str, i64, i64)> = found
        .moment
        .nodes
        .iter()
        .map(|node| (node.model.as_deref().unwrap_or("none"), node.gpus, node.unavailable_milli))
        .collect();
    assert_eq!(gpus, [("NVIDIA-H100-80GB-HBM3", 4, 0); 2]);
    let units: Vec<(&str, i64, GpuParts)> = found.moment.nodes[1]
        .units
        .iter()
        .map(|units| (&*units.resource, units.count, units.parts.clone()))
        .collect();
    let third = ("nvidia.com/mig-3g.40gb", 2, GpuParts::Equal(GpuFraction { part: 3, of: 6 }));
    assert_eq!(units, [(GPU, 3, GpuParts::Equal(GpuFraction::WHOLE)), third]);
    let wants = |name: &str| {
        let mut workloads = found.facts.workloads.iter();
        let of = workloads.find(|workload| workload.owner.name == format!("{name}-0-job"));
        of.expect("a workload").gpus_per_pod()
    };
    assert_eq!(wants("train"), BTreeMap::from([(GPU, 2)]));
    assert_eq!((wants("wait"), wants("watch")), (BTreeMap::from([(GPU, 2)]), BTreeMap::new()));
    let lives: Vec<(&str, Option<i64>)> =
        found.lives.iter().map(|life| (&*life.pod, life.gpu_milli)).collect();
    let whole = [("train-0", Some(2000)), ("wait-0", Some(2000))];
    assert!(whole.iter().all(|life| lives.contains(life)), "{lives:?}");
    let expected = [("free_no_demand", 2500), ("free_reserved", 2000), ("unknown", 3500)];
    let expected = expected.map(|(state, milli)| (state.to_owned(), milli)).into();
    assert_eq!(states(&mut found), expected);
}

/// Of a GPU that is offered whole and in parts, one of the two is there: a part that is held makes
/// the rest of it no device. Each physical GPU counts once.
#[test]
fn a_gpu_that_can_be_cut_counts_once_however_it_is_offered() {
    let devices =
        [whole("gpu-0"), mig("a", "gpu-0"), mig("b", "gpu-0"), whole("gpu-1"), mig("c", "gpu-1")];
    let objects = |given: &str| {
        let part = claim("part", ("mig.nvidia.com", 1), &[given], &["p-0"]);
        vec![node("n1"), slice("n1", 1, &devices), part, pod("p-0", "n1", &["gpus=part"])]
    };
    let of = |given: &str| {
        let found = gathered(&objects(given));
        let node = &found.moment.nodes[0];
        let units = node.units.iter().map(|units| (units.resource.clone(), units.count));
        (node.gpus, units.collect::<Vec<_>>(), held(&found)[0].1.to_owned())
    };
    let part = "nvidia.com/mig-3g.40gb".to_owned();
    let cut = (2, vec![(GPU.to_owned(), 1), (part.clone(), 1)], part);
    assert_eq!(of("n1/b"), cut);
    assert_eq!(of("n1/gpu-1"), (2, vec![(GPU.to_owned(), 2)], GPU.to_owned()));
}

#[test]
fn a_plugin_and_slices_that_offer_the_same_gpus_count_them_once_and_it_is_told() {
    let devices: Vec<Value> = (0..4).map(|place| whole(&format!("gpu-{place}"))).collect();
    let claims = [
        claim("two", (DRIVER, 2), &["n1/gpu-0", "n1/gpu-1"], &["p-0"]),
        pod("p-0", "n1", &["gpus=two"]),
    ];
    let with = |node: Value| {
        let mut objects = vec![node, slice("n1", 1, &devices)];
        objects.extend(claims.clone());
        gathered(&objects)
    };
    let found = with(plugin_node("n1", 4));
    assert_eq!((found.moment.nodes[0].gpus, held(&found)[0].2), (4, 2));
    let told = "node n1 offers 4 GPUs by device plugin and 4 by resource slices: the device plugin's count is used";
    assert_eq!(found.device_doubts, [told]);
    assert!(!found.facts.nodes[0].gpus[GPU].by_claims);
    // A plugin that is gone leaves a capacity for a while, of which nothing can be asked for.
    let mut gone = plugin_node("n1", 4);
    gone["status"]["allocatable"][GPU] = json!("0");
    let found = with(gone);
    let node = &found.moment.nodes[0];
    assert_eq!((node.gpus, node.unavailable_milli, node.units[0].count), (4, 0, 4));
    assert!(found.device_doubts.is_empty() && found.facts.nodes[0].gpus[GPU].by_claims);
    // The label says that there are as many as both offer together.
    let mut halves = plugin_node("n1", 4);
    halves["metadata"]["labels"]["nvidia.com/gpu.count"] = json!("8");
    let found = with(halves);
    let node = &found.moment.nodes[0];
    assert_eq!((node.gpus, node.unavailable_milli, node.units[0].count), (8, 0, 8));
    assert_eq!(found.device_doubts, Vec::<String>::new());
    // What the label counts and nobody offers is missing; what a taint of the driver keeps back is,
    // too.
    let mut devices = devices.clone();
    devices[3]["taints"] = json!([{"key": "gpu.nvidia.com/unhealthy", "effect": "NoSchedule"}]);
    let mut labelled = node_with_label("n1", "5");
    labelled["spec"]["taints"] = json!([]);
    let found = gathered(&[labelled, slice("n1", 1, &devices)]);
    let node = &found.moment.nodes[0];
    assert_eq!((node.gpus, node.unavailable_milli, node.units[0].count), (5, 2000, 3));
    assert_eq!(found.facts.nodes[0].uncounted_gpus, 1);
}

fn node_with_label(name: &str, gpus: &str) -> Value {
    let mut node = node(name);
    node["metadata"]["labels"]["nvidia.com/gpu.count"] = json!(gpus);
    node
}

#[test]
fn what_slices_and_claims_leave_open_is_told() {
    let mut half = slice("n1", 3, &[whole("gpu-0")]);
    half["spec"]["pool"]["resourceSliceCount"] = json!(2);
    let mut all = claim("all", (DRIVER, 1), &[], &[]);
    all["spec"]["devices"]["requests"][0]["exactly"]["allocationMode"] = json!("All");
    let mut kept = claim("kept", (DRIVER, 1), &["n1/gpu-0"], &[]);
    kept["metadata"]["namespace"] = json!("other");
    let objects = [
        node("n1"),
        half,
        all,
        claim("part", ("mig.nvidia.com", 1), &[], &[]),
        kept,
        claim("lost", (DRIVER, 1), &["n1/gpu-9"], &["p-0"]),
        pod("p-0", "n1", &["gpus=lost"]),
        pod("w-0", "", &["gpus=all"]),
        pod("w-1", "", &["gpus=part"]),
        pod("w-2", "", &["gpus=nowhere"]),
    ];
    let found = gathered(&objects);
    let doubts = [
        "of pool n1 of driver gpu.nvidia.com, 1 of 2 resource slices were read: there may be more GPUs",
        "claim other/kept has allocated devices (1), and no pod uses it: they count as free",
        "claim research/lost has gpu-9 of pool n1 allocated, which driver gpu.nvidia.com does not offer",
    ];
    let mut told = found.device_doubts.clone();
    told.sort_unstable();
    let mut doubts = doubts.map(str::to_owned);
    doubts.sort_unstable();
    assert_eq!(told, doubts);
    let unjudged: Vec<(&str, &str)> =
        found.unjudged.iter().map(|pod| (&*pod.pod, &*pod.reason)).collect();
    let expected = [
        ("research/w-0", "its claim requests all devices of a node, whatever their number"),
        ("research/w-1", "its claim does not specify which slice of a GPU it requests"),
        ("research/w-2", "it refers to a resource claim that was not read"),
    ];
    assert_eq!(unjudged, expected);
    // Without slices and claims it is told what to get.
    let found = gathered(&[node("n1"), pod("p-0", "n1", &["gpus=lost"])]);
    let unseen: Vec<&str> = found.unseen.iter().map(|unseen| unseen.what.as_str()).collect();
    for kind in ["devices that drivers offer", "claims of devices"] {
        assert!(unseen.contains(&kind), "{unseen:?}");
    }
    let old = json!({"apiVersion": "resource.k8s.io/v1alpha3", "kind": "ResourceSlice", "metadata": {"name": "s"}});
    let mut inventory = Inventory::new(NOW_MS);
    read_objects(old.to_string().as_bytes(), "dump.json", &mut inventory).expect("it is JSON");
    let told = inventory.left_out().0[0].to_string();
    assert!(
        told.ends_with("resource.k8s.io/v1alpha3 is not supported: get it as resource.k8s.io/v1"),
        "{told}"
    );
    let hidden = "1 of kind ResourceSlice of resource.k8s.io/v1alpha3 were not read: GPUs that they offer are not \
                  counted; get them as resource.k8s.io/v1";
    assert_eq!(inventory.facts(BTreeSet::new()).device_doubts, [hidden]);
}

/// Pods that ask for an extended resource which a device class offers hold what their claim was
/// given, once.
#[test]
fn an_extended_resource_that_a_claim_serves_counts_once() {
    let mut made = claim("p-0-extended", (DRIVER, 2), &["n1/gpu-0", "n1/gpu-1"], &["p-0"]);
    made["metadata"]["annotations"] =
        json!({"resource.kubernetes.io/extended-resource-claim": "true"});
    let devices = [whole("gpu-0"), whole("gpu-1"), whole("gpu-2")];
    let found = gathered(&[
        node("n1"),
        slice("n1", 1, &devices),
        made,
        plugin_pod("p-0", "Job/p", 2, "n1"),
    ]);
    assert_eq!(held(&found), [("p-0", GPU, 2, None)]);
    assert_eq!(found.facts.workloads[0].gpus_per_pod(), BTreeMap::from([(GPU, 2)]));
}

/// What `v1beta1` says in its own shape, as it is read and as a collection keeps it.
#[test]
fn the_shape_of_the_first_beta_says_the_same() {
    let mut objects = world();
    let expected = states(&mut gathered(&objects));
    for object in &mut objects {
        let kind = object["kind"].as_str().expect("a kind").to_owned();
        if !kind.starts_with("Resource") {
            continue;
        }
        object["apiVersion"] = json!("resource.k8s.io/v1beta1");
        if kind == "ResourceSlice" {
            for device in object["spec"]["devices"].as_array_mut().expect("devices") {
                let mut basic = device.clone();
                let name = basic.as_object_mut().and_then(|basic| basic.remove("name"));
                *device = json!({"name": name, "basic": basic});
            }
            continue;
        }
        let spec = match kind.as_str() {
            "ResourceClaim" => &mut object["spec"],
            _ => &mut object["spec"]["spec"],
        };
        let request = &mut spec["devices"]["requests"][0];
        let mut flat = request["exactly"].clone();
        flat["name"] = request["name"].clone();
        *request = flat;
    }
    assert_eq!(states(&mut gathered(&objects)), expected);
    let keeper = Keeper::default();
    let keep = |object: &Value| {
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        keeper.keep(text("kind"), text("apiVersion"), object)
    };
    let kept: Vec<Value> = objects.iter().filter_map(keep).collect();
    assert_eq!(states(&mut gathered(&kept)), expected);
}

/// A claim for no device, or for fewer, is no demand: no workload has a count that somebody could
/// divide by.
#[test]
fn a_claim_for_no_device_is_for_no_gpu() {
    for count in [0, -1, i64::MIN] {
        let mut none = claim("none", (DRIVER, 1), &[], &[]);
        none["spec"]["devices"]["requests"][0]["exactly"]["count"] = json!(count);
        let objects =
            [node("n1"), slice("n1", 1, &[whole("gpu-0")]), none, pod("w-0", "", &["gpus=none"])];
        let mut found = gathered(&objects);
        assert_eq!(found.unjudged, []);
        assert!(found.facts.workloads.iter().all(|workload| workload.gpus_per_pod().is_empty()));
        assert_eq!(states(&mut found), BTreeMap::from([("free_no_demand".to_owned(), 1000)]));
    }
}

/// Names of devices are those of their pool: two pools of two are four, where nothing else tells
/// them apart.
#[test]
fn devices_of_two_pools_with_the_same_names_are_not_the_same() {
    let mut bare = [whole("gpu-0"), whole("gpu-1")];
    for device in &mut bare {
        device["attributes"].as_object_mut().expect("attributes").remove("uuid");
    }
    let (first, mut second) = (slice("n1", 1, &bare), slice("n1", 1, &bare));
    second["metadata"]["name"] = json!("n1-second");
    second["spec"]["pool"]["name"] = json!("second");
    let found = gathered(&[node("n1"), first, second]);
    let node = &found.moment.nodes[0];
    assert_eq!((node.gpus, node.units[0].count), (4, 4));
}

/// A pod on n1 with a claim of a device of n2, and one with a device in no single node: neither
/// takes a GPU of n1.
#[test]
fn a_pod_holds_no_device_of_another_node() {
    let mut network = slice("n1", 1, &[whole("far-0")]);
    network["metadata"]["name"] = json!("network");
    network["spec"]["pool"]["name"] = json!("network");
    let spec = network["spec"].as_object_mut().expect("a spec");
    spec.remove("nodeName");
    spec.insert("allNodes".to_owned(), json!(true));
    let found = gathered(&[
        node("n1"),
        node("n2"),
        slice("n1", 1, &[whole("gpu-0")]),
        slice("n2", 1, &[whole("gpu-1")]),
        network,
        claim("wrong", (DRIVER, 1), &["n2/gpu-1"], &["p-0"]),
        pod("p-0", "n1", &["gpus=wrong"]),
        claim("far", (DRIVER, 1), &["network/far-0"], &["q-0"]),
        pod("q-0", "n1", &["gpus=far"]),
    ]);
    assert!(held(&found).is_empty());
    let told = |claim: &str, device: &str, pod: &str| {
        format!(
            "claim research/{claim} has {device} allocated, which is not on node n1 of its pod {pod}: the device is not counted for the pod"
        )
    };
    for told in
        [told("wrong", "gpu-1 of pool n2", "p-0"), told("far", "far-0 of pool network", "q-0")]
    {
        assert!(found.device_doubts.contains(&told), "{told}: {:?}", found.device_doubts);
    }
}

/// An AMD GPU in eight partitions, of which two pods share one: 125 thousandths of a GPU, 62 and 63
/// of them each.
#[test]
fn a_shared_partition_is_a_part_of_its_gpu() {
    let partition = |place: usize| {
        json!({"name": format!("gpu-0-{place}"), "attributes": {"type": {"string": "amdgpu-partition"},
            "partitionProfile": {"string": "cpx_nps1"}, "productName": {"string": "AMD Instinct MI300X"},
            "resource.kubernetes.io/pciBusID": {"string": "0000:01:00.0"}}})
    };
    let devices: Vec<Value> = (0..8).map(partition).collect();
    let mut slice = slice("n1", 1, &devices);
    slice["spec"]["driver"] = json!("gpu.amd.com");
    let mut one = claim("one", ("gpu.amd.com", 1), &["n1/gpu-0-3"], &["a-0", "b-0"]);
    one["status"]["allocation"]["devices"]["results"][0]["driver"] = json!("gpu.amd.com");
    let found = gathered(&[
        node("n1"),
        slice,
        one,
        pod("a-0", "n1", &["gpus=one"]),
        pod("b-0", "n1", &["gpus=one"]),
    ]);
    assert_eq!(found.moment.nodes[0].gpus, 1);
    let shared = "amd.com/gpu.shared";
    assert_eq!(held(&found), [("a-0", shared, 1, Some(62)), ("b-0", shared, 1, Some(63))]);
}

/// Four GPUs: one was given for a pod that has no node yet, one for a pod that nobody read. Two are
/// free.
#[test]
fn what_is_given_away_for_pods_that_are_not_seen_is_not_free() {
    let devices: Vec<Value> = (0..4).map(|place| whole(&format!("gpu-{place}"))).collect();
    let mut found = gathered(&[
        node("n1"),
        slice("n1", 1, &devices),
        claim("soon", (DRIVER, 1), &["n1/gpu-0"], &["w-0"]),
        pod("w-0", "", &["gpus=soon"]),
        claim("lost", (DRIVER, 1), &["n1/gpu-1"], &["gone-0"]),
    ]);
    let told = [
        "claim research/lost has allocated devices (1), and pod gone-0, for which it is reserved, has finished or was \
         not read: their use is unknown",
        "claim research/soon has allocated devices (1), and its pod w-0 has no node yet: they count as allocated, \
         and their use is unknown",
    ];
    assert_eq!(found.device_doubts, told);
    assert_eq!((found.moment.nodes[0].gpus, found.moment.nodes[0].unavailable_milli), (4, 0));
    let expected = [("free_no_demand", 2000), ("unknown", 2000)];
    let expected = expected.map(|(state, milli)| (state.to_owned(), milli)).into();
    assert_eq!(states(&mut found), expected);
    // So the node has users, and cannot go.
    assert_eq!(found.facts.nodes[0].without_gpu_pods_since_ms, None);
    let found = dovetail_audit::audit(&found.facts);
    assert!(found.iter().all(|finding| finding.check.id != "AUT-03"), "{found:?}");
}

/// A plugin counts the same four GPUs: of one two pods have a half each, of one cut in two a pod
/// has three sevenths (428 thousandths, cut off); two are left whole.
#[test]
fn a_plugin_beside_slices_hides_no_shared_gpu_and_no_part() {
    let cut = [mig("a", "gpu-3"), mig("b", "gpu-3")];
    let wholes = [whole("gpu-0"), whole("gpu-1"), whole("gpu-2")];
    let devices: Vec<Value> = wholes.into_iter().chain(cut).collect();
    let mut found = gathered(&[
        plugin_node("n1", 4),
        slice("n1", 1, &devices),
        claim("one", (DRIVER, 1), &["n1/gpu-0"], &["a-0", "b-0"]),
        pod("a-0", "n1", &["gpus=one"]),
        pod("b-0", "n1", &["gpus=one"]),
        claim("part", ("mig.nvidia.com", 1), &["n1/b"], &["c-0"]),
        pod("c-0", "n1", &["gpus=part"]),
    ]);
    let shared = "nvidia.com/gpu.shared";
    let mig = ("c-0", "nvidia.com/mig-3g.40gb", 1, None);
    assert_eq!(held(&found), [("a-0", shared, 1, Some(500)), ("b-0", shared, 1, Some(500)), mig]);
    let node = &found.moment.nodes[0];
    let mut units: Vec<(&str, i64)> =
        node.units.iter().map(|units| (&*units.resource, units.count)).collect();
    units.sort_unstable();
    assert_eq!(units, [(GPU, 2), (shared, 2), ("nvidia.com/mig-3g.40gb", 2)]);
    assert_eq!((node.gpus, node.unavailable_milli), (4, 0));
    assert!(!found.facts.nodes[0].gpus[GPU].by_claims);
    assert_eq!(states(&mut found)["unknown"], 1500);
}

/// A collection says the same, and nothing of what drivers and people may have written beside it.
#[test]
fn a_collection_holds_what_counts_and_no_other_word() {
    let mut objects = world();
    let secret = "canary == 'canary' && device.attributes['gpu.nvidia.com'].profile == '1g.10gb'";
    for object in &mut objects {
        match object["kind"].as_str().expect("a kind") {
            "ResourceSlice" => {
                let device = &mut object["spec"]["devices"][0];
                device["attributes"]["canary.example.com/canary"] = json!({"string": "canary"});
                device["taints"] = json!([{"key": "canary", "value": "canary", "effect": "None"}]);
                device["capacity"]["memory"]["requestPolicy"] = json!({"canary": "canary"});
            }
            "ResourceClaim" => {
                object["spec"]["devices"]["config"] = json!([{"opaque": {"parameters": "canary"}}]);
                object["spec"]["devices"]["requests"][0]["exactly"]["tolerations"] =
                    json!([{"key": "canary"}]);
                object["metadata"]["annotations"] = json!({"canary": "canary"});
                if !object["status"].is_null() {
                    object["status"]["devices"] = json!([{"data": "canary"}]);
                }
            }
            _ => {}
        }
    }
    let class = json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "small"},
        "spec": {"extendedResourceName": "canary.example.com/small", "selectors": [{"cel": {"expression": secret}}], "config": [{"opaque": "canary"}]}});
    objects.push(class);
    objects.push(claim("small", ("small", 1), &[], &[]));
    objects.push(pod("small-0", "", &["gpus=small"]));
    for (name, asked) in [
        ("by-name", "canary.example.com/small"),
        ("by-class", "deviceclass.resource.kubernetes.io/small"),
    ] {
        let mut asking = plugin_pod(name, "Job/asking", 0, "");
        asking["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "4", asked: 1}});
        objects.push(asking);
    }
    let (keeper, mut names) = (Keeper::default(), Pseudonyms::new([7; 32]));
    let keep = |object: &Value| {
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        keeper.keep(text("kind"), text("apiVersion"), object)
    };
    let kept: Vec<Value> = objects.iter().filter_map(keep).collect();
    // A resource may be called anything, and by whoever asks for it.
    let known = ["GPU-canary-", "MIG-canary-", "canary.example.com/small"];
    let without_uuids =
        known.iter().fold(json!(kept).to_string(), |text, known| text.replace(known, ""));
    assert!(!without_uuids.contains("canary"), "{without_uuids}");
    let anonymous: Vec<Value> = kept.iter().map(|object| names.replace(object)).collect();
    let text = json!(anonymous).to_string();
    assert!(["canary", "gpu-0", "pair", "small"].iter().all(|word| !text.contains(word)), "{text}");
    for word in ["NVIDIA H100 80GB HBM3", "3g.40gb", "80Gi", "mig.nvidia.com", "1g.10gb"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let of = |objects: &[Value]| {
        let mut found = gathered(objects);
        let mut held: Vec<(String, i64, Option<i64>)> = found
            .moment
            .held
            .iter()
            .map(|held| (held.resource.clone(), held.units, held.gpu_milli))
            .collect();
        held.sort_unstable();
        (held, states(&mut found), found.unjudged.len())
    };
    let full = of(&objects);
    assert_eq!(of(&kept), full);
    assert_eq!(of(&anonymous), full);
}

/// Paths of everything in a value, down to so many levels of lists' first items.
fn paths(value: &Value, path: &str, found: &mut Vec<String>) {
    found.push(path.to_owned());
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| {
                let name = name.replace('~', "~0").replace('/', "~1");
                paths(value, &format!("{path}/{name}"), found);
            });
        }
        Value::Array(items) => {
            items.iter().take(1).for_each(|item| paths(item, &format!("{path}/0"), found));
        }
        _ => {}
    }
}

#[test]
fn whatever_stands_in_slices_and_claims_is_read_or_named() {
    let objects = world();
    let about = |object: &&Value| object["kind"] != "Node" && object["kind"] != "Pod";
    let mut left_out = 0;
    for (place, object) in objects.iter().enumerate().filter(|(_, object)| about(object)) {
        let mut all = Vec::new();
        paths(&object["spec"], "/spec", &mut all);
        paths(&object["status"], "/status", &mut all);
        for path in all.iter().filter(|path| object.pointer(path).is_some()) {
            for strange in
                [json!(null), json!(i64::MAX), json!(-1), json!("1e18"), json!([]), json!({})]
            {
                let mut objects = objects.clone();
                *objects[place].pointer_mut(path).expect("it is there") = strange;
                let mut inventory = Inventory::new(NOW_MS);
                let list = json!({"kind": "List", "items": objects}).to_string();
                read_objects(list.as_bytes(), "dump.json", &mut inventory).expect("it is JSON");
                let mut found = inventory.facts(BTreeSet::new());
                left_out += found.skipped_count;
                let installed: i64 = found.moment.nodes.iter().map(|node| node.gpus * 1000).sum();
                assert_eq!(states(&mut found).values().sum::<i64>(), installed, "{path}");
            }
        }
    }
    assert!(left_out > 0);
}

/// Slices without claims: on nodes whose pods refer to some, nobody knows what is free.
#[test]
fn claims_that_were_not_read_leave_open_what_is_free() {
    let is_claim = |object: &Value| {
        object["kind"].as_str().is_some_and(|kind| kind.starts_with("ResourceClaim"))
    };
    let objects: Vec<Value> = world().into_iter().filter(|object| !is_claim(object)).collect();
    let found = states(&mut gathered(&objects));
    assert!(found.keys().all(|state| !state.starts_with("free")), "{found:?}");
    // A node without such pods keeps what it offers.
    let mut more = objects.clone();
    more.extend([node("n3"), slice("n3", 1, &[whole("gpu-0")])]);
    let found = states(&mut gathered(&more));
    let free = found.iter().filter(|(state, _)| state.starts_with("free"));
    assert_eq!(free.map(|(_, gpus)| gpus).sum::<i64>(), 1000, "{found:?}");
}
