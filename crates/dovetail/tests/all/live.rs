//! The commands that speak to a cluster, against a server in miniature.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use dovetail_testkit::fake_api::{ApiFault, FaultRule, On, ResourceKind};
use dovetail_testkit::{FakeApi, MachineShape};
use serde_json::{Value, json};

use crate::cost_prices::own_rates;
use crate::program::Folder;

/// What is told of a bind that the server refuses.
const REFUSED: &str =
    "the API server refused to bind the pod to node n0 (422): a policy; dovetail retries";

const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with a kubeconfig of the server.
pub(crate) fn connected(api: &FakeApi) -> Folder {
    let folder = Folder::new();
    folder.write("kubeconfig", &kubeconfig(api.url()));
    folder
}

/// A kubeconfig of the server with this address.
pub(crate) fn kubeconfig(url: &str) -> String {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
        "users": [{"name": "u", "user": {}}],
    });
    config.to_string()
}

pub(crate) fn pod(name: &str, gpus: u32) -> Value {
    json!({"metadata": {"name": name}, "spec": {"schedulerName": "dovetail", "containers": [
        {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": gpus.to_string()}}}]}})
}

pub(crate) fn with(mut pod: Value, field: &str, value: Value) -> Value {
    pod["spec"][field] = value;
    pod
}

/// Nodes `n0` and `n1` with eight GPUs each, and these pods.
pub(crate) fn cluster(pods: &[Value]) -> FakeApi {
    let api = FakeApi::start().expect("a free port");
    let shape = "8xH100".parse::<MachineShape>().expect("a shape");
    for name in ["n0", "n1"] {
        api.create("nodes", "", &shape.node(name)).expect("a new node");
        let ready = json!({"spec": {"taints": null}});
        api.merge("nodes", "", name, "", &ready).expect("a node that takes pods");
    }
    api.create("namespaces", "", &json!({"metadata": {"name": "team"}})).expect("a new namespace");
    for pod in pods {
        api.create("pods", "team", pod).expect("a new pod");
    }
    api
}

/// Two pods that run, two that wait, and one of each kind that is not placed.
pub(crate) fn busy() -> FakeApi {
    let foreign = with(pod("foreign", 4), "schedulerName", json!("default-scheduler"));
    let missing = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}]);
    cluster(&[
        with(pod("large", 8), "nodeName", json!("n0")),
        with(foreign, "nodeName", json!("n1")),
        with(pod("first", 8), "priority", json!(5)),
        with(pod("picky", 2), "nodeSelector", json!({"zone": "z"})),
        with(pod("gated", 1), "schedulingGates", json!([{"name": "example.com/g"}])),
        with(pod("claims", 1), "volumes", missing),
        with(pod("others", 1), "schedulerName", json!("default-scheduler")),
    ])
}

#[test]
fn why_says_what_each_pod_waits_for_and_what_would_start_it() {
    let api = busy();
    let folder = connected(&api);
    let before = api.revision();
    let why = |name: &str| folder.json(&format!("why {name} --kubeconfig kubeconfig"));
    let state = |name: &str| why(name)["state"].as_str().map(str::to_owned).unwrap_or_default();
    let states = ["large", "first", "picky", "gated", "claims", "others"].map(state);
    let expected = ["placed", "waits", "waits", "gated", "not_started", "not_ours"];
    assert_eq!(states, expected.map(str::to_owned));
    let first = why("pod/first");
    // A scheduler of these settings stops what is less important.
    let kept = "capacity is reserved for it on n0 until 1 pod that is to be evicted for it is gone";
    assert_eq!(first["message"], kept);
    assert_eq!((&first["in_line"]["place"], &first["line_length"]), (&json!(1), &json!(2)));
    assert_eq!(first["in_line"]["priority"], 5);
    assert_eq!(first["relaxations"], json!([]));
    let picky = why("picky");
    assert_eq!(picky["relaxations"], json!([["selector"]]));
    assert_eq!(picky["in_line"]["place"], 2);
    let reason = "node(s) didn't match Pod's node affinity/selector";
    assert_eq!(picky["obstacles"], json!([[{"nodes": 2, "reason": reason}]]));

    let told = folder.call("why picky --kubeconfig kubeconfig").out;
    for line in [
        "team/picky",
        "queue position  2 of 2",
        "       2  node(s) didn't match Pod's node affinity/selector",
        "  its node selector and node affinity",
    ] {
        assert!(told.lines().any(|one| one == line), "{line} is not in\n{told}");
    }
    // As events and tables of ours write names, from any namespace.
    let config = folder.read("kubeconfig").replace("\"team\"", "\"elsewhere\"");
    folder.write("kubeconfig2", &config);
    let elsewhere = folder.json("why team/picky --kubeconfig kubeconfig2");
    assert_eq!(elsewhere["name"], "team/picky");
    let none = folder.call("why nobody -n elsewhere --kubeconfig kubeconfig");
    assert_eq!(none.code, Some(2));
    assert!(none.err.contains("no pod or gang nobody in namespace elsewhere"), "{}", none.err);
    assert_eq!(api.revision(), before, "questions write nothing");
}

/// A scheduler was refused the binds of a pod and of one of a gang: that is what is told, and not
/// that they fit.
#[test]
fn why_says_what_kept_a_pod_that_fits_from_starting() {
    let member = |name: &str| {
        let mut pod = pod(name, 1);
        pod["metadata"]["labels"] = json!({"dovetail.dev/gang": "train"});
        pod["metadata"]["annotations"] = json!({"dovetail.dev/min-members": "2"});
        pod
    };
    let api = cluster(&[pod("single", 1), member("one"), member("two"), pod("free", 1)]);
    for name in ["single", "two"] {
        let condition = json!({"type": "PodScheduled", "status": "False",
            "reason": "SchedulerError", "message": REFUSED});
        let status = json!({"status": {"conditions": [condition]}});
        api.merge("pods", "team", name, "status", &status).expect("a condition");
    }
    let folder = connected(&api);
    let why = |name: &str| {
        let why = folder.json(&format!("why {name} --kubeconfig kubeconfig"));
        [&why["state"], &why["message"]].map(|text| text.as_str().unwrap_or_default().to_owned())
    };
    let of = |which: &str| {
        ["not_started".to_owned(), format!("it fits, but {which} could not start: {REFUSED}")]
    };
    assert_eq!(why("single"), of("it"));
    assert_eq!(why("two"), of("it"));
    assert_eq!([why("one"), why("train")], [of("its pod two"), of("its pod two")]);
    assert_eq!(why("free")[0], "fits");
}

#[test]
fn questions_that_reach_no_cluster_name_the_server_and_the_kubeconfig() {
    let api = cluster(&[]);
    let folder = connected(&api);
    let connection = folder.read("kubeconfig");
    // A port that nobody listens on.
    let nowhere = format!("http://{}", free_address());
    folder.write("nowhere", &connection.replace(api.url(), &nowhere));
    let told = folder.call("top --kubeconfig nowhere --timeout 2 --color never").err;
    let expected = format!("error: cannot read the cluster at {nowhere}/ (kubeconfig nowhere)\n");
    assert!(told.starts_with(&expected), "{told}");
    folder.write("stranger", &connection.replace("\"user\":\"u\"", "\"user\":\"zoe\""));
    let refused = folder.call("top --kubeconfig stranger --color never");
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    let expected = "error: kubeconfig stranger: context \"c\" names user \"zoe\", which the file does not contain";
    assert!(refused.err.starts_with(expected), "{}", refused.err);
}

#[test]
fn queue_and_top_show_who_waits_and_who_holds_what() {
    let api = busy();
    let folder = connected(&api);
    let queue = folder.json("queue --kubeconfig kubeconfig");
    let line: Vec<(&str, i64)> = queue["waiting"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| (job["job"].as_str().unwrap(), job["gpu_milli"].as_i64().unwrap()))
        .collect();
    assert_eq!(line, [("team/first", 8_000), ("team/picky", 2_000)]);
    let told = folder.call("queue --kubeconfig kubeconfig").out;
    assert!(told.starts_with("2 pending, requesting 10 GPUs\n"), "{told}");
    let rows = folder.call("queue --kubeconfig kubeconfig --output csv").out;
    assert!(rows.starts_with("place,job,queue,priority,pods,gpu_milli,waited_ms,reason,message\n"));

    let top = folder.json("top --kubeconfig kubeconfig");
    let node = |at: usize| {
        let node = &top["nodes"][at];
        ["gpus", "held", "free"].map(|key| node[key].as_i64().unwrap())
    };
    assert_eq!([node(0), node(1)], [[8, 8, 0], [8, 4, 4]]);
    let holder = json!([{"pod": "team/foreign", "gpus": 4, "is_ending": false}]);
    assert_eq!(top["nodes"][1]["holders"], holder);
    let told = folder.call("top --kubeconfig kubeconfig").out;
    assert!(told.starts_with("12 of 16 GPUs allocated, on 2 nodes\n"), "{told}");
    assert!(told.contains("team/large (8)"), "{told}");
}

/// A server with queues: `research` above `vision`, a gang of `vision` that its queue has no room
/// for, one of two pods without the other, one that runs, and one that no node takes as a whole.
fn with_queues() -> FakeApi {
    let api = cluster(&[]);
    let kind = ResourceKind::custom("dovetail.dev", "v1alpha1", "Queue", "queues").cluster_scoped();
    api.register(kind);
    let queue = |name: &str, spec: Value| {
        let object = json!({"metadata": {"name": name}, "spec": spec});
        api.create("queues", "", &object).expect("a new queue");
    };
    let gpus = |count: u32| json!({"nvidia.com/gpu": count});
    queue(
        "research",
        json!({"guaranteed": gpus(12), "limit": {"nvidia.com/gpu": 14, "cpu": "64"}}),
    );
    let open =
        json!({"parent": "research", "guaranteed": gpus(8), "namespaceSelector": {}, "weight": 2});
    queue("vision", open);
    queue("lost", json!({"parent": "nowhere"}));
    let member = |gang: &str, at: u32, gpus: u32, min: u32| {
        let mut pod = pod(&format!("{gang}-{at}"), gpus);
        pod["metadata"]["labels"] = json!({"dovetail.dev/gang": gang});
        pod["metadata"]["annotations"] = json!({"dovetail.dev/min-members": min.to_string()});
        pod
    };
    let in_vision = |mut pod: Value| {
        pod["metadata"]["labels"]["dovetail.dev/queue"] = json!("vision");
        pod
    };
    let create = |pod: Value| drop(api.create("pods", "team", &pod).expect("a new pod"));
    (0..2)
        .for_each(|at| create(with(in_vision(member("runs", at, 2, 2)), "nodeName", json!("n0"))));
    (0..3).for_each(|at| create(in_vision(member("large", at, 2, 3))));
    create(in_vision(pod("single", 6)));
    create(member("alone", 0, 1, 2));
    (0..3).for_each(|at| create(member("wide", at, 8, 3)));
    (0..2).for_each(|at| create(member("small", at, 1, 2)));
    api
}

#[test]
fn who_waits_without_being_in_line_is_shown_with_the_reason() {
    let (api, other) = (with_queues(), busy());
    let folder = connected(&api);
    let all = folder.json("queue --kubeconfig kubeconfig");
    let alone = json!([{"name": "gang team/alone", "queue": "default", "pods": 1, "reason": "WaitingForMembers",
        "message": "gang team/alone has 1 of the 2 pods that start together"}]);
    assert_eq!(all["not_in_line"], alone);
    let told = folder.call("queue --kubeconfig kubeconfig").out;
    let end = "1 not in the scheduling order\n\ngang team/alone (queue default, 1 pod) has 1 of the 2 pods that start together\n";
    assert!(told.ends_with(end), "{told}");
    let claims = "team/claims (queue default, 1 pod): persistentvolumeclaim \"missing\" not found: create it\n";
    let told = connected(&other).call("queue --kubeconfig kubeconfig").out;
    assert!(told.ends_with(&format!("1 not in the scheduling order\n\n{claims}")), "{told}");
}

#[test]
fn long_names_of_those_that_wait_can_be_copied() {
    let names = ["a", "b"].map(|letter| letter.repeat(90));
    let api = cluster(&[pod(&names[0], 9), pod(&names[1], 9)]);
    let told = connected(&api).call("queue --kubeconfig kubeconfig").out;
    assert!(names.iter().all(|name| told.contains(name.as_str())), "{told}");
}

#[test]
fn why_tells_room_that_is_kept_from_a_request_that_no_node_has() {
    let api = busy();
    api.create("pods", "team", &pod("giant", 9)).expect("a new pod");
    let folder = connected(&api);
    let first = folder.call("why first --kubeconfig kubeconfig").out;
    assert!(first.ends_with("\nnothing else blocks it\n"), "{first}");
    let giant = folder.call("why giant --kubeconfig kubeconfig").out;
    assert!(giant.contains("it would not start even if"), "{giant}");
    let fits = |name: &str| {
        folder.json(&format!("why {name} --kubeconfig kubeconfig"))["fits_when_all_is_free"].clone()
    };
    assert_eq!([fits("first"), fits("giant")], [json!(true), json!(false)]);
}

#[test]
fn what_annotations_hold_reaches_no_terminal_as_it_is() {
    let mut rude = pod("rude", 1);
    rude["metadata"]["labels"] = json!({"dovetail.dev/gang": "rude"});
    rude["metadata"]["annotations"] = json!({"dovetail.dev/min-members": "3\u{1b}[31mred\n\u{7}"});
    let api = cluster(&[rude]);
    let folder = connected(&api);
    for question in ["why rude", "queue", "top"] {
        let told = folder.call(&format!("{question} --kubeconfig kubeconfig --color never")).out;
        assert!(!told.contains(['\u{1b}', '\u{7}']), "{told:?}");
        assert!(question == "top" || told.contains(r"`3\u{1b}[31mred\n\u{7}`"), "{told}");
    }
}

/// Two workers of a job that needs a master, too: the scheduler counts by role, and so does the
/// answer.
#[test]
fn why_counts_the_members_of_a_gang_as_the_scheduler_does() {
    let api = cluster(&[]);
    api.register(ResourceKind::custom("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs"));
    let job = json!({"metadata": {"name": "train"}, "spec": {"pytorchReplicaSpecs": {
        "Master": {"replicas": 1}, "Worker": {"replicas": 1}}}});
    api.create("pytorchjobs", "team", &job).expect("a new job");
    for at in 0..2 {
        let mut worker = pod(&format!("train-worker-{at}"), 1);
        worker["metadata"]["labels"] = json!({"training.kubeflow.org/job-name": "train",
            "training.kubeflow.org/operator-name": "pytorchjob-controller",
            "training.kubeflow.org/replica-type": "worker"});
        api.create("pods", "team", &worker).expect("a new pod");
    }
    let why = connected(&api).json("why train --kubeconfig kubeconfig");
    assert_eq!(why["message"], "pytorchjob team/train has 1 of the 2 pods that start together");
}

/// Without what is another number every time.
fn timeless(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("waited"));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn why_tells_of_a_gang_as_a_whole() {
    let api = with_queues();
    let folder = connected(&api);
    for name in ["large", "wide-1", "alone", "runs", "small", "small-1"] {
        let told = folder.call(&format!("why {name} --kubeconfig kubeconfig"));
        insta::assert_snapshot!(format!("why_{}", name.replace('-', "_")), timeless(&told.whole()));
    }
    let large = folder.json("why large --kubeconfig kubeconfig");
    assert_eq!(large["relaxations"], json!([["quota"]]));
    let keys = ["queue", "place", "pods", "gpu_milli"].map(|key| large["in_line"][key].clone());
    assert_eq!(json!(keys), json!(["vision", 1, 3, 6_000]));
    assert_eq!((&large["gang"]["min"], &large["gang"]["fitting_pods"]), (&json!(3), &json!(3)));
    assert_eq!(large["gang"]["members"].as_array().map(Vec::len), Some(3));
}

/// 5 of 16 GPUs are 31.25%: the object and its pods say 31.3.
#[test]
fn a_share_is_rounded_as_the_queue_itself_says_it() {
    let api = with_queues();
    let mut odd = with(pod("odd", 1), "nodeName", json!("n1"));
    odd["metadata"]["labels"]["dovetail.dev/queue"] = json!("vision");
    api.create("pods", "team", &odd).expect("a new pod");
    let told = connected(&api).call("queue --kubeconfig kubeconfig").out;
    let vision = told.lines().find(|line| line.contains("| vision")).expect("a row");
    assert!(vision.contains(" 31.3%"), "{told}");
}

#[test]
fn queues_are_listed_with_what_they_hold_and_who_waits_in_them() {
    let api = with_queues();
    let folder = connected(&api);
    let told = folder.call("queue --kubeconfig kubeconfig").out;
    let (queues, _) = told.split_once("\n3 pending, requesting").expect("a title");
    insta::assert_snapshot!("queues", queues);
    let all = folder.json("queue --kubeconfig kubeconfig");
    let line: Vec<Value> = all["waiting"]
        .as_array()
        .expect("jobs")
        .iter()
        .map(|job| json!([job["queue"], job["place"], job["job"], job["pods"], job["reason"]]))
        .collect();
    let expected = json!([
        ["default", 1, "gang team/wide", 3, "Unschedulable"],
        ["vision", 1, "gang team/large", 3, "WaitingForQuota"],
        ["vision", 2, "team/single", 1, "WaitingForQuota"],
    ]);
    assert_eq!(json!(line), expected);
    let vision = &all["queues"][2];
    let keys = ["name", "used", "gpu_milli", "waiting_jobs"].map(|key| vision[key].clone());
    assert_eq!(json!(keys), json!(["vision", {"nvidia.com/gpu": "4"}, 4_000, 2]));
    let top = folder.json("top --kubeconfig kubeconfig");
    let holders = json!([
        {"pod": "team/runs-0", "gpus": 2, "is_ending": false},
        {"pod": "team/runs-1", "gpus": 2, "is_ending": false},
    ]);
    assert_eq!(top["nodes"][0]["holders"], holders);
}

#[test]
fn a_queue_that_is_deleted_is_listed_as_long_as_pods_run_in_it() {
    let api = with_queues();
    api.delete("queues", "", "vision", &json!({})).expect("the queue");
    let folder = connected(&api);
    let told = folder.call("queue --kubeconfig kubeconfig").out;
    let row = |line: &&str| line.starts_with("| vision (deleted)");
    let row: Vec<&str> = told.lines().find(row).expect("a row").split_whitespace().collect();
    assert_eq!(&row[1..9], ["vision", "(deleted)", "?", "4", "?", "?", "?", "25.0%"], "{told}");
    let words = told.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = "queue vision does not exist, and 2 pods run in it or below it, with 4 \
                    nvidia.com/gpu: its quota and parent are unknown here, but a running scheduler \
                    that has read the queue still applies both; create it again, or name another \
                    queue in label dovetail.dev/queue";
    assert!(words.contains(sentence), "{told}");
    let all = folder.json("queue --kubeconfig kubeconfig");
    let of = |key: &str| json!([all["queues"][1][key], all["queues"][2][key]]);
    assert_eq!(of("name"), json!(["research", "vision"]));
    assert_eq!((of("exists"), of("gpu_milli")), (json!([true, false]), json!([0, 4_000])));
    let unknown = ["parent", "weight", "borrows", "guaranteed", "limit"];
    let vision = &all["queues"][2];
    assert!(unknown.iter().all(|key| vision[key].is_null()), "{vision}");
}

/// Of a queue above one that is there, only the name is left; of what would start, nothing is held.
#[test]
fn a_deleted_parent_is_listed_and_what_is_not_placed_is_not_held() {
    let api = with_queues();
    api.delete("queues", "", "research", &json!({})).expect("the queue");
    let mut fits = pod("fits", 1);
    fits["metadata"]["labels"] = json!({"dovetail.dev/queue": "default"});
    api.create("pods", "team", &fits).expect("a new pod");
    let open = json!({"metadata": {"name": "default"}, "spec": {"namespaceSelector": {}}});
    api.create("queues", "", &open).expect("a new queue");
    let folder = connected(&api);
    let all = folder.json("queue --kubeconfig kubeconfig");
    let queues = all["queues"].as_array().expect("queues");
    let of = |name: &str| {
        let queue = queues.iter().find(|queue| queue["name"] == name).expect("a queue");
        json!([queue["exists"], queue["gpu_milli"]])
    };
    assert_eq!((of("research"), of("vision")), (json!([false, 4_000]), json!([true, 4_000])));
    assert_eq!(of("default"), json!([true, 0]));
    let why = |name: &str| folder.json(&format!("why {name} --kubeconfig kubeconfig"));
    assert_eq!(why("fits")["state"], "fits");
    // A scheduler knows what the deleted queue was given.
    let message =
        "queue research is limited to 4 nvidia.com/gpu: it uses 4, and 1 more would be needed";
    let condition = json!({"type": "PodScheduled", "status": "False", "reason": "WaitingForQuota",
        "message": message});
    let status = json!({"status": {"conditions": [condition]}});
    api.merge("pods", "team", "fits", "status", &status).expect("a condition");
    let doubtful = format!(
        "{message} (reported by the scheduler); the quota of deleted queue research is unknown, and without it the pod \
         would start now"
    );
    assert_eq!(
        (&why("fits")["state"], &why("fits")["message"]),
        (&json!("waits"), &json!(doubtful))
    );
    let all = folder.json("queue --kubeconfig kubeconfig");
    let not_in_line = all["not_in_line"].as_array().expect("who waits");
    let fits = json!({"name": "team/fits", "queue": "default", "pods": 1,
        "reason": "WaitingForQuota", "message": message});
    assert!(not_in_line.contains(&fits), "{not_in_line:?}");
}

/// A scheduler was not allowed to stop `large`: a moment ago, or long ago.
#[test]
fn nobody_is_said_to_stop_who_was_not_let_go() {
    let api = busy();
    let folder = connected(&api);
    let state = |since: &str| {
        let condition = json!({"type": "DisruptionTarget", "status": "False", "reason": "NotStopped",
            "lastTransitionTime": since});
        let status = json!({"status": {"conditions": [condition]}});
        api.merge("pods", "team", "large", "status", &status).expect("a condition");
        folder.json("why first --kubeconfig kubeconfig")["in_line"]["reason"].clone()
    };
    assert_eq!(state("2999-01-01T00:00:00Z"), "Unschedulable");
    let told = folder.json("why first --kubeconfig kubeconfig")["message"].to_string();
    let spared = "It would start if pods of lower priority were evicted, which the API server refuses: team/large";
    assert!(told.contains(spared), "{told}");
    assert_eq!(state("2020-01-01T00:00:00Z"), "WaitingForReservation");
}

/// A pod and a gang of two have their places, and wait for a volume, or could not start.
#[test]
fn who_has_its_place_and_has_not_started_is_shown_with_the_reason() {
    let member = |name: &str| {
        let mut pod = pod(name, 1);
        pod["metadata"]["labels"] = json!({"dovetail.dev/gang": "train"});
        pod["metadata"]["annotations"] = json!({"dovetail.dev/min-members": "2"});
        pod
    };
    let api = cluster(&[member("one"), member("two"), pod("refused", 1), pod("new", 1)]);
    let room = "capacity is reserved for it on n0 until claim c of its gang has its volume";
    let said = [
        ("one", "WaitingForVolumes", room),
        ("two", "WaitingForVolumes", room),
        ("refused", "SchedulerError", REFUSED),
    ];
    for (name, reason, message) in said {
        let condition = json!({"type": "PodScheduled", "status": "False", "reason": reason,
            "message": message});
        let status = json!({"status": {"conditions": [condition]}});
        api.merge("pods", "team", name, "status", &status).expect("a condition");
    }
    let folder = connected(&api);
    let all = folder.json("queue --kubeconfig kubeconfig");
    let expected = json!([
        {"name": "gang team/train", "queue": "default", "pods": 2, "reason": "WaitingForVolumes",
            "message": room},
        {"name": "team/refused", "queue": "default", "pods": 1, "reason": "SchedulerError",
            "message": REFUSED},
    ]);
    assert_eq!(all["not_in_line"], expected);
    let why = folder.json("why two --kubeconfig kubeconfig");
    assert_eq!((&why["state"], &why["message"]), (&json!("waits_for_volumes"), &json!(room)));
    let told = folder.call("why train --kubeconfig kubeconfig").out;
    assert!(told.contains("at least 2 pods start together"), "{told}");
    // The nodes that a scheduler holds for them are not those that one would choose now.
    let rows = [["team/one", "waits", "-"], ["team/two", "waits", "-"]];
    for row in rows {
        let shown = |line: &str| line.trim_matches(['|', ' ']).split_whitespace().eq(row);
        assert!(told.lines().any(shown), "{row:?} is not in\n{told}");
    }
}

/// Which room a scheduler keeps for lost members of gangs is in no object: what pods say of it is
/// told.
#[test]
fn who_waits_for_room_that_is_kept_for_others_says_so() {
    let api = cluster(&[pod("fits", 1), pod("large", 9)]);
    let kept = "the free capacity is reserved for pods that gang team/train has lost: this pod \
                starts when those pods have started elsewhere, or have not been recreated in time";
    for name in ["fits", "large"] {
        let condition = json!({"type": "PodScheduled", "status": "False",
            "reason": "WaitingForReservation", "message": kept});
        let status = json!({"status": {"conditions": [condition]}});
        api.merge("pods", "team", name, "status", &status).expect("a condition");
    }
    let folder = connected(&api);
    let all = folder.json("queue --kubeconfig kubeconfig");
    let fits = json!([{"name": "team/fits", "queue": "default", "pods": 1,
        "reason": "WaitingForReservation", "message": kept}]);
    assert_eq!(all["not_in_line"], fits);
    let why = folder.json("why fits --kubeconfig kubeconfig");
    assert_eq!(why["state"], "waits");
    let told = why["message"].as_str().expect("a text");
    assert!(told.starts_with(kept) && told.contains("no object records"), "{told}");
    let why = folder.json("why large --kubeconfig kubeconfig");
    let line = &why["in_line"];
    assert_eq!(
        (&line["reason"], &line["message"]),
        (&json!("WaitingForReservation"), &json!(kept))
    );
}

/// What completes a gang goes before those that came before it.
#[test]
fn the_place_in_line_is_that_in_which_jobs_are_tried() {
    let member = |name: &str, gpus: u32| {
        let mut pod = pod(name, gpus);
        pod["metadata"]["labels"] = json!({"dovetail.dev/gang": "train"});
        pod["metadata"]["annotations"] = json!({"dovetail.dev/min-members": "3"});
        pod
    };
    let placed = |name: &str, at: &str| with(member(name, 8), "nodeName", json!(at));
    let api = cluster(&[placed("one", "n0"), placed("two", "n1"), pod("single", 8)]);
    api.create("pods", "team", &member("more", 8)).expect("a new pod");
    api.overwrite("pods", "team", "single", |pod| {
        pod["metadata"]["creationTimestamp"] = json!("2020-01-01T00:00:00Z");
    });
    let folder = connected(&api);
    let why = folder.json("why more --kubeconfig kubeconfig");
    assert_eq!(why["in_line"]["place"], 1, "{why}");
}

/// A scheduler on its own; it ends with the value.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().expect("a process"))
    }

    fn log(&mut self) -> BufReader<ChildStderr> {
        BufReader::new(self.0.stderr.take().expect("a pipe"))
    }

    /// The address that it listens on, and what follows in its log.
    fn listening(&mut self) -> (String, BufReader<ChildStderr>) {
        let mut log = self.log();
        let mut lines = log.by_ref().lines().map_while(Result::ok);
        let address =
            lines.find_map(|line| line.split_once("address=").map(|(_, rest)| rest.to_owned()));
        (address.expect("an address in the log"), log)
    }

    /// Asks it to stop; what it has said by then.
    pub(crate) fn stop(mut self) -> String {
        let pid = self.0.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(asked.expect("the program kill").success());
        let mut out = String::new();
        let mut stdout = self.0.stdout.take().expect("a pipe");
        stdout.read_to_string(&mut out).expect("text");
        assert!(self.0.wait().expect("an end").success());
        out
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself, which the test has noticed.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

pub(crate) fn until(enough: impl Fn() -> bool) {
    let begun = Instant::now();
    while !enough() {
        assert!(begun.elapsed() < PATIENCE, "nothing happened in time");
        // Who looks without end takes a processor from the process that it waits for.
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

#[test]
fn a_scheduler_without_the_right_to_its_lease_says_so_once_and_is_not_ready() {
    let api = cluster(&[pod("p", 1)]);
    let folder = connected(&api);
    let on = On::new(&[], "leases");
    api.set_faults(1, vec![FaultRule::some(on, 1_000_000, ApiFault::ServerError { code: 403 })]);
    let mut command = folder.command("scheduler --kubeconfig kubeconfig --listen 127.0.0.1:0");
    let mut scheduler = Running::start(&mut command);
    let (address, mut rest) = scheduler.listening();
    let advice = "get, create and update on leases of coordination.k8s.io in namespace kube-system";
    let is_told = |text: String| text.starts_with("HTTP/1.1 503") && text.contains(advice);
    until(|| http(&address, "GET", "/readyz", "").is_ok_and(is_told));
    until(|| api.faults().len() >= 3);
    scheduler.stop();
    let mut log = String::new();
    rest.read_to_string(&mut log).expect("text");
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("(403: ")).collect();
    assert!(lines.len() == 1 && lines[0].contains("WARN") && lines[0].contains(advice), "{log}");
}

#[test]
fn a_scheduler_that_may_not_list_kinds_names_them_in_one_warning() {
    let api = cluster(&[pod("p", 1)]);
    let folder = connected(&api);
    let forbid = |plural| {
        FaultRule::some(On::new(&[], plural), 1_000_000, ApiFault::ServerError { code: 403 })
    };
    api.set_faults(1, ["pods", "nodes", "storageclasses"].map(forbid).to_vec());
    let mut command =
        folder.command("scheduler --kubeconfig kubeconfig --listen 127.0.0.1:0 --dry-run");
    let mut scheduler = Running::start(&mut command);
    let mut log = scheduler.log();
    let mut lines = log.by_ref().lines().map_while(Result::ok);
    let warning = lines.find(|line| line.contains("WARN")).expect("a warning");
    let kinds = "the user is not allowed to list and watch nodes, pods, \
                 storageclasses.storage.k8s.io: grant";
    assert!(warning.contains(kinds), "{warning}");
    assert!(!warning.contains("ApiError") && !warning.contains("Status {"), "{warning}");
    scheduler.stop();
    let mut rest = String::new();
    log.read_to_string(&mut rest).expect("text");
    assert!(!rest.contains("WARN"), "{rest}");
}

/// Nothing is written to the pod that waits: its log is where a dry run says so.
#[test]
fn a_dry_run_says_who_would_wait_and_why() {
    let pods: Vec<Value> = (0..3).map(|at| pod(&format!("p{at}"), 8)).collect();
    let api = cluster(&pods);
    let folder = connected(&api);
    let mut command =
        folder.command("scheduler --kubeconfig kubeconfig --listen 127.0.0.1:0 --dry-run");
    let mut scheduler = Running::start(&mut command);
    let mut log = scheduler.log();
    let mut lines = log.by_ref().lines().map_while(Result::ok);
    let told = lines.find(|line| line.contains("would be pending")).expect("a line");
    let why = "would be pending: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu";
    assert!(told.contains(why) && told.contains("who=team/p2 pods=1"), "{told}");
    assert!(told.contains("reason=\"Unschedulable\""), "{told}");
    scheduler.stop();
    let mut rest = String::new();
    log.read_to_string(&mut rest).expect("text");
    assert!(!rest.contains("would be pending"), "{rest}");
}

#[test]
fn a_recorded_scheduler_replays_bit_for_bit() {
    let pods: Vec<Value> = (0..12).map(|at| pod(&format!("p{at}"), 1 << (at % 3))).collect();
    let api = cluster(&pods);
    let folder = connected(&api);
    let flags = "--listen 127.0.0.1:0 --no-leader-election --record log";
    let mut command = folder.command(&format!("scheduler --kubeconfig kubeconfig {flags}"));
    let scheduler = Running::start(&mut command);
    // 28 GPUs are asked for, 16 are there.
    let gpus_held = || {
        let held = |pod: &Value| {
            let is_bound = pod["spec"]["nodeName"].is_string();
            let gpus = &pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"];
            gpus.as_str().filter(|_| is_bound).map_or(0, |gpus| gpus.parse::<u32>().unwrap())
        };
        api.all("pods").iter().map(held).sum::<u32>()
    };
    until(|| gpus_held() == 16);
    for bound in api.bound() {
        let now = json!({"gracePeriodSeconds": 0});
        api.delete("pods", &bound.namespace, &bound.pod, &now).expect("a pod that ends");
    }
    until(|| gpus_held() == 12);
    scheduler.stop();
    let replayed = folder.json("sim replay log");
    assert!(replayed["divergence"].is_null(), "{replayed}");
    assert!(replayed["actions"].as_u64() >= Some(12), "{replayed}");
    // What is not as it was recorded is found.
    let text = folder.read("log");
    let changed = text.replacen("\"node\":\"n1\",\"devices\"", "\"node\":\"n0\",\"devices\"", 1);
    assert_ne!(changed, text);
    folder.write("changed", &changed);
    assert_eq!(folder.call("sim replay changed").code, Some(4));
    let again = folder.call("scheduler --kubeconfig kubeconfig --record log");
    assert_eq!(again.code, Some(2));
    assert!(again.err.contains("--record log: the file already exists"), "{}", again.err);
}

/// The file may have no more than a block of 512 or 1,024 bytes: less than the first line of a
/// recording.
#[test]
fn a_recording_that_is_cut_off_is_told_at_once_and_by_the_exit_code() {
    let api = cluster(&[pod("p", 1)]);
    let folder = connected(&api);
    let limited = "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"";
    let line =
        "scheduler --kubeconfig kubeconfig --listen 127.0.0.1:0 --no-leader-election --record log";
    let mut command = Command::new("sh");
    command.args(["-c", limited, env!("CARGO_BIN_EXE_dovetail")]).args(line.split_whitespace());
    let mut scheduler = Running::start(command.current_dir(folder.path("")));
    let (address, mut stderr) = scheduler.listening();
    let is_broken = |text: String| text.contains("dovetail_recording_broken 1\n");
    until(|| http(&address, "GET", "/metrics", "").is_ok_and(is_broken));
    let asked = Command::new("kill").args(["-TERM", &scheduler.0.id().to_string()]).status();
    assert!(asked.expect("the program kill").success());
    let mut told = String::new();
    stderr.read_to_string(&mut told).expect("text");
    assert_eq!(scheduler.0.wait().expect("an end").code(), Some(1), "{told}");
    assert_eq!(told.matches("ERROR").count(), 1, "{told}");
    assert!(told.contains("error: the recording is incomplete: log: File too large"), "{told}");
}

/// A port at which nobody listens; another program would have to take it within the moment.
fn free_address() -> String {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    free.expect("a free port").to_string()
}

/// A request without a client of its own; the answer as it comes.
fn http(address: &str, method: &str, path: &str, body: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

#[test]
fn a_dry_run_beside_another_scheduler_reports_what_it_left_idle() {
    let of = |name: &str, gpus| with(pod(name, gpus), "schedulerName", json!("default-scheduler"));
    let api = cluster(&[of("a", 8), of("b", 8)]);
    let folder = connected(&api);
    // As `a_node_costs_the_same_in_every_command` of the commands that end by themselves.
    folder.write("dovetail.toml", &own_rates("2880"));
    let before = api.revision();
    let mut command = folder.command(
        "scheduler --kubeconfig kubeconfig --listen 127.0.0.1:0 --dry-run --of default-scheduler \
         --output json",
    );
    let mut scheduler = Running::start(&mut command);
    let (address, _log) = scheduler.listening();
    let decided = |pods: u32| {
        let count = format!("scheduler_schedule_attempts_total{{result=\"scheduled\"}} {pods}\n");
        until(|| http(&address, "GET", "/metrics", "").is_ok_and(|text| text.contains(&count)));
    };
    decided(2);
    assert_eq!(api.revision(), before, "a dry run writes nothing");
    // The other scheduler takes the second node for the first pod, and leaves the second one
    // waiting.
    let binding = json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}});
    let server = api.url().trim_start_matches("http://").to_owned();
    let path = "/api/v1/namespaces/team/pods/a/binding";
    let bound = http(&server, "POST", path, &binding.to_string()).expect("an answer");
    assert!(bound.starts_with("HTTP/1.1 201"), "{bound}");
    // When it has decided about a later pod, it has seen the bind.
    let later = json!({"metadata": {"name": "later"}, "spec": {
        "schedulerName": "default-scheduler", "containers": [{"name": "c", "image": "i"}]}});
    api.create("pods", "team", &later).expect("a new pod");
    decided(3);
    let report: Value = serde_json::from_str(&scheduler.stop()).expect("a report");
    let count = |key: &str| report[key].as_u64().unwrap_or_else(|| panic!("{key} in {report}"));
    assert_eq!(count("pods_on_same_node") + count("pods_on_other_node"), 1, "{report}");
    assert_eq!((count("pods_open"), count("pods_gone")), (2, 0), "{report}");
    let idle = &report["idle"][0];
    assert_eq!(idle["gpu_model"], "NVIDIA-H100-80GB-HBM3");
    // 3,600 USD per hour are a thousand micro-USD for each millisecond.
    let (gpu_ms, usd) = (idle["gpu_ms"].as_u64().unwrap(), idle["usd_micros"].as_u64().unwrap());
    assert_eq!((usd, gpu_ms % 8), (gpu_ms * 1_000, 0));
    assert!(gpu_ms >= 8 * count("longest_ms"), "{report}");
}
