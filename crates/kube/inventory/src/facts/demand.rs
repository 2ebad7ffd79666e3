//! What waits, as worlds that the engine can be asked about: one for each resource that counts
//! GPUs. Containers that ask for a resource get none of the GPUs that only claims can be given, and
//! claims none that only a device plugin offers: then there is a world for each way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_audit::jobs_without_node;
use dovetail_cluster::world::{Change, Patience, Settings, World};
use dovetail_facts::{Gpus, Node as FactNode, PendingDemand, PendingGang, Untold};
use dovetail_model::{Bounds, Job, JobId, NodeAvailability, Queue, Snapshot, is_gpu_resource};
use dovetail_objects::{Kind, Object, Pod};
use dovetail_translate::{NotYet, Rules};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::claims::UntoldPod;
use super::gangs::pending_gang;
use super::inventory::Inventory;
use super::pods::PodRecord;
use super::shown_by;
use super::unjudged::Unjudged;
use super::unmade::{Fate, UnmadePod};

/// The scheduler that every waiting pod is said to name, so that all of them are judged alike.
const JUDGE: &str = "dovetail";

/// The queue of what waits for a quota that dovetail does not give out; no name of one of its own
/// has a blank.
const NO_QUOTA: &str = "no quota";

/// What a scheduler calls a pod that fits nowhere, in the condition `PodScheduled`.
const FITS_NOWHERE: &str = "Unschedulable";

/// The worlds, and the waiting pods that cannot be held against nodes. What the `untold` may want
/// is in none of them; those of whom it is none of what nodes have are held against them. Jobs that
/// can never start because a pod of them is larger than every node are in no world.
pub(super) fn worlds(
    inventory: Inventory,
    nodes: &[FactNode],
    untold: &[UntoldPod],
) -> (Vec<PendingDemand>, Vec<Unjudged>) {
    let offers = offers(nodes);
    let conditions = nodes.iter().map(|node| (&*node.node.name, node.node.condition));
    let conditions: BTreeMap<&str, NodeAvailability> = conditions.collect();
    let places: BTreeMap<&str, usize> =
        nodes.iter().map(|node| &*node.node.name).zip(0..).collect();
    let now_ms = inventory.now_ms;
    let objects = SnapshotObjects::of(inventory);
    let world = |ResourceOffer { resource, way }: ResourceOffer<'_>| {
        let rules = rules(resource);
        let settings = Settings {
            scheduler: JUDGE.to_owned(),
            rules,
            // Whoever is not there yet will not come.
            patience: Patience { quiet_ms: 0, ..Patience::default() },
            ignores_vgpus: true,
            keeps_list_order: true,
            ..Settings::default()
        };
        let mut world = World::new(settings);
        let has_it = |node: &&FactNode| node.gpus.get(resource).is_some_and(|gpus| way.is_of(gpus));
        let offering = nodes.iter().filter(has_it).map(|node| &*node.node.name).collect();
        let may_want = |pod: &UntoldPod| pod.may_want(resource) != Untold::default();
        let is_wanted = objects.is_wanted(resource, way) || untold.iter().any(may_want);
        objects.tell(is_wanted, (resource, way), &offering, &mut world);
        let refused = || world.pods().refused().filter(move |(pod, _)| wants(pod, resource));
        let untold = untold_of(resource, refused().map(|(pod, _)| pod), untold);
        let short = short_gangs(&world, resource);
        let untold = short.iter().map(|of| Untold::AtMost(of.units)).fold(untold, Untold::and);
        let refused_pods = refused().map(|(pod, reason)| objects.unjudged(pod, reason));
        let unjudged: Vec<Unjudged> =
            refused_pods.chain(short.into_iter().flat_map(|of| of.pods)).collect();
        let refused = objects.refused_by_their_own(resource, &world);
        let gangs = objects.pending_gangs(resource, &world);
        let without_quota = objects.kept_for_quota(&world);
        let mut snapshot = world.into_snapshot(now_ms);
        keep_for_quota(&mut snapshot, &without_quota);
        let without_node = jobs_without_node(&snapshot, resource, nodes);
        snapshot.jobs.retain(|job| !without_node.contains(&job.id));
        snapshot.nodes.sort_by_key(|node| places.get(&*node.name).copied());
        for node in &mut snapshot.nodes {
            // Another system's device driver on the node does not make its GPUs less free.
            node.condition = conditions.get(&*node.name).copied().unwrap_or_default();
        }
        let resource = resource.to_owned();
        let world = snapshot;
        (PendingDemand { resource, world, refused, without_quota, gangs, untold }, unjudged)
    };
    // Side by side, but no more of them at a time than there are processors: each needs memory
    // while it is made.
    let (worlds, unjudged): (Vec<PendingDemand>, Vec<Vec<Unjudged>>) =
        offers.into_par_iter().map(world).unzip();
    let may_want_any = |pod: &&UntoldPod| {
        worlds.iter().any(|demand| pod.may_want(&demand.resource) != Untold::default())
    };
    let untold = untold.iter().filter(may_want_any).map(UntoldPod::told);
    let unjudged = unjudged.into_iter().flatten().chain(untold).collect();
    (worlds, unjudged)
}

/// The rules for pods of any scheduler, with the GPUs of a resource as devices.
fn rules(resource: &str) -> Rules {
    let device_resource = resource.to_owned();
    Rules { device_resource, mixes_shared_gpus: true, ..Rules::default() }
}

/// How pods get GPUs of a resource.
#[derive(Clone, Copy)]
enum Way {
    /// Containers ask for it.
    Containers,
    /// Claims are given it.
    Claims,
    /// Either, of the same GPUs.
    Both,
}

impl Way {
    /// Whether a node offers its GPUs this way.
    fn is_of(self, gpus: &Gpus) -> bool {
        match self {
            Self::Containers => gpus.serves(false),
            Self::Claims => gpus.serves(true),
            Self::Both => true,
        }
    }

    /// Whether a pod asks this way.
    fn is_asked(self, by_claim: bool) -> bool {
        match self {
            Self::Containers => !by_claim,
            Self::Claims => by_claim,
            Self::Both => true,
        }
    }
}

/// A resource in one way.
struct ResourceOffer<'n> {
    resource: &'n str,
    way: Way,
}

/// Every resource of nodes, in each way in which any of them offers it.
fn offers(nodes: &[FactNode]) -> Vec<ResourceOffer<'_>> {
    let mut ways: BTreeMap<&str, BTreeSet<(bool, bool)>> = BTreeMap::new();
    for (resource, gpus) in nodes.iter().flat_map(|node| &node.gpus) {
        ways.entry(resource).or_default().insert((gpus.serves(false), gpus.serves(true)));
    }
    let offers = ways.into_iter().flat_map(|(resource, ways)| {
        let of_resource = match ways {
            _ if ways.contains(&(true, true)) => vec![Way::Both],
            _ => {
                let is_any = |by_claim: bool| ways.contains(&(!by_claim, by_claim));
                let of_containers = is_any(false).then_some(Way::Containers);
                let of_claims = is_any(true).then_some(Way::Claims);
                of_containers.into_iter().chain(of_claims).collect::<Vec<Way>>()
            }
        };
        of_resource.into_iter().map(move |way| ResourceOffer { resource, way })
    });
    offers.collect()
}

/// How much of a resource is waited for and is in no world: by pods that it `refused`, and by those
/// of whom nobody knows what they want.
fn untold_of<'p>(
    resource: &str,
    refused: impl Iterator<Item = &'p Pod>,
    untold: &[UntoldPod],
) -> Untold {
    let asked = |pod: &Pod| pod.requests.extended.get(resource).copied().unwrap_or(0);
    let refused = refused.map(|pod| Untold::AtMost(asked(pod).max(0)));
    let untold = untold.iter().map(|pod| pod.may_want(resource));
    refused.chain(untold).fold(Untold::default(), Untold::and)
}

/// A gang that lacks members.
struct ShortGang {
    /// Units that its pods ask for, those that are missing as many as the first.
    units: i64,
    /// Its pods that wait.
    pods: Vec<Unjudged>,
}

/// Gangs of which some pods are pending and others do not exist: nobody can say what they would
/// take.
fn short_gangs(world: &World, resource: &str) -> Vec<ShortGang> {
    let of_gang = |look: dovetail_cluster::world::GangLook<'_>| -> Option<ShortGang> {
        let min = look.terms.as_ref().ok()?.min;
        let waits = look.members.iter().filter(|one| one.node.is_none() && one.refused.is_none());
        let asked = |pod: &Pod| pod.requests.extended.get(resource).copied().unwrap_or(0).max(0);
        let waiting: Vec<&Pod> = waits.map(|one| one.pod).filter(|pod| asked(pod) > 0).collect();
        let each = asked(waiting.first()?);
        let missing = i64::from(min.saturating_sub(look.present));
        let (present, name) = (look.present, look.name.to_string());
        let pods = waiting.iter().map(|pod| Unjudged {
            pod: format!("{}/{}", pod.meta.namespace, pod.meta.name),
            reason: format!("gang {name} has {present} of {min} pods"),
            command: format!("kubectl get pods -n {}", pod.meta.namespace),
        });
        let pods = pods.collect();
        let units = waiting.iter().map(|pod| asked(pod)).sum::<i64>();
        Some(ShortGang { units: units.saturating_add(missing.saturating_mul(each)), pods })
    };
    world.gangs().short_gangs().into_iter().filter_map(of_gang).collect()
}

/// Puts waiting jobs for which there is no quota into a queue that is at its limit: to the engine
/// that is what a quota of somebody else is.
fn keep_for_quota(world: &mut Snapshot, kept: &BTreeMap<JobId, Option<u64>>) {
    let waits = |job: &&mut Job| job.start_ms.is_none() && kept.contains_key(&job.id);
    for job in world.jobs.iter_mut().filter(waits) {
        job.queue = NO_QUOTA.to_owned();
    }
    if !kept.is_empty() {
        let limit = Bounds::gpus(Some(0));
        world.queues.push(Queue { limit, ..Queue::named(NO_QUOTA) });
    }
}

fn wants(pod: &Pod, resource: &str) -> bool {
    pod.requests.extended.contains_key(resource)
}

/// What worlds are made of.
struct SnapshotObjects {
    /// Pods apart, by kind.
    lists: BTreeMap<Kind, Vec<Object>>,
    /// All of one scheduler and without gates. Pods that need no GPU are left out: they wait for
    /// nothing that is counted here.
    waiting: Vec<WaitingPod>,
    placed: Vec<Placed>,
    /// Namespaces and names of waiting pods for which there is no quota, with since when; `None` if
    /// nobody knows.
    without_quota: BTreeMap<(Box<str>, Box<str>), Option<u64>>,
    /// Kinds of which a list was complete, by name.
    complete: BTreeSet<String>,
    /// Whether a pod can matter to another one far away: by a rule of either, or by its queue.
    reaches_far: bool,
}

/// A pod without a node.
struct WaitingPod {
    pod: Arc<Pod>,
    /// Whether it asks for GPUs by claims.
    by_claim: bool,
}

/// A pod that has its node.
struct Placed {
    pod: Arc<Pod>,
    /// Whether pods of its owner wait: what starts together may count it wherever it stands.
    owner_waits: bool,
}

impl SnapshotObjects {
    fn of(inventory: Inventory) -> Self {
        let Inventory { nodes, namespaces, pods, waiting: beside, others, complete, .. } =
            inventory;
        let mut lists: BTreeMap<Kind, Vec<Object>> = BTreeMap::new();
        let nodes = nodes.into_values().map(|node| Object::Node(Box::new(node)));
        lists.insert(Kind::Node, nodes.collect());
        lists.insert(Kind::Namespace, namespaces.into_values().map(Object::Namespace).collect());
        for ((kind, ..), mut object) in others {
            // Like gates: what is held back is asked about, too.
            if let Object::Workload(_, workload) = &mut object {
                workload.suspended = false;
            }
            lists.entry(kind).or_default().push(object);
        }
        let groups_wait = pods.groups_wait();
        let mut waiting = Vec::new();
        let mut placed = Vec::new();
        for PodRecord { mut pod, group, wants_claimed, .. } in pods.list {
            if pod.node.is_empty() {
                waiting.push(WaitingPod { pod, by_claim: wants_claimed });
                continue;
            }
            let owner_waits = groups_wait[group];
            // Who placed it does not matter; as another's it is not told as a job that runs.
            Arc::make_mut(&mut pod).scheduler = Box::default();
            placed.push(Placed { pod, owner_waits });
        }
        let mut without_quota = beside.kept_for_quota;
        for UnmadePod { mut pod, fate, wants_claimed, short_since_ms, .. } in beside.pods {
            beside.admission.create(&mut pod);
            if fate == Fate::WaitsForQuota {
                let key = (pod.meta.namespace.clone(), pod.meta.name.clone());
                without_quota.insert(key, short_since_ms);
            }
            waiting.push(WaitingPod { pod: Arc::new(pod), by_claim: wants_claimed });
        }
        waiting.retain(|WaitingPod { pod, .. }| {
            !pod.meta.is_deleting()
                && pod.requests.extended.keys().any(|name| is_gpu_resource(name))
        });
        for WaitingPod { pod, .. } in &mut waiting {
            let pod = Arc::make_mut(pod);
            if without_quota.contains_key(&(pod.meta.namespace.clone(), pod.meta.name.clone())) {
                beside.admission.admit(pod);
            }
            pod.scheduler = JUDGE.into();
            pod.gated = false;
        }
        let has_rules = |WaitingPod { pod, .. }: &WaitingPod| {
            pod.between_pods.is_some() || !pod.spread.is_empty()
        };
        let reaches_far = lists.contains_key(&Kind::Queue) || waiting.iter().any(has_rules);
        Self { lists, waiting, placed, without_quota, complete, reaches_far }
    }

    /// Whether objects of a kind were handed over, or none is there.
    fn was_read(&self, kind: Kind) -> bool {
        self.lists.contains_key(&kind)
            || [kind.name(), kind.bare_name()].iter().any(|name| self.complete.contains(*name))
    }

    /// A pod that no world holds, with the reason and how to see more.
    fn unjudged(&self, pod: &Pod, reason: &NotYet) -> Unjudged {
        let pod = format!("{}/{}", pod.meta.namespace, pod.meta.name);
        match shown_by::not_read(reason, |kind| self.was_read(kind)) {
            Some(kind) => Unjudged {
                pod,
                reason: format!("{} objects were not read", kind.name()),
                command: format!("kubectl get {} -A -o json", kind.resource()),
            },
            None => Unjudged {
                pod,
                reason: reason.to_string(),
                command: shown_by::of(reason).to_owned(),
            },
        }
    }

    /// Waiting jobs of a world of which their own scheduler says that they fit nowhere, with their
    /// pods.
    fn refused_by_their_own(&self, resource: &str, world: &World) -> BTreeMap<JobId, Vec<String>> {
        let mut refused: BTreeMap<JobId, Vec<String>> = BTreeMap::new();
        let waiting = self.waiting.iter().map(|waiting| &waiting.pod);
        for pod in waiting.filter(|pod| wants(pod, resource)) {
            let says = pod.unscheduled.as_ref().map(|says| &*says.reason);
            let (namespace, name) = (&*pod.meta.namespace, &*pod.meta.name);
            if says == Some(FITS_NOWHERE)
                && let Some(job) = world.pods().job_of(namespace, name)
            {
                refused.entry(job).or_default().push(format!("{namespace}/{name}"));
            }
        }
        refused
    }

    /// Waiting jobs of a world that are gangs, with their pods.
    fn pending_gangs(&self, resource: &str, world: &World) -> BTreeMap<JobId, PendingGang> {
        let mut gangs: BTreeMap<JobId, PendingGang> = BTreeMap::new();
        let waiting = self.waiting.iter().map(|waiting| &waiting.pod);
        for pod in waiting.filter(|pod| wants(pod, resource)) {
            let (namespace, name) = (&*pod.meta.namespace, &*pod.meta.name);
            let pods = world.pods();
            if let Some(job) = pods.job_of(namespace, name)
                && let Some(gang) = pods.gang_of(namespace, name)
            {
                let of_job = gangs.entry(job).or_insert_with(|| pending_gang(gang));
                of_job.pods.push(name.to_owned());
            }
        }
        gangs
    }

    /// Waiting jobs of a world for which there is no quota, with since when the first of their pods
    /// lacks it.
    fn kept_for_quota(&self, world: &World) -> BTreeMap<JobId, Option<u64>> {
        let mut kept: BTreeMap<JobId, Option<u64>> = BTreeMap::new();
        for ((namespace, name), since_ms) in &self.without_quota {
            if let Some(job) = world.pods().job_of(namespace, name) {
                let first = kept.entry(job).or_default();
                *first = first.iter().chain(since_ms).copied().min();
            }
        }
        kept
    }

    /// Whether a pod waits that asks for a resource this way.
    fn is_wanted(&self, resource: &str, way: Way) -> bool {
        self.waiting.iter().any(|of| way.is_asked(of.by_claim) && wants(&of.pod, resource))
    }

    /// Tells a world what decides which GPUs of a resource are free, and why. Where nobody asks for
    /// them, nodes say it all; else also what stands on the nodes that offer them, and what reaches
    /// there from others. Nodes that offer them another way have none.
    fn tell(
        &self,
        is_wanted: bool,
        (resource, way): (&str, Way),
        offering: &BTreeSet<&str>,
        world: &mut World,
    ) {
        // Each object is told once, so that no list has to say which are gone.
        for kind in Kind::ALL {
            if is_wanted || kind == Kind::Node {
                for object in self.lists.get(&kind).into_iter().flatten() {
                    let mut object = object.clone();
                    if let Object::Node(node) = &mut object
                        && !offering.contains(&*node.meta.name)
                    {
                        node.allocatable.extended.remove(resource);
                        node.capacity.extended.remove(resource);
                    }
                    world.apply(Change::Applied(object));
                }
            }
            if is_wanted && kind == Kind::Pod {
                let stands = self.placed.iter().filter(|placed| {
                    let pod = &placed.pod;
                    self.reaches_far
                        || placed.owner_waits
                        || pod.between_pods.is_some()
                        || !pod.volumes.is_empty()
                        || offering.contains(&*pod.node)
                });
                let asks =
                    |of: &&WaitingPod| way.is_asked(of.by_claim) || !wants(&of.pod, resource);
                let waiting = self.waiting.iter().filter(asks).map(|of| &of.pod);
                for pod in waiting.chain(stands.map(|placed| &placed.pod)) {
                    world.apply(Change::Applied(Object::Pod(Arc::clone(pod))));
                }
            }
            world.apply(Change::Listed(kind));
        }
    }
}
