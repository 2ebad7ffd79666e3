//! An engine from plain data and back.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_model::cohort::Cohorts;
use dovetail_model::{Budget, Holding, Job, NodeId, Owner, Reserved, Snapshot};
use rustc_hash::FxHashMap;

use super::asleep::sleeping;
use super::away::Away;
use super::drains::Drains;
use super::queues::Capacity;
use super::{Books, Engine, EngineConfig, EngineError, JobRecord, Jobs, NodeSearch, Placement};
use crate::gang::Gang;
use crate::pending::{ByQueues, Pending};
use crate::preemption::{KeptQuota, OutlookSurvey, Preemption, ReservedCapacity};
use crate::reserve::{Reservations, gang_of};
use dovetail_order::Order;
use dovetail_order::QueueTurns;
use dovetail_order::book::TurnBook;
use dovetail_order::estimate::{Bursts, RunTimes};
use dovetail_order::queues::kai::FairShares;
use dovetail_order::queues::quota::Quota;
use dovetail_order::queues::usage::Usage;
use dovetail_policy::named::{self, PolicySpec};
use dovetail_state::State;
use dovetail_state::load::export;

/// An engine over the world of a snapshot.
pub(super) fn adopt(config: EngineConfig, snapshot: &Snapshot) -> Result<Engine, EngineError> {
    let mut state = State::default();
    state.load(snapshot);
    let policy = named::build(&config.policy, &mut state, !config.naive)?;
    let finder = NodeSearch::of(&config);
    let mut drains = Drains::default();
    for node in &snapshot.nodes {
        drains.note(node, snapshot.now_ms);
    }
    drains.advance(&mut state, snapshot.now_ms);
    let mut preemption = Preemption::new(config.preemption);
    preemption.budgets =
        snapshot.budgets.iter().map(|b| (b.name.clone(), b.disruptions_allowed)).collect();
    let learnt = Cohorts::default();
    let empty = Books {
        placement: Placement { state, policy, finder, now_ms: snapshot.now_ms },
        jobs: Jobs {
            records: FxHashMap::default(),
            pending: Pending::new(config.order, by_queues(&config), config.reserve.heads > 0),
            running: BTreeSet::new(),
            away: Away::of(&snapshot.away),
        },
        kept: ReservedCapacity::default(),
        quota: Quota::new((by_queues(&config) == ByQueues::First).then(FairShares::default)),
        capacity: Capacity::default(),
        survey: OutlookSurvey::default(),
        run_times: RunTimes::new(config.estimates, snapshot.run_times.as_ref()),
        bursts: Bursts::of(&snapshot.bursts),
        preempts: config.preemption.enabled,
        by_priority: config.preemption.by_priority,
        turns: (config.order == Order::Dovetail).then(|| {
            let cohorts = snapshot.cohorts.as_ref().unwrap_or(&learnt);
            TurnBook::new(config.turns, cohorts, &snapshot.jobs)
        }),
        usage: counts_usage(&config).then(|| {
            let known = (snapshot.queues.as_slice(), snapshot.usage.as_slice());
            Usage::new(config.turns.half_life_ms(), snapshot.now_ms, known)
                .by_model(config.model_weights.clone())
        }),
        known: KeptQuota::default(),
    };
    let mut empty = empty;
    let reserve = reservations(&config, snapshot, &mut empty.kept);
    for booked in &snapshot.bookings {
        let gang = gang_of(&mut empty.placement.state, &booked.booking)?;
        empty.kept.bookings.adopt(booked.clone(), gang);
    }
    empty.kept.bookings.count_spared();
    let books = with_jobs(empty, &config, snapshot)?;
    Ok(Engine {
        books,
        preemption,
        reserve,
        drains,
        decisions: Vec::new(),
        has_more: false,
        is_held_back: false,
        config,
    })
}

/// Whether it is counted what queues have used.
fn counts_usage(config: &EngineConfig) -> bool {
    config.order == Order::Dovetail && config.turns.queues == QueueTurns::FairTree
}

/// What the queue of a job has to say in whose turn it is.
fn by_queues(config: &EngineConfig) -> ByQueues {
    match (config.order, config.turns.queues) {
        (Order::DominantShare, _) | (Order::Dovetail, QueueTurns::FairTree) => {
            ByQueues::WithinPriority
        }
        (Order::Dovetail, QueueTurns::Kai) => ByQueues::First,
        _ => ByQueues::No,
    }
}

fn waits(job: &Job) -> bool {
    job.start_ms.is_none()
}

/// What a snapshot reserves for jobs that still wait; nothing where none is to be reserved for.
fn reservations(
    config: &EngineConfig,
    snapshot: &Snapshot,
    kept: &mut ReservedCapacity,
) -> Reservations {
    if config.reserve.heads == 0 {
        return Reservations::new(config.reserve, &[], &[]);
    }
    let of_waiting = |reserved: &&Reserved| {
        snapshot.jobs.iter().any(|job| job.id == reserved.claim.job && waits(job))
    };
    let of_waiting: Vec<Reserved> = snapshot.reserved.iter().filter(of_waiting).cloned().collect();
    of_waiting.iter().for_each(|reserved| kept.reserved.insert(reserved.claim.clone()));
    kept.news.freed_until_ms = snapshot.freed_until_ms;
    Reservations::new(config.reserve, &of_waiting, &snapshot.hopeless)
}

/// Books with the queues, jobs and holdings of a snapshot, too.
fn with_jobs(
    mut books: Books,
    config: &EngineConfig,
    snapshot: &Snapshot,
) -> Result<Books, EngineError> {
    let counts_usage = books.usage.is_some();
    note_queues(&mut books.quota, counts_usage, snapshot);
    for claim in &snapshot.claims {
        if snapshot.jobs.iter().any(|job| job.id == claim.job && waits(job)) {
            books.kept.claims.insert(claim.clone());
        }
    }
    // Without a table of what was learnt, the jobs that are there are what has arrived so far.
    let is_cold = config.policy.learnt.is_none();
    for job in &snapshot.jobs {
        let mut unplaced = job.clone();
        if job.start_ms.is_some() {
            unplaced.pod_sets.iter_mut().for_each(|set| set.present = 0);
        }
        let Placement { state, policy, .. } = &mut books.placement;
        let gang = Arc::new(Gang::of(state, &unplaced)?);
        for set in gang.sets.iter().filter(|_| is_cold) {
            policy.observe_arrival(state, set.shape, set.min);
        }
        let mut record = JobRecord::new(job.clone(), gang);
        if let Some(turns) = &mut books.turns {
            turns.submit(job);
            if !waits(job) && !turns.has_running(job.id) {
                turns.run(job, snapshot.now_ms);
            }
        }
        if waits(job) {
            let key = books.class_key(job, &record.gang);
            let value = books.order_value(job);
            record.place = Some(books.jobs.pending.push(job, value, key));
        }
        books.jobs.records.insert(job.id, record);
        books.jobs.note_running(job.id);
    }
    if let (Some(turns), Some(cohorts)) = (&mut books.turns, &snapshot.cohorts) {
        turns.settle(cohorts);
    }
    note_bursts(&mut books.bursts, &books.run_times, &snapshot.jobs);
    books.placement.set_draws(snapshot.random_draws);
    for (job, reason) in &snapshot.reasons {
        let record = books.jobs.records.get_mut(job);
        if let Some(record) = record.filter(|record| record.place.is_some()) {
            record.reason = Some(*reason);
        }
    }
    let state = &mut books.placement.state;
    for holding in &snapshot.holdings {
        let id = state.add_unsettled(holding);
        match (&holding.owner, id) {
            (Owner::Pod(pod), Some(id)) => books.jobs.adopt(state, *pod, id),
            (Owner::Foreign(name), id) => {
                books.kept.foreign.adopt(state, name, (holding.clone(), id))
            }
            (Owner::Pod(_) | Owner::Reservation, _) => {}
        }
    }
    state.settle_devices();
    books.recount();
    let state = &mut books.placement.state;
    books.jobs.pending.adopt_sleep(state, snapshot)?;
    Ok(books)
}

/// Queues that are described, and those that are not but have used something, also where they have
/// no jobs at the moment.
fn note_queues(quota: &mut Quota, counts_usage: bool, snapshot: &Snapshot) {
    snapshot.queues.iter().for_each(|queue| quota.set(queue.clone()));
    if counts_usage {
        snapshot.usage.iter().for_each(|usage| quota.meet(&usage.queue));
    }
}

/// Jobs that the snapshot names in no burst are in those that their submissions say.
fn note_bursts(bursts: &mut Bursts, run_times: &RunTimes, jobs: &[Job]) {
    let mut jobs: Vec<&Job> = jobs.iter().collect();
    jobs.sort_unstable_by_key(|job| (job.submit_ms, job.name.as_str(), job.id));
    jobs.into_iter().for_each(|job| bursts.submit(run_times, job));
}

/// The world of an engine as plain data.
pub(super) fn of(engine: &Engine) -> Snapshot {
    let Books { placement, jobs: known, kept, quota, .. } = &engine.books;
    let state = &placement.state;
    let mut ranked: Vec<_> = state.nodes.present().collect();
    ranked.sort_by_key(|(slot, _)| state.nodes.hot(*slot).rank);
    let mut jobs: Vec<_> = known.records.values().map(|record| record.job.clone()).collect();
    jobs.sort_by_key(|job| job.id);
    let reason_of = |job: &Job| Some((job.id, known.records.get(&job.id)?.reason?));
    let reasons = jobs.iter().filter_map(reason_of).collect();
    let mut holdings: Vec<Holding> =
        state.holdings.iter().map(|(id, _)| export(state, id)).collect();
    holdings.extend(kept.foreign.unplaced().cloned());
    let name = |slot: &NodeId| {
        let is_there = state.nodes.hot(*slot).is_present();
        is_there.then(|| state.nodes.cold(*slot).node.name.clone())
    };
    let budget = |(name, allowed): (&String, &i64)| Budget {
        name: name.clone(),
        disruptions_allowed: *allowed,
    };
    Snapshot {
        now_ms: placement.now_ms,
        topology: state.topology.clone(),
        mig_tables: state.devices.mig_tables.clone(),
        nodes: ranked.into_iter().map(|(_, node)| engine.drains.as_told(node)).collect(),
        queues: quota.queues().cloned().collect(),
        usage: engine.books.usage.as_ref().map(Usage::plain).unwrap_or_default(),
        jobs,
        holdings,
        reasons,
        claims: kept.claims.iter().cloned().collect(),
        reserved: engine.reserve.export(kept),
        bookings: kept.bookings.iter().cloned().collect(),
        freed_until_ms: engine.reserve.freed_until_ms(kept),
        hopeless: engine.reserve.hopeless(kept),
        budgets: engine.preemption.budgets.iter().map(budget).collect(),
        random_draws: placement.draws(),
        sleeping: known
            .pending
            .sleeping()
            .map(|(key, sleep)| sleeping(state, key, sleep))
            .collect(),
        away: known.away.iter().collect(),
        cohorts: engine.books.turns.as_ref().map(TurnBook::plain),
        helped: state.helped.bits(),
        helped_nodes: state.helped_nodes.iter().filter_map(name).collect(),
        run_times: engine.books.run_times.tables(),
        bursts: engine.books.bursts.plain(),
    }
}

/// An engine that decides as this one about a world that was taken from it, and keeps no records.
/// Nobody sets devices of claims aside for what it decides.
pub(crate) fn copy_of(engine: &Engine, world: &Snapshot) -> Option<Engine> {
    let policy = PolicySpec { learnt: engine.learnt(), ..engine.config.policy.clone() };
    let config = EngineConfig {
        policy,
        record_decisions: false,
        ends_at_claims: false,
        ..engine.config.clone()
    };
    adopt(config, world).ok()
}
