//! What the engine starts in a made-up world: checks try on it what they would advise.
//!
//! Most GPUs of a large cluster are allocated, and what is asked is where pending pods would go:
//! the engine gets the nodes that have a device left, with what is held there.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::{
    Action, CounterRule, DeviceRequest, Event, Holding, Job, JobId, Mode, Node, Owner, Plan,
    PodSet, Preferred, RuleKind, Snapshot,
};
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Batch, Engine};

/// Jobs of one pod that the engine starts in a world, with their nodes.
pub(crate) fn placed(world: &Snapshot) -> BTreeMap<JobId, String> {
    binds(world).into_iter().collect()
}

/// Pods that the engine starts in a world: their jobs and nodes.
pub(crate) fn binds(world: &Snapshot) -> Vec<(JobId, String)> {
    binds_of(plan(&with_room(world)))
}

fn binds_of(plan: Plan) -> Vec<(JobId, String)> {
    let bound = plan.actions.into_iter().filter_map(|action| match action {
        Action::Bind { pod, node, .. } => Some((pod.job, node.to_string())),
        _ => None,
    });
    bound.collect()
}

/// A world in which the engine has started what it can, and which then changes.
pub(crate) struct Changing {
    engine: Engine,
    /// Time does not pass.
    now_ms: u64,
}

impl Changing {
    /// `None` if the engine does not take the world.
    pub(crate) fn new(world: &Snapshot) -> Option<Self> {
        Self::once_left(world, |holding| holding.devices.len())
    }

    /// The same where each holding will have only so many of its devices.
    pub(crate) fn once_left(world: &Snapshot, stays: impl Fn(&Holding) -> usize) -> Option<Self> {
        let part = with_room_once_left(world, stays);
        Some(Self::started(&part, world.now_ms)?.0)
    }

    /// An engine that has decided once, and what.
    fn started(part: &Snapshot, now_ms: u64) -> Option<(Self, Plan)> {
        let mut engine = Engine::new(EngineConfig::default(), part).ok()?;
        let plan = engine.step(Batch::decision(), now_ms).ok()?;
        Some((Self { engine, now_ms }, plan))
    }

    /// A world to which these jobs come later: it has the nodes on which they could start.
    /// Also what the engine decides before that.
    pub(crate) fn before(world: &Snapshot, jobs: &[Job]) -> Option<(Self, Plan)> {
        let all: Vec<Job> = world.jobs.iter().chain(jobs).cloned().collect();
        let part = part(world, &all, |holding| holding.devices.len());
        let part = part.map(|part| Snapshot { jobs: world.jobs.clone(), ..part });
        let part = part.map_or(Cow::Borrowed(world), Cow::Owned);
        Self::started(&part, world.now_ms)
    }

    /// What the engine decides after events.
    pub(crate) fn after(&mut self, events: Vec<Event>) -> Plan {
        self.engine.step(Batch::of(events), self.now_ms).unwrap_or_default()
    }

    /// Pods that start once there is a node more: their jobs and nodes.
    pub(crate) fn binds_with(&mut self, node: Node) -> Vec<(JobId, String)> {
        binds_of(self.after(vec![Event::NodeChanged(Box::new(node))]))
    }
}

/// What the engine decides in a world.
pub(crate) fn plan(world: &Snapshot) -> Plan {
    // A world that the engine does not take has no room that anybody knows of.
    let Ok(mut engine) = Engine::new(EngineConfig::default(), world) else {
        return Plan::default();
    };
    // A world without anything new is one that it takes.
    engine.step(Batch::decision(), 0).unwrap_or_default()
}

/// The nodes of a world on which its pending jobs could start, with what is held there; the whole
/// world where other nodes matter to one of them.
fn with_room(world: &Snapshot) -> Cow<'_, Snapshot> {
    with_room_once_left(world, |holding| holding.devices.len())
}

/// The same once each holding has only so many of its devices.
fn with_room_once_left(world: &Snapshot, stays: impl Fn(&Holding) -> usize) -> Cow<'_, Snapshot> {
    part(world, &world.jobs, stays).map_or(Cow::Borrowed(world), Cow::Owned)
}

/// The same for the jobs that ask for the devices of the world: pods that ask for another resource
/// alone are judged in the world of that resource.
pub(crate) fn asking_for_devices(world: &Snapshot) -> Snapshot {
    let asks = |set: &PodSet| set.requirement.device != DeviceRequest::None;
    let asking = world.jobs.iter().filter(|job| job.pod_sets.iter().any(asks));
    let jobs: Vec<Job> = asking.cloned().collect();
    let all = |holding: &Holding| holding.devices.len();
    part(world, &jobs, all).unwrap_or_else(|| Snapshot { jobs, ..world.clone() })
}

/// A part of a world with these jobs of it, where room is what is free once each holding has only
/// so many of its devices; `None` where it would be all of it.
fn part(world: &Snapshot, jobs: &[Job], stays: impl Fn(&Holding) -> usize) -> Option<Snapshot> {
    let is_foreign = |holding: &Holding| matches!(holding.owner, Owner::Foreign(_));
    let has_reservations = !world.claims.is_empty() || !world.reserved.is_empty();
    if has_reservations
        || !jobs.iter().all(needs_devices_alone)
        || !world.holdings.iter().all(is_foreign)
    {
        return None;
    }
    let places: BTreeMap<&str, usize> =
        world.nodes.iter().enumerate().map(|(place, node)| (&*node.name, place)).collect();
    let mut is_used: Vec<Vec<bool>> =
        world.nodes.iter().map(|node| vec![false; node.devices.len()]).collect();
    for holding in &world.holdings {
        let place = places.get(&*holding.node)?;
        for (device, amount) in holding.devices.iter().take(stays(holding)) {
            let is_whole =
                amount.mode == Mode::Shared && amount.compute_milli >= WHOLE_DEVICE_MILLI;
            if let Some(is_used) = is_used[*place].get_mut(usize::from(*device)) {
                *is_used |= is_whole;
            }
        }
    }
    let mut has_room: Vec<bool> = is_used.iter().map(|used| used.contains(&false)).collect();
    // A pod that a rule counts matters wherever it is.
    let counted = counted(jobs);
    for holding in &world.holdings {
        has_room[places[&*holding.node]] |=
            holding.counts_into.iter().any(|selector| counted.contains(&**selector));
    }
    if has_room.iter().all(|has_room| *has_room) {
        return None;
    }
    let nodes = world.nodes.iter().zip(&has_room).filter(|(_, has_room)| **has_room);
    let holdings = world.holdings.iter().filter(|holding| has_room[places[&*holding.node]]);
    let nodes = nodes.map(|(node, _)| node.clone()).collect();
    Some(holding(world, jobs.to_vec(), nodes, holdings.cloned().collect()))
}

/// A world with other jobs, nodes and holdings.
pub(crate) fn holding(
    world: &Snapshot,
    jobs: Vec<Job>,
    nodes: Vec<Node>,
    holdings: Vec<Holding>,
) -> Snapshot {
    Snapshot {
        now_ms: world.now_ms,
        topology: world.topology.clone(),
        mig_tables: world.mig_tables.clone(),
        queues: world.queues.clone(),
        usage: world.usage.clone(),
        jobs,
        nodes,
        holdings,
        claims: world.claims.clone(),
        reserved: world.reserved.clone(),
        ..Snapshot::default()
    }
}

/// Whether nodes without a free device, and without pods that its rules count, are nothing to a
/// pending job: each of its pods needs a device, and none is spread over the emptiest domains.
fn needs_devices_alone(job: &Job) -> bool {
    let spreads = |rule: &CounterRule| matches!(rule.kind, RuleKind::Spread { .. });
    let needs_them = |set: &PodSet| {
        let of = &set.requirement;
        of.device != DeviceRequest::None && !of.rules.iter().any(spreads)
    };
    job.start_ms.is_none() && job.kept_room.is_empty() && job.pod_sets.iter().all(needs_them)
}

/// Selectors by which pending jobs count pods that are there.
fn counted(jobs: &[Job]) -> BTreeSet<&str> {
    let requirements = || {
        let sets = jobs.iter().flat_map(|job| &job.pod_sets);
        sets.map(|set| &set.requirement)
    };
    let by_rules = requirements().flat_map(|of| &of.rules).map(|rule| &*rule.selector);
    let preferred = requirements().flat_map(|of| &of.preferences);
    let by_preference = preferred.filter_map(|preference| match &preference.to {
        Preferred::Counted { selector, .. } => Some(&**selector),
        _ => None,
    });
    by_rules.chain(by_preference).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dovetail_cases::cases;
    use dovetail_model::device::WHOLE_DEVICE_MILLI;
    use dovetail_model::{
        DeviceAmount, HoldingId, HoldingPhase, Requirement, Resources, RuleCause, labels,
    };
    use proptest::prelude::*;

    use super::*;

    const SELECTOR: &str = "app=a";

    /// Nodes with so many GPUs, of which pods hold so many, one each; some pods are counted.
    fn world(nodes: &[(u16, u16, bool)], jobs: &[(u16, bool)]) -> Snapshot {
        let mut world = Snapshot::default();
        for (number, (gpus, used, is_counted)) in nodes.iter().enumerate() {
            let name = format!("n{number}");
            let mut node = Node::plain(&name, 64_000, 1 << 40, usize::from(*gpus), "H100");
            node.labels.insert("zone".into(), format!("z{}", number % 2));
            world.nodes.push(node);
            for device in 0..*used.min(gpus) {
                let whole = DeviceAmount::share(WHOLE_DEVICE_MILLI, 0);
                let counts = is_counted.then(|| SELECTOR.to_owned());
                world.holdings.push(Holding {
                    id: HoldingId(world.holdings.len() as u64 + 1),
                    node: name.as_str().into(),
                    owner: Owner::Foreign(format!("{name}-{device}")),
                    phase: HoldingPhase::Held { expected_end_ms: None },
                    reservation: None,
                    resources: Resources { pod_slots: 1, ..Resources::default() },
                    devices: vec![(device, whole)],
                    counts_into: counts.into_iter().collect(),
                    attachments: BTreeSet::new(),
                });
            }
        }
        for (number, (count, keeps_apart)) in jobs.iter().enumerate() {
            let rule = CounterRule {
                selector: SELECTOR.into(),
                label: "zone".into(),
                kind: RuleKind::AntiAffinity,
                scope: Default::default(),
                cause: RuleCause::AntiAffinity,
            };
            let requirement = Requirement {
                device: DeviceRequest::Whole { count: *count, same_island: false },
                rules: keeps_apart.then_some(rule).into_iter().collect(),
                ..Requirement::default()
            };
            let id = JobId(number as u64 + 1);
            world.jobs.push(Job::single(id, &format!("j{number}"), 0, Arc::new(requirement)));
        }
        world
    }

    proptest! {
        #![proptest_config(cases(256))]

        /// The order of nodes decides between those that are alike, never what they are called.
        #[test]
        fn what_starts_where_does_not_depend_on_names_of_nodes(
            nodes in prop::collection::vec((0..5_u16, 0..5_u16, any::<bool>()), 1..12),
            jobs in prop::collection::vec((1..4_u16, any::<bool>()), 0..8),
            keys in prop::collection::vec(any::<u32>(), 12),
        ) {
            let world = world(&nodes, &jobs);
            let names: BTreeMap<String, String> = (world.nodes.iter().zip(&keys).enumerate())
                .map(|(place, (node, key))| (node.name.to_string(), format!("{key:08x}-{place}")))
                .collect();
            let mut renamed = world.clone();
            for node in &mut renamed.nodes {
                node.name = names[&*node.name].as_str().into();
                node.labels.insert(labels::HOST_NAME.to_owned(), node.name.to_string());
            }
            for holding in &mut renamed.holdings {
                holding.node = names[&*holding.node].as_str().into();
            }
            let expected = binds(&world).into_iter();
            let expected: Vec<_> = expected.map(|(job, node)| (job, names[&node].clone())).collect();
            prop_assert_eq!(binds(&renamed), expected);
        }

        /// Nodes without room change nothing for pods that need a device.
        #[test]
        fn pending_pods_start_in_a_part_of_the_world_as_in_all_of_it(
            nodes in prop::collection::vec((0..5_u16, 0..5_u16, any::<bool>()), 0..12),
            jobs in prop::collection::vec((1..4_u16, any::<bool>()), 0..8),
        ) {
            let world = world(&nodes, &jobs);
            let part = with_room(&world);
            prop_assert!(part.nodes.len() <= world.nodes.len());
            let decide = |world: &Snapshot| {
                let mut engine = Engine::new(EngineConfig::default(), world).unwrap();
                engine.step(Batch::decision(), 0).unwrap().actions
            };
            prop_assert_eq!(decide(&part), decide(&world));
        }
    }
}
