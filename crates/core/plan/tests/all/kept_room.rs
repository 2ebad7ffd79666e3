//! Room that somebody outside holds for one waiting job alone.

use std::collections::BTreeSet;

use dovetail_model::{
    Action, DeviceAmount, Event, Holding, HoldingId, HoldingPhase, Job, JobId, Node, Owner, Plan,
    PodId, Resources, Selectors, Snapshot, Taint, TaintEffect,
};
use dovetail_plan::{Engine, EngineConfig, PreemptionConfig};

use crate::by_hand::{World, asks, placed, whole};

fn node(name: &str, gpus: usize) -> Node {
    Node::plain(name, 64_000, 100, gpus, "h100")
}

fn world(nodes: Vec<Node>) -> World {
    let preemption = PreemptionConfig { enabled: true, ..PreemptionConfig::default() };
    World::with(&Snapshot { nodes, ..Snapshot::default() }, preemption)
}

/// Room of so many GPUs, from the first on, that nobody is given.
fn room(name: &str, node: &str, gpus: u16) -> Event {
    room_of(name, node, gpus, HoldingPhase::Held { expected_end_ms: None })
}

fn room_of(name: &str, node: &str, gpus: u16, phase: HoldingPhase) -> Event {
    Event::ForeignHeld(Box::new(Holding {
        id: HoldingId(0),
        node: node.into(),
        owner: Owner::Foreign(name.to_owned()),
        phase,
        reservation: None,
        resources: Resources::pod(100, 0),
        devices: (0..gpus).map(|index| (index, DeviceAmount::share(1000, 0))).collect(),
        counts_into: Selectors::default(),
        attachments: BTreeSet::new(),
    }))
}

fn may_use(name: &str) -> impl FnOnce(&mut Job) {
    let name = name.to_owned();
    move |job| {
        job.kept_room.insert(name);
    }
}

fn nodes_of(plan: &Plan) -> Vec<String> {
    placed(plan).into_iter().map(|(_, node, _)| node).collect()
}

#[test]
fn who_it_is_held_for_starts_in_it_and_nobody_else() {
    let mut world = world(vec![node("a", 2)]);
    world.step(room("kept", "a", 2));
    let urgent = world.submit(|job| job.priority = 9, asks(whole(1)));
    assert_eq!(nodes_of(&urgent), [""; 0]);
    assert_eq!(nodes_of(&world.submit(may_use("other"), asks(whole(1)))), [""; 0]);
    let owner = world.submit(may_use("kept"), asks(whole(1)));
    assert_eq!(owner.actions.len(), 2, "it starts, and what it leaves of the room is for the next");
    assert_eq!(nodes_of(&owner), ["a", "a"]);
    assert!(matches!(owner.actions[0], Action::Bind { pod, .. } if pod.job == JobId(3)));
    assert!(matches!(owner.actions[1], Action::Bind { pod, .. } if pod.job == JobId(1)));
    // To say that it is over is late and harmless.
    world.step(Event::ForeignReleased { name: "kept".to_owned() });
    assert_eq!(nodes_of(&world.end(1)), ["a"]);
}

#[test]
fn who_starts_elsewhere_leaves_the_room_to_others() {
    let mut world = world(vec![node("a", 1), node("b", 4)]);
    world.step(room("kept", "a", 1));
    let waits = world.submit(|job| job.pod_sets[0].min = 1, asks(whole(1)));
    assert_eq!(nodes_of(&waits), ["b"]);
    let three = world.submit(|_| {}, asks(whole(3)));
    assert_eq!(nodes_of(&three), ["b"]);
    assert_eq!(nodes_of(&world.submit(|_| {}, asks(whole(1)))), [""; 0], "one is left, and kept");
    world.end(1);
    let owner = world.submit(may_use("kept"), asks(whole(2)));
    assert_eq!(nodes_of(&owner), [""; 0], "neither the room nor the rest suffices");
    assert_eq!(nodes_of(&world.end(2)), ["b"]);
    assert_eq!(nodes_of(&world.submit(|_| {}, asks(whole(1)))).len(), 1);
    assert_eq!(nodes_of(&world.submit(|_| {}, asks(whole(1)))).len(), 1);
}

/// What else keeps it off its room is what it is woken by, also after a restart.
#[test]
fn who_waits_beside_its_room_is_woken_by_what_else_is_in_the_way() {
    let taint =
        Taint { key: "busy".to_owned(), value: String::new(), effect: TaintEffect::NoSchedule };
    let tainted = Node { taints: vec![taint], ..node("a", 1) };
    let mut world = world(vec![tainted.clone()]);
    world.step(room("kept", "a", 1));
    assert_eq!(nodes_of(&world.submit(may_use("kept"), asks(whole(1)))), [""; 0]);
    let mut again = Engine::new(EngineConfig::default(), &world.engines[0].snapshot())
        .expect("its own snapshot");
    let open = Event::NodeChanged(Box::new(Node { taints: Vec::new(), ..tainted }));
    assert_eq!(nodes_of(&again.step(open.clone(), world.now_ms).expect("a known node")), ["a"]);
    assert_eq!(nodes_of(&world.step(open)), ["a"]);
}

/// Room for one and a victim for the other: both are its own from the decision on.
#[test]
fn who_stops_others_beside_its_room_has_both() {
    let mut world = world(vec![node("a", 2)]);
    world.step(room("kept", "a", 1));
    assert_eq!(nodes_of(&world.submit(|job| job.priority = -1, asks(whole(1)))), ["a"]);
    let change = |job: &mut Job| may_use("kept")(job);
    let plan = world.submit(change, asks(whole(2)));
    let victims = plan.actions.iter().find_map(|action| match action {
        Action::Preempt { victims, .. } => Some(victims.clone()),
        _ => None,
    });
    let victim = PodId { job: JobId(1), pod_set: 0, ordinal: 0 };
    assert_eq!(victims, Some(vec![victim]));
    assert_eq!(nodes_of(&world.submit(|_| {}, asks(whole(1)))), [""; 0]);
    let freed = world.step(Event::pod_ended(victim));
    assert_eq!(nodes_of(&freed), ["a"]);
    assert!(matches!(freed.actions[0], Action::Bind { pod, .. } if pod.job == JobId(2)));
}

/// What others may know: what they would have if the room were given up.
#[test]
fn it_can_be_asked_what_fits_without_it() {
    let mut world = world(vec![node("a", 2)]);
    world.step(room("kept", "a", 1));
    let waits = world.submit(|_| {}, asks(whole(2)));
    assert_eq!(nodes_of(&waits), [""; 0]);
    for engine in &mut world.engines {
        let before = engine.snapshot();
        let job = engine.job(JobId(1)).expect("it waits").clone();
        let mut without = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned());
            engine.ask().would_fit_without(&job, names).expect("no levels")
        };
        assert!(without(&["kept", "nobody's"]));
        assert!(!without(&["nobody's"]));
        assert_eq!(engine.snapshot(), before);
    }
}

fn stopped(plan: &Plan) -> Vec<PodId> {
    let victims = plan.actions.iter().filter_map(|action| match action {
        Action::Preempt { victims, .. } => Some(victims.clone()),
        _ => None,
    });
    victims.flatten().collect()
}

fn given_up(plan: &Plan) -> Vec<&str> {
    let names = plan.actions.iter().filter_map(|action| match action {
        Action::RoomGivenUp { name, .. } => Some(name.as_str()),
        _ => None,
    });
    names.collect()
}

/// Nobody is there yet: to give it up is cheaper than to stop anybody.
#[test]
fn room_of_a_lower_priority_is_given_up_before_anybody_is_stopped() {
    let mut world = world(vec![node("a", 1), node("b", 1)]);
    assert_eq!(nodes_of(&world.submit(|_| {}, asks(whole(1)))), ["a"]);
    world.step(room_of("kept", "b", 1, HoldingPhase::Kept { priority: 3 }));
    let mild = |job: &mut Job| {
        job.priority = 9;
        job.preemption.never_preempts = true;
    };
    let mild = world.submit(mild, asks(whole(1)));
    assert_eq!((given_up(&mild), nodes_of(&mild)), (vec![], vec![]));
    world.end(2);
    let urgent = world.submit(|job| job.priority = 9, asks(whole(1)));
    assert_eq!((given_up(&urgent), stopped(&urgent)), (vec!["kept"], vec![]));
    assert_eq!(nodes_of(&urgent), ["b"]);
    // Who was to have it waits like anybody.
    let late = world.submit(may_use("kept"), asks(whole(1)));
    assert_eq!(nodes_of(&late), [""; 0]);
}

#[test]
fn room_is_not_given_up_for_one_as_important() {
    let mut world = world(vec![node("a", 1), node("b", 1)]);
    assert_eq!(nodes_of(&world.submit(|_| {}, asks(whole(1)))), ["a"]);
    world.step(room_of("kept", "b", 1, HoldingPhase::Kept { priority: 3 }));
    let same = world.submit(|job| job.priority = 3, asks(whole(1)));
    let victim = PodId { job: JobId(1), pod_set: 0, ordinal: 0 };
    assert_eq!((given_up(&same), stopped(&same)), (vec![], vec![victim]));
}

#[test]
fn room_and_victims_together_make_place_for_a_gang() {
    let mut world = world(vec![node("a", 1), node("b", 1), node("c", 1)]);
    assert_eq!(nodes_of(&world.submit(|_| {}, asks(whole(1)))), ["a"]);
    world.step(room_of("kept", "b", 1, HoldingPhase::Kept { priority: 0 }));
    world.step(room_of("other", "c", 1, HoldingPhase::Kept { priority: 7 }));
    let pair = |job: &mut Job| {
        job.priority = 5;
        (job.pod_sets[0].min, job.pod_sets[0].max) = (2, 2);
    };
    let pair = world.submit(pair, asks(whole(1)));
    let victim = PodId { job: JobId(1), pod_set: 0, ordinal: 0 };
    assert_eq!((given_up(&pair), stopped(&pair)), (vec!["kept"], vec![victim]));
    assert_eq!(nodes_of(&world.submit(|_| {}, asks(whole(1)))), [""; 0], "it is kept for the pair");
    assert_eq!(nodes_of(&world.step(Event::pod_ended(victim))), ["a", "b"]);
}

/// What leaves anyway suffices: nothing is given up, and nobody stopped.
#[test]
fn room_is_not_given_up_where_others_leave() {
    let mut world = world(vec![node("a", 1), node("b", 1)]);
    assert_eq!(nodes_of(&world.submit(|_| {}, asks(whole(1)))), ["a"]);
    world.step(room_of("kept", "b", 1, HoldingPhase::Kept { priority: 0 }));
    world.step(Event::Ending { job: JobId(1), expected_end_ms: None });
    let urgent = world.submit(|job| job.priority = 9, asks(whole(1)));
    assert_eq!((given_up(&urgent), stopped(&urgent)), (vec![], vec![]));
    assert_eq!(nodes_of(&world.end(1)), ["a"]);
}

/// What is free in truth is used first, and of the rooms as few as suffice, of the least important
/// ones.
#[test]
fn no_more_rooms_are_given_up_than_are_needed() {
    let pair = |job: &mut Job| {
        job.priority = 9;
        (job.pod_sets[0].min, job.pod_sets[0].max) = (2, 2);
    };
    let mut world = world(vec![node("a", 8), node("b", 8), node("c", 8), node("free", 8)]);
    world.step(room_of("of 3", "a", 8, HoldingPhase::Kept { priority: 3 }));
    world.step(room_of("of 1", "b", 8, HoldingPhase::Kept { priority: 1 }));
    world.step(room_of("of 2", "c", 8, HoldingPhase::Kept { priority: 2 }));
    let started = world.submit(pair, asks(whole(8)));
    assert_eq!(
        (given_up(&started), nodes_of(&started)),
        (vec!["of 1"], vec!["b".into(), "free".into()])
    );
}

#[test]
fn of_the_rooms_of_a_node_no_more_are_given_up_than_are_needed() {
    let urgent = |job: &mut Job| job.priority = 9;
    let two = |first: u16, second: u16| {
        let mut world = world(vec![node("a", 8)]);
        world.step(room_of("one", "a", first, HoldingPhase::Kept { priority: 0 }));
        let mut second = room_of("two", "a", second, HoldingPhase::Kept { priority: 0 });
        if let Event::ForeignHeld(room) = &mut second {
            room.devices.iter_mut().for_each(|(index, _)| *index += first);
        }
        world.step(second);
        world
    };
    let mut even = two(4, 4);
    let started = even.submit(urgent, asks(whole(4)));
    assert_eq!((given_up(&started).len(), nodes_of(&started)), (1, vec!["a".into()]));
    let late = even.submit(|_| {}, asks(whole(4)));
    assert_eq!(nodes_of(&late), [""; 0], "the other is kept still");
    // One of them is enough: the smaller one if that will do, else the other.
    assert_eq!(given_up(&two(2, 6).submit(urgent, asks(whole(2)))), ["one"]);
    assert_eq!(given_up(&two(2, 6).submit(urgent, asks(whole(6)))), ["two"]);
    assert_eq!(given_up(&two(2, 6).submit(urgent, asks(whole(8)))).len(), 2);
}
