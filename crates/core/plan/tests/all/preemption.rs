//! Who is stopped, against an exhaustive search on small worlds that knows nothing of the engine:
//! every set of victims that would be allowed is tried.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_check::Judge;
use dovetail_model::{
    Action, Bounds, Budget, DeviceAmount, DeviceRequest, Event, Holding, HoldingId, HoldingPhase,
    Job, JobId, Node, Owner, Plan, PodId, PodSet, PreemptionCost, Queue, Requirement, Resources,
    Snapshot,
};
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Engine, PolicySpec, PreemptionConfig};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::recipe::cases;

const NOW_MS: u64 = 1_000;
const NAMES: [&str; 2] = ["frozen", "roomy"];

/// A pod that runs: its node, and whether the first, the second budget counts it.
#[derive(Clone, Debug)]
struct RunningPod {
    node: usize,
    counted: [bool; 2],
}

/// A job that runs: equal pods, of which at least `min` must.
#[derive(Clone, Debug)]
struct Running {
    priority: i32,
    start_ms: u64,
    is_protected: bool,
    min: usize,
    cpu: i64,
    gpus: u16,
    /// In the queue of who is to start, below the same one, or in none.
    queue: &'static str,
    pods: Vec<RunningPod>,
}

/// How many GPUs the queue of who is to start may hold, and the one above it.
#[derive(Clone, Copy, Debug, Default)]
struct Limits {
    own: Option<i64>,
    above: Option<i64>,
}

#[derive(Clone, Debug)]
struct Small {
    /// CPUs and GPUs of each node.
    nodes: Vec<(i64, u16)>,
    running: Vec<Running>,
    /// Pods, CPUs and GPUs of each.
    wanted: (u32, i64, u16),
    priority: i32,
    limits: Limits,
    respects_budgets: bool,
    naive: bool,
}

/// Pods of jobs, by (job, pod).
type Victims = BTreeSet<(usize, usize)>;

impl Small {
    fn name(node: usize) -> String {
        format!("n{node}")
    }

    fn engine(&self, judge: &mut Option<Judge>) -> Engine {
        let node = |(at, (cpu, gpus)): (usize, &(i64, u16))| {
            Node::plain(&Self::name(at), cpu * 1000, 100, usize::from(*gpus), "h100")
        };
        let budget = |(name, allowed): (&str, i64)| Budget {
            name: name.to_owned(),
            disruptions_allowed: allowed,
        };
        let snapshot = Snapshot {
            nodes: self.nodes.iter().enumerate().map(node).collect(),
            queues: self.queues(),
            budgets: NAMES.into_iter().zip([0, 99]).map(budget).collect(),
            ..Snapshot::default()
        };
        let preemption = PreemptionConfig {
            enabled: true,
            respect_budgets: self.respects_budgets,
            ..PreemptionConfig::default()
        };
        let policy = PolicySpec::named("best-fit");
        let config =
            EngineConfig { policy, naive: self.naive, preemption, ..EngineConfig::default() };
        let mut engine = Engine::new(config, &snapshot).expect("a good world");
        let judge = judge.insert(Judge::new(&snapshot));
        let mut next_gpu = vec![0_u16; self.nodes.len()];
        for (number, running) in self.running.iter().enumerate() {
            let event = running.adopted(number, &mut next_gpu);
            judge.event(&event, NOW_MS);
            engine.step(event, NOW_MS).expect("a job that runs");
        }
        engine
    }

    fn queues(&self) -> Vec<Queue> {
        let limited = |name: &str, gpus: Option<i64>, parent: Option<&str>| Queue {
            parent: parent.map(str::to_owned),
            limit: Bounds::gpus(gpus.map(|gpus| gpus * 1000)),
            ..Queue::named(name)
        };
        let Limits { own, above } = self.limits;
        let beside = limited("beside", None, Some("above"));
        vec![limited("own", own, Some("above")), beside, limited("above", above, None)]
    }

    fn preemptor(&self) -> Job {
        let (pods, cpu, gpus) = self.wanted;
        let mut job = Job::single(JobId(900), "preemptor", NOW_MS, requirement(cpu, gpus, &[]));
        (job.pod_sets[0].min, job.pod_sets[0].max) = (pods, pods);
        job.priority = self.priority;
        job.queue = "own".to_owned();
        job
    }

    /// Whether the wanted pods may start when these are gone: how many GPUs the queues then hold.
    fn may_start_without(&self, gone: &Victims) -> bool {
        let (pods, _, gpus) = self.wanted;
        let asked = i64::from(pods) * i64::from(gpus);
        let held = |queues: &[&str]| -> i64 {
            let jobs = self.running.iter().enumerate();
            let jobs = jobs.filter(|(_, running)| queues.contains(&running.queue));
            jobs.map(|(job, running)| {
                let stays = (0..running.pods.len()).filter(|pod| !gone.contains(&(job, *pod)));
                stays.count() as i64 * i64::from(running.gpus)
            })
            .sum()
        };
        let within = |limit: Option<i64>, queues: &[&str]| {
            asked == 0 || limit.is_none_or(|most| held(queues) + asked <= most)
        };
        within(self.limits.own, &["own"]) && within(self.limits.above, &["own", "beside"])
    }

    /// Whether all wanted pods fit when these are gone, and may start. They are equal: each node
    /// takes as many as it can.
    fn fits_without(&self, gone: &Victims) -> bool {
        if !self.may_start_without(gone) {
            return false;
        }
        let (pods, cpu, gpus) = self.wanted;
        let mut room = 0;
        for (at, (all_cpu, all_gpus)) in self.nodes.iter().enumerate() {
            let (mut cpu_left, mut gpus_left) = (*all_cpu, i64::from(*all_gpus));
            for (job, running) in self.running.iter().enumerate() {
                for (pod, _) in running.pods.iter().enumerate().filter(|(_, p)| p.node == at) {
                    if !gone.contains(&(job, pod)) {
                        cpu_left -= running.cpu;
                        gpus_left -= i64::from(running.gpus);
                    }
                }
            }
            let by_cpu = if cpu > 0 { cpu_left / cpu } else { i64::MAX };
            let by_gpu = if gpus > 0 { gpus_left / i64::from(gpus) } else { i64::MAX };
            room += by_cpu.min(by_gpu).clamp(0, 99);
        }
        room >= i64::from(pods)
    }

    fn may_stop(&self, job: usize) -> bool {
        let running = &self.running[job];
        !running.is_protected && running.priority < self.priority
    }

    /// Every set of pods that may be stopped together: of each job nothing, all, or what it can do
    /// without.
    fn allowed(&self) -> Vec<Victims> {
        let mut all = vec![Victims::new()];
        for (job, running) in self.running.iter().enumerate().filter(|(job, _)| self.may_stop(*job))
        {
            let size = running.pods.len();
            let before = std::mem::take(&mut all);
            for mask in 0..1_u32 << size {
                let stopped = mask.count_ones() as usize;
                if stopped == size || size - stopped >= running.min || stopped == 0 {
                    let pods = (0..size).filter(|pod| mask >> pod & 1 == 1).map(|pod| (job, pod));
                    let pods: Victims = pods.collect();
                    all.extend(before.iter().map(|set| set.union(&pods).copied().collect()));
                }
            }
        }
        all
    }

    fn violations(&self, victims: &Victims) -> usize {
        victims.iter().filter(|(job, pod)| self.running[*job].pods[*pod].counted[0]).count()
    }

    fn highest(&self, victims: &Victims) -> i32 {
        victims.iter().map(|(job, _)| self.running[*job].priority).max().unwrap_or(i32::MIN)
    }

    /// Sets that start the wanted job.
    fn sufficient(&self) -> Vec<Victims> {
        let is_fine = |set: &Victims| !self.respects_budgets || self.violations(set) == 0;
        let fits = |set: &Victims| is_fine(set) && self.fits_without(set);
        self.allowed().into_iter().filter(fits).collect()
    }

    /// Whether every victim is needed: without stopping some job, or one pod of a job that goes on,
    /// it fails.
    fn is_minimal(&self, victims: &Victims) -> bool {
        let jobs: BTreeSet<usize> = victims.iter().map(|(job, _)| *job).collect();
        let mut units: Vec<Victims> = Vec::new();
        for job in jobs {
            let of_job: Victims = victims.iter().copied().filter(|(j, _)| *j == job).collect();
            match of_job.len() == self.running[job].pods.len() {
                true => units.push(of_job),
                false => units.extend(of_job.into_iter().map(|pod| Victims::from([pod]))),
            }
        }
        let subsets = 0..(1_u32 << units.len()) - 1;
        subsets.into_iter().all(|mask| {
            let kept = units.iter().enumerate().filter(|(at, _)| mask >> at & 1 == 1);
            !self.fits_without(&kept.flat_map(|(_, unit)| unit).copied().collect())
        })
    }
}

impl Running {
    fn adopted(&self, number: usize, next_gpu: &mut [u16]) -> Event {
        let id = JobId(number as u64);
        let requirement = requirement(self.cpu, self.gpus, &[]);
        let mut job = Job::single(id, &format!("r{number}"), 0, requirement);
        job.pod_sets = vec![PodSet {
            min: self.min as u32,
            present: self.pods.len() as u32,
            ..PodSet::fixed(
                "main",
                Arc::clone(&job.pod_sets[0].requirement),
                self.pods.len() as u32,
            )
        }];
        job.priority = self.priority;
        job.start_ms = Some(self.start_ms);
        job.queue = self.queue.to_owned();
        job.preemption.is_protected = self.is_protected;
        let holding = |(ordinal, pod): (usize, &RunningPod)| {
            let first = next_gpu[pod.node];
            next_gpu[pod.node] += self.gpus;
            let gpus = first..next_gpu[pod.node];
            let counted = NAMES.iter().zip(pod.counted).filter(|(_, counted)| *counted);
            Holding {
                id: HoldingId(0),
                node: Small::name(pod.node).as_str().into(),
                owner: Owner::Pod(PodId { job: id, pod_set: 0, ordinal: ordinal as u32 }),
                phase: HoldingPhase::Held { expected_end_ms: None },
                reservation: None,
                resources: Resources::pod(self.cpu * 1000, 0),
                devices: gpus.map(|index| (index, DeviceAmount::share(1000, 0))).collect(),
                counts_into: counted.map(|(name, _)| (*name).to_owned()).collect(),
                attachments: BTreeSet::new(),
            }
        };
        let holdings = self.pods.iter().enumerate().map(holding).collect();
        Event::Adopted { job: Box::new(job), holdings }
    }
}

fn requirement(cpu: i64, gpus: u16, counts_into: &[&str]) -> Arc<Requirement> {
    let device = match gpus {
        0 => DeviceRequest::None,
        count => DeviceRequest::Whole { count, same_island: false },
    };
    Arc::new(Requirement {
        resources: Resources::pod(cpu * 1000, 0),
        device,
        counts_into: counts_into.iter().map(|name| (*name).to_owned()).collect(),
        ..Requirement::default()
    })
}

/// The order to stop pods in a plan, if there is one.
fn order(plan: &Plan) -> Option<(Victims, PreemptionCost)> {
    plan.actions.iter().find_map(|action| match action {
        Action::Preempt { victims, cost, .. } => {
            let pod = |pod: &PodId| (pod.job.index(), pod.ordinal as usize);
            Some((victims.iter().map(pod).collect(), *cost))
        }
        _ => None,
    })
}

fn starts(plan: &Plan, job: u64) -> usize {
    let of_it = |action: &&Action| matches!(action, Action::Bind { pod, .. } if pod.job.0 == job);
    plan.actions.iter().filter(of_it).count()
}

fn running(nodes: usize) -> impl Strategy<Value = Running> {
    let pod = (0..nodes, any::<[bool; 2]>()).prop_map(|(node, [first, second])| RunningPod {
        node,
        counted: [first && second, second],
    });
    (
        -1..3_i32,
        0..NOW_MS,
        prop::bool::weighted(0.1),
        0..3_usize,
        (0..3_i64, 0..3_u16, prop::sample::select(vec!["own", "own", "beside", ""])),
        prop::collection::vec(pod, 1..=3),
    )
        .prop_map(|(priority, start_ms, is_protected, can_do_without, asks, pods)| {
            let (cpu, gpus, queue) = asks;
            Running {
                priority,
                start_ms,
                is_protected,
                min: pods.len().saturating_sub(can_do_without / 2).max(1),
                cpu,
                gpus,
                queue,
                pods,
            }
        })
}

/// Worlds in which what runs fits.
fn worlds() -> impl Strategy<Value = Small> {
    let nodes = prop::collection::vec((2..5_i64, 2..5_u16), 1..=3);
    nodes.prop_flat_map(|nodes| {
        let jobs = prop::collection::vec(running(nodes.len()), 0..=5);
        let wanted = (1..4_u32, 0..4_i64, 0..4_u16);
        let limit = || prop::option::weighted(0.4, 0..7_i64);
        let limits = (limit(), limit()).prop_map(|(own, above)| Limits { own, above });
        let ways = (prop::bool::weighted(0.3), any::<bool>());
        (Just(nodes), jobs, wanted, 0..4_i32, limits, ways).prop_map(
            |(nodes, jobs, wanted, priority, limits, (respects_budgets, naive))| {
                let mut left: Vec<(i64, u16)> = nodes.clone();
                let mut running = Vec::new();
                for mut job in jobs {
                    job.pods.retain(|pod| {
                        let (cpu, gpus) = &mut left[pod.node];
                        let fits = job.cpu <= *cpu && job.gpus <= *gpus;
                        if fits {
                            *cpu -= job.cpu;
                            *gpus -= job.gpus;
                        }
                        fits
                    });
                    job.min = job.min.min(job.pods.len());
                    if !job.pods.is_empty() {
                        running.push(job);
                    }
                }
                Small { nodes, running, wanted, priority, limits, respects_budgets, naive }
            },
        )
    })
}

fn judged(judge: &mut Judge, engine: &mut Engine, event: Event) -> Result<Plan, TestCaseError> {
    let plan = engine.step(event.clone(), NOW_MS).expect("an event that makes sense");
    judge.event(&event, NOW_MS);
    let found = judge.plan(&plan);
    prop_assert!(found.is_empty(), "{:?}\nof {:?}", found, plan);
    let found = judge.compare(&engine.snapshot());
    prop_assert!(found.is_empty(), "{:?}\nafter {:?}", found, event);
    Ok(plan)
}

fn is_as_searched(small: &Small) -> Result<(), TestCaseError> {
    let mut judge = None;
    let mut engine = small.engine(&mut judge);
    let judge = judge.as_mut().expect("made with the engine");
    let job = small.preemptor();
    let plan = judged(judge, &mut engine, Event::Submitted(Box::new(job)))?;
    let pods = small.wanted.0 as usize;
    if small.fits_without(&Victims::new()) {
        prop_assert_eq!((starts(&plan, 900), order(&plan)), (pods, None));
        return Ok(());
    }
    let sufficient = small.sufficient();
    let Some((victims, cost)) = order(&plan) else {
        prop_assert!(sufficient.is_empty(), "nobody is stopped, and {:?} suffices", sufficient[0]);
        return Ok(());
    };
    prop_assert!(sufficient.contains(&victims), "{:?} does not suffice", victims);
    prop_assert!(small.is_minimal(&victims), "{:?} is more than needed", victims);
    prop_assert_eq!(small.violations(&victims) as u64, cost.budget_violations);
    prop_assert_eq!(i64::from(small.highest(&victims)), cost.highest_priority);
    let unharmed = sufficient.iter().filter(|set| small.violations(set) == 0);
    if let Some(lowest) = unharmed.map(|set| small.highest(set)).min() {
        prop_assert_eq!((small.violations(&victims), small.highest(&victims)), (0, lowest));
    }
    // What is freed goes to nobody of a lower priority, however eager.
    let mut thief = small.preemptor();
    (thief.id, thief.priority) = (JobId(901), small.priority - 1);
    thief.preemption.never_preempts = true;
    let mut started = 0;
    judged(judge, &mut engine, Event::Submitted(Box::new(thief)))?;
    for (job, pod) in &victims {
        let pod = PodId { job: JobId(*job as u64), pod_set: 0, ordinal: *pod as u32 };
        started += starts(&judged(judge, &mut engine, Event::pod_ended(pod))?, 900);
    }
    prop_assert_eq!(started, pods, "the job starts when its victims have left");
    prop_assert!(engine.snapshot().claims.is_empty());
    Ok(())
}

/// Violations, highest priority, sum of priorities, pods, work lost, longest run.
type NodeCost = (usize, i32, u64, usize, u64, u64);

/// kube-scheduler's own way for one pod over single pods: per node, then the best node.
fn as_kube_scheduler(small: &Small) -> Option<Victims> {
    let mut best: Option<(NodeCost, Victims)> = None;
    for node in 0..small.nodes.len() {
        let here = (0..small.running.len())
            .filter(|job| small.may_stop(*job) && small.running[*job].pods[0].node == node);
        let mut here: Vec<usize> = here.collect();
        let work = |job: &usize| {
            let running = &small.running[*job];
            u64::from(running.gpus) * 1000 * (NOW_MS - running.start_ms)
        };
        let run = |job: &usize| NOW_MS - small.running[*job].start_ms;
        here.sort_by_key(|job| {
            let violates = small.running[*job].pods[0].counted[0];
            let importance = (small.running[*job].priority, work(job), run(job));
            (std::cmp::Reverse((violates, importance)), *job)
        });
        let fits = |gone: &[usize]| {
            let (_, cpu, gpus) = small.wanted;
            let (all_cpu, all_gpus) = small.nodes[node];
            let (mut cpu_left, mut gpus_left) = (all_cpu, i64::from(all_gpus));
            let stays =
                |(job, r): &(usize, &Running)| r.pods[0].node == node && !gone.contains(job);
            for (_, running) in small.running.iter().enumerate().filter(stays) {
                cpu_left -= running.cpu;
                gpus_left -= i64::from(running.gpus);
            }
            cpu <= cpu_left && i64::from(gpus) <= gpus_left
        };
        let mut gone = here.clone();
        if !fits(&gone) {
            continue;
        }
        for job in here {
            let without: Vec<usize> = gone.iter().copied().filter(|other| *other != job).collect();
            if fits(&without) {
                gone = without;
            }
        }
        let victims: Victims = gone.iter().map(|job| (*job, 0)).collect();
        let highest = small.highest(&victims);
        let of_highest = gone.iter().filter(|job| small.running[**job].priority == highest);
        let priority = |job: &usize| (i64::from(small.running[*job].priority) + (1 << 31)) as u64;
        let cost = (
            small.violations(&victims),
            highest,
            gone.iter().map(priority).sum(),
            gone.len(),
            gone.iter().map(work).sum(),
            of_highest.map(run).max().unwrap_or(0),
        );
        if best.as_ref().is_none_or(|(known, _)| cost < *known) {
            best = Some((cost, victims));
        }
    }
    best.map(|(_, victims)| victims)
}

proptest! {
    #![proptest_config(cases(4_000))]

    #[test]
    fn victims_suffice_and_none_can_be_spared(small in worlds()) {
        is_as_searched(&small)?;
    }

    #[test]
    fn one_pod_stops_single_pods_as_kube_scheduler_does(mut small in worlds()) {
        small.wanted.0 = 1;
        small.respects_budgets = false;
        small.limits = Limits::default();
        for running in &mut small.running {
            running.pods.truncate(1);
            running.min = 1;
        }
        if small.fits_without(&Victims::new()) {
            return Ok(());
        }
        let mut engine = small.engine(&mut None);
        let job = small.preemptor();
        let plan = engine.step(Event::Submitted(Box::new(job)), NOW_MS).expect("a new job");
        prop_assert_eq!(order(&plan).map(|(victims, _)| victims), as_kube_scheduler(&small));
    }
}
