//! The scheduler with its writes: changes and answers in, requests out.

use std::collections::BTreeMap;

use dovetail_cluster::world::Change;
use dovetail_control::Control;
use dovetail_control::announce::{Report as Announced, Source, Write, Written, event};
use dovetail_control::announce::{condition_patch, judge};
use dovetail_control::bind::{Bind, Cause, DECISION, EPOCH, Outcome, Report, Verdict};
use dovetail_control::bind::{of_bind, of_pod};
use dovetail_control::control::{Credits, Input, Settings, Told};
use serde_json::json;

use crate::objects::SCHEDULER;
use crate::orders::Orders;
use crate::wire::{Answer, Class, Now, Request};

/// Between two reads of a pod whose bind is in doubt.
const LOOK_AGAIN_MS: u64 = 500;
const ANNOUNCEMENTS: usize = 32;

/// Something that happened.
#[derive(Debug)]
pub(crate) enum In {
    Won { epoch: u64 },
    Stop,
    End,
    Change(Change),
    Answered(Answer),
}

/// What is to be done.
#[derive(Debug, Default)]
pub(crate) struct Out {
    pub(crate) requests: Vec<Request>,
    pub(crate) told: Vec<Told>,
    pub(crate) decides: bool,
    pub(crate) is_over: bool,
    pub(crate) wait_ms: Option<u64>,
}

/// A bind on its way, or in doubt.
#[derive(Debug)]
enum Open {
    Sent(Bind),
    /// To be read again from this time on, on the own clock.
    Doubted(Bind, Cause, u64),
    /// Is being read.
    Read(Bind, Cause),
}

pub(crate) struct Door {
    control: Control,
    binds: BTreeMap<u64, Open>,
    orders: Orders,
    announcements: BTreeMap<u64, Write>,
    made: u64,
    is_stopping: bool,
}

impl Door {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            control: Control::new(settings),
            binds: BTreeMap::new(),
            orders: Orders::default(),
            announcements: BTreeMap::new(),
            made: 0,
            is_stopping: false,
        }
    }

    pub(crate) fn step(&mut self, inputs: Vec<In>, binds: usize, now: Now) -> Out {
        let mut out = Out::default();
        let mut inputs: Vec<Input> =
            inputs.into_iter().filter_map(|input| self.take(input, now)).collect();
        inputs.extend(std::iter::from_fn(|| self.orders.next_report()).map(Input::Ordered));
        let may_write = binds > 0;
        let open = self.binds.len();
        let credits = Credits {
            binds: binds.saturating_sub(open),
            orders: if may_write { 64 } else { 0 },
            claims: if may_write { 64 } else { 0 },
            announcements: if may_write { ANNOUNCEMENTS } else { 0 },
            binds_on_their_way: open,
        };
        let mut output = self.control.step(inputs, credits, now.wall_ms);
        for bind in output.binds.drain(..) {
            let number = self.number();
            out.requests.push(bind_request(number, &bind));
            self.binds.insert(number, Open::Sent(bind));
        }
        output.orders.drain(..).chain(output.claims.drain(..)).for_each(|it| self.orders.add(it));
        for write in output.announcements.drain(..) {
            let number = self.number();
            out.requests.extend(announcement(number, &write));
            self.announcements.insert(number, write);
        }
        self.look(now, &mut out);
        let made = &mut self.made;
        self.orders.go_on(now.own_ms, made, &mut out.requests);
        out.told = output.told;
        out.decides = output.decides;
        out.is_over = output.is_over && self.is_idle();
        let due = output.due_ms.map(|due_ms| due_ms.saturating_sub(now.wall_ms));
        let doubted = self.binds.values().filter_map(|open| match open {
            Open::Doubted(_, _, at_ms) => Some(at_ms.saturating_sub(now.own_ms)),
            _ => None,
        });
        let ordered = self.orders.due_ms().map(|at_ms| at_ms.saturating_sub(now.own_ms));
        // What is ready now is told in the next step.
        let reported = self.orders.has_reports().then_some(0);
        out.wait_ms = due.into_iter().chain(doubted).chain(ordered).chain(reported).min();
        out
    }

    fn number(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    fn is_idle(&self) -> bool {
        self.binds.is_empty() && self.orders.is_idle()
    }

    fn take(&mut self, input: In, now: Now) -> Option<Input> {
        Some(match input {
            In::Won { epoch } => {
                self.binds.clear();
                self.announcements.clear();
                self.orders = Orders::default();
                self.is_stopping = false;
                Input::Won { epoch }
            }
            In::Stop => {
                self.is_stopping = true;
                self.orders.stop();
                Input::Stop
            }
            In::End => Input::End,
            In::Change(change) => Input::Change(change),
            In::Answered(answer) => return self.answered(answer, now),
        })
    }

    fn answered(&mut self, answer: Answer, now: Now) -> Option<Input> {
        let Answer { number, answered, over_ms } = answer;
        if let Some(write) = self.announcements.remove(&number) {
            let written = match &answered {
                None => Written::NotLeading,
                Some(answered) => judge(&write, answered),
            };
            return Some(Input::Announced(Announced { write, written }));
        }
        let report = |bind, outcome| {
            Some(Input::Bound(Report { bind, outcome, answered_in_ms: Some(1) }))
        };
        match self.binds.remove(&number) {
            None => return self.orders.answered(number, answered.as_ref(), now.own_ms),
            Some(Open::Sent(bind)) => {
                let Some(answered) = answered else {
                    return report(bind, Outcome::NotBound(Cause::NotLeading));
                };
                let (cause, at_ms) = match of_bind(&answered) {
                    Verdict::Final(outcome) => return report(bind, outcome),
                    Verdict::LookNow(cause) => (cause, now.own_ms),
                    Verdict::LookLater(cause) => (cause, over_ms),
                };
                self.binds.insert(number, Open::Doubted(bind, cause, at_ms));
            }
            Some(Open::Read(bind, cause)) => {
                let outcome = answered.and_then(|answered| of_pod(&bind, &answered, &cause));
                if let Some(outcome) = outcome {
                    return report(bind, outcome);
                }
                let again_ms = now.own_ms + LOOK_AGAIN_MS;
                self.binds.insert(number, Open::Doubted(bind, cause, again_ms));
            }
            Some(doubted) => {
                self.binds.insert(number, doubted);
            }
        }
        None
    }

    /// Reads pods whose binds are in doubt. Who stops learns no more.
    fn look(&mut self, now: Now, out: &mut Out) {
        let due: Vec<u64> = self
            .binds
            .iter()
            .filter(|(_, open)| matches!(open, Open::Doubted(_, _, at_ms) if *at_ms <= now.own_ms))
            .map(|(number, _)| *number)
            .collect();
        for number in due {
            let Some(Open::Doubted(bind, cause, _)) = self.binds.remove(&number) else { continue };
            if self.is_stopping {
                continue;
            }
            let path = format!("/api/v1/namespaces/{}/pods/{}", bind.namespace, bind.pod);
            let number = self.number();
            let body = Vec::new();
            let (class, method, media_type) = (Class::Read, "GET", "application/json");
            out.requests.push(Request { number, class, method, path, media_type, body });
            self.binds.insert(number, Open::Read(bind, cause));
        }
    }
}

fn bind_request(number: u64, bind: &Bind) -> Request {
    let path = format!("/api/v1/namespaces/{}/pods/{}/binding", bind.namespace, bind.pod);
    let annotations = json!({EPOCH: bind.epoch.to_string(), DECISION: bind.tag});
    let metadata = json!({"name": bind.pod, "uid": bind.uid, "annotations": annotations});
    let target = json!({"kind": "Node", "name": bind.node});
    let body = json!({"metadata": metadata, "target": target}).to_string().into_bytes();
    let (class, method, media_type) = (Class::Bind, "POST", "application/json");
    Request { number, class, method, path, media_type, body }
}

fn announcement(number: u64, write: &Write) -> Option<Request> {
    let source = Source { controller: SCHEDULER.to_owned(), instance: SCHEDULER.to_owned() };
    let (method, path, media_type, body) = match write {
        Write::Condition(condition) => {
            let (namespace, name) = (&condition.pod.namespace, &condition.pod.name);
            let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/status");
            let media_type = "application/strategic-merge-patch+json";
            ("PATCH", path, media_type, condition_patch(condition))
        }
        Write::Event(note, _) => {
            let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events", note.about.namespace);
            ("POST", path, "application/json", event(note, &source))
        }
        Write::Status(status) => {
            let of = &status.of;
            let (group, version, plural) = (of.kind.group(), of.kind.version(), of.kind.plural());
            let place = match of.namespace.is_empty() {
                true => String::new(),
                false => format!("namespaces/{}/", of.namespace),
            };
            let path = format!("/apis/{group}/{version}/{place}{plural}/{}/status", of.name);
            let media_type = match of.kind {
                dovetail_objects::Kind::PodGroup => "application/strategic-merge-patch+json",
                _ => "application/json-patch+json",
            };
            ("PATCH", path, media_type, status.patch.clone())
        }
    };
    let (class, body) = (Class::Announcement, body.to_string().into_bytes());
    Some(Request { number, class, method, path, media_type, body })
}
