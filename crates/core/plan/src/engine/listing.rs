//! Lists of jobs and queues, for whoever shows them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use dovetail_model::{
    Booked, HoldingId, JobId, NodeId, NodeName, Owner, PodId, PreemptionReservation, Queue,
    QueueName, Reserved,
};

use super::books::Books;
use super::placement::Placement;
use super::supply::{WaitingClass, WaitingSet};
use crate::reserve::{Reservations, that_lend};
use dovetail_order::queues::quota::QuotaBlock;
use dovetail_state::domains::DomainId;

/// What waits in a queue and everything below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitingBelow {
    pub jobs: u64,
    /// Their pods, at the smallest size of each.
    pub pods: u64,
}

/// For what capacity is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReservedFor<'e> {
    /// A pending job that is next in its queue.
    Job(JobId),
    /// A reservation for a time window, by its name.
    Window(&'e str),
}

/// GPUs of a node that are reserved and not in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservedUnused<'e> {
    pub reserved_for: ReservedFor<'e>,
    pub node: NodeName,
    /// Thousandths of a GPU.
    pub gpu_milli: i64,
}

/// What is there of jobs and queues.
#[derive(Clone, Copy)]
pub struct Listing<'e> {
    books: &'e Books,
    reserve: &'e Reservations,
}

impl<'e> Listing<'e> {
    pub(super) fn of(books: &'e Books, reserve: &'e Reservations) -> Self {
        Self { books, reserve }
    }

    /// How many jobs wait.
    pub fn waiting_jobs(&self) -> usize {
        self.books.jobs.pending.len()
    }

    /// By what a waiting job is compared with the others: the smallest is tried first. `None` if it
    /// does not wait.
    pub fn place_of(&self, job: JobId) -> Option<(Reverse<i32>, u64, JobId)> {
        self.books.jobs.waiting(job)?.place.map(|(place, _)| place)
    }

    /// Nodes of a running job's pods, one per pod.
    pub fn nodes_of(&self, job: JobId) -> Vec<NodeName> {
        let holdings = self.holdings_of(job).into_iter();
        holdings
            .map(|(node, _)| self.books.placement.state.nodes.cold(node).node.name.clone())
            .collect()
    }

    /// The narrowest topology domain that has all of these nodes, as (level, name); `None` if none
    /// has, or a node is unknown.
    pub fn domain_of(&self, nodes: &[NodeName]) -> Option<(&'e str, &'e str)> {
        let state = &self.books.placement.state;
        let mut common: Option<&[DomainId]> = None;
        for node in nodes {
            let path = &state.nodes.cold(state.nodes.find(node)?).path;
            let known = common.unwrap_or(path);
            let same = known.iter().zip(path).take_while(|(one, other)| one == other).count();
            common = Some(&path[..same]);
        }
        let common = common?;
        let level = state.topology.levels.get(common.len().checked_sub(1)?)?;
        let name = state.domains.name(*common.last()?).last()?;
        Some((&level.name, name))
    }

    /// The pods of a running job.
    pub fn pods_of(&self, job: JobId) -> Vec<PodId> {
        let owners = self
            .holdings_of(job)
            .into_iter()
            .map(|(_, id)| &self.books.placement.state.holdings.get(id).owner);
        let pods = owners.filter_map(|owner| match owner {
            Owner::Pod(pod) => Some(*pod),
            _ => None,
        });
        pods.collect()
    }

    /// Where a running job's pods are, as (node, holding).
    pub fn holdings_of(&self, job: JobId) -> Vec<(NodeId, HoldingId)> {
        let ids = self
            .books
            .jobs
            .records
            .get(&job)
            .map(|record| record.holdings.as_slice())
            .unwrap_or(&[]);
        ids.iter().map(|id| (self.books.placement.state.holdings.get(*id).node, *id)).collect()
    }

    /// What is kept for a waiting job until others have left.
    pub fn claim_of(&self, job: JobId) -> Option<&'e PreemptionReservation> {
        self.books.kept.claims.get(job)
    }

    /// What is booked, by name, with what was decided about it.
    pub fn bookings(&self) -> impl Iterator<Item = &'e Booked> + use<'e> {
        self.books.kept.bookings.iter()
    }

    /// What is reserved for jobs that are next, of those that have lent any of it.
    pub fn lending(&self) -> Vec<Reserved> {
        that_lend(self.reserve, &self.books.kept)
    }

    /// What is reserved and not in use, piece by piece: for what, where, and how many GPUs in
    /// thousandths.
    fn unused_pieces(&self) -> impl Iterator<Item = (ReservedFor<'e>, NodeId, i64)> + use<'e> {
        let Books { kept, placement: Placement { state, .. }, .. } = self.books;
        let heads = kept.reserved.iter().map(|claim| (ReservedFor::Job(claim.job), claim));
        let windows = kept.bookings.iter();
        let windows =
            windows.map(|booked| (ReservedFor::Window(&booked.booking.name), &booked.claim));
        heads.chain(windows).flat_map(move |(reserved_for, claim)| {
            state.holdings.kept_by(claim.reservation).into_iter().map(move |id| {
                let holding = state.holdings.get(id);
                let gpus = holding.devices.iter().map(|(_, amount)| amount.compute_milli);
                (reserved_for, holding.node, gpus.sum())
            })
        })
    }

    /// GPUs that are reserved and not in use, by what they are reserved for and by node.
    pub fn reserved_unused(&self) -> Vec<ReservedUnused<'e>> {
        let nodes = &self.books.placement.state.nodes;
        let mut unused: BTreeMap<(ReservedFor<'e>, &NodeName), i64> = BTreeMap::new();
        for (reserved_for, node, gpu_milli) in self.unused_pieces() {
            *unused.entry((reserved_for, &nodes.cold(node).node.name)).or_default() += gpu_milli;
        }
        let line = |((reserved_for, node), gpu_milli): ((ReservedFor<'e>, &NodeName), i64)| {
            ReservedUnused { reserved_for, node: node.clone(), gpu_milli }
        };
        unused.into_iter().filter(|(_, gpu_milli)| *gpu_milli > 0).map(line).collect()
    }

    /// The sums of [`Self::reserved_unused`] in thousandths: for jobs that are next, and for time
    /// windows.
    pub fn reserved_unused_gpu_milli(&self) -> [i64; 2] {
        let mut sums = [0, 0];
        for (reserved_for, _, gpu_milli) in self.unused_pieces() {
            sums[usize::from(matches!(reserved_for, ReservedFor::Window(_)))] += gpu_milli;
        }
        sums
    }

    /// The queues as they were told, by name.
    pub fn queues(&self) -> impl Iterator<Item = &'e Queue> + use<'e> {
        self.books.quota.queues()
    }

    /// What a queue has used, older use counting less, in seconds of the whole cluster; `None`
    /// where the order does not count it.
    pub fn queue_usage(&self, queue: &str) -> Option<f64> {
        self.books.usage.as_ref().map(|usage| usage.of(queue))
    }

    /// The bound of a queue that keeps a waiting job from starting, if one does.
    pub fn quota_block(&self, job: JobId) -> Option<QuotaBlock> {
        self.books.bounded().block(job)
    }

    /// Until when victims of a waiting job keep running because they write a checkpoint by then;
    /// `None` if the job does not wait for that, or another one of its class does.
    pub fn waits_for_checkpoint_ms(&self, job: JobId) -> Option<u64> {
        let jobs = &self.books.jobs;
        let (_, class) = jobs.waiting(job)?.place?;
        jobs.pending.first_of(class).filter(|first| *first == job)?;
        jobs.pending.asleep(class)?.until_ms
    }

    /// What waits in each queue that somebody described, with everything below it.
    pub fn waiting_below(&self) -> BTreeMap<QueueName, WaitingBelow> {
        let mut all: BTreeMap<QueueName, WaitingBelow> = BTreeMap::new();
        for (key, jobs) in self.books.jobs.pending.counts() {
            let pods: u64 = key.gang.sets.iter().map(|set| u64::from(set.min)).sum();
            for queue in self.books.quota.way_up(&key.queue) {
                let below = all.entry(queue.name.clone()).or_default();
                below.jobs += jobs;
                below.pods += jobs * pods;
            }
        }
        all
    }

    /// What waits, by class, best place first.
    pub fn waiting(&self) -> impl Iterator<Item = WaitingClass<'e>> + use<'e> {
        let books = self.books;
        books.jobs.pending.heads().map(move |(job, class)| {
            let record = &books.jobs.records[&job];
            let asked = record.gang.smallest(&books.placement.state);
            let quota =
                books.quota.blocked_by(&record.job.queue, &asked, &books.bounded().quota_kept(job));
            let set = |set: &crate::gang::GangSet| WaitingSet {
                shape: set.shape,
                pods: set.min,
                level: record.gang.required.max(set.required),
            };
            WaitingClass {
                first: &record.job,
                jobs: books.jobs.pending.class_len(class) as u64,
                tried: books.jobs.pending.asleep(class).is_some(),
                blocked_by_quota: quota.is_some(),
                sets: record.gang.sets.iter().map(set).collect(),
            }
        })
    }
}
