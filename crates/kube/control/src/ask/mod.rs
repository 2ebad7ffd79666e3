//! Questions about a cluster and its pods, and their answers as plain data. None changes a
//! decision.

mod gang;
mod line;
mod nodes;
mod not_in_line;
mod queues;
mod reservations;
mod reserved;
mod starts;
mod turn;
mod why;

pub use gang::{GangLine, MemberLine};
pub use line::{InLine, Preemptions};
pub use nodes::{GpuHolder, NodeLine};
pub use not_in_line::NotInLine;
pub use queues::QueueLine;
pub use reservations::ReservationLine;
pub use reserved::{ReservedLine, ReservedNode};
pub use starts::{DomainLine, StartLine};
pub use turn::{QueueTurn, QueueTurnTerms, Score, TurnLine};
pub use why::{PodQuestion, Why};

use crate::schedule::Scheduler;

/// What is asked.
#[derive(Clone, Debug)]
pub enum Question {
    /// Why a pod or a gang is pending.
    Pod(PodQuestion),
    /// What queues hold, and who waits in them.
    Queues {
        /// Also when pending jobs are expected to start.
        starts: bool,
    },
    /// What nodes have, and who holds it.
    Nodes {
        /// Also those without GPUs.
        all: bool,
    },
}

/// What there is to answer.
#[derive(Clone, Debug)]
pub enum Reply {
    /// How it is with the pod or gang; `None` if there is none of the name.
    Pod(Option<Box<Why>>),
    /// Queues and who waits.
    Queues(QueueLines),
    /// Nodes, by name.
    Nodes(Vec<NodeLine>),
}

/// Queues and who waits in them.
#[derive(Clone, Debug)]
pub struct QueueLines {
    /// The queues, by name.
    pub queues: Vec<QueueLine>,
    /// Pending jobs, by queue and in scheduling order.
    pub waiting: Vec<InLine>,
    /// Gangs and pods that are pending without being in line.
    pub not_in_line: Vec<NotInLine>,
    /// Reservations from one time to another, by name.
    pub reservations: Vec<ReservationLine>,
    /// GPUs that are reserved and not in use: for pending jobs, then by Reservations.
    pub reserved: Vec<ReservedLine>,
    /// The resource whose units are GPUs.
    pub gpu_resource: String,
}

/// Answers a question. `ours`: the scheduler whose pods are asked about.
pub(crate) fn ask(
    question: &Question,
    ours: &str,
    now_ms: u64,
    scheduler: &mut Scheduler,
) -> Reply {
    match question {
        Question::Pod(pod) => Reply::Pod(why::why(pod, ours, now_ms, scheduler).map(Box::new)),
        Question::Queues { starts } => {
            let mut waiting = line::line(now_ms, scheduler);
            if *starts {
                let mut expected = starts::starts(now_ms, scheduler);
                for job in &mut waiting {
                    job.expected_start = Some(expected.remove(&job.id).unwrap_or_default());
                }
            }
            let queues = queues::lines(&waiting, scheduler);
            let not_in_line = not_in_line::not_in_line(scheduler.world());
            let gpu_resource = scheduler.world().rules().device_resource.to_string();
            let reservations = reservations::lines(scheduler);
            let reserved = reserved::lines(scheduler);
            Reply::Queues(QueueLines {
                queues,
                waiting,
                not_in_line,
                reservations,
                reserved,
                gpu_resource,
            })
        }
        Question::Nodes { all } => {
            let snapshot = scheduler.ask().snapshot(now_ms);
            Reply::Nodes(nodes::nodes(&snapshot, scheduler.world(), *all))
        }
    }
}
