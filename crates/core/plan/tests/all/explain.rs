//! What would help a waiting job, against trying everything.
//!
//! A constraint is given up for good in the plain data of a snapshot, and a fresh engine is asked
//! whether the job starts when it is the only one that waits.

use std::collections::BTreeSet;

use dovetail_model::{Action, Bounds, Event, Job, JobId, Owner, Snapshot};
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::explain::Relaxation;
use dovetail_plan::explain::relax::relax;
use dovetail_plan::{Engine, PolicySpec};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::drive::{self, History};
use crate::recipe::{Recipe, cases, recipes};

/// Whether a job starts in a fresh engine once the constraints are given up.
fn starts(snapshot: &Snapshot, job: &Job, given_up: &[Relaxation], policy: &PolicySpec) -> bool {
    let mut world = snapshot.clone();
    world.jobs.retain(|other| other.start_ms.is_some());
    world.jobs.push(relax(job, given_up));
    world.jobs.sort_by_key(|job| job.id);
    // It is another world now: what was found not to fit there says nothing here.
    world.sleeping.clear();
    for relaxation in given_up {
        match relaxation {
            Relaxation::Quota => world.queues.iter_mut().for_each(|queue| {
                (queue.limit, queue.guaranteed) = (Bounds::default(), Bounds::default());
            }),
            Relaxation::Reservation => world.holdings.retain(|h| h.owner != Owner::Reservation),
            _ => {}
        }
    }
    let config = EngineConfig { policy: policy.clone(), ..EngineConfig::default() };
    let mut engine = Engine::new(config, &world).expect("a good world");
    let plan = engine.step(Event::Tick, world.now_ms).expect("time stands still");
    plan.actions
        .iter()
        .any(|action| matches!(action, Action::Bind { pod, .. } if pod.job == job.id))
}

/// All sets of one and of two that help and of which no part helps.
fn by_trying(snapshot: &Snapshot, job: &Job, policy: &PolicySpec) -> BTreeSet<Vec<Relaxation>> {
    let mut found = BTreeSet::new();
    for first in Relaxation::ALL {
        if starts(snapshot, job, &[first], policy) {
            found.insert(vec![first]);
        }
    }
    for (place, first) in Relaxation::ALL.iter().enumerate() {
        for second in &Relaxation::ALL[place + 1..] {
            let alone = [vec![*first], vec![*second]];
            let pair = vec![*first, *second];
            if alone.iter().all(|one| !found.contains(one)) && starts(snapshot, job, &pair, policy)
            {
                found.insert(pair);
            }
        }
    }
    found
}

/// The engines of a recipe after its events, both searches.
fn after_events(recipe: &Recipe, policy: &PolicySpec) -> [Engine; 2] {
    let start = drive::start(recipe);
    let config = EngineConfig { policy: policy.clone(), ..EngineConfig::default() };
    let engine = |naive| Engine::new(EngineConfig { naive, ..config.clone() }, &start);
    let mut engines = [false, true].map(|naive| engine(naive).expect("a good world"));
    let mut history = History::of(recipe);
    for bytes in &recipe.events {
        let event = history.event(bytes, &engines[0]);
        for engine in &mut engines {
            let _ = engine.step(event.clone(), history.now_ms);
        }
    }
    engines
}

fn explained_as_tried(recipe: &Recipe) -> Result<(), TestCaseError> {
    let mut policy = drive::policy(recipe, None);
    if policy.name == "random" {
        policy = PolicySpec::named("best-fit");
    }
    let [mut indexed, mut naive] = after_events(recipe, &policy);
    policy.learnt = drive::written_and_read(&indexed);
    let snapshot = indexed.snapshot();
    let waiting: Vec<&Job> = snapshot.jobs.iter().filter(|job| job.start_ms.is_none()).collect();
    for job in waiting.into_iter().take(3) {
        let why = indexed.ask().why(job.id).expect("it waits");
        prop_assert_eq!(&why, &naive.ask().why(job.id).expect("it waits there too"));
        prop_assert!(!starts(&snapshot, job, &[], &policy), "it waits without a reason");
        let stated: BTreeSet<_> = why.relaxations.iter().cloned().collect();
        prop_assert_eq!(stated.len(), why.relaxations.len(), "each is stated once");
        prop_assert_eq!(stated, by_trying(&snapshot, job, &policy), "{:?}", job);
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn stated_relaxations_are_those_that_help(recipe in recipes(5, 5, 14)) {
        explained_as_tried(&recipe)?;
    }
}

#[test]
fn a_job_that_does_not_wait_needs_no_reason() {
    let mut engine = Engine::new(EngineConfig::default(), &Snapshot::default()).expect("empty");
    assert_eq!(engine.ask().why(JobId(1)), None);
}
