//! What an image that is there is worth, with pencil and paper; who decides the same without
//! images, decides it once.

use std::sync::Arc;

use dovetail_model::requirement::Operator;
use dovetail_model::{
    Event, Images, Job, JobId, Node, Preference, Preferred, Requirement, Resources, SelectorTerm,
    Snapshot,
};
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Engine, PolicySpec};

use crate::by_hand::{World, placed};

fn node(name: &str, images: &[(&str, i64)]) -> Node {
    let named = images.iter().map(|(name, mebibytes)| ((*name).into(), mebibytes << 20));
    Node { images: Images::new(named), ..Node::plain(name, 8000, 1000, 0, "") }
}

fn wants(images: &[&str]) -> Requirement {
    let names = images.iter().map(|name| (*name).to_owned()).collect();
    let preferences = vec![Preference { points: 100, to: Preferred::Images(names) }];
    Requirement { resources: Resources::pod(100, 10), preferences, ..Requirement::default() }
}

/// Points for images on the node that is best for a pod, as its record says.
fn points_of_best(nodes: Vec<Node>, images: &[&str]) -> i64 {
    let snapshot = Snapshot { nodes, ..Snapshot::default() };
    let policy = PolicySpec::named("best-fit");
    let config = EngineConfig { policy, record_decisions: true, ..EngineConfig::default() };
    let mut engine = Engine::new(config, &snapshot).expect("a good world");
    let job = Job::single(JobId(1), "by-hand", 0, Arc::new(wants(images)));
    engine.step(Event::Submitted(Box::new(job)), 0).expect("room");
    let record = engine.decisions().remove(0);
    let best = &record.alternatives[0];
    assert_eq!(best.terms.iter().map(|term| term.points).sum::<i64>(), best.score);
    best.terms.iter().find(|term| term.name == "images").expect("a term of its own").points
}

#[test]
fn an_image_is_worth_its_size_times_its_share_of_the_nodes() {
    let with = |mebibytes: i64, having: usize, others: usize| {
        let mut nodes: Vec<Node> =
            (0..having).map(|i| node(&format!("has{i}"), &[("web:1", mebibytes)])).collect();
        nodes.extend((0..others).map(|i| node(&format!("other{i}"), &[("base:1", 5000)])));
        nodes
    };
    // One container: 23 MiB are worth nothing, 1000 MiB everything, 977 MiB lie between.
    assert_eq!(points_of_best(with(23, 4, 0), &["web:1"]), 0);
    assert_eq!(points_of_best(with(1000, 4, 0), &["web:1"]), 100);
    assert_eq!(points_of_best(with(8000, 4, 0), &["web:1"]), 100);
    assert_eq!(points_of_best(with(523, 4, 0), &["web:1"]), 51, "500/977 = 51.2%");
    // 2000 MiB on one of four nodes are 500 MiB: 477/977 = 48.8%.
    assert_eq!(points_of_best(with(2000, 1, 3), &["web:1"]), 48);
    // Two containers, one image not there: 977/1977 = 49.4%; both from one image: 100%.
    assert_eq!(points_of_best(with(1000, 4, 0), &["web:1", "gone:1"]), 49);
    assert_eq!(points_of_best(with(1000, 4, 0), &["web:1", "web:1"]), 100);
    assert_eq!(points_of_best(with(1000, 4, 0), &["web"]), 0, "names are compared as they are");
}

#[test]
fn a_pod_goes_where_its_image_is_as_nodes_and_images_come_and_go() {
    let plain = || vec![node("a", &[]), node("b", &[]), node("c", &[("web:1", 900)])];
    let mut world = World::nodes(plain());
    let place = |world: &mut World| {
        let (_, node, _) = placed(&world.submit(|_| {}, wants(&["web:1"]))).remove(0);
        world.end(world.last_job());
        node
    };
    assert_eq!(place(&mut world), "c");
    let change = |world: &mut World, node: Node| {
        world.step(Event::NodeChanged(Box::new(node)));
    };
    change(&mut world, node("b", &[("web:1", 1200)]));
    assert_eq!(place(&mut world), "b", "its own size counts: 800 MiB against 600");
    change(&mut world, node("b", &[]));
    assert_eq!(place(&mut world), "c", "only what is there counts");
    change(&mut world, node("c", &[]));
    assert_eq!(place(&mut world), "a", "nothing but the rank is left");
    change(&mut world, node("c", &[("web:1", 69)]));
    assert_eq!(
        place(&mut world),
        "a",
        "23 MiB of 69, as one of three nodes has it, count for nothing"
    );
    world.step(Event::NodeRemoved { node: "b".into() });
    assert_eq!(place(&mut world), "c", "one of two nodes: 34 MiB");
}

#[test]
fn a_share_that_moves_changes_the_score_of_nodes_that_nothing_else_touched() {
    let nodes = vec![node("a", &[]), node("b", &[]), node("c", &[("web:1", 2000)]), node("d", &[])];
    let mut world = World::nodes(nodes);
    let named_a = SelectorTerm {
        key: "metadata.name".to_owned(),
        operator: Operator::In,
        values: vec!["a".to_owned()],
    };
    let mut wish = wants(&["web:1"]);
    wish.preferences.push(Preference { points: 60, to: Preferred::Nodes(vec![named_a]) });
    let place = |world: &mut World| placed(&world.submit(|_| {}, wish.clone())).remove(0).1;
    assert_eq!(place(&mut world), "a", "500 MiB are 48 points");
    world.end(1);
    world.step(Event::NodeRemoved { node: "d".into() });
    assert_eq!(place(&mut world), "c", "666 MiB are 65 points");
}

#[test]
fn jobs_that_name_other_images_wait_as_one_class_and_share_a_place_in_it() {
    let mut world = World::nodes(vec![node("a", &[("web:1", 4000)])]);
    let too_large =
        |images: &[&str]| Requirement { resources: Resources::pod(9000, 10), ..wants(images) };
    world.submit(|_| {}, too_large(&["web:1"]));
    world.submit(|_| {}, too_large(&["train:1"]));
    world.submit(|_| {}, Requirement { preferences: Vec::new(), ..too_large(&[]) });
    let classes: Vec<u64> = world.engines[0].list().waiting().map(|class| class.jobs).collect();
    assert_eq!(classes, [3]);
    let restarted = World::of(&world.engines[0].snapshot());
    let classes: Vec<(u64, bool)> =
        restarted.engines[0].list().waiting().map(|class| (class.jobs, class.tried)).collect();
    assert_eq!(classes, [(3, true)], "the class sleeps on after a restart");
}
