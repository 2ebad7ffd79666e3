//! The same events give the same plans, whatever the memory bound and whatever was asked in
//! between.

use dovetail_model::{Event, Plan};
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Engine, EngineError, View};
use proptest::prelude::*;

use crate::drive::{self, History};
use crate::recipe::{Recipe, cases, recipes};

type Steps = Vec<(Event, u64, Result<Plan, EngineError>)>;

fn engine(recipe: &Recipe, max_index_bytes: usize) -> Engine {
    let config = EngineConfig {
        policy: drive::policy(recipe, None),
        order: drive::order(recipe),
        max_index_bytes,
        ..EngineConfig::default()
    };
    Engine::new(config, &drive::start(recipe)).expect("a good world")
}

/// A run, with every event as it was sent.
fn recorded(recipe: &Recipe) -> (Steps, Engine) {
    let mut engine = engine(recipe, 1 << 20);
    let mut history = History::of(recipe);
    let mut steps = Steps::new();
    for bytes in &recipe.events {
        let event = history.event(bytes, &engine);
        let plan = engine.step(event.clone(), history.now_ms);
        steps.push((event, history.now_ms, plan));
    }
    (steps, engine)
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn a_recording_replays(recipe in recipes(6, 6, 30)) {
        let (steps, first) = recorded(&recipe);
        let mut again = engine(&recipe, 1);
        for (event, now_ms, plan) in &steps {
            prop_assert_eq!(plan, &again.step(event.clone(), *now_ms));
        }
        prop_assert_eq!(first.snapshot(), again.snapshot());
    }

    #[test]
    fn questions_change_nothing(recipe in recipes(6, 6, 20)) {
        let (steps, _) = recorded(&recipe);
        let mut asked = engine(&recipe, 1 << 20);
        for (event, now_ms, plan) in &steps {
            let decided = asked.step(event.clone(), *now_ms);
            prop_assert_eq!(plan, &decided, "after {:?}", event);
            let before = asked.snapshot();
            let holdings: Vec<_> = before.holdings.iter().map(|holding| holding.id).collect();
            let held: Vec<_> = holdings;
            let views = [
                View::Now,
                View::AfterReleasing,
                View::At { time_ms: now_ms + 10 },
                View::Without(held),
            ];
            for job in &before.jobs {
                asked.ask().why(job.id);
                let mut unplaced = job.clone();
                unplaced.pod_sets.iter_mut().for_each(|set| set.present = 0);
                for view in &views {
                    asked.ask().what_if_job(&unplaced, view).expect("levels that exist");
                }
            }
            prop_assert_eq!(before, asked.snapshot());
        }
    }
}
