//! From a recipe to steps: the history of a world, one event at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_model::{
    Beneficiary, Booking, Budget, DeviceAmount, Event, Holding, HoldingId, HoldingPhase, HowEnded,
    Job, JobId, Mode, Node, NodeAvailability, NodeName, Owner, PodId, Requirement, ReservationId,
    Resources, Snapshot, Topology,
};
use dovetail_order::{ModelWeights, PRESETS, Turns};
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Engine, Learnt, Order, PolicySpec, TargetPod};
use dovetail_policy::named::POLICIES;

use crate::recipe::{self, Choices, Recipe};

/// The world of a recipe before its first event.
pub(crate) fn start(recipe: &Recipe) -> Snapshot {
    let nodes = recipe.nodes();
    let mut holdings = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        let choose = &mut Choices::of(&recipe.nodes[index][20..]);
        let kind = choose.below(20);
        if !(4..8).contains(&kind) {
            continue;
        }
        let mut holding = whole_devices(node, choose.below(4));
        if kind < 6 {
            holding.owner = Owner::Reservation;
            holding.reservation = Some(ReservationId((kind % 2) as u32));
            holding.resources = Resources::pod(1000, 10);
        } else {
            holding.owner = Owner::Foreign(format!("static-{index}"));
            holding.resources = Resources::pod([100, 20_000][kind % 2], 5);
            if recipe.config[4] % 4 < 3 {
                holding.phase = HoldingPhase::Kept { priority: -1 };
            }
        }
        holding.id = HoldingId(holdings.len() as u64);
        holdings.push(holding);
    }
    Snapshot {
        now_ms: 0,
        topology: recipe.topology(),
        mig_tables: vec![recipe::mig_table()],
        nodes,
        queues: recipe.queues(),
        holdings,
        ..Snapshot::default()
    }
}

/// Whole devices from index `first` on, one or two; the second may lie beyond the last.
fn whole_devices(node: &Node, first: usize) -> Holding {
    let memory_bytes = node.devices.first().map_or(0, |device| device.memory_bytes);
    let whole = |index: usize| (index as u16, DeviceAmount::share(1000, memory_bytes));
    Holding {
        id: HoldingId(0),
        node: node.name.clone(),
        owner: Owner::Reservation,
        phase: HoldingPhase::Held { expected_end_ms: None },
        reservation: None,
        resources: Resources::default(),
        devices: (first..first + 1 + first % 2).map(whole).collect(),
        counts_into: Default::default(),
        attachments: Default::default(),
    }
}

/// The order of a recipe.
pub(crate) fn order(recipe: &Recipe) -> Order {
    let orders = [
        Order::FifoSkip,
        Order::ShortestFirst,
        Order::DominantShare,
        Order::Fifo,
        Order::Dovetail,
        Order::Dovetail,
    ];
    orders[usize::from(recipe.config[7] % 6)]
}

/// The weights of order `dovetail` of a recipe: any preset, and one that preempts at once.
pub(crate) fn turns(recipe: &Recipe) -> Turns {
    let at = usize::from(recipe.config[7] / 6) % (PRESETS.len() + 1);
    let eager = Turns { size: 1_000, age: 0, preempts: true, advantage: 100, ..Turns::LINE };
    PRESETS.get(at).map_or(eager, |(.., turns)| *turns)
}

/// What GPUs of a model count in the usage of queues of a recipe.
pub(crate) fn model_weights(recipe: &Recipe) -> ModelWeights {
    let weighs = recipe.config[6] >= 128;
    ModelWeights(weighs.then(|| ("A".to_owned(), 4_000)).into_iter().collect())
}

/// The policy of a recipe, by name or chosen by its bytes.
pub(crate) fn policy(recipe: &Recipe, name: Option<&str>) -> PolicySpec {
    let chosen = POLICIES[usize::from(recipe.config[3]) % POLICIES.len()].0;
    let mut spec = PolicySpec::named(name.unwrap_or(chosen));
    spec.seed = 7;
    if spec.name == "fgd" {
        let shapes = recipe.shapes();
        let weight = 1.0 / shapes.len() as f64;
        spec.target_mix = shapes.iter().map(|shape| target(shape, weight)).collect();
    }
    let eager = recipe.config[4] % 2 == 1;
    if eager && matches!(spec.name.as_str(), "fgd-learnt" | "dovetail") {
        spec.learnt = about_to_publish(recipe, &spec);
    }
    spec
}

fn target(requirement: &Requirement, weight: f64) -> TargetPod {
    let gpu_milli = requirement.gpu_milli();
    TargetPod {
        cpu_milli: requirement.resources.cpu_milli,
        gpu_count: gpu_milli.div_euclid(1000).max(i64::from(gpu_milli > 0)) as u16,
        gpu_milli: gpu_milli.min(1000),
        gpu_models: requirement.gpu_models.clone(),
        weight,
    }
}

/// What an engine's policy has learnt, by way of a file.
pub(crate) fn written_and_read(engine: &Engine) -> Option<Learnt> {
    let text = serde_json::to_string(&engine.policy().learnt()?).expect("plain integers");
    Some(serde_json::from_str(&text).expect("its own text"))
}

/// What a policy has learnt a few arrivals before it publishes.
fn about_to_publish(recipe: &Recipe, spec: &PolicySpec) -> Option<Learnt> {
    let config = EngineConfig { policy: spec.clone(), ..EngineConfig::default() };
    let mut empty = Engine::new(config, &Snapshot::default()).expect("a policy that exists");
    let mut job = Job::single(JobId(0), "past", 0, Arc::clone(&recipe.shapes()[0]));
    job.pod_sets[0].min = 253;
    job.pod_sets[0].max = 253;
    empty.step(Event::Submitted(Box::new(job)), 0).expect("a job that makes sense");
    written_and_read(&empty)
}

/// Makes the next event from bytes and from what the world is by now.
pub(crate) struct History {
    shapes: Vec<Arc<Requirement>>,
    topology: Topology,
    nodes: BTreeMap<NodeName, Node>,
    /// As they were in the beginning.
    first: BTreeMap<NodeName, Node>,
    next_job: u64,
    /// Jobs that ended and are to run again.
    away: Vec<u64>,
    pub(crate) now_ms: u64,
    /// Whether anything is booked.
    pub(crate) books: bool,
}

impl History {
    pub(crate) fn of(recipe: &Recipe) -> Self {
        let named = recipe.nodes().into_iter().map(|node| (node.name.clone(), node));
        let nodes: BTreeMap<NodeName, Node> = named.collect();
        Self {
            shapes: recipe.shapes(),
            topology: recipe.topology(),
            first: nodes.clone(),
            nodes,
            next_job: 1,
            away: Vec::new(),
            now_ms: 0,
            books: false,
        }
    }

    /// Draws jobs from other shapes than the recipe's.
    pub(crate) fn use_shapes(&mut self, shapes: Vec<Arc<Requirement>>) {
        self.shapes = shapes;
    }

    /// The next event. `engine` is only looked at.
    pub(crate) fn event(&mut self, bytes: &[u8], engine: &Engine) -> Event {
        let choose = &mut Choices::of(bytes);
        let kind = choose.below(39);
        self.now_ms += choose.among(&[0, 1, 3, 7]);
        let known: Vec<JobId> =
            (1..self.next_job).map(JobId).filter(|job| engine.job(*job).is_some()).collect();
        match kind {
            0..16 => self.submit(choose),
            16..21 if !known.is_empty() => {
                let job = known[choose.below(known.len())];
                let how = choose.among(&[HowEnded::Completed, HowEnded::Preempted, HowEnded::Lost]);
                self.away.extend(how.runs_again().then_some(job.0));
                Event::Ended { job, how }
            }
            31 if !known.is_empty() && choose.below(2) == 0 => Event::Checkpointed {
                job: known[choose.below(known.len())],
                at_ms: self.now_ms.saturating_sub(choose.among(&[0, 1, 5])),
            },
            21 if !known.is_empty() => Event::Ending {
                job: known[choose.below(known.len())],
                expected_end_ms: choose.among(&[None, Some(self.now_ms + 5)]),
            },
            22..25 | 28 => self.change_node(choose),
            25 => self.condition(choose),
            26 => self.remove_node(choose),
            27 => self.foreign(choose, engine),
            29 => {
                let index = choose.below(6);
                let name = if index < 3 { format!("f{index}") } else { format!("static-{index}") };
                Event::ForeignReleased { name }
            }
            30 => match choose.below(3) {
                0 => Event::ReservationEnded { reservation: ReservationId(choose.below(2) as u32) },
                2 => {
                    let name = choose.among(&["team", "other", "all"]).to_owned();
                    Event::QueueRemoved { name }
                }
                _ => {
                    let name = choose.among(&["team", "other", "all"]);
                    let parent = choose.among(&[Some("all"), None, Some("team")]);
                    let limit = choose.among(&[None, Some(4000), Some(1000)]);
                    Event::QueueChanged(Box::new(recipe::queue(name, parent, limit)))
                }
            },
            31 | 32 => self.counts(choose, engine),
            33..38 => self.pods(choose, engine),
            _ if self.books => self.booking(choose),
            _ => Event::Tick,
        }
    }

    /// Something is booked, or no longer; at times nothing happens.
    fn booking(&self, choose: &mut Choices<'_>) -> Event {
        let name = choose.among(&["b0", "b1", "b2"]).to_owned();
        match choose.below(8) {
            0 => return Event::BookingRemoved { name },
            1 | 2 => return Event::Tick,
            _ => {}
        }
        let from_ms = self.now_ms + choose.among(&[0, 3, 10, 30]);
        let beneficiary = match choose.below(6) {
            0 => None,
            1 => Some(Beneficiary::Job(format!("j{}", self.next_job + choose.below(3) as u64))),
            kind => Some(Beneficiary::Queue(["", "team", "other"][kind % 3].to_owned())),
        };
        Event::BookingSet(Box::new(Booking {
            name,
            beneficiary,
            requirement: Arc::clone(&self.shapes[choose.below_many(self.shapes.len())]),
            count: choose.among(&[1, 1, 2, 4]),
            from_ms,
            to_ms: from_ms + choose.among(&[5, 20, 60]),
            was_admitted: choose.below(4) == 0,
        }))
    }

    /// Other selectors count what somebody holds, or nobody.
    fn counts(&mut self, choose: &mut Choices<'_>, engine: &Engine) -> Event {
        if choose.below(4) == 3 {
            let name = choose.among(&["web", "batch"]).to_owned();
            return match choose.below(4) {
                3 => Event::BudgetRemoved { name },
                allowed => {
                    let disruptions_allowed = allowed as i64;
                    Event::BudgetChanged(Budget { name, disruptions_allowed })
                }
            };
        }
        let held = engine.snapshot().holdings;
        let unknown = Owner::Foreign("nobody".to_owned());
        let chosen = held.get(choose.below(held.len() + 1)).map(|holding| holding.owner.clone());
        let counts_into = recipe::selectors(choose);
        Event::CountsChanged { owner: chosen.unwrap_or(unknown), counts_into }
    }

    /// Something happens to one pod, or to a job outside of the engine.
    fn pods(&mut self, choose: &mut Choices<'_>, engine: &Engine) -> Event {
        let mut held = engine.snapshot().holdings;
        held.retain(|holding| matches!(holding.owner, Owner::Pod(_)));
        let kind = choose.below(6);
        if kind == 0 || (kind < 5 && held.is_empty()) {
            return self.adopted(choose);
        }
        if kind == 5 {
            let waits = |job: &u64| engine.job(JobId(*job)).is_some_and(|j| j.start_ms.is_none());
            let waiting: Vec<u64> = (1..self.next_job).filter(waits).collect();
            let Some(job) = waiting.get(choose.below(waiting.len().max(1))) else {
                return Event::Tick;
            };
            let shapes = &self.shapes;
            let job = recipe::job(*job, self.now_ms, shapes, &self.topology, choose);
            return Event::JobChanged(Box::new(job));
        }
        let mut holding = held.swap_remove(choose.below(held.len()));
        let Owner::Pod(pod) = holding.owner else { return Event::Tick };
        match kind {
            1 => Event::Confirmed { pod },
            2 => Event::BindFailed { pod },
            3 => {
                Event::PodEnded { pod, how: choose.among(&[HowEnded::Completed, HowEnded::Failed]) }
            }
            _ => {
                holding.resources.cpu_milli = choose.among(&[100, 1000, 9000]);
                holding.counts_into = recipe::selectors(choose);
                holding.phase = HoldingPhase::Releasing { expected_end_ms: None };
                Event::HeldChanged(Box::new(holding))
            }
        }
    }

    /// A job of one pod that somebody else placed; it holds no device.
    fn adopted(&mut self, choose: &mut Choices<'_>) -> Event {
        let id = self.next_job;
        self.next_job += 1;
        let mut job = recipe::job(id, self.now_ms, &self.shapes, &self.topology, choose);
        job.pod_sets.truncate(1);
        let set = &mut job.pod_sets[0];
        (set.min, set.max, set.present) = (1, 1, 1);
        job.start_ms = Some(self.now_ms);
        let counts_into = set.requirement.counts_into.clone();
        let pod = PodId { job: job.id, pod_set: 0, ordinal: 0 };
        let node = Node::plain(&self.some_node(choose), 0, 0, 0, "");
        let holdings = vec![Holding {
            owner: Owner::Pod(pod),
            resources: Resources::pod(choose.among(&[100, 4000]), 5),
            phase: HoldingPhase::Held { expected_end_ms: None },
            counts_into,
            ..Holding { devices: Vec::new(), ..whole_devices(&node, 0) }
        }];
        Event::Adopted { job: Box::new(job), holdings }
    }

    /// A new job over some of the shapes.
    pub(crate) fn submit(&mut self, choose: &mut Choices<'_>) -> Event {
        let id = self.away.pop().unwrap_or(self.next_job);
        self.next_job = self.next_job.max(id + 1);
        let mut job = recipe::job(id, self.now_ms, &self.shapes, &self.topology, choose);
        let room = choose.among(&[None, None, None, Some("f0"), Some("f1"), Some("static-1")]);
        job.kept_room = room.into_iter().map(str::to_owned).collect();
        Event::Submitted(Box::new(job))
    }

    fn some_node(&self, choose: &mut Choices<'_>) -> NodeName {
        let place = choose.below(self.nodes.len().max(1));
        self.nodes.keys().nth(place).cloned().unwrap_or_else(|| "n0".into())
    }

    /// A new node, or one change of a node that is there.
    fn change_node(&mut self, choose: &mut Choices<'_>) -> Event {
        let name = self.some_node(choose);
        let kind = choose.below(13);
        let anew = recipe::node(choose.below(8), choose);
        let node = match self.nodes.get(&name).cloned() {
            Some(mut node) if kind < 12 => {
                match kind {
                    0 => node.allocatable = Resources::default(),
                    1 => node.allocatable = anew.allocatable,
                    2 => {
                        let lost = choose.below(node.devices.len().max(1));
                        node.devices.iter_mut().skip(lost).take(1).for_each(|d| d.healthy ^= true);
                    }
                    3 => node.labels = anew.labels,
                    4 => node.taints = anew.taints,
                    5 => node.drain_window = anew.drain_window,
                    6 => node.devices.truncate(node.devices.len() / 2),
                    7 => {
                        node.attach_limits = anew.attach_limits;
                        node.images = anew.images;
                    }
                    _ => node = self.first.get(&name).cloned().unwrap_or(node),
                }
                node
            }
            _ => anew,
        };
        self.nodes.insert(node.name.clone(), node.clone());
        Event::NodeChanged(Box::new(node))
    }

    fn condition(&mut self, choose: &mut Choices<'_>) -> Event {
        let node = self.some_node(choose);
        let condition = choose.among(&[
            NodeAvailability::Cordoned,
            NodeAvailability::Ready,
            NodeAvailability::NotReady,
            NodeAvailability::Starting,
            NodeAvailability::Ready,
            NodeAvailability::Ready,
        ]);
        if let Some(known) = self.nodes.get_mut(&node) {
            known.condition = condition;
        }
        Event::NodeCondition { node, condition }
    }

    fn remove_node(&mut self, choose: &mut Choices<'_>) -> Event {
        let node = self.some_node(choose);
        self.nodes.remove(&node);
        Event::NodeRemoved { node }
    }

    /// Others hold something, also more than there is; never a device in another mode than it has.
    fn foreign(&mut self, choose: &mut Choices<'_>, engine: &Engine) -> Event {
        let owner = Owner::Foreign(format!("f{}", choose.below(3)));
        let name = match choose.below(6) {
            5 => "n6".into(),
            _ => self.some_node(choose),
        };
        let plain = Node::plain(&name, 0, 0, 0, "");
        let node = self.nodes.get(&name).unwrap_or(&plain);
        let mut holding = match choose.below(4) {
            0 => Holding { devices: Vec::new(), ..whole_devices(node, 0) },
            1 => share(node, choose.below(4), choose.among(&[300, 900])),
            _ => whole_devices(node, choose.below(4)),
        };
        holding.owner = owner.clone();
        holding.phase = choose.among(&[
            HoldingPhase::Held { expected_end_ms: None },
            HoldingPhase::Held { expected_end_ms: Some(15) },
            HoldingPhase::Kept { priority: 0 },
            HoldingPhase::Kept { priority: -1 },
            HoldingPhase::Kept { priority: -1 },
        ]);
        let cpu_milli = choose.among(&[100, 100, 1000, 9000]);
        holding.resources = Resources::pod(cpu_milli, choose.among(&[5, 5, 5, 200]));
        holding.counts_into = recipe::selectors(choose);
        holding.attachments = recipe::attachments(choose);
        if holding.phase == (HoldingPhase::Kept { priority: -1 }) {
            (holding.counts_into, holding.attachments) = Default::default();
        }
        let others = engine.snapshot().holdings;
        let here = others.iter().filter(|h| h.node == name && h.owner != owner);
        let foreign_mode =
            here.flat_map(|h| &h.devices).any(|(_, amount)| amount.mode != Mode::Shared);
        let share_of_pool =
            node.knowledge == dovetail_model::Knowledge::Counted && !is_whole(&holding);
        if foreign_mode || share_of_pool {
            holding.devices.clear();
        }
        Event::ForeignHeld(Box::new(holding))
    }
}

fn share(node: &Node, index: usize, milli: i64) -> Holding {
    let devices = vec![(index as u16, DeviceAmount::share(milli, 0))];
    Holding { devices, ..whole_devices(node, 0) }
}

fn is_whole(holding: &Holding) -> bool {
    holding.devices.iter().all(|(_, amount)| amount.compute_milli == 1000)
}
