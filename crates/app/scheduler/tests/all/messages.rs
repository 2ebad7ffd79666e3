//! What pods of gangs say that no node takes: the cause that their owners know, and not the means
//! by which it is kept.

use dovetail_cluster::world::Settings;
use dovetail_objects::Kind;
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::explain::Relaxation;
use dovetail_translate::Rules;
use serde_json::{Value, json};

use crate::gangs::{Cluster, member, names, node, pod};
use crate::server::Server;

const RACK: &str = "topology.kubernetes.io/rack";

fn change_node(cluster: &mut Cluster, name: &str, change: impl FnOnce(&mut Value)) {
    cluster.server.change(&(Kind::Node, String::new(), name.to_owned()), change);
}

fn node_of(cluster: &Cluster, pod: &str) -> String {
    let key = (Kind::Pod, "blue".to_owned(), pod.to_owned());
    cluster.server.objects[&key]["spec"]["nodeName"].as_str().expect("a node").to_owned()
}

/// A pod of so many GPUs that goes to one node.
fn filler(gpus: usize, node: &str) -> Value {
    let mut filler = pod(gpus);
    filler["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": node});
    filler
}

/// Two members of a gang run in one domain of a level; one is lost, and `filler` takes its place
/// before another is made.
fn replaced(cluster: &mut Cluster, level: &str, gpus: usize) {
    let member = || {
        let mut member = member(gpus, 2, 2);
        member["metadata"]["annotations"]["dovetail.dev/topology-required"] = json!(level);
        member
    };
    (0..2).for_each(|at| cluster.create(&format!("p{at}"), member()));
    assert_eq!(cluster.run(), names(&["p0", "p1"]));
    let freed = node_of(cluster, "p1");
    cluster.delete(Kind::Pod, "blue", "p1");
    cluster.create("filler", filler(8 - gpus % 8, &freed));
    cluster.watch();
    cluster.pass(60_000);
    assert_eq!(cluster.run(), names(&["filler"]));
    cluster.create("p9", member());
    assert_eq!(cluster.run(), names(&[]));
}

#[test]
fn a_replacement_names_the_domain_that_has_no_room_for_it() {
    let mut cluster = Cluster::of(4);
    for (at, rack) in ["a", "b", "a", "b"].into_iter().enumerate() {
        change_node(&mut cluster, &format!("n{at}"), |node| {
            node["metadata"]["labels"][RACK] = json!(rack);
        });
    }
    // Only one rack is left for the two of them.
    cluster.create("first", filler(1, "n1"));
    assert_eq!(cluster.run(), names(&["first"]));
    replaced(&mut cluster, "rack", 8);
    let outside = "node(s) were outside rack a, the topology domain of its gang";
    let expected = format!("0/4 nodes are available: 2 Insufficient nvidia.com/gpu, 2 {outside}.");
    assert_eq!(cluster.says("p9"), expected);
    // Whatever else is wrong with a node of another rack makes no difference.
    change_node(&mut cluster, "n1", |node| node["spec"]["unschedulable"] = json!(true));
    assert_eq!(cluster.run(), names(&[]));
    assert_eq!(cluster.says("p9"), expected);
    let job = cluster.scheduler.world().pods().job_of("blue", "p9").expect("a job");
    let counted: Vec<(u32, String)> = cluster.scheduler.ask().obstacles(job)[0]
        .iter()
        .map(|obstacle| (obstacle.nodes, obstacle.reason.clone()))
        .collect();
    let all = [(2, "Insufficient nvidia.com/gpu"), (1, outside), (1, outside)];
    let all: Vec<(u32, String)> = all.map(|(nodes, reason)| (nodes, reason.to_owned())).into();
    assert_eq!(counted, all);
    // Its owner wrote no selector that could be given up.
    let why = cluster.scheduler.ask().why(job).expect("it waits");
    assert_eq!(why.relaxations, [[Relaxation::Level]]);
}

#[test]
fn a_replacement_that_must_be_on_one_node_names_it() {
    let mut cluster = Cluster::of(2);
    cluster.create("first", filler(7, "n1"));
    assert_eq!(cluster.run(), names(&["first"]));
    replaced(&mut cluster, "node", 4);
    assert_eq!(
        cluster.says("p9"),
        "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) were outside node n0, the topology \
         domain of its gang."
    );
}

/// Members of a gang, each with the same in its specification; what the first says.
fn together(nodes: usize, members: usize, gpus: usize, spec: &Value) -> String {
    let mut cluster = Cluster::of(nodes);
    for at in 0..members {
        let mut member = member(gpus, members, members);
        member["metadata"]["labels"]["app"] = json!("train");
        for (key, value) in spec.as_object().expect("fields") {
            match key.as_str() {
                "ports" => member["spec"]["containers"][0]["ports"] = value.clone(),
                _ => member["spec"][key] = value.clone(),
            }
        }
        cluster.create(&format!("p{at}"), member);
    }
    assert_eq!(cluster.run(), names(&[]));
    cluster.says("p0")
}

#[test]
fn members_that_keep_each_other_apart_are_told_by_which_rule() {
    let app = json!({"matchLabels": {"app": "train"}});
    let term = json!({"labelSelector": app, "topologyKey": "kubernetes.io/hostname"});
    let apart = json!({"affinity": {"podAntiAffinity":
        {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}});
    let room = |nodes: usize, members: usize| {
        format!(
            "0/{nodes} nodes are available for all {members} pods at once: {nodes} could take one of them"
        )
    };
    assert_eq!(
        together(3, 4, 1, &apart),
        room(3, 4) + "; without their own pod anti-affinity they would start now."
    );
    assert_eq!(together(3, 4, 8, &apart), room(3, 4) + ".", "there is too little room in any case");
    let ports = json!({"ports": [{"containerPort": 80, "hostPort": 80}]});
    assert_eq!(
        together(2, 3, 1, &ports),
        room(2, 3) + "; without their own host ports they would start now."
    );
    let mut both = apart;
    both["ports"] = ports["ports"].clone();
    assert_eq!(
        together(2, 3, 1, &both),
        room(2, 3)
            + "; without their own pod anti-affinity and their own host ports they would start now."
    );
}

#[test]
fn settings_that_leave_no_node_are_told() {
    let mut server = Server::default();
    (0..2).for_each(|at| node(&mut server, at));
    let rules =
        Rules { node_selector: [("pool".to_owned(), "gpu".to_owned())].into(), ..Rules::default() };
    let settings = Settings { rules, ..Settings::default() };
    let mut cluster = Cluster::by(server, EngineConfig::default(), settings);
    cluster.create("p0", pod(1));
    assert_eq!(cluster.run(), names(&[]));
    let told = "no node has the labels that node_selector in dovetail.toml requires (pool=gpu): no pod is placed \
                until a node has them";
    assert_eq!(cluster.reports(), names(&[told]));
    assert_eq!(
        cluster.says("p0"),
        "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector. No node has the labels that \
         node_selector in dovetail.toml requires (pool=gpu)."
    );
    // One is enough, and it is told anew when that has gone.
    change_node(&mut cluster, "n0", |node| node["metadata"]["labels"]["pool"] = json!("gpu"));
    assert_eq!(cluster.run(), names(&["p0"]));
    assert_eq!(cluster.reports(), names(&[]));
    cluster.delete(Kind::Node, "", "n0");
    cluster.watch();
    assert_eq!(cluster.reports(), names(&[told]));
    cluster.delete(Kind::Node, "", "n1");
    cluster.watch();
    assert_eq!(cluster.reports(), names(&[]), "a cluster without nodes says so itself");
}

#[test]
fn a_node_that_says_that_it_has_more_devices_than_are_counted_is_told() {
    let mut cluster = Cluster::of(1);
    assert_eq!(cluster.reports(), names(&[]));
    for (said, reports) in [
        ("4096", names(&[])),
        (
            "99999",
            names(&[
                "node n0 reports 99999 of nvidia.com/gpu; dovetail uses only 4096; check what its \
                 device plugin reports",
            ]),
        ),
    ] {
        change_node(&mut cluster, "n0", |node| {
            node["status"]["capacity"]["nvidia.com/gpu"] = json!(said);
            node["status"]["allocatable"]["nvidia.com/gpu"] = json!(said);
        });
        cluster.watch();
        assert_eq!(cluster.reports(), reports);
    }
}
