//! The index against the naive judge, the engine against the judges of `dovetail-check`, and an
//! engine against its own restart, on random worlds.

use dovetail_check::Judge;
use dovetail_model::{Action, Event, Plan};
use dovetail_order::QueueTurns;
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Batch, Engine, EngineError, EstimatesConfig, Learned, ReserveConfig};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::drive::{self, History};
use crate::recipe::{self, Choices, Recipe, cases, recipes};

/// Engines that must decide alike, with the judge of what they decide.
pub(crate) struct Twins {
    pub(crate) indexed: Engine,
    pub(crate) naive: Engine,
    restarted: Option<Engine>,
    judge: Judge,
    pub(crate) history: History,
    config: EngineConfig,
    restart_at: usize,
    steps: usize,
}

impl Twins {
    pub(crate) fn of(recipe: &Recipe, policy: Option<&str>) -> Self {
        let start = drive::start(recipe);
        let config = EngineConfig {
            policy: drive::policy(recipe, policy),
            order: drive::order(recipe),
            naive: false,
            record_decisions: false,
            max_index_bytes: [1 << 20, 1][usize::from(recipe.config[5] % 2)],
            preemption: recipe::preempting(recipe),
            turns: drive::turns(recipe),
            estimates: EstimatesConfig {
                learn: recipe.config[7] & 4 != 0,
                only_learned: recipe.config[7] & 12 == 12,
            },
            reserve: ReserveConfig {
                heads: [0, 0, 1, 3][usize::from(recipe.config[7] / 8) % 4],
                lent_percent: [100, 50][usize::from(recipe.config[7] / 32) % 2],
                ..ReserveConfig::default()
            },
            ends_at_claims: false,
            model_weights: drive::model_weights(recipe),
        };
        let engine = |naive| {
            Engine::new(EngineConfig { naive, ..config.clone() }, &start).expect("a good world")
        };
        Self {
            indexed: engine(false),
            naive: engine(true),
            restarted: None,
            judge: Judge::new(&start)
                .with_respite_ms(u64::from(config.turns.respite_s) * 1_000)
                .with_divided_cluster(config.turns.queues == QueueTurns::Kai)
                .with_lent_percent(config.reserve.lent_percent),
            history: History::of(recipe),
            restart_at: usize::from(recipe.config[6]) % 16,
            steps: 0,
            config,
        }
    }

    /// One step of all; what must hold is checked, and everything is added up again.
    pub(crate) fn step(&mut self, bytes: &[u8]) -> Result<(), TestCaseError> {
        let event = self.decide(bytes)?;
        self.recheck(&event)
    }

    /// Many jobs of one instant, all decided in one cycle.
    pub(crate) fn submit_together<'b>(
        &mut self,
        jobs: impl IntoIterator<Item = &'b [u8]>,
    ) -> Result<(), TestCaseError> {
        let now_ms = self.history.now_ms;
        let (mut plan, mut naive) = (Plan::default(), Plan::default());
        for bytes in jobs {
            let event = self.history.submit(&mut Choices::of(bytes));
            let applied = self.indexed.step(Batch::pending(event.clone()), now_ms);
            let naively = self.naive.step(Batch::pending(event.clone()), now_ms);
            prop_assert_eq!(&applied, &naively, "{:?}", &event);
            if let Ok(applied) = applied {
                plan.actions.extend(applied.actions.clone());
                naive.actions.extend(applied.actions);
                self.judge.event(&event, now_ms);
            }
        }
        let decided = self.indexed.step(Batch::decision(), now_ms).expect("a decision");
        let naively = self.naive.step(Batch::decision(), now_ms).expect("a decision");
        plan.actions.extend(decided.actions);
        naive.actions.extend(naively.actions);
        prop_assert_eq!(&plan, &naive, "index (left) and naive (right)");
        let found = self.judge.plan(&plan);
        prop_assert!(found.is_empty(), "{:?}\nof {:?}", found, plan);
        Ok(())
    }

    /// One step of all engines, which must decide alike; the judge looks at what was decided.
    pub(crate) fn decide(&mut self, bytes: &[u8]) -> Result<Event, TestCaseError> {
        let event = self.history.event(bytes, &self.indexed);
        let now_ms = self.history.now_ms;
        let plan = self.indexed.step(event.clone(), now_ms);
        let naive = self.naive.step(event.clone(), now_ms);
        prop_assert_eq!(&plan, &naive, "index (left) and naive (right) after {:?}", &event);
        if let Some(restarted) = &mut self.restarted {
            if self.steps.is_multiple_of(4) {
                restarted.forget_what_is_gone();
            }
            let again = restarted.step(event.clone(), now_ms);
            prop_assert_eq!(
                decisions(&plan),
                decisions(&again),
                "without (left) and with restart (right) after {:?}",
                &event
            );
            let run_times = |engine: &Engine| Learned::of(engine).run_times;
            prop_assert_eq!(run_times(&self.indexed), run_times(restarted), "after {:?}", &event);
        }
        if let Ok(plan) = &plan {
            self.judge.event(&event, now_ms);
            let found = self.judge.plan(plan);
            prop_assert!(found.is_empty(), "{:?}\nafter {:?}\nof {:?}", found, event, plan);
        }
        self.restart();
        self.steps += 1;
        Ok(event)
    }

    /// Whether the books of the judge add up, and are those of the engine.
    pub(crate) fn recheck(&mut self, event: &Event) -> Result<(), TestCaseError> {
        let snapshot = self.indexed.snapshot();
        let found = self.judge.recheck_all();
        prop_assert!(found.is_empty(), "{:?}", found);
        let found = self.judge.compare(&snapshot);
        prop_assert!(found.is_empty(), "{:?}\nafter {:?}", found, event);
        Ok(())
    }

    /// Random picks count draws, which a snapshot does not tell.
    fn restart(&mut self) {
        if self.steps == self.restart_at && self.config.policy.name != "random" {
            let mut config = self.config.clone();
            config.policy.learnt = drive::written_and_read(&self.indexed);
            let snapshot = self.indexed.snapshot();
            self.restarted = Some(Engine::new(config, &snapshot).expect("its own snapshot"));
        }
    }
}

/// What a plan decides; reasons to wait are said again after a restart.
fn decisions(plan: &Result<Plan, EngineError>) -> Result<Vec<Action>, EngineError> {
    let decides = |action: &&Action| !matches!(action, Action::Wait { .. });
    plan.as_ref().map(|p| p.actions.iter().filter(decides).cloned().collect()).map_err(Clone::clone)
}

fn all_decide_alike(recipe: &Recipe) -> Result<(), TestCaseError> {
    let mut twins = Twins::of(recipe, None);
    twins.history.books = true;
    for bytes in &recipe.events {
        twins.step(bytes)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(8_000))]

    #[test]
    fn short_histories(recipe in recipes(5, 4, 16)) {
        all_decide_alike(&recipe)?;
    }
}

proptest! {
    #![proptest_config(cases(2_500))]

    #[test]
    fn longer_histories(recipe in recipes(7, 7, 40)) {
        all_decide_alike(&recipe)?;
    }
}
