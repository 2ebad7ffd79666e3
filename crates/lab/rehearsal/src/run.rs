//! One history from its begin to its end.

use crate::course::Course;
use crate::event::{Event, Flight};
use crate::ground::{Ground, failed};
use crate::network::NetworkFault;
use crate::processes::{Processes, Recordings, on_its_way_back};
use crate::recipe::Recipe;
use crate::replica::START_MS;
use crate::rest;
use crate::scene::{Scene, What};

/// Without any write for so long everything has come to rest.
const REST_MS: u64 = 200_000;
/// The same where pods were not let go, which are left alone for long.
const LONG_REST_MS: u64 = 3_000_000;
/// The same where room is reserved: nobody believes by then what owners said of pods that go on.
const RESERVED_REST_MS: u64 = 800_000;
/// The same between two steps of a slow scene.
const QUIET_MS: u64 = 100_000;
/// It must have by then.
const END_MS: u64 = 40_000_000;
/// So many events mean that something goes on for ever.
const EVENTS: u64 = 100_000;

/// One history as it goes.
pub(crate) struct HistoryRun<'r> {
    recipe: &'r Recipe,
    scene: Scene,
    course: Course<'r>,
    ground: Ground,
    processes: Processes<'r>,
    /// When pods or nodes were written last.
    changed_ms: u64,
    is_calm: bool,
    pub(crate) problem: Option<String>,
    /// Names of the steps that happened.
    happened: Vec<String>,
    /// Faults, changes of leadership and ends of pods that were noted.
    seen: (usize, u64, u64),
}

impl<'r> HistoryRun<'r> {
    pub(crate) fn new(recipe: &'r Recipe, recordings: Recordings<'r>) -> Self {
        let scene = Scene::of(recipe.seed, recipe.extras);
        let options = scene.options;
        Self {
            recipe,
            course: Course::new(recipe, &options),
            ground: Ground::new(&options),
            processes: Processes::new(options, recordings),
            changed_ms: 0,
            is_calm: false,
            problem: None,
            happened: Vec::new(),
            seen: (0, 0, 0),
            scene,
        }
    }

    /// Plays it to its end, or until something is wrong.
    pub(crate) fn go(&mut self) {
        self.begin();
        let mut events = 0_u64;
        while self.problem.is_none() {
            let Some(event) = self.course.next() else { break };
            events += 1;
            if events > EVENTS || self.course.now_ms > END_MS {
                self.problem = Some("it does not come to rest".to_owned());
                self.course.say(format_args!("event {events}: {event:?}"));
                return;
            }
            if self.is_at_rest() {
                break;
            }
            self.disturb(&event);
            self.handle(event);
            self.look_at_evictions();
            self.problem = self.problem.take().or_else(|| self.processes.problem.take());
        }
        if self.problem.is_none() {
            self.problem = self.problem_at_rest();
        }
    }

    fn problem_at_rest(&mut self) -> Option<String> {
        let may_lose = self.scene.takes_pods(&self.happened);
        rest::problem(&mut self.ground, &self.scene.options, may_lose)
    }

    /// Notes what changes which pods can start.
    fn disturb(&mut self, event: &Event) {
        let is_step = matches!(event, Event::Step(_) | Event::StepOver(_) | Event::Calm);
        let so_far = (self.course.struck().len(), self.processes.turns, self.ground.ended);
        if is_step || so_far != self.seen {
            self.seen = so_far;
            self.ground.evictions.disturbed(self.course.now_ms);
        }
    }

    fn look_at_evictions(&mut self) {
        let now_ms = self.course.now_ms;
        let Ground { server, evictions, .. } = &mut self.ground;
        for (victim, preemptor) in self.processes.evicted.drain(..) {
            evictions.evicted(server, now_ms, &victim, &preemptor);
        }
        self.problem = self.problem.take().or_else(|| evictions.without_effect(now_ms));
    }

    /// Everything that happened, a line each.
    pub(crate) fn take_log(&mut self) -> String {
        std::mem::take(&mut self.course.log)
    }

    /// Names of the steps that happened and of the faults that struck.
    pub(crate) fn happened(&self) -> Vec<String> {
        [&self.happened, self.course.struck()].concat()
    }

    fn is_at_rest(&self) -> bool {
        let rest_ms = match (self.processes.refusals, self.scene.options.heads) {
            (0, 0) => REST_MS,
            (0, _) => RESERVED_REST_MS,
            _ => LONG_REST_MS,
        };
        self.is_calm && !self.course.is_busy() && self.course.now_ms > self.changed_ms + rest_ms
    }

    fn begin(&mut self) {
        for (at, spec) in self.scene.nodes.iter().enumerate() {
            self.ground.cluster.add_node(&mut self.ground.server, at, *spec);
        }
        for queue in &self.scene.queues {
            self.ground.cluster.set_queue(&mut self.ground.server, queue, 0);
        }
        for (at, step) in self.scene.steps.iter().enumerate() {
            let name = format!("step {at}");
            if self.recipe.has(&name) {
                self.happened.push(name);
                self.course.after(step.at_ms, Event::Step(at));
            }
        }
        self.course.after(self.scene.calm_ms, Event::Calm);
        (0..2).for_each(|slot| self.processes.start(&mut self.course, slot));
        self.written();
    }

    fn handle(&mut self, event: Event) {
        let Self { course, ground, processes, .. } = self;
        let frozen_ms = event.acts().and_then(|slot| processes.frozen(slot, course.now_ms));
        if let Some(until_ms) = frozen_ms {
            return course.after(until_ms - course.now_ms, event);
        }
        ground.server.pass(START_MS + course.now_ms);
        match event {
            Event::Step(at) => self.step(at),
            Event::StepOver(at) => self.step_over(at),
            Event::Calm => self.calm_down(),
            Event::Owners => ground.owners_look(course),
            Event::KubeletsLook => ground.kubelets_look(course),
            Event::Kubelet(uid, step) => ground.kubelet(course, &uid, step),
            Event::KubeletWrites(pod, write) => ground.kubelet_writes(course, &pod, &write),
            Event::Wake { slot, generation } => {
                processes.act(course, &ground.server, (slot, generation));
            }
            Event::Deliver { slot, generation, epoch, at } => {
                processes.deliver(course, &mut ground.server, (slot, generation, epoch, at));
            }
            Event::Arrives(flight) => self.arrives(&flight),
            Event::Answered { slot, generation, epoch, answer } => {
                processes.answered(course, (slot, generation, epoch), answer);
            }
            Event::LeaseArrives { slot, generation, call, back_ms, is_lost } => {
                let answer = processes.lease_arrives(&call, is_lost);
                course.after(back_ms, Event::LeaseAnswered { slot, generation, answer });
            }
            Event::LeaseAnswered { slot, generation, answer } => {
                processes.lease_answered(course, (slot, generation), answer);
            }
        }
        self.written();
    }

    fn step(&mut self, at: usize) {
        let was_quiet = self.course.now_ms > self.changed_ms + QUIET_MS;
        if self.scene.is_slow && was_quiet {
            self.problem = self.problem.take().or_else(|| self.problem_at_rest());
        }
        let Self { course, ground, processes, scene, .. } = self;
        let Ground { server, cluster, books, .. } = ground;
        let what = &scene.steps[at].what;
        course.say(format_args!("step {at}: {what:?}"));
        match what {
            What::Submit(workload) => {
                cluster.submit(server, workload);
                ground.owners_in(course, 1);
            }
            What::Withdraw { workload } => cluster.withdraw(server, workload),
            What::DeletePod { workload, at } => cluster.delete_one(server, workload, *at),
            What::Foreign { gpus, node } => cluster.bind_foreign(server, books, *gpus, *node),
            What::Jump { slot, by_ms } => processes.jump(course, *slot, *by_ms),
            What::Relist { is_of_pods } => processes.relist(course, *is_of_pods),
            What::NodeGone { node, .. } => {
                cluster.remove_node(server, *node, course.now_ms);
                cluster.quotas.changed(course.now_ms);
                ground.owners_in(course, 1);
            }
            What::Cordon { node, .. } => cluster.cordon(server, *node, true),
            What::Kill { slot, .. } => processes.kill(*slot),
            What::Freeze { slot, for_ms } => processes.freeze(*slot, course.now_ms + for_ms),
            What::Quota(queue) => cluster.set_queue(server, queue, course.now_ms),
            What::Refuse { workload, code, .. } => {
                cluster.refused.insert(workload.clone(), *code);
            }
        }
        let for_ms = scene.steps[at].lasts_ms();
        if for_ms > 0 {
            course.after(for_ms, Event::StepOver(at));
        }
    }

    fn step_over(&mut self, at: usize) {
        let Ground { server, cluster, .. } = &mut self.ground;
        match &self.scene.steps[at].what {
            What::NodeGone { node, .. } => {
                cluster.add_node(server, *node, self.scene.nodes[*node]);
                cluster.quotas.changed(self.course.now_ms);
            }
            What::Cordon { node, .. } => cluster.cordon(server, *node, false),
            What::Kill { slot, .. } => self.processes.start(&mut self.course, *slot),
            What::Refuse { workload, .. } => _ = cluster.refused.remove(workload),
            _ => {}
        }
    }

    fn calm_down(&mut self) {
        self.is_calm = true;
        self.course.calm_down();
        self.changed_ms = self.course.now_ms;
        self.ground.owners_in(&mut self.course, 1);
    }

    /// A request reaches the server.
    fn arrives(&mut self, flight: &Flight) {
        let answered = match flight.fault {
            Some(NetworkFault::Failed(code)) => failed(code),
            _ => {
                let (answered, wrong) = self.ground.perform(&mut self.course, flight);
                self.problem = self.problem.take().or(wrong);
                answered
            }
        };
        on_its_way_back(&mut self.course, flight, answered);
    }

    /// Who has to see what was written.
    fn written(&mut self) {
        let written = self.ground.server.take_written();
        if written.iter().any(|(_, plural)| plural == "pods" || plural == "nodes") {
            self.changed_ms = self.course.now_ms;
            self.ground.written(&mut self.course);
        }
        self.processes.written(&mut self.course, &written);
    }
}
