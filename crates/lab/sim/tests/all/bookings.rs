//! Bookings: capacity that is reserved from one time to another.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_check::{Judge, Violation};
use dovetail_model::{
    Beneficiary, Booked, Booking, BookingVerdict, DeviceRequest, Event, NodeResource, Owner, Plan,
    Requirement, Snapshot, TooLarge,
};
use dovetail_plan::{Engine, EngineConfig, Order, PolicySpec, ReserveConfig};
use dovetail_sim::timed::cluster_events::{ClusterEvent, NodeAction};
use dovetail_sim::timed::{Estimates, Observer, Simulation, TimedConfig, TimedWorld};
use dovetail_trace::{TraceJob, TraceNode};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

const HOUR_MS: u64 = 3_600_000;

/// When bookings are asked for.
const ASKED_MS: u64 = HOUR_MS / 2;

/// A job with this many pods of one GPU that runs, as is known, for so long.
fn job(id: &str, queue: &str, submit_h: u64, pods: u32, hours: u64) -> TraceJob {
    TraceJob {
        id: id.into(),
        queue: Some(queue.into()),
        submit_ms: submit_h * HOUR_MS,
        duration_ms: Some(hours * HOUR_MS),
        estimate_ms: Some(hours * HOUR_MS),
        pod_count: pods,
        gpu_count: 1,
        gpu_milli: 1000,
        ..TraceJob::default()
    }
}

fn booking(name: &str, of: Beneficiary, pods: u32, from_ms: u64, to_ms: u64) -> Booking {
    let device = DeviceRequest::Whole { count: 1, same_island: false };
    Booking {
        name: name.into(),
        beneficiary: Some(of),
        requirement: Arc::new(Requirement { device, ..Requirement::default() }),
        count: pods,
        from_ms,
        to_ms,
        was_admitted: false,
    }
}

fn queue(name: &str) -> Beneficiary {
    Beneficiary::Queue(name.to_owned())
}

/// Every step is judged; what was decided about bookings is noted.
struct Judged {
    judge: Judge,
    found: Vec<Violation>,
    /// Every verdict that another followed, by booking.
    verdicts: Vec<(String, BookingVerdict)>,
    last: Option<Snapshot>,
    lent: usize,
    used: usize,
    /// Bookings whose time has come with all their places.
    whole: usize,
    /// The same with fewer than were promised.
    short: Vec<String>,
}

impl Judged {
    fn new(engine: &Engine, lent_percent: u32) -> Self {
        Self {
            judge: Judge::new(&engine.snapshot()).with_reserved_places(lent_percent),
            found: Vec::new(),
            verdicts: Vec::new(),
            last: None,
            lent: 0,
            used: 0,
            whole: 0,
            short: Vec::new(),
        }
    }

    fn note(&mut self, booked: &Booked, snapshot: &Snapshot, now_ms: u64) {
        let entry = (booked.booking.name.clone(), booked.verdict);
        if self.verdicts.contains(&entry) {
            return;
        }
        self.verdicts.push(entry);
        if booked.verdict != BookingVerdict::Active {
            return;
        }
        // GPUs that are kept for it, or that it has taken in this very step.
        let of_beneficiary = |owner: &Owner| match owner {
            Owner::Pod(pod) => snapshot.jobs.iter().any(|job| {
                let is_new = job.id == pod.job && job.start_ms == Some(now_ms);
                is_new && booked.booking.beneficiary.as_ref().is_some_and(|of| of.is(job))
            }),
            _ => false,
        };
        let mine = snapshot.holdings.iter().filter(|holding| {
            holding.reservation == Some(booked.claim.reservation) || of_beneficiary(&holding.owner)
        });
        let gpus: usize = mine.map(|holding| holding.devices.len()).sum();
        match gpus >= booked.booking.count as usize {
            true => self.whole += 1,
            false => self.short.push(format!("{} has {gpus} GPUs", booked.booking.name)),
        }
    }
}

impl Observer for Judged {
    fn stepped(&mut self, engine: &mut Engine, now_ms: u64, events: &[Event], plan: &Plan) {
        events.iter().for_each(|event| self.judge.event(event, now_ms));
        self.found.extend(self.judge.plan(plan));
        let snapshot = engine.snapshot();
        self.found.extend(self.judge.compare(&snapshot));
        for booked in &snapshot.bookings {
            self.note(booked, &snapshot, now_ms);
            let in_it = |owner: &&Owner| match owner {
                Owner::Pod(pod) => snapshot.jobs.iter().any(|job| {
                    job.id == pod.job && job.start_ms.is_some_and(|at| at > booked.since_ms)
                }),
                _ => false,
            };
            let inside = booked.claim.awaited.iter().filter(in_it).count();
            match booked.verdict {
                BookingVerdict::Admitted => self.lent += inside,
                BookingVerdict::Active => self.used += inside,
                _ => {}
            }
        }
        self.last = Some(snapshot);
    }
}

/// Runs a world; the start of each job in hours, and what was seen.
fn run(world: TimedWorld, reserve_heads: u32) -> (Vec<(String, f64)>, Judged) {
    run_with(world, ReserveConfig { heads: reserve_heads, ..ReserveConfig::default() })
}

fn run_with(world: TimedWorld, reserve: ReserveConfig) -> (Vec<(String, f64)>, Judged) {
    let policy = PolicySpec::named("best-fit");
    let engine = EngineConfig { policy, order: Order::FifoSkip, reserve, ..Default::default() };
    let config = TimedConfig { engine, estimates: Estimates::Trace, ..TimedConfig::default() };
    let mut simulation = Simulation::new(world, config).unwrap();
    let mut judged = Judged::new(&simulation.engine, reserve.lent_percent);
    simulation.run(None, &mut judged).unwrap();
    let start = |view: dovetail_sim::timed::JobView<'_>| {
        let start_ms = view.outcome.start_ms.unwrap_or(u64::MAX);
        (view.job.id.clone(), start_ms as f64 / HOUR_MS as f64)
    };
    (simulation.outcomes().map(start).collect(), judged)
}

fn of(starts: &[(String, f64)], id: &str) -> f64 {
    starts.iter().find(|(name, _)| name == id).unwrap().1
}

fn nodes(count: u64) -> Vec<TraceNode> {
    let node = |at| TraceNode { name: format!("n{at}"), gpu_count: 8, ..TraceNode::default() };
    (0..count).map(node).collect()
}

/// Four GPUs are busy for 10 hours. All eight are booked for queue `a` from hour 10 to hour 20.
fn classic(jobs: impl IntoIterator<Item = TraceJob>) -> TimedWorld {
    let mut all = vec![job("busy", "b", 0, 4, 10)];
    all.extend(jobs);
    let booked = booking("night", queue("a"), 8, 10 * HOUR_MS, 20 * HOUR_MS);
    TimedWorld {
        nodes: nodes(1),
        jobs: all,
        bookings: vec![(ASKED_MS, booked)],
        ..Default::default()
    }
}

#[test]
fn booked_room_is_lent_until_its_time_and_then_its_queue_alone_starts_there() {
    let jobs = [
        job("short", "b", 1, 1, 2),
        job("long", "b", 1, 1, 30),
        job("mine", "a", 2, 8, 5),
        job("mine-too", "a", 16, 2, 10),
        job("theirs", "b", 16, 1, 1),
        job("last", "b", 40, 1, 1),
    ];
    for heads in [0, 8] {
        let (starts, judged) = run(classic(jobs.clone()), heads);
        assert_eq!(judged.found, [], "{starts:?}");
        let expected =
            [("short", 1.0), ("mine", 10.0), ("mine-too", 16.0), ("long", 20.0), ("theirs", 20.0)];
        for (id, hour) in expected {
            assert_eq!(of(&starts, id), hour, "{id} {starts:?}");
        }
        let of_night: Vec<BookingVerdict> =
            judged.verdicts.iter().map(|(_, verdict)| *verdict).collect();
        assert_eq!(
            of_night,
            [BookingVerdict::Admitted, BookingVerdict::Active, BookingVerdict::Ended]
        );
    }
}

#[test]
fn a_job_that_ends_in_time_starts_on_a_node_of_which_a_part_is_booked() {
    let wide = |id: &str, submit_h: u64, hours: u64| TraceJob {
        gpu_count: 8,
        ..job(id, "b", submit_h, 1, hours)
    };
    let world = TimedWorld {
        nodes: nodes(1),
        jobs: vec![wide("short", 1, 5), wide("long", 2, 9)],
        bookings: vec![(ASKED_MS, booking("part", queue("a"), 2, 10 * HOUR_MS, 20 * HOUR_MS))],
        ..TimedWorld::default()
    };
    // It has all that is booked, which is more than a half of that.
    for (lent_percent, short_h) in [(100, 1.0), (50, 20.0)] {
        let reserve = ReserveConfig { lent_percent, ..ReserveConfig::default() };
        let (starts, judged) = run_with(world.clone(), reserve);
        assert_eq!(judged.found, [], "{lent_percent}%: {starts:?}");
        assert_eq!(of(&starts, "short"), short_h, "{lent_percent}%: {starts:?}");
        assert!(of(&starts, "long") >= 20.0, "{lent_percent}%: {starts:?}");
        assert_eq!(judged.whole, 1, "{lent_percent}%: {:?}", judged.short);
    }
}

#[test]
fn a_run_goes_on_while_only_a_booking_is_to_begin_or_end() {
    let mut world = classic([job("mine", "a", 2, 8, 5), job("theirs", "b", 3, 8, 3)]);
    world.bookings[0].1.from_ms = 12 * HOUR_MS;
    let (starts, judged) = run(world, 0);
    assert_eq!(judged.found, []);
    assert_eq!((of(&starts, "mine"), of(&starts, "theirs")), (12.0, 20.0), "{starts:?}");
}

/// Each of these ends a twentieth of its time before all GPUs are booked.
#[test]
fn a_job_that_just_fits_into_a_gap_starts_there() {
    for minutes in [58, 117, 238, 450] {
        let mut short = job("short", "b", 0, 4, 1);
        short.duration_ms = Some(minutes * 60_000 * 19 / 20);
        short.estimate_ms = short.duration_ms;
        short.submit_ms = ASKED_MS + 1_000;
        let mut world = classic([short]);
        world.bookings[0].1.from_ms = ASKED_MS + 1_000 + minutes * 60_000;
        world.jobs[0].duration_ms = Some(ASKED_MS / 2);
        world.jobs[0].estimate_ms = Some(ASKED_MS / 2);
        let (starts, judged) = run(world, 0);
        assert_eq!(judged.found, []);
        assert!(of(&starts, "short") < 0.6, "{minutes}: {starts:?}");
    }
}

#[test]
fn what_there_is_no_room_for_is_refused_with_the_earliest_time_that_works() {
    let mut world = classic([job("last", "b", 30, 1, 1)]);
    let early = booking("early", queue("a"), 8, 5 * HOUR_MS, 8 * HOUR_MS);
    let beside = booking("beside", queue("c"), 1, 12 * HOUR_MS, 15 * HOUR_MS);
    let after = booking("after", queue("c"), 8, 20 * HOUR_MS, 25 * HOUR_MS);
    let never = booking("never", queue("c"), 9, 20 * HOUR_MS, 25 * HOUR_MS);
    world.bookings.extend([early, beside, after, never].map(|booking| (ASKED_MS + 1_000, booking)));
    let (_, judged) = run(world, 0);
    assert_eq!(judged.found, []);
    let first = |name: &str| judged.verdicts.iter().find(|(of, _)| of == name).unwrap().1;
    let refused =
        |hour: u64| BookingVerdict::Refused { earliest_ms: Some(hour * HOUR_MS), too_large: None };
    assert_eq!(first("night"), BookingVerdict::Admitted);
    // The busy job ends at hour 10, but then the night is booked.
    assert_eq!(first("early"), refused(20));
    assert_eq!(first("beside"), refused(20));
    assert_eq!(first("after"), BookingVerdict::Admitted);
    let never = BookingVerdict::Refused { earliest_ms: None, too_large: None };
    assert_eq!(first("never"), never);
}

/// Nine pods of one GPU are too many for the cluster, and one of nine is too large for each node.
#[test]
fn what_no_node_could_hold_is_refused_for_its_size() {
    let too_many = booking("too-many", queue("a"), 9, 20 * HOUR_MS, 25 * HOUR_MS);
    let device = |count: u16| DeviceRequest::Whole { count, same_island: false };
    let of_nine = Requirement { device: device(9), ..Requirement::default() };
    let too_large = Booking {
        requirement: Arc::new(of_nine),
        ..booking("too-large", queue("a"), 1, 20 * HOUR_MS, 25 * HOUR_MS)
    };
    let mut world = classic([]);
    world.bookings = vec![(ASKED_MS, too_many), (ASKED_MS, too_large)];
    let (_, judged) = run(world, 0);
    let why = |name: &str| match judged.verdicts.iter().find(|(of, _)| of == name) {
        Some((_, BookingVerdict::Refused { earliest_ms: None, too_large })) => *too_large,
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(why("too-many"), None);
    let resource = NodeResource::Gpus;
    assert_eq!(why("too-large"), Some(TooLarge { resource, requested: 9, largest: 8 }));
}

#[test]
fn a_booking_for_one_job_is_for_no_other_of_its_queue() {
    let mut world = classic([job("mine", "a", 11, 2, 5), job("named", "a", 12, 2, 5)]);
    world.jobs.push(job("last", "b", 30, 1, 1));
    world.bookings[0].1.beneficiary = Some(Beneficiary::Job("named".to_owned()));
    let (starts, judged) = run(world, 0);
    assert_eq!(judged.found, []);
    assert_eq!(of(&starts, "named"), 12.0, "{starts:?}");
    assert_eq!(of(&starts, "mine"), 20.0, "{starts:?}");
}

#[test]
fn places_on_a_node_that_goes_away_are_searched_for_elsewhere() {
    let at =
        |hour: u64, action| ClusterEvent { at_ms: hour * HOUR_MS, action, node: "n0".to_owned() };
    let jobs = vec![job("last", "b", 30, 1, 1)];
    let booked = booking("night", queue("a"), 8, 10 * HOUR_MS, 20 * HOUR_MS);
    let world = |count: u64, cluster_events| TimedWorld {
        nodes: nodes(count),
        jobs: jobs.clone(),
        cluster_events,
        bookings: vec![(ASKED_MS, booked.clone())],
        ..TimedWorld::default()
    };
    let (_, judged) = run(world(2, vec![at(5, NodeAction::Remove)]), 0);
    assert_eq!((judged.whole, judged.short.len()), (1, 0), "{:?}", judged.short);
    // Without another node it is in force with what is left, and whole again when there is one.
    let (_, judged) = run(world(1, vec![at(5, NodeAction::Remove), at(25, NodeAction::Add)]), 0);
    assert_eq!((judged.whole, judged.short.len()), (0, 1));
    assert_eq!(judged.found, []);
}

/// Jobs of three queues, from one GPU to two nodes, some with a whole node per pod, with run times
/// that are known; and bookings asked for at any time, some for later and some at once.
fn busy(seed: u64) -> TimedWorld {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut below = |most: u64| random.next_u64() % most;
    let mut jobs = Vec::new();
    let mut submit_ms = 0;
    for number in 0..120 {
        submit_ms += below(HOUR_MS / 3);
        let queue = ["a", "b", "c"][below(3) as usize];
        let mut job = job(&number.to_string(), queue, 0, [1, 2, 4, 8, 16][below(5) as usize], 1);
        if number % 2 == 1 && job.pod_count == 8 {
            (job.pod_count, job.gpu_count) = (1, 8);
        }
        let run_ms = 60_000 + below(6 * HOUR_MS);
        (job.submit_ms, job.duration_ms) = (submit_ms, Some(run_ms));
        // Every tenth states nothing.
        job.estimate_ms = (below(10) > 0).then_some(run_ms);
        job.priority = i32::from(below(10) == 0);
        jobs.push(job);
    }
    let mut bookings: Vec<(u64, Booking)> = Vec::new();
    for number in 0..10 {
        let at_ms = below(submit_ms);
        let from_ms = at_ms + below(4) * HOUR_MS;
        let to_ms = from_ms + HOUR_MS + below(4 * HOUR_MS);
        let of = match below(4) {
            0 => Beneficiary::Job(below(120).to_string()),
            _ => queue(["a", "b", "c"][below(3) as usize]),
        };
        let pods = [2, 4, 8, 12][below(4) as usize];
        bookings.push((at_ms, booking(&format!("booking-{number}"), of, pods, from_ms, to_ms)));
    }
    bookings.sort_by_key(|(at_ms, _)| *at_ms);
    TimedWorld { nodes: nodes(4), jobs, bookings, ..TimedWorld::default() }
}

#[test]
fn what_was_admitted_is_there_at_its_time_if_run_times_are_known() {
    let (mut whole, mut lent, mut used) = (0, 0, 0);
    let mut refused: BTreeSet<(u64, String)> = BTreeSet::new();
    for seed in 1..=24 {
        let (_, judged) = run(busy(seed), [0, 4][seed as usize % 2]);
        assert_eq!(judged.found, [], "seed {seed}");
        assert_eq!(judged.short, [""; 0], "seed {seed}");
        (whole, lent, used) = (whole + judged.whole, lent + judged.lent, used + judged.used);
        for (name, verdict) in judged.verdicts {
            if matches!(verdict, BookingVerdict::Refused { earliest_ms: Some(_), .. }) {
                refused.insert((seed, name));
            }
        }
    }
    assert!(
        whole > 50 && lent > 50 && used > 50 && refused.len() > 10,
        "{whole} {lent} {used} {}",
        refused.len()
    );
}

#[test]
fn the_judge_finds_what_would_be_wrong_with_a_booking() {
    let (_, judged) = run(classic([job("mine", "a", 2, 8, 5), job("last", "b", 18, 1, 1)]), 0);
    let last = judged.last.expect("a step");
    let booked = last.bookings[0].clone();
    let lie = |verdict: BookingVerdict, change: &dyn Fn(&mut Booked)| {
        let mut snapshot = last.clone();
        let mut booked = Booked { verdict, ..booked.clone() };
        booked.claim.places = vec![dovetail_model::Place {
            pod: dovetail_model::PodId { job: booked.claim.job, pod_set: 0, ordinal: 0 },
            node: "n0".into(),
            devices: vec![(0, dovetail_model::DeviceAmount::share(1000, 0))],
        }];
        change(&mut booked);
        snapshot.bookings = vec![booked];
        judged.judge.compare(&snapshot)
    };
    let is_booking = |found: &Violation| matches!(found, Violation::Booking { .. });
    assert_eq!(lie(BookingVerdict::Active, &|_| {}), []);
    let wrong: [&dyn Fn(&mut Booked); 3] = [
        &|booked| booked.claim.places[0].node = "nowhere".into(),
        &|booked| booked.booking.count = 0,
        &|booked| booked.claim.places[0].devices[0].0 = 99,
    ];
    for change in wrong {
        assert!(lie(BookingVerdict::Active, change).iter().any(is_booking));
        assert_eq!(lie(BookingVerdict::Ended, change), []);
    }
}
