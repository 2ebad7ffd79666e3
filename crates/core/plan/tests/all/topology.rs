//! Levels of the topology against exhaustive search: identical pods, few nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_model::topology::Level;
use dovetail_model::{
    Action, DeviceRequest, Event, Job, JobId, Node, NodeName, PodSet, Requirement, Resources,
    Snapshot, Topology, TopologyRequest,
};
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Engine, PolicySpec};
use dovetail_policy::named::POLICIES;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::recipe::{Choices, cases};

const LEVELS: [&str; 3] = ["zone", "block", "rack"];
/// Depth of the node itself.
const NODE: usize = LEVELS.len();

struct Case {
    nodes: Vec<Node>,
    pods: u32,
    gpus_per_pod: u16,
    required: Option<usize>,
    preferred: usize,
    policy: &'static str,
}

impl Case {
    fn of(config: &[u8], nodes: &[[u8; 5]]) -> Self {
        let choose = &mut Choices::of(config);
        let required = choose.among(&[None, None, Some(0), Some(1), Some(2), Some(NODE)]);
        Self {
            pods: 1 + choose.below(12) as u32,
            gpus_per_pod: choose.among(&[1, 2]),
            required,
            preferred: choose.among(&[2, 0, 1, NODE]),
            policy: POLICIES[choose.below(POLICIES.len())].0,
            nodes: nodes.iter().enumerate().map(|(i, bytes)| node(i, bytes)).collect(),
        }
    }

    /// Pods that fit on a node.
    fn room(&self, node: &Node) -> usize {
        let by_devices = node.devices.len() / usize::from(self.gpus_per_pod);
        by_devices.min((node.allocatable.cpu_milli / 1000) as usize)
    }

    /// Name of the domain of a node at a depth; `None` if it is in none.
    fn domain(&self, node: &Node, depth: usize) -> Option<Vec<String>> {
        if depth == NODE {
            return Some(vec![node.name.to_string()]);
        }
        LEVELS[..=depth].iter().map(|label| node.labels.get(*label).cloned()).collect()
    }

    /// Domains of a depth among some nodes, each with its room.
    fn domains<'n>(
        &self,
        nodes: impl Iterator<Item = &'n Node>,
        depth: usize,
    ) -> BTreeMap<Vec<String>, usize> {
        let mut rooms = BTreeMap::new();
        for node in nodes {
            if let Some(name) = self.domain(node, depth) {
                *rooms.entry(name).or_default() += self.room(node);
            }
        }
        rooms
    }

    /// Nodes the job was put on, one entry per pod; `None` if it waits.
    fn placed(&self) -> Option<Vec<&Node>> {
        let level = |name: &&str| Level { name: (*name).to_owned(), label: (*name).to_owned() };
        let snapshot = Snapshot {
            topology: Topology { levels: LEVELS.iter().map(level).collect() },
            nodes: self.nodes.clone(),
            ..Snapshot::default()
        };
        let policy = PolicySpec::named(self.policy);
        let config = EngineConfig { policy, ..EngineConfig::default() };
        let mut engine = Engine::new(config, &snapshot).expect("a good world");
        let requirement = Requirement {
            resources: Resources::pod(1000, 0),
            device: DeviceRequest::Whole { count: self.gpus_per_pod, same_island: false },
            ..Requirement::default()
        };
        let name = |depth: usize| [LEVELS[0], LEVELS[1], LEVELS[2], "node"][depth].to_owned();
        let requirement = Arc::new(requirement);
        let mut job = Job::single(JobId(1), "gang", 0, Arc::clone(&requirement));
        job.pod_sets = vec![PodSet::fixed("workers", requirement, self.pods)];
        job.topology = TopologyRequest {
            required: self.required.map(name),
            preferred: Some(name(self.preferred)),
        };
        let plan = engine.step(Event::Submitted(Box::new(job)), 0).expect("a good job");
        let bound: Vec<&Node> = plan
            .actions
            .iter()
            .filter_map(|action| match action {
                Action::Bind { node, .. } => self.nodes.iter().find(|n| n.name == *node),
                _ => None,
            })
            .collect();
        let names: Vec<NodeName> = bound.iter().map(|node| node.name.clone()).collect();
        let is_shared = |depth: &usize| {
            let of: BTreeSet<_> = bound.iter().map(|node| self.domain(node, *depth)).collect();
            of.len() == 1 && of.first().is_some_and(Option::is_some)
        };
        let narrowest = (0..NODE).rev().find(is_shared).map(|depth| {
            let value = bound[0].labels.get(LEVELS[depth]).expect("it is in the domain");
            (LEVELS[depth], value.as_str())
        });
        assert_eq!(engine.list().domain_of(&names), narrowest);
        (!bound.is_empty()).then_some(bound)
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let pods = self.pods as usize;
        let placed = self.placed();
        // The scope: the smallest domain of the required level with room, or everything.
        let Some(required) = self.required else {
            return self.check_scope(&self.nodes.iter().collect::<Vec<_>>(), placed, None);
        };
        let rooms = self.domains(self.nodes.iter(), required);
        let smallest = rooms.values().copied().filter(|room| *room >= pods).min();
        let Some(smallest) = smallest else {
            prop_assert!(placed.is_none(), "no domain has room");
            return Ok(());
        };
        let placed = placed.ok_or_else(|| TestCaseError::fail("a domain has room"))?;
        let used: BTreeSet<_> = placed.iter().map(|node| self.domain(node, required)).collect();
        prop_assert_eq!(used.len(), 1, "one domain of the required level");
        let domain = used.into_iter().next().flatten().expect("a node with the labels");
        prop_assert_eq!(rooms[&domain], smallest, "the smallest that fits");
        let inside = |node: &&Node| self.domain(node, required).as_ref() == Some(&domain);
        let scope: Vec<&Node> = self.nodes.iter().filter(inside).collect();
        self.check_scope(&scope, Some(placed), Some(required))
    }

    /// Inside a scope: as few domains of the preferred level as can be, in the narrowest wider
    /// domain.
    fn check_scope(
        &self,
        scope: &[&Node],
        placed: Option<Vec<&Node>>,
        depth: Option<usize>,
    ) -> Result<(), TestCaseError> {
        let pods = self.pods as usize;
        let total: usize = scope.iter().map(|node| self.room(node)).sum();
        prop_assert_eq!(placed.is_some(), total >= pods, "it starts exactly if it fits");
        let top = depth.map_or(0, |depth| depth + 1);
        let Some(placed) = placed.filter(|_| self.preferred >= top) else { return Ok(()) };
        let used: BTreeSet<_> = placed.iter().map(|n| self.domain(n, self.preferred)).collect();
        for level in (top..=self.preferred).rev() {
            let wider = self.domains(scope.iter().copied(), level);
            let fewest = |name: &Vec<String>| {
                let inside = scope.iter().copied();
                let inside = inside.filter(|n| self.domain(n, level).as_ref() == Some(name));
                fewest(&self.domains(inside, self.preferred), pods)
            };
            if wider.keys().any(|name| fewest(name).is_some()) {
                let names: BTreeSet<_> = placed.iter().map(|n| self.domain(n, level)).collect();
                prop_assert_eq!(names.len(), 1, "one domain of level {} has room", level);
                let name = names.into_iter().next().flatten().expect("a node with the labels");
                prop_assert_eq!(Some(used.len()), fewest(&name), "level {} {:?}", level, name);
                return Ok(());
            }
        }
        let everywhere = fewest(&self.domains(scope.iter().copied(), self.preferred), pods);
        if let Some(fewest) = everywhere {
            prop_assert_eq!(used.len(), fewest);
        }
        Ok(())
    }
}

/// The fewest domains that hold so many pods, by trying every subset.
fn fewest(rooms: &BTreeMap<Vec<String>, usize>, pods: usize) -> Option<usize> {
    let rooms: Vec<usize> = rooms.values().copied().collect();
    let sum = |subset: u32| {
        let inside = rooms.iter().enumerate().filter(|(place, _)| subset >> place & 1 == 1);
        inside.map(|(_, room)| room).sum::<usize>()
    };
    (0u32..1 << rooms.len())
        .filter(|subset| sum(*subset) >= pods)
        .map(|subset| subset.count_ones() as usize)
        .min()
}

fn node(index: usize, bytes: &[u8]) -> Node {
    let choose = &mut Choices::of(bytes);
    let gpus = choose.among(&[1, 2, 4, 3, 0]);
    let cpu_milli = choose.among(&[8000, 2000, 1000]);
    let mut node = Node::plain(&format!("n{index}"), cpu_milli, 1, gpus, "A");
    for label in LEVELS {
        if let Some(value) = choose.among(&[Some("0"), Some("1"), Some("2"), None]) {
            node.labels.insert(label.to_owned(), value.to_owned());
        }
    }
    node
}

proptest! {
    #![proptest_config(cases(6_000))]

    #[test]
    fn as_few_domains_as_can_be(
        config in any::<[u8; 5]>(),
        nodes in prop::collection::vec(any::<[u8; 5]>(), 1..=9),
    ) {
        Case::of(&config, &nodes).check()?;
    }
}
