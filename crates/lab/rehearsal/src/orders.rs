//! Orders about pods, carried out one after the other.

use std::collections::VecDeque;

use dovetail_cluster::world::PodKey;
use dovetail_control::answer::Answered;
use dovetail_control::announce::condition_patch;
use dovetail_control::bind::{Kept, Next, Order, OrderEnd, OrderReport, Step, judge};
use dovetail_control::control::Input;
use dovetail_objects::{DISRUPTION_TARGET, SELECTED_NODE};
use serde_json::{Value, json};

use crate::objects::SCHEDULER;
use crate::wire::{Class, Request};

const TRIES: u32 = 6;
const PAUSE_MS: u64 = 300;
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// Orders that wait, and the one that is carried out.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    waiting: VecDeque<Order>,
    current: Option<Current>,
    reports: VecDeque<OrderReport>,
    is_stopping: bool,
}

#[derive(Debug)]
struct Current {
    order: Order,
    step: usize,
    tries: u32,
    is_marked: bool,
    /// The order has ended, and its mark is taken back.
    unmarks: Option<Kept>,
    /// The request on its way.
    sent: Option<u64>,
    again_ms: u64,
}

impl Orders {
    pub(crate) fn add(&mut self, order: Order) {
        self.waiting.push_back(order);
    }

    /// Nothing is begun any more.
    pub(crate) fn stop(&mut self) {
        self.is_stopping = true;
        self.waiting.clear();
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.current.as_ref().is_none_or(|current| current.sent.is_none())
    }

    pub(crate) fn due_ms(&self) -> Option<u64> {
        match &self.current {
            Some(current) => current.sent.is_none().then_some(current.again_ms),
            None => (!self.waiting.is_empty()).then_some(0),
        }
    }

    pub(crate) fn has_reports(&self) -> bool {
        !self.reports.is_empty()
    }

    pub(crate) fn next_report(&mut self) -> Option<OrderReport> {
        self.reports.pop_front()
    }

    pub(crate) fn answered(
        &mut self,
        number: u64,
        answered: Option<&Answered>,
        now_ms: u64,
    ) -> Option<Input> {
        let current = self.current.as_mut().filter(|current| current.sent == Some(number))?;
        current.sent = None;
        let Some(answered) = answered else {
            // Nothing more may be written.
            self.current = None;
            self.stop();
            return None;
        };
        let is_last = current.tries + 1 >= TRIES;
        let end = match answered {
            Ok((code, _, body)) => match judge(*code, body) {
                Next::End(end) => end,
                Next::Again(Some(code @ (429 | 500)), message) if is_last => {
                    OrderEnd::Refused { code, message }
                }
                Next::Again(_, problem) if is_last => OrderEnd::Unanswered { problem },
                Next::Again(..) => return current.again(now_ms),
            },
            Err(none) if is_last => OrderEnd::Unanswered { problem: none.error.clone() },
            Err(_) => return current.again(now_ms),
        };
        self.step_ended(end)
    }

    fn step_ended(&mut self, end: OrderEnd) -> Option<Input> {
        let mut current = self.current.take()?;
        if current.unmarks.is_some() {
            return None;
        }
        current.tries = 0;
        let (marks, is_last) = {
            let steps = current.order.steps();
            (steps[current.step].marks().is_some(), current.step + 1 == steps.len())
        };
        if end == OrderEnd::Done {
            current.is_marked |= marks;
            if !is_last {
                current.step += 1;
                self.current = Some(current);
                return None;
            }
        }
        let report = OrderReport { order: current.order.clone(), end: end.clone() };
        if let (Order::Stop { decision, .. }, true) = (&current.order, is_in_vain(&end)) {
            decision.call_off();
        }
        current.unmarks = match &end {
            OrderEnd::Refused { code, message } => Some(Kept::by(*code, message)),
            OrderEnd::CalledOff => Some(Kept::ForNow),
            _ => None,
        };
        if current.is_marked && current.unmarks.is_some() {
            self.current = Some(current);
        }
        Some(Input::Ordered(report))
    }

    /// Sends what is to be sent next.
    pub(crate) fn go_on(&mut self, now_ms: u64, made: &mut u64, out: &mut Vec<Request>) {
        if self.is_stopping {
            self.current = self.current.take().filter(|current| current.sent.is_some());
            return;
        }
        if self.current.is_none() {
            let Some(order) = self.waiting.pop_front() else { return };
            let (step, tries, is_marked) = (0, 0, false);
            let (unmarks, sent, again_ms) = (None, None, now_ms);
            self.current =
                Some(Current { order, step, tries, is_marked, unmarks, sent, again_ms });
        }
        let Some(current) = &mut self.current else { return };
        if current.sent.is_some() || now_ms < current.again_ms {
            return;
        }
        let is_called_off = match &current.order {
            Order::Stop { decision, .. } => decision.is_called_off(),
            _ => false,
        };
        if is_called_off && current.unmarks.is_none() {
            if let Some(Input::Ordered(report)) = self.step_ended(OrderEnd::CalledOff) {
                self.reports.push_back(report);
            }
            return;
        }
        *made += 1;
        current.sent = Some(*made);
        let step = match (current.order.stopped(), current.unmarks) {
            (Some(pod), Some(kept)) => Step::Unmark(pod, kept),
            _ => current.order.steps().swap_remove(current.step),
        };
        out.push(request(*made, &step));
    }
}

impl Current {
    fn again(&mut self, now_ms: u64) -> Option<Input> {
        self.tries += 1;
        self.again_ms = now_ms + PAUSE_MS;
        None
    }
}

fn is_in_vain(end: &OrderEnd) -> bool {
    matches!(end, OrderEnd::Refused { .. } | OrderEnd::Unanswered { .. })
}

fn request(number: u64, step: &Step<'_>) -> Request {
    let (namespace, name) = step.about();
    let pod_path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
    let status_path = format!("{pod_path}/status");
    let status = |pod: &PodKey, status: Value| json!({"metadata": {"uid": pod.uid}, "status": status});
    let (method, path, media_type, body) = match step {
        Step::Mark(pod, why) => {
            let target = target("True", why.reason(), &why.message(SCHEDULER));
            ("PATCH", status_path, STRATEGIC, status(pod, target))
        }
        Step::WouldMark(pod, why) => {
            let target = target("True", why.reason(), &why.message(SCHEDULER));
            ("PATCH", format!("{status_path}?dryRun=All"), STRATEGIC, status(pod, target))
        }
        Step::Unmark(pod, kept) => {
            let target = target("False", kept.reason(), &kept.message(SCHEDULER));
            ("PATCH", status_path, STRATEGIC, status(pod, target))
        }
        Step::Delete(pod) => {
            let options = json!({"preconditions": {"uid": pod.uid}});
            ("DELETE", pod_path, "application/json", options)
        }
        Step::WouldDelete(pod) => {
            let options = json!({"preconditions": {"uid": pod.uid}, "dryRun": ["All"]});
            ("DELETE", pod_path, "application/json", options)
        }
        Step::Nominate(pod, node, says) => {
            let node = json!((!node.is_empty()).then_some(*node));
            let mut body = match says {
                // Of another version than was seen, the node alone is not written: it is given again.
                Some(says) => condition_patch(says),
                None => status(pod, json!({})),
            };
            body["status"]["nominatedNodeName"] = node;
            ("PATCH", status_path, STRATEGIC, body)
        }
        Step::SelectNode(claim, version, node) => {
            let path = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}");
            let body = json!({"metadata": {"uid": claim.uid, "resourceVersion": version,
                "annotations": {SELECTED_NODE: node}}});
            ("PATCH", path, "application/merge-patch+json", body)
        }
    };
    let (class, body) = (Class::Order, body.to_string().into_bytes());
    Request { number, class, method, path, media_type, body }
}

fn target(status: &str, reason: &str, message: &str) -> Value {
    json!({"conditions": [{"type": DISRUPTION_TARGET, "status": status, "reason": reason,
        "message": message, "lastTransitionTime": "2030-01-01T00:00:00Z"}]})
}
