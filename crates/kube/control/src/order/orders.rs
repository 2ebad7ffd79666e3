//! The life of orders: which of their writes go out when, and what became of each.
//!
//! A pod that is evicted gets the condition `DisruptionTarget` first, then it is deleted with the
//! time that it may take; a Job whose `podFailurePolicy` ignores disruptions does not count it as
//! failed. If the server refuses to delete it, the condition is taken back, and the pods that were
//! to be evicted with it are not. An order that is not carried out in the end is given again by
//! the scheduler, if it still holds.

use std::collections::{BTreeMap, VecDeque};

use dovetail_cluster::world::PodKey;

use super::attempts::{Attempts, Settled};
use super::eviction::NotEvicted;
use super::kinds::{OrderEnd, OrderReport, PodOrder};
use super::sequence::Sequence;
use super::step::OrderWrite;
use super::step_log::{StepLog, StepNews, Went};
use super::together::{ParallelSteps, Together, may_be_of_all, would_fail};
use crate::request::{ApiRequest, ApiResponse, Now};

/// After an eviction had no effect, no pod is touched for so long before the server has said that
/// it would evict it.
const DOUBT_MS: u64 = 600_000;

/// Orders that are not over.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    /// Name of the scheduler, as pods name it.
    scheduler: String,
    given: u64,
    open: BTreeMap<u64, Open>,
    sequence: Sequence,
    /// Orders whose turn has come.
    ready: VecDeque<u64>,
    /// Evictions that were decided together, by the number of their decision.
    together: BTreeMap<u64, Together>,
    attempts: Attempts,
    /// Until when it is doubted that the server evicts pods, by the own clock.
    doubt_until_ms: u64,
    reports: Vec<OrderReport>,
    log: StepLog,
    /// Nothing more may be written.
    is_over: bool,
}

#[derive(Debug)]
struct Open {
    order: PodOrder,
    stage: OrderStage,
    /// Marks that are being taken back.
    unmarks: usize,
}

#[derive(Debug)]
enum OrderStage {
    /// Others come first.
    Waiting,
    /// The server is asked about all pods of the decision.
    Asking(ParallelSteps),
    /// All pods of the decision are marked.
    Marking(ParallelSteps),
    /// The steps of the order itself that are left.
    Steps { left: VecDeque<OrderWrite>, is_marked: bool },
    /// Its end is reported.
    Over,
}

impl Orders {
    /// None yet. `scheduler`: its name, as pods name it.
    pub(crate) fn new(scheduler: &str) -> Self {
        Self { scheduler: scheduler.to_owned(), ..Self::default() }
    }

    /// An order is to be carried out.
    pub(crate) fn give(&mut self, order: PodOrder, own_ms: u64) {
        self.given += 1;
        if let Some(number) = decision(&order) {
            self.together.entry(number).or_default().orders += 1;
        }
        if self.sequence.give(self.given, &order) {
            self.ready.push_back(self.given);
        }
        self.open.insert(self.given, Open { order, stage: OrderStage::Waiting, unmarks: 0 });
        self.run(own_ms);
    }

    /// What has not begun of a decision does not begin.
    pub(crate) fn call_off(&mut self, decision: u64, own_ms: u64) {
        self.end_decision(decision);
        self.run(own_ms);
    }

    /// The same. Of evictions that are carried out side by side, those that were not sent have not
    /// begun.
    fn end_decision(&mut self, number: u64) {
        let Some(together) = self.together.get_mut(&number) else { return };
        together.is_called_off = true;
        for (order, open) in &mut self.open {
            if decision(&open.order) == Some(number)
                && let OrderStage::Steps { left, .. } = &mut open.stage
                && let Some(step) = self.attempts.take_back(*order)
            {
                left.push_front(step);
                self.ready.push_back(*order);
            }
        }
    }

    /// The next write that is due, with its number among the writes of orders.
    pub(crate) fn next(&mut self, now: Now) -> Option<(u64, ApiRequest)> {
        if self.is_over {
            return None;
        }
        self.attempts.next(&self.scheduler, now)
    }

    /// When the next write is due, by the own clock.
    pub(crate) fn due_ms(&self) -> Option<u64> {
        self.attempts.due_ms().filter(|_| !self.is_over)
    }

    /// Takes the answer to a write.
    pub(crate) fn answered(&mut self, attempt: u64, answer: &ApiResponse, own_ms: u64) {
        match self.attempts.answered(attempt, answer, own_ms) {
            None | Some(Settled::GoesOn(None)) => {}
            Some(Settled::NotLeading) => self.stop(),
            Some(Settled::GoesOn(Some((step, problem)))) => {
                self.log.line(&step, Went::Again { problem });
            }
            Some(Settled::Over { order, step, end }) => {
                if end == OrderEnd::Done && !step.is_question() {
                    self.log.line(&step, Went::Well);
                }
                self.step_ended(order, step, end, own_ms);
                self.run(own_ms);
            }
        }
    }

    /// Orders that have ended since the last call.
    pub(crate) fn reports(&mut self) -> Vec<OrderReport> {
        std::mem::take(&mut self.reports)
    }

    /// Lines for the log since the last call.
    pub(crate) fn log(&mut self) -> Vec<StepNews> {
        self.log.take()
    }

    /// Begins nothing more; what is on its way comes to its end.
    pub(crate) fn stop(&mut self) {
        self.is_over = true;
        self.attempts.stop();
    }

    /// Carries out orders whose turn has come, as far as nothing is to be waited for.
    fn run(&mut self, own_ms: u64) {
        while let Some(number) = self.ready.pop_front() {
            self.go_on(number, own_ms);
        }
    }

    /// Begins what is to be begun of an order now.
    fn go_on(&mut self, number: u64, own_ms: u64) {
        loop {
            let Some(open) = self.open.get_mut(&number) else { return };
            let together = decision(&open.order).and_then(|one| self.together.get(&one));
            let is_called_off = together.is_some_and(|one| one.is_called_off);
            match &mut open.stage {
                OrderStage::Waiting => self.first_stage(number, own_ms),
                OrderStage::Asking(round) | OrderStage::Marking(round) => {
                    while let Some(step) = round.next() {
                        match is_called_off {
                            true => round.on_their_way -= 1,
                            false => self.attempts.begin(number, step, own_ms),
                        }
                    }
                    if !round.is_over() {
                        return;
                    }
                    self.round_ended(number, own_ms);
                }
                OrderStage::Steps { left, is_marked } => {
                    let is_marked = *is_marked;
                    let end = match (left.pop_front(), is_called_off) {
                        (None, true) if open.order.leaves_with_another() => OrderEnd::CalledOff,
                        (None, _) | (Some(OrderWrite::SayWhy(..)), true) => OrderEnd::Done,
                        (Some(_), true) => OrderEnd::CalledOff,
                        (Some(step), false) => return self.attempts.begin(number, step, own_ms),
                    };
                    self.settle(number, end, is_marked, own_ms);
                }
                OrderStage::Over if open.unmarks > 0 => return,
                OrderStage::Over => return self.close(number),
            }
        }
    }

    /// What an order begins with: for the first of several evictions, questions and marks.
    fn first_stage(&mut self, number: u64, own_ms: u64) {
        let Some(open) = self.open.get_mut(&number) else { return };
        let PodOrder::Evict { why, decision: of, .. } = &open.order else {
            let left = open.order.steps().into();
            open.stage = OrderStage::Steps { left, is_marked: false };
            return;
        };
        let is_in_doubt = of.pods().len() > 1 || own_ms < self.doubt_until_ms;
        let is_asked = self.together.get(&of.number()).is_none_or(|one| one.is_asked);
        match is_in_doubt && !is_asked {
            true => open.stage = OrderStage::Asking(ParallelSteps::of_questions(of, *why)),
            false => self.mark_or_evict(number),
        }
    }

    /// All questions are answered, or all marks are set: what is known now of the decision.
    fn round_ended(&mut self, number: u64, own_ms: u64) {
        let Some(open) = self.open.get_mut(&number) else { return };
        let stage = std::mem::replace(&mut open.stage, OrderStage::Over);
        let PodOrder::Evict { why, decision: of, .. } = &open.order else { return };
        let (why, of) = (*why, of.clone());
        let Some(together) = self.together.get_mut(&of.number()) else { return };
        let is_asking = matches!(stage, OrderStage::Asking(_));
        let ends = match stage {
            OrderStage::Asking(round) | OrderStage::Marking(round) => round.ends,
            OrderStage::Waiting | OrderStage::Steps { .. } | OrderStage::Over => Vec::new(),
        };
        let pods = ends.iter().map(|(pod, _)| pod.clone());
        match is_asking {
            true => {
                together.is_asked = true;
                together.refused.extend(pods);
            }
            false => {
                together.is_marked = true;
                together.unmarkable.extend(pods);
            }
        }
        for (pod, end) in ends {
            // A pod that was never marked says that it is not evicted only if that will last.
            let unmark = unmark(&pod, &end)
                .filter(|one| matches!(one, OrderWrite::Unmark(_, NotEvicted::Refused)));
            let order = PodOrder::Evict { pod, why, decision: of.clone() };
            self.finish(number, order, end, unmark, own_ms);
        }
        self.mark_or_evict(number);
    }

    /// What comes before the steps of an order itself, if anything is left.
    fn mark_or_evict(&mut self, number: u64) {
        let Some(open) = self.open.get_mut(&number) else { return };
        let PodOrder::Evict { pod, why, decision: of } = &open.order else { return };
        let together = self.together.get(&of.number());
        let mut left: VecDeque<OrderWrite> = open.order.steps().into();
        open.stage = match together {
            Some(all) if of.pods().len() > 1 && !all.is_marked && !all.is_called_off => {
                OrderStage::Marking(ParallelSteps::of_marks(of.pods(), *why))
            }
            Some(all) if all.has_ended(pod) => OrderStage::Over,
            _ => {
                let is_marked = together.is_some_and(|all| all.marked.contains(pod));
                left.retain(|step| !is_marked || !matches!(step, OrderWrite::Mark(..)));
                OrderStage::Steps { left, is_marked }
            }
        };
    }

    /// Takes the end of one step of an order.
    fn step_ended(&mut self, number: u64, step: OrderWrite, end: OrderEnd, own_ms: u64) {
        let Some(open) = self.open.get_mut(&number) else { return };
        let together = decision(&open.order).and_then(|one| self.together.get_mut(&one));
        let is_unmark = open.order.evicted().is_some() && matches!(step, OrderWrite::Unmark(..));
        match (&mut open.stage, together) {
            _ if is_unmark => {
                // Where that fails, the mark stays.
                self.log.log_failure(&step, &end, own_ms);
                open.unmarks -= 1;
            }
            (OrderStage::Asking(round), Some(_)) => {
                round.on_their_way -= 1;
                let (OrderWrite::WouldLeave(pod, _) | OrderWrite::WouldSuspend(pod, ..)) = &step
                else {
                    return;
                };
                if would_fail(&end) && round.ends.iter().all(|(one, _)| one != pod) {
                    self.log.log_failure(&step, &end, own_ms);
                    let is_enough = may_be_of_all(&end);
                    round.ends.push((pod.clone(), end));
                    if is_enough {
                        (round.on_their_way, round.left) = (0, VecDeque::new());
                        self.attempts.forget(number);
                    }
                }
            }
            (OrderStage::Marking(round), Some(together)) => {
                round.on_their_way -= 1;
                let OrderWrite::Mark(pod, _) = &step else { return };
                match end {
                    OrderEnd::Done => _ = together.marked.insert(pod.clone()),
                    // Its own order finds that.
                    OrderEnd::Gone | OrderEnd::CalledOff => {}
                    OrderEnd::Refused { .. } | OrderEnd::Unanswered { .. } => {
                        self.log.log_failure(&step, &end, own_ms);
                        together.is_called_off = true;
                        round.ends.push((pod.clone(), end));
                    }
                }
            }
            // The pod has left, or is about to, whatever it says.
            (OrderStage::Steps { .. }, _) if matches!(step, OrderWrite::SayWhy(..)) => {}
            (OrderStage::Steps { is_marked, .. }, _) if end == OrderEnd::Done => {
                *is_marked |= matches!(step, OrderWrite::Mark(..));
            }
            (OrderStage::Steps { is_marked, .. }, _) => {
                self.log.log_failure(&step, &end, own_ms);
                let is_marked = *is_marked;
                self.settle(number, end, is_marked, own_ms);
            }
            _ => {}
        }
        self.ready.push_back(number);
    }

    /// An order has come to its end. A pod that is marked and is not evicted is marked no more.
    fn settle(&mut self, number: u64, end: OrderEnd, is_marked: bool, own_ms: u64) {
        let Some(open) = self.open.get_mut(&number) else { return };
        open.stage = OrderStage::Over;
        let order = open.order.clone();
        let goes = |pod: &PodKey| !is_marked || self.is_evicted_by_another(number, pod);
        let unmark = order.evicted().filter(|pod| !goes(pod)).and_then(|pod| unmark(pod, &end));
        self.finish(number, order, end, unmark, own_ms);
    }

    /// Whether another decision that holds evicts a pod, too: it stays marked, so that no pod of
    /// its gang starts beside it meanwhile.
    fn is_evicted_by_another(&self, number: u64, pod: &PodKey) -> bool {
        self.open.iter().any(|(other, open)| {
            let together = decision(&open.order).and_then(|one| self.together.get(&one));
            let holds = together.is_some_and(|all| !all.is_called_off);
            *other != number && holds && open.order.evicted() == Some(pod)
        })
    }

    /// Reports what became of an eviction or another order, and does what follows from it.
    fn finish(
        &mut self,
        number: u64,
        order: PodOrder,
        end: OrderEnd,
        unmark: Option<OrderWrite>,
        own_ms: u64,
    ) {
        let has_failed = matches!(end, OrderEnd::Refused { .. } | OrderEnd::Unanswered { .. });
        if has_failed && order.evicted().is_some() {
            decision(&order).into_iter().for_each(|one| self.end_decision(one));
            self.doubt_until_ms = own_ms.saturating_add(DOUBT_MS);
        }
        self.reports.push(OrderReport { order, end });
        if let (Some(step), Some(open)) = (unmark, self.open.get_mut(&number)) {
            open.unmarks += 1;
            self.attempts.begin(number, step, own_ms);
        }
    }

    fn close(&mut self, number: u64) {
        let Some(Open { order, .. }) = self.open.remove(&number) else { return };
        if let Some(of) = decision(&order)
            && let Some(together) = self.together.get_mut(&of)
        {
            together.orders -= 1;
            if together.orders == 0 {
                self.together.remove(&of);
            }
        }
        self.ready.extend(self.sequence.end(number));
    }
}

/// The number of the decision that evicts a pod with others, or alone for a pod that waits.
fn decision(order: &PodOrder) -> Option<u64> {
    match order {
        PodOrder::Evict { decision, .. } if !decision.pods().is_empty() => Some(decision.number()),
        _ => None,
    }
}

/// What a pod says that is not evicted after all.
fn unmark(pod: &PodKey, end: &OrderEnd) -> Option<OrderWrite> {
    let kept = match end {
        OrderEnd::Refused { code, message } => NotEvicted::by(*code, message),
        OrderEnd::CalledOff => NotEvicted::ForNow,
        OrderEnd::Done | OrderEnd::Gone | OrderEnd::Unanswered { .. } => return None,
    };
    Some(OrderWrite::Unmark(pod.clone(), kept))
}
