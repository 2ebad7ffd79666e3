//! What is planned for a fleet: without moves first, and with them where a policy allows it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use dovetail_console::app::App;
use dovetail_console::connection::connection_runtime;
use dovetail_model::MigTable;
use dovetail_partition::{PartitionPlan, plan};
use dovetail_sharing::PolicySpec;
use dovetail_sources::node_prices::NodeToPrice;
use dovetail_sources::objects::ObjectFlags;
use dovetail_sources::prometheus::{ServerChoice, WayFlags};

use crate::between_pods::not_checked;
use crate::changes::{NodeChange, changes};
use crate::cluster::{Age, fleet_beside, is_for_lack_of_nodes, objects, selects_none};
use crate::expected::ExpectedNodes;
use crate::fleet::{Fleet, bad_world, table_of};
use crate::gang_search::plan_with_gangs;
use crate::gpu_users::GpuUsers;
use crate::moves::{Moved, with_moves};
use crate::objects::Objects;
use crate::price_facts::PriceFacts;
use crate::replicas::Wanted;

/// A fleet and what is planned for it.
#[derive(Debug)]
pub struct Planned {
    pub fleet: Fleet,
    pub(crate) plan: PartitionPlan,
    pub(crate) moved: Option<Moved>,
    /// What decides the prices of its nodes, where they are those of a cluster.
    price_facts: Vec<PriceFacts>,
}

impl Planned {
    /// Plans for a fleet in which no pod moves.
    ///
    /// # Errors
    /// A world whose instances cannot be on its GPUs.
    pub fn of(fleet: Fleet) -> Result<Self> {
        let plan = plan(&fleet.world, &fleet.rules()).map_err(bad_world)?;
        Ok(Self { fleet, plan, moved: None, price_facts: Vec::new() })
    }

    /// Plans for objects under a policy, which may let pods move, as if some nodes had the layout
    /// that they are about to get.
    pub(crate) fn of_objects(
        objects: &Objects,
        policy: &PolicySpec,
        tables: &[MigTable],
        age: Age,
        expected: &ExpectedNodes,
    ) -> Result<Self> {
        let (mut fleet, plan) = plan_with_gangs(|choice| {
            fleet_beside(objects, policy, tables, age, (expected, choice))
        })?;
        let moved = with_moves(&mut fleet, &plan, objects, policy, age)?;
        Ok(Self { fleet, plan, moved, price_facts: Vec::new() })
    }

    /// The nodes of the cluster whose GPUs are in the plan, by name.
    pub fn nodes_to_price(&self) -> impl Iterator<Item = (&str, NodeToPrice<'_>)> {
        self.price_facts.iter().map(PriceFacts::to_price)
    }

    /// What changes under a policy. If pods need instances that the plan does not provide, the
    /// other nodes of the policy say why they stay as they are.
    pub(crate) fn wanted(mut self, objects: &Objects, policy: &PolicySpec) -> Wanted {
        let stays = match self.lacks_instances() {
            true => std::mem::take(&mut self.fleet.stays),
            false => BTreeMap::new(),
        };
        let changes = self.changes();
        let changed: BTreeSet<&str> = changes.iter().map(|change| &*change.node).collect();
        let is_left = |(node, _): &(String, String)| {
            let seen = objects.nodes.get(node).filter(|_| !changed.contains(&**node));
            seen.is_some_and(|seen| policy.selects(|key| seen.node.meta.labels.get(key)))
        };
        let stays = stays.into_iter().filter(is_left).collect();
        Wanted { changes, stays }
    }

    /// Whether pods need instances that the plan does not provide.
    fn lacks_instances(&self) -> bool {
        let plan = self.moved.as_ref().map_or(&self.plan, |moved| &moved.plan);
        let asked = self.fleet.world.demand.iter().zip(&plan.accepted);
        // Without an age they are not waited for yet.
        let mut due = asked.filter(|(demand, _)| demand.waiting_ms > 0);
        due.any(|(demand, served)| *served < demand.count)
            || self.fleet.not_planned.keys().any(|why| is_for_lack_of_nodes(why))
    }

    /// Node by node, with the one for which pods move.
    pub(crate) fn changes(self) -> Vec<NodeChange> {
        let moved = self.moved.map(|moved| moved.change);
        changes(&self.fleet, &self.plan).into_iter().chain(moved).collect()
    }
}

/// What a plan for a cluster rests on besides its objects.
#[derive(Debug)]
pub struct Basis<'a> {
    /// Pods that have been pending for less are not planned for, in milliseconds.
    pub young_ms: u64,
    /// Where it is read which GPUs pods use, and how that is reached.
    pub prometheus: ServerChoice,
    pub way: &'a WayFlags,
}

/// Plans for the objects that flags name.
///
/// # Errors
/// Objects that cannot be read.
pub fn read(
    app: &App,
    flags: &ObjectFlags,
    basis: &Basis<'_>,
    policy: &PolicySpec,
    tables: &[MigTable],
) -> Result<Planned> {
    let (mut objects, now_ms) = objects(app, flags)?;
    if let Some(connection) = flags.server() {
        let Basis { prometheus: choice, way, .. } = basis;
        let users = GpuUsers { choice, way, connection };
        let add = users.add_to(&mut objects, |seen| table_of(tables, seen));
        connection_runtime()?.block_on(add);
    }
    if selects_none(&objects, policy) {
        app.note("the policy's nodeSelector selects no node with GPUs");
    }
    if let Some(text) = not_checked(&objects) {
        app.note(&text);
    }
    let age = Age { now_ms, young_ms: basis.young_ms };
    let planned = Planned::of_objects(&objects, policy, tables, age, &ExpectedNodes::new())?;
    let price_facts = PriceFacts::all_of(&objects, &planned.fleet);
    Ok(Planned { price_facts, ..planned })
}

#[cfg(test)]
pub(crate) mod tests {
    use dovetail_objects::{Pod, PodPhase};
    use dovetail_partition::size;
    use serde_json::{Value, json};

    use super::*;
    use crate::objects::SeenNode;
    use crate::stays::IN_USE;

    /// A node with one GPU in small instances.
    pub(crate) fn node(name: &str, more: &Value) -> (String, SeenNode) {
        let mut labels = json!({"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
            "nvidia.com/gpu.count": "1", "pool": "a"});
        for (key, value) in more.as_object().expect("labels") {
            labels[key] = value.clone();
        }
        let offers =
            json!({"nvidia.com/mig-1g.10gb": "7", "cpu": "8", "memory": "64Gi", "pods": "110"});
        let object = json!({"metadata": {"name": name, "labels": labels},
            "status": {"allocatable": offers, "capacity": offers,
                "conditions": [{"type": "Ready", "status": "True"}]}});
        (name.to_owned(), SeenNode::read(&object).expect("a node"))
    }

    pub(crate) fn pod(name: &str, node: &str, profile: &str) -> ((String, String), Pod) {
        let limits = json!({format!("nvidia.com/mig-{profile}"): "1"});
        let phase = if node.is_empty() { "Pending" } else { "Running" };
        let object = json!({"metadata": {"name": name, "namespace": "n"},
            "spec": {"nodeName": node,
                "containers": [{"name": "c", "resources": {"limits": limits}}]},
            "status": {"phase": phase}});
        let key = ("n".to_owned(), name.to_owned());
        (key, serde_json::from_value(object).expect("a pod"))
    }

    pub(crate) fn of(objects: &Objects) -> Planned {
        let tables: Vec<MigTable> = MigTable::all().collect();
        let age = Age { now_ms: 1_000_000, young_ms: 0 };
        let (policy, none) = (PolicySpec::default(), ExpectedNodes::new());
        Planned::of_objects(objects, &policy, &tables, age, &none).expect("a plan")
    }

    /// Pods of gangs that ask for `3g.40gb`, of which a GPU has room for two.
    fn members(gangs: &[(&str, usize)]) -> BTreeMap<(String, String), Pod> {
        let member = |gang: &str, number: usize| {
            let (key, mut pod) = pod(&format!("{gang}-{number}"), "", "3g.40gb");
            let labels = json!({"scheduling.x-k8s.io/pod-group": gang});
            pod.meta.labels = serde_json::from_value(labels).expect("labels");
            (key, pod)
        };
        let of_gang = |(gang, pods): &(&str, usize)| {
            let gang = (*gang).to_owned();
            (0..*pods).map(move |number| member(&gang, number)).collect::<Vec<_>>()
        };
        gangs.iter().flat_map(of_gang).collect()
    }

    #[test]
    fn all_pods_of_a_gang_are_served_or_none() {
        let plan = |gangs: &[(&str, usize)], more: Option<((String, String), Pod)>| {
            let nodes = [node("one", &json!({}))].into_iter().collect();
            let mut pods = members(gangs);
            pods.extend(more);
            let planned = of(&Objects { nodes, pods, ..Objects::default() });
            let served: u32 = planned.plan.accepted.iter().sum();
            let left: usize = planned.fleet.not_planned.values().sum();
            (served, left, planned.plan.created())
        };
        assert_eq!(plan(&[("a", 2)], None), (2, 0, 2));
        assert_eq!(plan(&[("a", 3)], None), (0, 3, 0));
        // What a gang leaves serves others.
        assert_eq!(plan(&[("a", 3)], Some(pod("alone", "", "3g.40gb"))), (1, 3, 1));
        assert_eq!(plan(&[("a", 3), ("b", 2)], None), (2, 3, 2));
        assert_eq!(plan(&[("a", 2), ("b", 2), ("c", 2)], None), (2, 4, 2));
        // A gang that has started gets its further pods one by one.
        let runs = |mut member: ((String, String), Pod)| {
            member.1.node = "elsewhere".into();
            member.0.1 = "runs".to_owned();
            member
        };
        let started = || members(&[("a", 1)]).pop_first().map(runs);
        assert_eq!(plan(&[("a", 3)], started()), (2, 0, 2));
        // One that failed there is no part of it any more.
        let failed = started().map(|(key, mut pod)| {
            pod.phase = PodPhase::Failed;
            (key, pod)
        });
        assert_eq!(plan(&[("a", 3)], failed), (0, 3, 0));
    }

    /// Equal pods that start together, or a single pod.
    type Job = (&'static str, usize);

    /// Knuth's MMIX generator.
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: usize) -> usize {
            let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
            self.0 = next.wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % limit
        }

        fn jobs(&mut self) -> Vec<Job> {
            let profiles = ["1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb"];
            let jobs = 2 + self.below(4);
            (0..jobs).map(|_| (profiles[self.below(4)], 1 + self.below(3))).collect()
        }
    }

    /// Whether GPUs can have the instances of these jobs together, and their compute slices.
    fn fits(table: &MigTable, gpus: usize, jobs: &[Job]) -> (bool, i64) {
        if jobs.is_empty() {
            return (true, 0);
        }
        let demand = jobs.iter().map(|(profile, count)| ((*profile).to_owned(), *count as u64));
        let sizing = size(table, &demand.collect::<Vec<_>>()).expect("profiles of the table");
        let slices = |(profile, count): &Job| {
            let place = table.profile(profile).expect("a profile of the table");
            i64::from(table.profiles[place].compute_slices) * *count as i64
        };
        (sizing.gpus as usize <= gpus, jobs.iter().map(slices).sum())
    }

    /// The most compute slices of any choice of jobs.
    fn most_slices(table: &MigTable, gpus: usize, jobs: &[Job]) -> i64 {
        let chosen = |choice: u32| -> Vec<Job> {
            let places = (0..jobs.len()).filter(|place| choice >> place & 1 == 1);
            places.map(|place| jobs[place]).collect()
        };
        let all = (0..1u32 << jobs.len()).map(|choice| fits(table, gpus, &chosen(choice)));
        all.filter(|(fits, _)| *fits).map(|(_, slices)| slices).max().expect("no job is a choice")
    }

    fn pods_of(jobs: &[Job]) -> BTreeMap<(String, String), Pod> {
        let of_job = |(number, (profile, count)): (usize, &Job)| -> Vec<_> {
            let member = |place: usize| {
                let (key, mut pod) = pod(&format!("{number}-{place}"), "", profile);
                let labels = json!({"scheduling.x-k8s.io/pod-group": number.to_string()});
                if *count > 1 {
                    pod.meta.labels = serde_json::from_value(labels).expect("labels");
                }
                (key, pod)
            };
            (0..*count).map(member).collect()
        };
        jobs.iter().enumerate().flat_map(of_job).collect()
    }

    /// How many pods of each gang are served, by the place of its job.
    fn served_gangs(planned: &Planned) -> BTreeMap<usize, usize> {
        let mut served = BTreeMap::new();
        for ((pods, _), accepted) in planned.fleet.waiting.iter().zip(&planned.plan.accepted) {
            if let Some(gang) = pods.gang {
                let name = &planned.fleet.gangs[gang].name.name;
                *served.entry(name.parse().expect("a number")).or_default() += *accepted as usize;
            }
        }
        served
    }

    #[test]
    fn no_gang_is_served_in_part_and_no_choice_of_gangs_exceeds_the_bound() {
        let table = MigTable::of_model("A100-80GB").expect("a table");
        let mut random = Random(1);
        let (mut whole, mut left, mut best) = (0, 0, 0);
        for world in 0..60 {
            let (gpus, jobs) = (1 + random.below(2), random.jobs());
            let nodes = (0..gpus).map(|number| node(&format!("n{number}"), &json!({})));
            let (nodes, pods) = (nodes.collect(), pods_of(&jobs));
            let planned = of(&Objects { nodes, pods, ..Objects::default() });
            let (plan, served) = (&planned.plan, served_gangs(&planned));
            for (place, (_, count)) in jobs.iter().enumerate().filter(|(_, (_, count))| *count > 1)
            {
                let of_gang = served.get(&place).copied().unwrap_or(0);
                assert!([0, *count].contains(&of_gang), "world {world}: {jobs:?} {plan:?}");
                whole += usize::from(of_gang > 0);
                left += usize::from(of_gang == 0);
            }
            for gpu in &plan.gpus {
                let of_gpu: u32 = gpu.served.iter().map(|(_, count)| *count).sum();
                assert!(gpu.created.len() <= of_gpu as usize, "world {world}: {jobs:?} {plan:?}");
            }
            let most = most_slices(&table, gpus, &jobs);
            let (ours, bound) = (plan.accepted_compute_slices, plan.upper_bound_compute_slices);
            assert!(ours <= most && most <= bound, "world {world}: {jobs:?} {most} {plan:?}");
            best += usize::from(ours == most);
            // Without gangs, the plan is exact.
            let singles: Vec<Job> = jobs.iter().map(|(profile, _)| (*profile, 1)).collect();
            let nodes = (0..gpus).map(|number| node(&format!("n{number}"), &json!({})));
            let (nodes, pods) = (nodes.collect(), pods_of(&singles));
            let alone = of(&Objects { nodes, pods, ..Objects::default() }).plan;
            let most = most_slices(&table, gpus, &singles);
            assert_eq!(alone.accepted_compute_slices, most, "world {world}: {singles:?} {alone:?}");
        }
        assert!(whole > 0 && left > 0 && best > 0, "{whole} {left} {best}");
    }

    fn wanted(objects: &Objects) -> Wanted {
        let node_selector = BTreeMap::from([("pool".to_owned(), "a".to_owned())]);
        let policy = PolicySpec { node_selector, ..PolicySpec::default() };
        let tables: Vec<MigTable> = MigTable::all().collect();
        let age = Age { now_ms: 1_000_000, young_ms: 0 };
        let none = ExpectedNodes::new();
        let planned = Planned::of_objects(objects, &policy, &tables, age, &none);
        planned.expect("a plan").wanted(objects, &policy)
    }

    #[test]
    fn nodes_say_why_they_stay_where_pods_wait_for_instances() {
        let nodes = [
            node("busy", &json!({})),
            node("failed", &json!({"nvidia.com/mig.config.state": "failed"})),
            node("nos", &json!({"nos.nebuly.com/gpu-partitioning": "mig"})),
            node("other", &json!({"pool": "b"})),
        ];
        let pods = BTreeMap::from([pod("runs", "busy", "1g.10gb"), pod("waits", "", "3g.40gb")]);
        let nodes = nodes.into_iter().collect();
        let mut objects = Objects { nodes, pods, ..Objects::default() };
        let left = wanted(&objects);
        assert!(left.changes.is_empty());
        let expected = [
            ("busy", IN_USE),
            ("failed", "mig-manager reports `failed` (nvidia.com/mig.config.state)"),
            ("nos", "nos shares the GPUs of the node (nos.nebuly.com/gpu-partitioning)"),
        ];
        let expected = expected.map(|(node, why)| (node.to_owned(), why.to_owned()));
        assert_eq!(left.stays, expected);
        // A node that changes for the pod leaves nothing to say of the others.
        objects.nodes.extend([node("free", &json!({}))]);
        let served = wanted(&objects);
        assert_eq!(served.changes.len(), 1);
        assert!(served.stays.is_empty(), "{:?}", served.stays);
        // Nobody waits.
        objects.pods.remove(&("n".to_owned(), "waits".to_owned()));
        let idle = wanted(&objects);
        assert!(idle.changes.is_empty() && idle.stays.is_empty(), "{:?}", idle.stays);
    }
}
