//! The default policy and how much of each GPU model is in use, where jobs come and go.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_model::{
    Action, DeviceRequest, Event, Job, JobId, Node, NodeAvailability, Requirement, Resources,
    Snapshot,
};
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Engine, PolicySpec};

use crate::drive::written_and_read;

const GIB: i64 = 1 << 30;
const MINUTE_MS: u64 = 60_000;

/// Eight nodes of eight GPUs: the even ones with A100, the odd ones with H100.
fn nodes() -> Vec<Node> {
    let node = |number: usize| {
        Node::plain(&format!("n{number}"), 96_000, 1000 * GIB, 8, ["A100", "H100"][number % 2])
    };
    (0..8).map(node).collect()
}

fn engine(naive: bool) -> Engine {
    let config =
        EngineConfig { policy: PolicySpec::named("dovetail"), naive, ..EngineConfig::default() };
    let world = Snapshot { nodes: nodes(), ..Snapshot::default() };
    Engine::new(config, &world).expect("a good world")
}

/// A pod of so many whole GPUs of one model, or of any.
fn submitted(number: u64, now_ms: u64, gpus: u16, model: &str) -> Event {
    let gpu_models: BTreeSet<String> = Some(model.to_owned()).into_iter().collect();
    let requirement = Requirement {
        resources: Resources::pod(i64::from(gpus) * 8_000, i64::from(gpus) * 32 * GIB),
        device: DeviceRequest::Whole { count: gpus, same_island: false },
        gpu_models: if model == "any" { BTreeSet::new() } else { gpu_models },
        ..Requirement::default()
    };
    Event::Submitted(Box::new(Job::single(JobId(number), "pod", now_ms, Arc::new(requirement))))
}

/// The model of the node on which a pod of any model starts.
fn model_taken(engine: &mut Engine, number: u64, now_ms: u64) -> &'static str {
    let plan = engine.step(submitted(number, now_ms, 1, "any"), now_ms).expect("a good event");
    let bound = plan.actions.iter().find_map(|action| match action {
        Action::Bind { node, .. } => Some(node.to_string()),
        _ => None,
    });
    let number: usize = bound.expect("there is room")[1..].parse().expect("a number");
    ["A100", "H100"][number % 2]
}

/// Jobs that come and go, until the policy takes that as given; two of three name a model.
fn come_and_go(engine: &mut Engine, models: [&str; 3]) -> u64 {
    for number in 0..300 {
        let now_ms = number * MINUTE_MS;
        let model = models[number as usize % 3];
        engine.step(submitted(number, now_ms, 1, model), now_ms).expect("a good event");
        engine.step(Event::ended(JobId(number)), now_ms + 1).expect("a job that runs");
    }
    300
}

#[test]
fn a_pod_of_any_model_goes_to_the_model_of_which_most_is_free() {
    for (filled, expected) in [("A100", "H100"), ("H100", "A100")] {
        let mut engine = engine(false);
        let first = come_and_go(&mut engine, ["A100", "H100", "any"]);
        let now_ms = first * MINUTE_MS;
        let held = [(filled, 8), (filled, 8), ("A100", 7), ("H100", 7)];
        for (number, (model, gpus)) in (first..).zip(held) {
            engine.step(submitted(number, now_ms, gpus, model), now_ms).expect("a good event");
        }
        assert_eq!(model_taken(&mut engine, first + 4, now_ms), expected, "{filled} is in use");
    }
}

#[test]
fn models_that_no_pod_names_have_no_price() {
    let mut engine = engine(false);
    come_and_go(&mut engine, ["any"; 3]);
    let values = engine.policy().published_values();
    assert!(values.contains(&("turnover".to_owned(), 8)), "jobs come and go");
    assert!(!values.iter().any(|(name, _)| name.starts_with("in use")), "{values:?}");
}

#[test]
fn index_naive_search_and_restart_agree_while_models_fill_and_nodes_change() {
    let mut engines = [engine(false), engine(true)];
    let mut again = None;
    let mut running: Vec<u64> = Vec::new();
    let mut draw = 7u64;
    let mut below = |count: u64| {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (draw >> 33) % count
    };
    let mut uses = BTreeSet::new();
    for number in 0..1_200u64 {
        let now_ms = number * MINUTE_MS;
        if number == 700 {
            let learnt = written_and_read(&engines[0]);
            let policy = PolicySpec { learnt, ..PolicySpec::named("dovetail") };
            let config = EngineConfig { policy, ..EngineConfig::default() };
            again = Some(Engine::new(config, &engines[0].snapshot()).expect("its own world"));
        }
        let event = match below(20) {
            0 => Event::NodeCondition {
                node: format!("n{}", below(8)).into(),
                condition: [NodeAvailability::Ready, NodeAvailability::Cordoned][below(2) as usize],
            },
            1..=8 if !running.is_empty() => {
                let place = below(running.len() as u64) as usize;
                Event::ended(JobId(running.swap_remove(place)))
            }
            _ => {
                running.push(number);
                let model = ["any", "any", "A100", "H100"][below(4) as usize];
                submitted(number, now_ms, [1, 1, 2, 4, 8][below(5) as usize], model)
            }
        };
        let [plan, naive] =
            engines.each_mut().map(|engine| engine.step(event.clone(), now_ms).expect("good"));
        assert_eq!(plan, naive, "index (left) and naive (right), event {number}");
        if let Some(again) = &mut again {
            let plan_again = again.step(event, now_ms).expect("a good event");
            assert_eq!(plan, plan_again, "without (left) and with restart (right), event {number}");
        }
        let values = engines[0].policy().published_values();
        uses.extend(values.into_iter().filter(|(name, _)| name.starts_with("in use")));
    }
    assert!(uses.len() > 10, "the shares in use hardly moved: {uses:?}");
}
