//! The book of writes on real wires: what is given is sent, and what became of it comes back.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use dovetail_apiserver::client::Clients;
use dovetail_control::announce::{AnnouncedWrite, EventSource};
use dovetail_control::bind::{Bind, BindReport};
use dovetail_control::order::PodOrder;
use dovetail_control::request::Now;
use dovetail_control::writes::{Ended, Writes};
use dovetail_scheduler::Wires;
use dovetail_scheduler::lead::{Clock, Leadership};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

/// Something to write.
pub(crate) enum Given {
    Bind(Bind),
    Order(PodOrder),
    Announcement(AnnouncedWrite),
}

/// A task that sends what it is given within one leadership.
pub(crate) struct Sender {
    given: UnboundedSender<Given>,
    ended: UnboundedReceiver<Ended>,
    task: JoinHandle<()>,
}

pub(crate) fn source() -> EventSource {
    EventSource { controller: "dovetail".to_owned(), instance: "one".to_owned() }
}

pub(crate) fn now(clock: &Clock) -> Now {
    Now { wall_ms: 0, own_ms: clock.now_ms() }
}

impl Sender {
    /// A sender with at most so many binds at the server.
    pub(crate) fn start(
        clients: Clients,
        leads: Arc<dyn Leadership>,
        epoch: u64,
        binds_at_once: usize,
    ) -> Self {
        let (given, taken) = unbounded_channel();
        let (reports, ended) = unbounded_channel();
        let clock = *leads.clock();
        let wires = Wires::new(clients, leads, epoch, binds_at_once);
        Self { given, ended, task: tokio::spawn(drive(wires, clock, taken, reports)) }
    }

    pub(crate) fn give(&self, given: Given) {
        assert!(self.given.send(given).is_ok(), "a running sender");
    }

    /// What became of the next write.
    pub(crate) async fn next(&mut self) -> Ended {
        self.ended.recv().await.expect("a running sender")
    }

    /// What became of the next bind.
    pub(crate) async fn report(&mut self) -> BindReport {
        match self.next().await {
            Ended::Bind(report) => report,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until everything that was given has ended; what nobody has heard of yet.
    pub(crate) async fn finish(mut self) -> Vec<Ended> {
        drop(self.given);
        self.task.await.expect("a sender that ends");
        std::iter::from_fn(|| self.ended.try_recv().ok()).collect()
    }
}

async fn drive(
    mut wires: Wires,
    clock: Clock,
    mut given: UnboundedReceiver<Given>,
    ended: UnboundedSender<Ended>,
) {
    let mut writes = Writes::new(source());
    let (mut binds, mut open, mut is_last) = (VecDeque::new(), 0_usize, false);
    while !is_last || open > 0 {
        let mut room = wires.credits().binds.min(writes.room_for_binds());
        while room > 0
            && let Some(bind) = binds.pop_front()
        {
            writes.bind(Arc::new(bind));
            room -= 1;
        }
        for request in writes.requests(wires.credits(), now(&clock)) {
            wires.send(request);
        }
        let wait_ms = writes.due_ms(now(&clock)).map(|due_ms| due_ms - now(&clock).own_ms);
        let wait = async {
            match wait_ms {
                Some(wait_ms) => tokio::time::sleep(Duration::from_millis(wait_ms)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            one = given.recv(), if !is_last => match one {
                Some(Given::Bind(bind)) => binds.push_back(bind),
                Some(Given::Order(order)) => writes.order(order, now(&clock)),
                Some(Given::Announcement(write)) => writes.announce(write),
                None => {
                    is_last = true;
                    continue;
                }
            },
            answer = wires.next() => {
                writes.answered(&answer, now(&clock));
                for one in writes.ended() {
                    open -= 1;
                    // A test that has heard enough listens no more.
                    _ = ended.send(one);
                }
                continue;
            }
            () = wait => continue,
        }
        open += 1;
    }
}
