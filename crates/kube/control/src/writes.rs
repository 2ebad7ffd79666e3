//! The life of every write of one leadership: which request goes out when, and what became of it.
//!
//! A write ends in exactly one [`Ended`]. What is decided about it (again, in doubt, given up)
//! follows from answers and the own clock alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::announce::{self, AnnouncedWrite, EventSource, judge};
use crate::answer::Answered;
use crate::bind::{Bind, BindReport, Binds};
use crate::control::Credits;
use crate::order::{OrderReport, Orders, PodOrder, StepNews};
use crate::request::{ApiRequest, ApiResponse, Now};

/// Binds whose effect may be open at once. Beyond that no other goes out.
const IN_DOUBT: usize = 256;

/// Writes that are not over, and requests on their way.
#[derive(Debug)]
pub struct Writes {
    source: EventSource,
    made: u64,
    sent: BTreeMap<u64, Sent>,
    binds: Binds,
    orders: Orders,
    claims: Orders,
    /// Requests that go out next.
    ready: Vec<ApiRequest>,
    ended: Vec<Ended>,
}

/// What a request on its way is for.
#[derive(Debug)]
enum Sent {
    /// The bind of this decision.
    Bind(u64),
    /// The pod of this decision is read.
    Read(u64),
    /// A write of an order about a pod.
    Order(u64),
    /// A write of an order about a claim.
    Claim(u64),
    Announcement(Box<AnnouncedWrite>),
    /// What was learned before is read.
    LearnedRead,
    /// What is learned is written.
    LearnedWrite,
}

/// A write that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    Bind(BindReport),
    Order(OrderReport),
    /// A condition, an event or a status.
    Announcement(announce::WriteResult),
    /// What was learned before was read; `None` if that was not sent.
    LearnedRead(Option<Answered>),
    /// The ConfigMap was changed, or was to be.
    LearnedWritten(Option<Answered>),
}

impl Writes {
    /// None yet.
    pub fn new(source: EventSource) -> Self {
        let (orders, claims) = (Orders::new(&source.controller), Orders::new(&source.controller));
        Self {
            source,
            made: 0,
            sent: BTreeMap::new(),
            binds: Binds::default(),
            orders,
            claims,
            ready: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// How many more binds may go out.
    pub fn room_for_binds(&self) -> usize {
        IN_DOUBT.saturating_sub(self.binds.in_doubt())
    }

    /// Binds whose answer has not come.
    pub fn binds_on_their_way(&self) -> usize {
        self.binds.on_their_way()
    }

    /// Whether a write of an order about a pod or a claim is due or has no answer yet.
    pub fn are_orders_under_way(&self, now: Now) -> bool {
        let due = self.orders.due_ms().into_iter().chain(self.claims.due_ms());
        due.min().is_some_and(|due_ms| due_ms <= now.own_ms)
            || self.sent.values().any(|sent| matches!(sent, Sent::Order(_) | Sent::Claim(_)))
    }

    /// A bind goes out.
    pub fn bind(&mut self, bind: Arc<Bind>) {
        let decision = bind.decision;
        let request = self.binds.send(bind);
        let request = self.number(Sent::Bind(decision), request);
        self.ready.push(request);
    }

    /// An order is to be carried out.
    pub fn order(&mut self, order: PodOrder, now: Now) {
        match order {
            PodOrder::SelectNode { .. } | PodOrder::WriteClaim(_) => {
                self.claims.give(order, now.own_ms)
            }
            _ => self.orders.give(order, now.own_ms),
        }
    }

    /// What has not begun of a decision to evict pods does not begin.
    pub fn call_off(&mut self, decision: u64, now: Now) {
        self.orders.call_off(decision, now.own_ms);
    }

    /// A condition, an event or a status goes out.
    pub fn announce(&mut self, write: AnnouncedWrite) {
        let request = announce::request(&write, &self.source);
        let request = self.number(Sent::Announcement(Box::new(write)), request);
        self.ready.push(request);
    }

    /// What was learned before is read.
    pub fn read_learned(&mut self, request: ApiRequest) {
        let request = self.number(Sent::LearnedRead, request);
        self.ready.push(request);
    }

    /// What is learned is written.
    pub fn write_learned(&mut self, request: ApiRequest) {
        let request = self.number(Sent::LearnedWrite, request);
        self.ready.push(request);
    }

    /// Takes what came of a request; of one that it does not know nothing follows.
    pub fn answered(&mut self, answer: &ApiResponse, now: Now) {
        let Some(sent) = self.sent.remove(&answer.number) else { return };
        let bind = match sent {
            Sent::Bind(decision) => self.binds.answered(decision, answer, now.own_ms),
            Sent::Read(decision) => self.binds.read(decision, answer, now.own_ms),
            Sent::Order(number) => {
                self.orders.answered(number, answer, now.own_ms);
                None
            }
            Sent::Claim(number) => {
                self.claims.answered(number, answer, now.own_ms);
                None
            }
            Sent::Announcement(write) => {
                let written = judge(&write, answer.answered.as_ref());
                let report = announce::WriteResult { write: *write, written };
                self.ended.push(Ended::Announcement(report));
                None
            }
            Sent::LearnedRead => {
                self.ended.push(Ended::LearnedRead(answer.answered.clone()));
                None
            }
            Sent::LearnedWrite => {
                self.ended.push(Ended::LearnedWritten(answer.answered.clone()));
                None
            }
        };
        self.ended.extend(bind.map(Ended::Bind));
    }

    /// The requests that go out now, no more than there are credits for, besides those of the binds
    /// and announcements that were given.
    pub fn requests(&mut self, credits: Credits, now: Now) -> Vec<ApiRequest> {
        let mut requests = std::mem::take(&mut self.ready);
        while let Some((decision, request)) = self.binds.next_read(now.own_ms) {
            requests.push(self.number(Sent::Read(decision), request));
        }
        for (orders, sent, room) in [
            (&mut self.orders, Sent::Order as fn(u64) -> Sent, credits.orders),
            (&mut self.claims, Sent::Claim as fn(u64) -> Sent, credits.claims),
        ] {
            for _ in 0..room {
                let Some((number, mut request)) = orders.next(now) else { break };
                self.made += 1;
                request.number = self.made;
                self.sent.insert(self.made, sent(number));
                requests.push(request);
            }
        }
        requests
    }

    /// Writes that are over since the last call.
    pub fn ended(&mut self) -> Vec<Ended> {
        let orders = self.orders.reports().into_iter().chain(self.claims.reports());
        self.ended.extend(orders.map(Ended::Order));
        std::mem::take(&mut self.ended)
    }

    /// Lines for the log since the last call.
    pub fn log(&mut self) -> Vec<StepNews> {
        let mut lines = self.orders.log();
        lines.extend(self.claims.log());
        lines
    }

    /// When the next request goes out if nothing happens, by the own clock. What only lacks credit
    /// waits for an answer.
    pub fn due_ms(&self, now: Now) -> Option<u64> {
        let due = [self.binds.due_ms(), self.orders.due_ms(), self.claims.due_ms()];
        due.into_iter().flatten().filter(|due_ms| *due_ms > now.own_ms).min()
    }

    /// Nothing is begun any more but announcements. What is on its way comes to its end; a bind
    /// whose effect is open stays unknown.
    pub fn stop(&mut self) {
        self.ended.extend(self.binds.stop().into_iter().map(Ended::Bind));
        self.orders.stop();
        self.claims.stop();
    }

    /// Whether no request about pods and claims is on its way, announcements aside.
    pub fn is_idle(&self) -> bool {
        let is_aside = |sent: &Sent| {
            matches!(
                sent,
                Sent::Announcement(_) | Sent::Read(_) | Sent::LearnedRead | Sent::LearnedWrite
            )
        };
        self.sent.values().all(is_aside)
    }

    fn number(&mut self, sent: Sent, mut request: ApiRequest) -> ApiRequest {
        self.made += 1;
        request.number = self.made;
        self.sent.insert(self.made, sent);
        request
    }
}
