//! What a leader learned of jobs that came together, the next one goes on with.

use std::collections::BTreeMap;

use dovetail_control::schedule::{go_on_with, learned};
use dovetail_objects::Kind;
use dovetail_order::Turns;
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Learned, Order};
use serde_json::json;

use crate::gangs::{Cluster, node, pod};
use crate::history::Choices;
use crate::server::Server;

const STEP_MS: u64 = 600_000;
const STEPS: usize = 60;

fn config() -> EngineConfig {
    let turns = Turns::preset("throughput").expect("a preset");
    EngineConfig { order: Order::Dovetail, turns, ..EngineConfig::default() }
}

/// What becomes of a leader and of what it learned.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Lives,
    /// The next one has the objects, and what this one learned.
    Dies,
    /// What it learned is lost.
    DiesUnread,
}

/// A time as objects write it.
pub(crate) fn time(now_ms: u64) -> String {
    let time = jiff::Timestamp::from_millisecond(now_ms as i64).expect("a time");
    time.to_string()
}

/// A cluster of one node, and when the pods that run end.
struct Course {
    cluster: Cluster,
    run_steps: BTreeMap<String, usize>,
    ends: BTreeMap<String, usize>,
}

impl Course {
    fn new() -> Self {
        let mut server = Server::default();
        node(&mut server, 0);
        let cluster = Cluster::with(server, config());
        Self { cluster, run_steps: BTreeMap::new(), ends: BTreeMap::new() }
    }

    /// Pods of one size that come together and run for as long as each other.
    fn submit(&mut self, step: usize, choose: &mut Choices) {
        let (gpus, pods) = (1 << choose.below(4), 1 + choose.below(4));
        let run_steps = *choose.of(&[1, 2, 6, 30]);
        for at in 0..pods {
            let name = format!("s{step:02}-{at}");
            self.cluster.create(&name, pod(gpus));
            self.run_steps.insert(name, run_steps);
        }
    }

    /// Ends pods whose time is over, and lets the leader decide; which pods start.
    fn go_on(&mut self, step: usize) -> Vec<String> {
        let over = self.ends.extract_if(.., |_, end| *end <= step);
        over.for_each(|(name, _)| self.cluster.end(&name, "Succeeded"));
        let started = self.cluster.run();
        for name in &started {
            self.ends.insert(name.clone(), step + self.run_steps[name]);
            let key = (Kind::Pod, "blue".to_owned(), name.clone());
            let since = time(self.cluster.now_ms);
            let placed = json!([{"type": "PodScheduled", "status": "True",
                "lastTransitionTime": since}]);
            self.cluster.server.change(&key, |pod| pod["status"]["conditions"] = placed.clone());
        }
        self.cluster.watch();
        started
    }

    /// Another leader over the same objects, with what this one learned.
    fn restart(&mut self, fate: Fate) {
        let kept = match fate {
            Fate::DiesUnread => Learned::default(),
            Fate::Lives | Fate::Dies => learned(&self.cluster.scheduler),
        };
        let (server, now_ms) = (std::mem::take(&mut self.cluster.server), self.cluster.now_ms);
        self.cluster = Cluster::with(server, config());
        go_on_with(kept, &mut self.cluster.scheduler);
        self.cluster.pass(now_ms - self.cluster.now_ms);
    }
}

/// Ten hours in which pods come in bursts and ask for more than there is. Which of them start at
/// each step when the leader meets its fate before one.
fn starts(fate: Fate, before: usize) -> Vec<Vec<String>> {
    let mut course = Course::new();
    let mut choose = Choices(7);
    let mut starts = Vec::new();
    for step in 0..STEPS {
        course.cluster.pass(STEP_MS);
        course.cluster.server.time = Some(time(course.cluster.now_ms));
        if step == before && fate != Fate::Lives {
            course.restart(fate);
            assert!(course.cluster.run().is_empty(), "step {step}: nothing has ended");
        }
        if choose.once_in(2) {
            course.submit(step, &mut choose);
        }
        starts.push(course.go_on(step));
    }
    starts
}

#[test]
fn whenever_the_leader_dies_the_next_one_expects_run_times_as_it_would_have() {
    let expected = starts(Fate::Lives, 0);
    let started: usize = expected.iter().map(Vec::len).sum();
    assert!((20..80).contains(&started), "{started}");
    for before in (0..STEPS).step_by(3) {
        assert_eq!(starts(Fate::Dies, before), expected, "it dies before step {before}");
    }
    let differs = |before: &usize| starts(Fate::DiesUnread, *before) != expected;
    let differ = (0..STEPS).step_by(3).filter(differs).count();
    assert!(differ > 2, "what is learned does not matter in this day: {differ}");
}
