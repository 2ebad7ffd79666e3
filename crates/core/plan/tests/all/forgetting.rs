//! What an engine keeps of what is gone. That it decides as before is in [`crate::differential`].

use std::sync::Arc;

use dovetail_model::{
    Action, CounterRule, CounterScope, Event, Job, JobId, Node, Preference, Preferred, Requirement,
    Resources, RuleCause, RuleKind, Snapshot,
};
use dovetail_plan::Engine;
use dovetail_plan::engine::EngineConfig;

/// A pod with a selector and an image that nobody else has.
fn one_of_many(number: u64) -> Requirement {
    let selector = format!("pods of run {number}");
    let rule = CounterRule {
        selector: selector.clone(),
        label: "zone".to_owned(),
        kind: RuleKind::AntiAffinity,
        scope: CounterScope::AllNodes,
        cause: RuleCause::AntiAffinity,
    };
    let images = Preferred::Images(vec![format!("run:{number}")]);
    Requirement {
        resources: Resources::pod(100, 10),
        counts_into: [selector].into(),
        rules: vec![rule],
        preferences: vec![Preference { points: 100, to: images }],
        ..Requirement::default()
    }
}

#[test]
fn names_of_what_is_gone_are_forgotten_and_those_in_use_are_not() {
    let snapshot =
        Snapshot { nodes: vec![Node::plain("n", 8000, 1000, 0, "")], ..Snapshot::default() };
    let mut engine = Engine::new(EngineConfig::default(), &snapshot).expect("a good world");
    let run = |engine: &mut Engine, number: u64| {
        let job = Job::single(JobId(number), "run", 0, Arc::new(one_of_many(number)));
        let plan = engine.step(Event::Submitted(Box::new(job)), 0).expect("a new job");
        let is_bind = |action: &&Action| matches!(action, Action::Bind { .. });
        assert_eq!(plan.actions.iter().filter(is_bind).count(), 1, "{plan:?}");
    };
    run(&mut engine, 1);
    let of_one = engine.known_names();
    for number in 2..100 {
        run(&mut engine, number);
        engine.step(Event::ended(JobId(number)), 0).expect("a job that runs");
    }
    assert!(engine.known_names() > 90 * of_one);
    // Nobody waits who could be helped.
    let plain = |engine: &Engine| Snapshot { helped: 0, ..engine.snapshot() };
    let before = plain(&engine);
    engine.forget_what_is_gone();
    assert_eq!(plain(&engine), before);
    assert_eq!(engine.known_names(), of_one);
}
