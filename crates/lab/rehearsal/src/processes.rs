//! The two candidates: who leads, what each sees, decides and sends.

use std::collections::BTreeSet;

use bytes::Bytes;
use dovetail_cluster::world::{self, Patience};
use dovetail_control::answer::{Answered, NoAnswer};
use dovetail_control::control::{Credits, Input, LogEntry, Settings};
use dovetail_control::lead::{ElectionPhase, ElectionStep as LeaseStep};
use dovetail_control::learned::ConfigMapName;
use dovetail_control::record::Recording;
use dovetail_control::request::{ApiRequest, ApiResponse, RequestClass};
use dovetail_control::schedule::News;
use dovetail_objects::Kind;
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Order, PreemptionConfig, ReserveConfig};

use crate::api::{ApiServer, CollectionName};
use crate::course::Course;
use crate::event::{Event, Flight};
use crate::ground::{failed, named};
use crate::lease::{LeaseAnswer, LeaseCall, LeaseServer};
use crate::network::NetworkFault;
use crate::objects::NAMESPACE;
use crate::replica::{Clocks, Replica};
use crate::scene::Options;

/// Makes a recording for a process that starts; `None`: none is recorded.
pub(crate) type Recordings<'r> = Option<&'r dyn Fn() -> Recording>;

/// A read is given up after this time.
const READ_MS: u64 = 5_000;
/// Requests about the Lease are.
const LEASE_MS: u64 = 2_000;
/// Who stops waits so long for what is on its way.
const LAST_WORDS_MS: u64 = 6_000;
/// Changes that one delivery has at most.
const DELIVERED: u64 = 6;

/// Both candidates and the Lease.
pub(crate) struct Processes<'r> {
    options: Options,
    /// Where each process writes down what happens to it.
    recordings: Recordings<'r>,
    slots: [Option<Replica>; 2],
    clocks: [Clocks; 2],
    frozen_until_ms: [u64; 2],
    generations: u64,
    lease: LeaseServer,
    /// Pods that were not let go.
    pub(crate) refusals: u64,
    /// Who was evicted for whom, by name, since that was asked.
    pub(crate) evicted: Vec<(String, String)>,
    /// How often a leadership began or ended.
    pub(crate) turns: u64,
    pub(crate) problem: Option<String>,
}

impl<'r> Processes<'r> {
    pub(crate) fn new(options: Options, recordings: Recordings<'r>) -> Self {
        let clocks = |at: usize| Clocks {
            rate: options.rates[at],
            offset_ms: 1_000 * at as u64 + 7,
            jumped_ms: 0,
        };
        Self {
            options,
            recordings,
            slots: [None, None],
            clocks: [clocks(0), clocks(1)],
            frozen_until_ms: [0; 2],
            generations: 0,
            lease: LeaseServer::default(),
            refusals: 0,
            evicted: Vec::new(),
            turns: 0,
            problem: None,
        }
    }

    // What happens to them.

    /// A process is started where none is.
    pub(crate) fn start(&mut self, course: &mut Course<'_>, slot: usize) {
        if self.slots[slot].is_some() {
            return;
        }
        self.generations += 1;
        let identity = format!("{}-{}", ["a", "b"][slot], self.generations);
        course.say(format_args!("{identity} starts"));
        let recording = self.recordings.map(|recording| recording());
        let settings = Settings { recording, ..settings(&self.options) };
        self.slots[slot] = Some(Replica::new(identity, self.generations, settings));
        self.wake(course, slot, 1 + 3 * slot as u64);
    }

    pub(crate) fn kill(&mut self, slot: usize) {
        self.slots[slot] = None;
    }

    pub(crate) fn freeze(&mut self, slot: usize, until_ms: u64) {
        self.frozen_until_ms[slot] = until_ms;
    }

    /// Until when a process does nothing, if it does.
    pub(crate) fn frozen(&self, slot: usize, now_ms: u64) -> Option<u64> {
        Some(self.frozen_until_ms[slot]).filter(|until_ms| *until_ms > now_ms)
    }

    pub(crate) fn jump(&mut self, course: &mut Course<'_>, slot: usize, by_ms: i64) {
        self.clocks[slot].jumped_ms += by_ms;
        self.wake(course, slot, 0);
    }

    /// Watches end, and must list again.
    pub(crate) fn relist(&mut self, course: &mut Course<'_>, is_of_pods: bool) {
        for slot in 0..2 {
            let sights = self.slots[slot].iter_mut().filter_map(|it| it.term.as_mut());
            for sight in sights.flat_map(|term| &mut term.sights) {
                if (sight.kind == Kind::Pod) == is_of_pods {
                    sight.expire();
                }
            }
            self.deliver_all(course, slot);
        }
    }

    // What they see.

    /// Collections were written: who watches them will see that.
    pub(crate) fn written(&mut self, course: &mut Course<'_>, written: &BTreeSet<CollectionName>) {
        (0..2).for_each(|slot| self.deliver_written(course, slot, written));
    }

    fn deliver_written(
        &mut self,
        course: &mut Course<'_>,
        slot: usize,
        written: &BTreeSet<CollectionName>,
    ) {
        let Some(replica) = &mut self.slots[slot] else { return };
        let (generation, Some(term)) = (replica.generation, &mut replica.term) else { return };
        let epoch = term.epoch;
        for (at, sight) in term.sights.iter_mut().enumerate() {
            if !sight.is_due && written.contains(&sight.collection) {
                sight.is_due = true;
                let delay_ms = course.delay_ms("watch", sight.kind.name());
                course.after(delay_ms, Event::Deliver { slot, generation, epoch, at });
            }
        }
    }

    /// Every kind is to be looked at.
    fn deliver_all(&mut self, course: &mut Course<'_>, slot: usize) {
        let sights = self.slots[slot].iter().filter_map(|it| it.term.as_ref());
        let all = sights.flat_map(|term| &term.sights).map(|sight| sight.collection.clone());
        let all: BTreeSet<CollectionName> = all.collect();
        self.deliver_written(course, slot, &all);
    }

    /// What a watch brings arrives.
    pub(crate) fn deliver(
        &mut self,
        course: &mut Course<'_>,
        server: &mut ApiServer,
        (slot, generation, epoch, at): (usize, u64, u64, usize),
    ) {
        let most = 1 + course.below("delivered", DELIVERED) as usize;
        let Some(replica) = self.alive(slot, generation) else { return };
        let Some(term) = replica.term.as_mut().filter(|term| term.epoch == epoch) else { return };
        let sight = &mut term.sights[at];
        let (changes, is_more) = sight.look(server, most);
        sight.is_due = is_more;
        let kind = sight.kind;
        if kind == Kind::Pod && term.pods_listed.is_none() {
            term.pods_listed = sight.seen;
        }
        replica.inputs.extend(changes);
        if is_more {
            let delay_ms = course.delay_ms("watch", kind.name());
            course.after(delay_ms, Event::Deliver { slot, generation, epoch, at });
        }
        let delay_ms = course.below("batch", 4);
        self.wake(course, slot, delay_ms);
    }

    /// An answer arrives.
    pub(crate) fn answered(
        &mut self,
        course: &mut Course<'_>,
        (slot, generation, epoch): (usize, u64, u64),
        answer: ApiResponse,
    ) {
        let Some(replica) = self.alive(slot, generation) else { return };
        if replica.term.as_ref().is_some_and(|term| term.epoch == epoch) {
            replica.open.remove(&answer.number);
            replica.inputs.push(Input::Answered(answer));
            self.wake(course, slot, 0);
        }
    }

    // What they do.

    /// The process looks at itself after this time, if not before.
    fn wake(&mut self, course: &mut Course<'_>, slot: usize, delay_ms: u64) {
        let at_ms = course.now_ms + delay_ms;
        let Some(replica) = &mut self.slots[slot] else { return };
        if replica.wakes_ms.is_none_or(|wakes_ms| at_ms < wakes_ms) {
            replica.wakes_ms = Some(at_ms);
            let generation = replica.generation;
            course.after(delay_ms, Event::Wake { slot, generation });
        }
    }

    pub(crate) fn act(
        &mut self,
        course: &mut Course<'_>,
        server: &ApiServer,
        (slot, generation): (usize, u64),
    ) {
        let now_ms = course.now_ms;
        let Some(replica) = self.alive(slot, generation) else { return };
        // One that was to come later has come before.
        if replica.wakes_ms.is_none_or(|wakes_ms| wakes_ms > now_ms) {
            return;
        }
        replica.wakes_ms = None;
        self.ask_for_lease(course, slot);
        self.follow_phase(course, server, slot);
        self.decide(course, slot);
    }

    fn ask_for_lease(&mut self, course: &mut Course<'_>, slot: usize) {
        let (now_ms, clocks) = (course.now_ms, self.clocks[slot]);
        let own_ms = clocks.at(now_ms).own_ms;
        let Some(replica) = self.slots[slot].as_mut().filter(|it| it.asks_since.is_none()) else {
            return;
        };
        let (method, call) = match replica.candidate.next(own_ms) {
            LeaseStep::Wait { until_ms } => {
                let delay_ms = clocks.until(until_ms, now_ms).max(1);
                return self.wake(course, slot, delay_ms);
            }
            LeaseStep::Read => ("GET", LeaseCall::Read),
            LeaseStep::Write { record, version } => ("PUT", LeaseCall::Write { record, version }),
        };
        replica.asks_since = Some(own_ms);
        let generation = replica.generation;
        let way = course.way((method, "lease"), LEASE_MS);
        let there_ms = way.there_ms.min(LEASE_MS);
        let left_ms = LEASE_MS - there_ms;
        let event = match way.fault {
            Some(
                NetworkFault::Unsent
                | NetworkFault::Lost
                | NetworkFault::Silent
                | NetworkFault::Failed(_),
            ) => Event::LeaseAnswered { slot, generation, answer: LeaseAnswer::Nothing },
            fault => {
                let is_told =
                    matches!(fault, None | Some(NetworkFault::Late | NetworkFault::AnswerLate));
                let (back_ms, is_lost) =
                    (way.back_ms.min(left_ms), !is_told || way.back_ms > left_ms);
                Event::LeaseArrives { slot, generation, call, back_ms, is_lost }
            }
        };
        course.after(there_ms, event);
    }

    /// A request about the Lease reaches the server: the answer, unless that is lost.
    pub(crate) fn lease_arrives(&mut self, call: &LeaseCall, is_lost: bool) -> LeaseAnswer {
        let answer = self.lease.perform(call);
        if is_lost { LeaseAnswer::Nothing } else { answer }
    }

    pub(crate) fn lease_answered(
        &mut self,
        course: &mut Course<'_>,
        (slot, generation): (usize, u64),
        answer: LeaseAnswer,
    ) {
        let own_ms = self.clocks[slot].at(course.now_ms).own_ms;
        let Some(replica) = self.alive(slot, generation) else { return };
        let Some(sent_ms) = replica.asks_since.take() else { return };
        match answer {
            LeaseAnswer::Read(lease) => replica.candidate.read(own_ms, lease),
            LeaseAnswer::Written(lease) => replica.candidate.written(sent_ms, own_ms, lease),
            LeaseAnswer::Refused => replica.candidate.refused(own_ms),
            LeaseAnswer::Nothing => replica.candidate.unanswered(own_ms),
        }
        self.wake(course, slot, 0);
    }

    fn follow_phase(&mut self, course: &mut Course<'_>, server: &ApiServer, slot: usize) {
        let (now_ms, clocks) = (course.now_ms, self.clocks[slot]);
        let own_ms = clocks.at(now_ms).own_ms;
        let Some(replica) = &mut self.slots[slot] else { return };
        let (identity, leads_in) = (&replica.identity, replica.leads_in(own_ms));
        match (&mut replica.term, leads_in) {
            (None, Some(epoch)) => {
                course.say(format_args!("{identity} leads in {epoch}"));
                self.turns += 1;
                replica.begin(epoch, server);
                self.deliver_all(course, slot);
            }
            (Some(term), leads_in) if leads_in != Some(term.epoch) && term.stopped_ms.is_none() => {
                term.stopped_ms = Some(now_ms);
                replica.inputs.push(Input::Stop);
                course.say(format_args!("{identity} leads no more"));
                self.turns += 1;
            }
            (None, None) => {
                if let ElectionPhase::Settling { until_ms } = replica.candidate.phase(own_ms) {
                    let delay_ms = clocks.until(until_ms, now_ms).max(1);
                    self.wake(course, slot, delay_ms);
                }
            }
            _ => {}
        }
    }

    fn decide(&mut self, course: &mut Course<'_>, slot: usize) {
        let now = self.clocks[slot].at(course.now_ms);
        let binds = self.options.binds;
        let Some(replica) = &mut self.slots[slot] else { return };
        let credits = replica.credits(binds);
        let Some(term) = &mut replica.term else { return };
        let epoch = term.epoch;
        let inputs = std::mem::take(&mut replica.inputs);
        let out = replica.control.step(inputs, credits, now);
        if out.decides && !term.decides {
            term.decides = true;
            replica.candidate.relisted(now.own_ms, epoch);
            course.say(format_args!("{} decides", replica.identity));
            self.wake(course, slot, 0);
        }
        self.hear(course, slot, &out.log);
        for request in out.requests {
            self.send(course, (slot, epoch), request);
        }
        if let Some(wait_ms) = out.wait_ms {
            self.wake(course, slot, wait_ms);
        }
        self.end(course, slot, out.is_over);
    }

    /// Ends a leadership that has nothing more on its way.
    fn end(&mut self, course: &mut Course<'_>, slot: usize, is_over: bool) {
        let now = self.clocks[slot].at(course.now_ms);
        let Some(replica) = &mut self.slots[slot] else { return };
        let stopped_ms = replica.term.as_ref().and_then(|term| term.stopped_ms);
        let Some(stopped_ms) = stopped_ms else { return };
        let last_ms = stopped_ms + LAST_WORDS_MS;
        if is_over || course.now_ms >= last_ms {
            replica.control.step(vec![Input::End], Credits::default(), now);
            replica.term = None;
            replica.inputs.clear();
            self.wake(course, slot, 1);
        } else {
            self.wake(course, slot, last_ms - course.now_ms);
        }
    }

    fn hear(&mut self, course: &mut Course<'_>, slot: usize, told: &[LogEntry]) {
        for told in told {
            let LogEntry::News { news, .. } = told else { continue };
            match news {
                News::Pending { .. } => continue,
                News::Inconsistent(error) => {
                    self.problem = Some(format!("world and engine disagree: {error}"));
                }
                News::Differs(differences) => {
                    self.problem = Some(format!("the engine differs: {differences:?}"));
                }
                News::EvictionRefused(_) => self.refusals += 1,
                News::Evicted(stopped) => {
                    let victim = stopped.victim.name.to_string();
                    let preemptor = stopped.preemptor.as_ref();
                    let preemptor = preemptor.map(|preemptor| preemptor.name.to_string());
                    self.evicted.extend(preemptor.map(|preemptor| (victim, preemptor)));
                }
                _ => {}
            }
            course.say(format_args!("{slot} {news:?}"));
        }
    }

    fn send(&mut self, course: &mut Course<'_>, (slot, epoch): (usize, u64), request: ApiRequest) {
        let (now_ms, clocks) = (course.now_ms, self.clocks[slot]);
        let own_ms = clocks.at(now_ms).own_ms;
        let Some(replica) = &mut self.slots[slot] else { return };
        replica.open.insert(request.number, request.class);
        let (generation, number) = (replica.generation, request.number);
        let pods_listed = replica.term.as_ref().and_then(|term| term.pods_listed);
        let permit = replica.candidate.permit(own_ms).filter(|permit| permit.epoch == epoch);
        let over_ms = match (request.class, permit) {
            (RequestClass::Read, _) => Some(own_ms + READ_MS),
            (_, permit) => permit.map(|permit| permit.deadline_ms),
        };
        let answered = |answered: Option<Answered>| {
            let over_ms = over_ms.unwrap_or_default();
            let answer = ApiResponse { number, answered, took_ms: 1, over_ms };
            Event::Answered { slot, generation, epoch, answer }
        };
        let Some(over_ms) = over_ms else { return course.after(0, answered(None)) };
        // Nobody reads events here, and there are many.
        if request.path.starts_with("/apis/events.k8s.io/") {
            return course.after(1, answered(Some(Ok((201, None, Bytes::new())))));
        }
        let limit_ms = clocks.until(over_ms, now_ms);
        let (method, path) = (named(request.method), request.path.as_str());
        let way = course.way((method, path), limit_ms);
        let body = String::from_utf8_lossy(&request.body);
        course.say(format_args!("{slot} {method} {path} {body} {:?}", way.fault));
        let (delay_ms, event) = match way.fault {
            Some(NetworkFault::Unsent) => (way.there_ms, answered(Some(no_answer(true)))),
            Some(NetworkFault::Lost) => (way.there_ms, answered(Some(no_answer(false)))),
            Some(NetworkFault::Silent) => (limit_ms, answered(Some(no_answer(false)))),
            fault => {
                let flight = Flight {
                    slot,
                    generation,
                    epoch,
                    request,
                    back_ms: way.back_ms,
                    fault,
                    over_ms,
                    given_up_ms: now_ms + limit_ms,
                    pods_listed: pods_listed.unwrap_or_default(),
                };
                (way.there_ms, Event::Arrives(Box::new(flight)))
            }
        };
        course.after(delay_ms, event);
    }

    fn alive(&mut self, slot: usize, generation: u64) -> Option<&mut Replica> {
        self.slots[slot].as_mut().filter(|replica| replica.generation == generation)
    }
}

/// What becomes of the answer to a request that has reached the server.
pub(crate) fn on_its_way_back(course: &mut Course<'_>, flight: &Flight, answered: Answered) {
    let left_ms = flight.given_up_ms.saturating_sub(course.now_ms);
    let (answered, delay_ms) = match flight.fault {
        Some(NetworkFault::DoneAndFailed(code)) => (failed(code), flight.back_ms.min(left_ms)),
        Some(NetworkFault::AnswerLost) => (no_answer(false), flight.back_ms.min(left_ms)),
        Some(NetworkFault::AnswerSilent) => (no_answer(false), left_ms),
        _ if flight.back_ms > left_ms => (no_answer(false), left_ms),
        _ => (answered, flight.back_ms),
    };
    let Flight { slot, generation, epoch, over_ms, .. } = *flight;
    let (number, answered) = (flight.request.number, Some(answered));
    let answer = ApiResponse { number, answered, took_ms: 1, over_ms };
    course.after(delay_ms, Event::Answered { slot, generation, epoch, answer });
}

fn no_answer(unsent: bool) -> Answered {
    Err(NoAnswer { unsent, error: "no answer".to_owned() })
}

/// Where the scheduler keeps what it learns.
pub(crate) fn learned_at() -> ConfigMapName {
    ConfigMapName { namespace: NAMESPACE.to_owned(), name: "dovetail-learned".to_owned() }
}

fn settings(options: &Options) -> Settings {
    let patience = Patience {
        quiet_ms: 300,
        complete_within_ms: options.complete_within_ms,
        keep_for_ms: options.keep_for_ms,
    };
    let preemption = PreemptionConfig {
        enabled: options.preempts,
        respect_budgets: options.respects_budgets,
        ..PreemptionConfig::default()
    };
    Settings {
        learned: options.keeps_learned.then(learned_at),
        world: world::Settings { patience, ..world::Settings::default() },
        engine: EngineConfig {
            preemption,
            order: if options.turns.is_some() { Order::Dovetail } else { Order::default() },
            turns: options.turns.unwrap_or_default(),
            reserve: ReserveConfig { heads: options.heads, ..ReserveConfig::default() },
            ..EngineConfig::default()
        },
        ..Settings::default()
    }
}
