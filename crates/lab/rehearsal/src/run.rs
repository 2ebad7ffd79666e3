//! One history as it goes: events in the order of their times, each handled at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use dovetail_cluster::world::{self, Patience};
use dovetail_control::answer::{Answered, NoAnswer};
use dovetail_control::control::{Settings, Told};
use dovetail_control::lead::Step as LeaseStep;
use dovetail_control::schedule::News;
use dovetail_plan::PreemptionConfig;
use dovetail_plan::engine::EngineConfig;
use serde_json::{Value, json};

use crate::api::{self, CollectionName, Failure, Kind, Reply, Route, Server, Verb};
use crate::books::Books;
use crate::cluster::{Cluster, direct};
use crate::dice::Dice;
use crate::door::In;
use crate::kubelets::{Identity, KubeletOptions, Kubelets, Step as KubeletStep, Wish, Write};
use crate::lease::{LeaseAnswer, LeaseCall, LeaseServer};
use crate::network::{Fault, Network};
use crate::objects::OWNER;
use crate::recipe::Recipe;
use crate::replica::{Clocks, Replica, START_MS};
use crate::rest;
use crate::scene::{Options, Scene, What};
use crate::wire::{Answer, Class, Request};

/// A read is given up after this time.
const READ_MS: u64 = 5_000;
/// Requests about the Lease are.
const LEASE_MS: u64 = 2_000;
/// Who stops waits so long for what is on its way.
const LAST_WORDS_MS: u64 = 6_000;
/// Changes that one delivery has at most.
const DELIVERED: u64 = 6;
/// Without any write for so long everything has come to rest.
const REST_MS: u64 = 200_000;
/// The same where pods were not let go, which are left alone for long.
const LONG_REST_MS: u64 = 3_000_000;
/// It must have by then.
const END_MS: u64 = 40_000_000;
/// So many events mean that something goes on for ever.
const EVENTS: u64 = 100_000;

/// Something that is to happen.
#[derive(Debug)]
enum Event {
    Step(usize),
    StepOver(usize),
    Calm,
    Owners,
    KubeletsLook,
    Kubelet(String, KubeletStep),
    KubeletWrites(Identity, Write),
    Wake { slot: usize, generation: u64 },
    Deliver { slot: usize, generation: u64, epoch: u64, at: usize },
    Arrives(Box<Flight>),
    Answered { slot: usize, generation: u64, epoch: u64, answer: Answer },
    LeaseArrives { slot: usize, generation: u64, call: LeaseCall, back_ms: u64, is_lost: bool },
    LeaseAnswered { slot: usize, generation: u64, answer: LeaseAnswer },
}

/// A request on its way.
#[derive(Debug)]
struct Flight {
    slot: usize,
    generation: u64,
    epoch: u64,
    request: Request,
    back_ms: u64,
    fault: Option<Fault>,
    over_ms: u64,
    /// When the sender gives it up.
    given_up_ms: u64,
    /// Version of the first list of pods in this leadership.
    pods_listed: u64,
}

/// One history as it goes.
pub(crate) struct Run<'r> {
    recipe: &'r Recipe,
    scene: Scene,
    dice: Dice,
    network: Network,
    server: Server,
    lease: LeaseServer,
    cluster: Cluster,
    kubelets: Kubelets,
    kubelets_saw: [u64; 2],
    slots: [Option<Replica>; 2],
    clocks: [Clocks; 2],
    frozen_until_ms: [u64; 2],
    generations: u64,
    queue: BTreeMap<(u64, u64), Event>,
    made: u64,
    /// Events that are about more than waiting.
    busy: u64,
    now_ms: u64,
    changed_ms: u64,
    is_calm: bool,
    owners_look: bool,
    kubelets_look: bool,
    books: Books,
    refusals: u64,
    pub(crate) log: String,
    pub(crate) problem: Option<String>,
    /// Names of the steps that happened.
    pub(crate) happened: Vec<String>,
}

impl<'r> Run<'r> {
    pub(crate) fn new(recipe: &'r Recipe) -> Self {
        let scene = Scene::of(recipe.seed);
        let options = scene.options;
        let settings = api::Settings { history_limit: options.history, ..Default::default() };
        let mut server = Server::new(settings, START_MS);
        server.register(Kind::custom("dovetail.dev", "v1alpha1", "Queue", "queues").cluster_scoped());
        let clocks = |at: usize| Clocks {
            rate: options.rates[at],
            offset_ms: 1_000 * at as u64 + 7,
            jumped_ms: 0,
        };
        Self {
            recipe,
            dice: Dice::new(recipe.seed),
            network: Network::new(&options),
            server,
            lease: LeaseServer::default(),
            cluster: Cluster::default(),
            kubelets: Kubelets::new(KubeletOptions {
                start_after: Duration::from_millis(options.start_ms),
                terminate_after: Duration::from_millis(options.terminate_ms),
                ..KubeletOptions::default()
            }),
            kubelets_saw: [0; 2],
            slots: [None, None],
            clocks: [clocks(0), clocks(1)],
            frozen_until_ms: [0; 2],
            generations: 0,
            queue: BTreeMap::new(),
            made: 0,
            busy: 0,
            now_ms: 0,
            changed_ms: 0,
            is_calm: false,
            owners_look: false,
            kubelets_look: false,
            books: Books::default(),
            refusals: 0,
            log: String::new(),
            problem: None,
            happened: Vec::new(),
            scene,
        }
    }

    /// Plays it to its end, or until something is wrong.
    pub(crate) fn go(&mut self) {
        self.begin();
        let mut events = 0_u64;
        while self.problem.is_none() {
            let Some(((at_ms, _), event)) = self.queue.pop_first() else { break };
            events += 1;
            self.now_ms = at_ms;
            self.busy -= u64::from(is_busy(&event));
            if events > EVENTS || at_ms > END_MS {
                self.problem = Some("it does not come to rest".to_owned());
                self.say(format_args!("event {events}: {event:?}, {} more", self.queue.len()));
                break;
            }
            if self.is_at_rest() {
                break;
            }
            self.handle(event);
        }
        if self.problem.is_none() {
            let (server, owners) = (&self.server, self.cluster.owners());
            self.problem =
                rest::problem(server, &mut self.books, owners, self.scene.options.preempts);
        }
    }

    /// Names of the faults that struck.
    pub(crate) fn struck(&self) -> &[String] {
        &self.network.struck
    }

    fn is_at_rest(&self) -> bool {
        let rest_ms = if self.refusals > 0 { LONG_REST_MS } else { REST_MS };
        self.is_calm && self.busy == 0 && self.now_ms > self.changed_ms + rest_ms
    }

    fn begin(&mut self) {
        for at in 0..self.scene.nodes.len() {
            let spec = self.scene.nodes[at];
            self.cluster.add_node(&mut self.server, at, spec);
        }
        for (at, step) in self.scene.steps.iter().enumerate() {
            if self.recipe.has(&format!("step {at}")) {
                self.happened.push(format!("step {at}"));
                self.made += 1;
                self.busy += 1;
                self.queue.insert((step.at_ms, self.made), Event::Step(at));
            }
        }
        self.after(self.scene.calm_ms, Event::Calm);
        self.start(0);
        self.start(1);
        self.written();
    }

    fn after(&mut self, delay_ms: u64, event: Event) {
        self.made += 1;
        self.busy += u64::from(is_busy(&event));
        self.queue.insert((self.now_ms + delay_ms, self.made), event);
    }

    fn say(&mut self, text: std::fmt::Arguments<'_>) {
        // A String takes everything.
        _ = writeln!(self.log, "{:>8} {text}", self.now_ms);
    }

    fn handle(&mut self, event: Event) {
        if let Some(until_ms) = self.frozen_for(&event) {
            self.made += 1;
            self.busy += u64::from(is_busy(&event));
            self.queue.insert((until_ms, self.made), event);
            return;
        }
        self.server.pass(START_MS + self.now_ms);
        match event {
            Event::Step(at) => self.step(at),
            Event::StepOver(at) => self.step_over(at),
            Event::Calm => self.calm_down(),
            Event::Owners => {
                self.owners_look = false;
                if let Some(at_ms) = self.cluster.look(&mut self.server, self.now_ms) {
                    self.owners_look = true;
                    self.after(at_ms - self.now_ms, Event::Owners);
                }
            }
            Event::KubeletsLook => self.kubelets_look(),
            Event::Kubelet(uid, step) => {
                let mut wishes = Vec::new();
                self.kubelets.step(&uid, step, &mut wishes);
                self.grant(wishes);
            }
            Event::KubeletWrites(identity, write) => self.kubelet_writes(&identity, &write),
            Event::Wake { slot, generation } => {
                if let Some(replica) = self.alive(slot, generation) {
                    replica.wakes_ms = None;
                    self.act(slot);
                }
            }
            Event::Deliver { slot, generation, epoch, at } => {
                self.deliver(slot, generation, epoch, at);
            }
            Event::Arrives(flight) => self.arrives(*flight),
            Event::Answered { slot, generation, epoch, answer } => {
                if let Some(replica) = self.alive(slot, generation)
                    && replica.term.as_ref().is_some_and(|term| term.epoch == epoch)
                {
                    replica.inputs.push(In::Answered(answer));
                    self.wake(slot, 0);
                }
            }
            Event::LeaseArrives { slot, generation, call, back_ms, is_lost } => {
                let answer = self.lease.perform(&call);
                let answer = if is_lost { LeaseAnswer::Nothing } else { answer };
                self.after(back_ms, Event::LeaseAnswered { slot, generation, answer });
            }
            Event::LeaseAnswered { slot, generation, answer } => {
                self.lease_answered(slot, generation, answer);
            }
        }
        self.written();
    }

    /// Until when what is about a process that is frozen has to wait.
    fn frozen_for(&self, event: &Event) -> Option<u64> {
        let slot = match event {
            Event::Wake { slot, .. }
            | Event::Deliver { slot, .. }
            | Event::Answered { slot, .. }
            | Event::LeaseAnswered { slot, .. } => *slot,
            _ => return None,
        };
        Some(self.frozen_until_ms[slot]).filter(|until_ms| *until_ms > self.now_ms)
    }

    fn alive(&mut self, slot: usize, generation: u64) -> Option<&mut Replica> {
        self.slots[slot].as_mut().filter(|replica| replica.generation == generation)
    }

    // What happens besides.

    fn step(&mut self, at: usize) {
        let what = self.scene.steps[at].what.clone();
        self.say(format_args!("step {at}: {what:?}"));
        let server = &mut self.server;
        let for_ms = match &what {
            What::Submit(workload) => {
                self.cluster.submit(server, workload);
                self.owners_in(1);
                return;
            }
            What::Withdraw { workload } => return self.cluster.withdraw(server, workload),
            What::DeletePod { workload, at } => {
                return self.cluster.delete_one(server, workload, *at);
            }
            What::Foreign { gpus, node } => {
                return self.cluster.bind_foreign(server, &mut self.books, *gpus, *node);
            }
            What::Jump { slot, by_ms } => {
                self.clocks[*slot].jumped_ms += by_ms;
                return self.wake(*slot, 0);
            }
            What::Relist { is_of_pods } => return self.relist(*is_of_pods),
            What::NodeGone { node, for_ms } => {
                self.cluster.remove_node(server, *node, self.now_ms);
                self.owners_in(1);
                *for_ms
            }
            What::Cordon { node, for_ms } => {
                self.cluster.cordon(server, *node, true);
                *for_ms
            }
            What::Kill { slot, for_ms } => {
                self.slots[*slot] = None;
                *for_ms
            }
            What::Freeze { slot, for_ms } => {
                self.frozen_until_ms[*slot] = self.now_ms + for_ms;
                *for_ms
            }
            What::Refuse { workload, for_ms, code } => {
                self.cluster.refused.insert(workload.clone(), *code);
                *for_ms
            }
        };
        self.after(for_ms, Event::StepOver(at));
    }

    fn step_over(&mut self, at: usize) {
        match self.scene.steps[at].what.clone() {
            What::NodeGone { node, .. } => {
                let spec = self.scene.nodes[node];
                self.cluster.add_node(&mut self.server, node, spec);
            }
            What::Cordon { node, .. } => self.cluster.cordon(&mut self.server, node, false),
            What::Kill { slot, .. } if self.slots[slot].is_none() => self.start(slot),
            What::Refuse { workload, .. } => _ = self.cluster.refused.remove(&workload),
            _ => {}
        }
    }

    fn calm_down(&mut self) {
        self.is_calm = true;
        self.network.calm_down();
        self.changed_ms = self.now_ms;
        self.owners_in(1);
        self.say(format_args!("calm"));
    }

    fn relist(&mut self, is_of_pods: bool) {
        for slot in 0..2 {
            let sights = self.slots[slot].iter_mut().filter_map(|it| it.term.as_mut());
            for sight in sights.flat_map(|term| &mut term.sights) {
                if (sight.kind == dovetail_objects::Kind::Pod) == is_of_pods {
                    sight.expire();
                }
            }
            self.deliver_all(slot);
        }
    }

    fn owners_in(&mut self, delay_ms: u64) {
        if !self.owners_look {
            self.owners_look = true;
            self.after(delay_ms, Event::Owners);
        }
    }

    // Who sees what was written.

    fn written(&mut self) {
        let written = self.server.take_written();
        if written.is_empty() {
            return;
        }
        let has = |plural: &str| written.iter().any(|(_, written)| written == plural);
        if has("pods") || has("nodes") {
            self.changed_ms = self.now_ms;
            let delay_ms = 20 + self.dice.below("owners", "", 800);
            self.owners_in(delay_ms);
            if !self.kubelets_look {
                self.kubelets_look = true;
                let delay_ms = self.network.delay_ms(&mut self.dice, "kubelets", "").min(200);
                self.after(delay_ms, Event::KubeletsLook);
            }
        }
        for slot in 0..2 {
            self.deliver_written(slot, &written);
        }
    }

    fn deliver_written(&mut self, slot: usize, written: &BTreeSet<CollectionName>) {
        let Some(replica) = &mut self.slots[slot] else { return };
        let (generation, Some(term)) = (replica.generation, &mut replica.term) else { return };
        let mut due = Vec::new();
        for (at, sight) in term.sights.iter_mut().enumerate() {
            if !sight.is_due && written.contains(&sight.collection) {
                sight.is_due = true;
                due.push((at, sight.kind));
            }
        }
        let epoch = term.epoch;
        for (at, kind) in due {
            let delay_ms = self.network.delay_ms(&mut self.dice, "watch", kind.name());
            self.after(delay_ms, Event::Deliver { slot, generation, epoch, at });
        }
    }

    /// Every kind is to be looked at.
    fn deliver_all(&mut self, slot: usize) {
        let sights = self.slots[slot].iter().filter_map(|it| it.term.as_ref());
        let all = sights.flat_map(|term| &term.sights).map(|sight| sight.collection.clone());
        let all: BTreeSet<CollectionName> = all.collect();
        self.deliver_written(slot, &all);
    }

    fn deliver(&mut self, slot: usize, generation: u64, epoch: u64, at: usize) {
        let most = 1 + self.dice.below("delivered", "", DELIVERED) as usize;
        let Some(replica) = self.slots[slot].as_mut().filter(|it| it.generation == generation)
        else {
            return;
        };
        let Some(term) = replica.term.as_mut().filter(|term| term.epoch == epoch) else { return };
        let sight = &mut term.sights[at];
        let (changes, is_more) = sight.look(&mut self.server, most);
        sight.is_due = is_more;
        let kind = sight.kind;
        if kind == dovetail_objects::Kind::Pod && term.pods_listed.is_none() {
            term.pods_listed = sight.seen;
        }
        replica.inputs.extend(changes.into_iter().map(In::Change));
        if is_more {
            let delay_ms = self.network.delay_ms(&mut self.dice, "watch", kind.name());
            self.after(delay_ms, Event::Deliver { slot, generation, epoch, at });
        }
        let delay_ms = self.dice.below("batch", "", 4);
        self.wake(slot, delay_ms);
    }

    // Kubelets.

    fn kubelets_look(&mut self) {
        self.kubelets_look = false;
        let mut wishes = Vec::new();
        for (at, plural) in ["nodes", "pods"].into_iter().enumerate() {
            let name = (String::new(), plural.to_owned());
            let saw = self.kubelets_saw[at];
            let collection = self.server.store.collection(&name);
            match collection.changes_after(saw, usize::MAX) {
                Ok(changes) => {
                    for change in changes {
                        see(&mut self.kubelets, plural, &change.after.value, change.deleted, &mut wishes);
                    }
                }
                Err(_) => {
                    let all: Vec<Value> =
                        collection.objects().values().map(|it| it.value.clone()).collect();
                    match plural {
                        "nodes" => self.kubelets.nodes_listed(&all, &mut wishes),
                        _ => self.kubelets.pods_listed(all, &mut wishes),
                    }
                }
            }
            self.kubelets_saw[at] = self.server.store.revision;
        }
        self.grant(wishes);
    }

    fn grant(&mut self, wishes: Vec<Wish>) {
        for wish in wishes {
            match wish {
                Wish::Wait(delay, uid, step) => {
                    self.after(delay.as_millis() as u64, Event::Kubelet(uid, step));
                }
                Wish::Write(identity, write) => {
                    let about = &identity.name;
                    let delay_ms = self.network.delay_ms(&mut self.dice, "kubelet", about).min(300);
                    self.after(delay_ms, Event::KubeletWrites(identity, write));
                }
            }
        }
    }

    fn kubelet_writes(&mut self, identity: &Identity, write: &Write) {
        let name = &identity.name;
        self.say(format_args!("kubelet: {write:?} {name}"));
        match write.status(identity, START_MS + self.now_ms) {
            None => {
                let options = json!({"gracePeriodSeconds": 0,
                    "preconditions": {"uid": identity.uid}});
                _ = direct(&mut self.server, Verb::Delete, ("pods", name, ""), &options);
            }
            Some(status) => {
                // Conditions are merged, which a merge patch does not.
                let path = format!("/api/v1/namespaces/{}/pods/{name}/status", identity.namespace);
                let media_type = "application/strategic-merge-patch+json";
                let body = status.to_string();
                _ = serve(&mut self.server, "PATCH", &path, media_type, body.as_bytes());
            }
        }
        let mut wishes = Vec::new();
        self.kubelets.written(&identity.uid, &mut wishes);
        self.grant(wishes);
    }

    // Processes of the scheduler.

    fn start(&mut self, slot: usize) {
        self.generations += 1;
        let identity = format!("{}-{}", ["a", "b"][slot], self.generations);
        self.say(format_args!("{identity} starts"));
        let settings = settings(&self.scene.options);
        self.slots[slot] = Some(Replica::new(identity, self.generations, settings));
        self.wake(slot, 1 + 3 * slot as u64);
    }

    /// The process looks at itself after this time, if not before.
    fn wake(&mut self, slot: usize, delay_ms: u64) {
        let at_ms = self.now_ms + delay_ms;
        let Some(replica) = &mut self.slots[slot] else { return };
        if replica.wakes_ms.is_some_and(|wakes_ms| wakes_ms <= at_ms) {
            return;
        }
        replica.wakes_ms = Some(at_ms);
        let generation = replica.generation;
        self.after(delay_ms, Event::Wake { slot, generation });
    }

    fn act(&mut self, slot: usize) {
        self.ask_for_lease(slot);
        self.follow_phase(slot);
        self.decide(slot);
    }

    fn ask_for_lease(&mut self, slot: usize) {
        let (now_ms, clocks) = (self.now_ms, self.clocks[slot]);
        let own_ms = clocks.at(now_ms).own_ms;
        let Some(replica) = self.slots[slot].as_mut().filter(|it| it.asks_since.is_none()) else {
            return;
        };
        let call = match replica.candidate.next(own_ms) {
            LeaseStep::Wait { until_ms } => {
                let delay_ms = clocks.until(until_ms, now_ms).max(1);
                return self.wake(slot, delay_ms);
            }
            LeaseStep::Read => LeaseCall::Read,
            LeaseStep::Write { record, version } => LeaseCall::Write { record, version },
        };
        replica.asks_since = Some(own_ms);
        let generation = replica.generation;
        let request = match call {
            LeaseCall::Read => ("GET", "lease"),
            LeaseCall::Write { .. } => ("PUT", "lease"),
        };
        let way = self.network.way(&mut self.dice, self.recipe, request, LEASE_MS);
        let nothing = LeaseAnswer::Nothing;
        let there_ms = way.there_ms.min(LEASE_MS);
        let left_ms = LEASE_MS - there_ms;
        let is_lost = way.back_ms > left_ms
            || matches!(
                way.fault,
                Some(Fault::AnswerLost | Fault::AnswerSilent | Fault::DoneAndFailed(_))
            );
        let event = match way.fault {
            Some(Fault::Unsent | Fault::Lost | Fault::Silent | Fault::Failed(_)) => {
                Event::LeaseAnswered { slot, generation, answer: nothing }
            }
            _ => {
                let back_ms = way.back_ms.min(left_ms);
                Event::LeaseArrives { slot, generation, call, back_ms, is_lost }
            }
        };
        self.after(there_ms, event);
    }

    fn lease_answered(&mut self, slot: usize, generation: u64, answer: LeaseAnswer) {
        let own_ms = self.clocks[slot].at(self.now_ms).own_ms;
        let Some(replica) = self.alive(slot, generation) else { return };
        let Some(sent_ms) = replica.asks_since.take() else { return };
        match answer {
            LeaseAnswer::Read(lease) => replica.candidate.read(own_ms, lease),
            LeaseAnswer::Written(lease) => replica.candidate.written(sent_ms, own_ms, lease),
            LeaseAnswer::Refused => replica.candidate.refused(own_ms),
            LeaseAnswer::Nothing => replica.candidate.unanswered(own_ms),
        }
        self.wake(slot, 0);
    }

    fn follow_phase(&mut self, slot: usize) {
        let (now_ms, clocks) = (self.now_ms, self.clocks[slot]);
        let own_ms = clocks.at(now_ms).own_ms;
        let Some(replica) = &mut self.slots[slot] else { return };
        let leads_in = replica.leads_in(own_ms);
        let identity = replica.identity.clone();
        match (&mut replica.term, leads_in) {
            (None, Some(epoch)) => {
                replica.begin(epoch, &self.server);
                self.say(format_args!("{identity} leads in {epoch}"));
                self.deliver_all(slot);
            }
            (Some(term), leads_in)
                if leads_in != Some(term.epoch) && term.stopped_ms.is_none() =>
            {
                term.stopped_ms = Some(now_ms);
                replica.inputs.push(In::Stop);
                self.say(format_args!("{identity} leads no more"));
            }
            (None, None) => {
                if let dovetail_control::lead::Phase::Settling { until_ms } =
                    replica.candidate.phase(own_ms)
                {
                    let delay_ms = clocks.until(until_ms, now_ms).max(1);
                    self.wake(slot, delay_ms);
                }
            }
            _ => {}
        }
    }

    fn decide(&mut self, slot: usize) {
        let (now_ms, now) = (self.now_ms, self.clocks[slot].at(self.now_ms));
        let binds = self.scene.options.binds;
        let Some(replica) = &mut self.slots[slot] else { return };
        let Some(term) = &mut replica.term else { return };
        let may_send = term.decides && term.stopped_ms.is_none();
        let inputs = std::mem::take(&mut replica.inputs);
        let out = replica.door.step(inputs, if may_send { binds } else { 0 }, now);
        let epoch = term.epoch;
        if out.decides && !term.decides {
            term.decides = true;
            replica.candidate.relisted(now.own_ms, epoch);
            let identity = replica.identity.clone();
            self.say(format_args!("{identity} decides"));
            self.wake(slot, 0);
        }
        self.hear(slot, &out.told);
        for request in out.requests {
            self.send(slot, epoch, request);
        }
        if let Some(wait_ms) = out.wait_ms {
            self.wake(slot, wait_ms);
        }
        self.end(slot, out.is_over, now_ms);
    }

    /// Ends a leadership that has nothing more on its way.
    fn end(&mut self, slot: usize, is_over: bool, now_ms: u64) {
        let now = self.clocks[slot].at(now_ms);
        let Some(replica) = &mut self.slots[slot] else { return };
        let Some(stopped_ms) = replica.term.as_ref().and_then(|term| term.stopped_ms) else {
            return;
        };
        if is_over || now_ms >= stopped_ms + LAST_WORDS_MS {
            replica.door.step(vec![In::End], 0, now);
            replica.term = None;
            replica.inputs.clear();
            self.wake(slot, 1);
        } else {
            self.wake(slot, stopped_ms + LAST_WORDS_MS - now_ms);
        }
    }

    fn hear(&mut self, slot: usize, told: &[Told]) {
        for told in told {
            let Told::News { news, .. } = told else { continue };
            match news {
                News::Waits { .. } => {}
                News::Inconsistent(error) => {
                    self.problem = Some(format!("world and engine disagree: {error}"));
                }
                News::StopRefused(_) => {
                    self.refusals += 1;
                    self.say(format_args!("{slot} {news:?}"));
                }
                news => self.say(format_args!("{slot} {news:?}")),
            }
        }
    }

    fn send(&mut self, slot: usize, epoch: u64, request: Request) {
        let now = self.clocks[slot].at(self.now_ms);
        let Some(replica) = &self.slots[slot] else { return };
        let (generation, number) = (replica.generation, request.number);
        let pods_listed = replica.term.as_ref().and_then(|term| term.pods_listed);
        let permit = replica.candidate.permit(now.own_ms).filter(|permit| permit.epoch == epoch);
        let over_ms = match (request.class, permit) {
            (Class::Read, _) => now.own_ms + READ_MS,
            (_, Some(permit)) => permit.deadline_ms,
            (_, None) => {
                let answer = Answer { number, answered: None, over_ms: 0 };
                return self.after(0, Event::Answered { slot, generation, epoch, answer });
            }
        };
        let limit_ms = self.clocks[slot].until(over_ms, self.now_ms);
        // Nobody reads events here, and there are many.
        if request.path.starts_with("/apis/events.k8s.io/") {
            let answered = Some(Ok((201, None, Bytes::new())));
            let answer = Answer { number, answered, over_ms };
            return self.after(1, Event::Answered { slot, generation, epoch, answer });
        }
        let place = (request.method, request.path.as_str());
        let way = self.network.way(&mut self.dice, self.recipe, place, limit_ms);
        let body = String::from_utf8_lossy(&request.body);
        let text = format!("{slot} {} {} {body} {:?}", request.method, request.path, way.fault);
        self.say(format_args!("{text}"));
        let no_answer = |unsent| {
            let error = "no answer".to_owned();
            Some(Err(NoAnswer { unsent, error }))
        };
        let given_up_ms = self.now_ms + limit_ms;
        match way.fault {
            Some(Fault::Unsent | Fault::Lost) => {
                let unsent = way.fault == Some(Fault::Unsent);
                let answer = Answer { number, answered: no_answer(unsent), over_ms };
                self.after(way.there_ms, Event::Answered { slot, generation, epoch, answer });
            }
            Some(Fault::Silent) => {
                let answer = Answer { number, answered: no_answer(false), over_ms };
                self.after(limit_ms, Event::Answered { slot, generation, epoch, answer });
            }
            fault => {
                let flight = Flight {
                    slot,
                    generation,
                    epoch,
                    request,
                    back_ms: way.back_ms,
                    fault,
                    over_ms,
                    given_up_ms,
                    pods_listed: pods_listed.unwrap_or_default(),
                };
                self.after(way.there_ms, Event::Arrives(Box::new(flight)));
            }
        }
    }

    fn arrives(&mut self, flight: Flight) {
        let answered = match flight.fault {
            Some(Fault::Failed(code)) => plain(&Reply::failure(&Failure::of_code(code))),
            _ => self.perform(&flight),
        };
        let answered = match flight.fault {
            Some(Fault::DoneAndFailed(code)) => plain(&Reply::failure(&Failure::of_code(code))),
            _ => answered,
        };
        let no_answer = Err(NoAnswer { unsent: false, error: "no answer".to_owned() });
        let left_ms = flight.given_up_ms.saturating_sub(self.now_ms);
        let (answered, delay_ms) = match flight.fault {
            Some(Fault::AnswerLost) => (no_answer, flight.back_ms.min(left_ms)),
            Some(Fault::AnswerSilent) => (no_answer, left_ms),
            _ if flight.back_ms > left_ms => (no_answer, left_ms),
            _ => (answered, flight.back_ms),
        };
        let Flight { slot, generation, epoch, over_ms, .. } = flight;
        let number = flight.request.number;
        let answer = Answer { number, answered: Some(answered), over_ms };
        self.after(delay_ms, Event::Answered { slot, generation, epoch, answer });
    }

    fn perform(&mut self, flight: &Flight) -> Answered {
        let Request { method, path, media_type, body, .. } = &flight.request;
        if *method == "DELETE"
            && let Some(code) = self.refuses(path)
        {
            let message = "admission webhook \"keeper.example.com\" denied the request: kept";
            let mut failure = Failure::of_code(code);
            failure.message = message.to_owned();
            return plain(&Reply::failure(&failure));
        }
        let bound = self.server.bound.len();
        let reply = serve(&mut self.server, method, path, media_type, body);
        if self.server.bound.len() > bound
            && let Some(last) = self.server.bound.last().cloned()
        {
            let listed = flight.pods_listed;
            let is_seen = |pod: &Value| {
                let version = pod["metadata"]["resourceVersion"].as_str();
                version.and_then(|it| it.parse::<u64>().ok()).is_some_and(|it| it <= listed)
            };
            let wrong = self.books.bound(&self.server, &last.uid, &last.node, is_seen);
            self.problem = self.problem.take().or(wrong);
            self.say(format_args!("bound {} to {}", last.pod, last.node));
        }
        self.say(format_args!("{method} {path}: {}", reply.code));
        plain(&reply)
    }

    /// Whether a pod may not be deleted by the scheduler.
    fn refuses(&self, path: &str) -> Option<u16> {
        let name = path.rsplit('/').next()?;
        let kind = self.server.kind("pods")?;
        let pod = self.server.all(&kind).find(|pod| pod["metadata"]["name"] == name)?;
        self.cluster.refused.get(pod["metadata"]["labels"][OWNER].as_str()?).copied()
    }
}

/// Whether an event is about more than waiting.
fn is_busy(event: &Event) -> bool {
    !matches!(
        event,
        Event::Wake { .. } | Event::LeaseArrives { .. } | Event::LeaseAnswered { .. }
    )
}

fn settings(options: &Options) -> Settings {
    let patience = Patience {
        quiet_ms: 300,
        complete_within_ms: options.complete_within_ms,
        keep_for_ms: options.keep_for_ms,
    };
    let preemption = PreemptionConfig { enabled: options.preempts, ..PreemptionConfig::default() };
    Settings {
        world: world::Settings { patience, ..world::Settings::default() },
        engine: EngineConfig { preemption, ..EngineConfig::default() },
        ..Settings::default()
    }
}

fn see(
    kubelets: &mut Kubelets,
    plural: &str,
    object: &Value,
    is_deleted: bool,
    wishes: &mut Vec<Wish>,
) {
    match (plural, is_deleted) {
        ("nodes", false) => kubelets.node_applied(object, wishes),
        ("nodes", true) => {
            kubelets.node_deleted(object["metadata"]["name"].as_str().unwrap_or_default());
        }
        (_, false) => kubelets.pod_applied(object, wishes),
        (_, true) => {
            kubelets.pod_deleted(object["metadata"]["uid"].as_str().unwrap_or_default());
        }
    }
}

/// One request to the server, from its line to its answer.
fn serve(server: &mut Server, method: &str, path: &str, media_type: &str, body: &[u8]) -> Reply {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let reply = match server.route(method, path, query) {
        Some(Ok(Route::Call(call))) => server.perform(&call, media_type, body),
        Some(Ok(other)) => Ok(server.describe(&other)),
        Some(Err(failure)) => Err(failure),
        None => return Reply::text(404, "404 page not found\n"),
    };
    reply.unwrap_or_else(|failure| Reply::failure(&failure))
}

fn plain(reply: &Reply) -> Answered {
    let retry_after_s = reply.retry_after.map(|pause| pause.as_secs());
    Ok((reply.code, retry_after_s, reply.body.clone()))
}
