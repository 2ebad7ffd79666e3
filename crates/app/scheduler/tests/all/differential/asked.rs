//! A world of API objects given to dovetail, and what it says about the pods that wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_cluster::world::{Change, ObjectReport, Settings, World as Index};
use dovetail_control::status::{none_is_available, plugin, reason};
use dovetail_model::{Job, JobId, Node, Requirement, RuleCause};
use dovetail_objects::{Kind, Object};
use dovetail_plan::explain::Refusal;
use dovetail_plan::{Cause, Engine, EngineConfig, View};
use dovetail_testkit::world::GeneratedCluster;
use dovetail_translate::{NotYet, Rules};
use serde_json::{Value, json};

use super::filters::Filter;

/// What dovetail says about one pod.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) pod: String,
    /// It has more than one volume.
    pub(crate) several_volumes: bool,
    pub(crate) verdict: Verdict,
}

/// Where it may go.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It takes no part in scheduling.
    Gated,
    /// It is left untouched.
    Left(NotYet),
    /// What each node has against it.
    Judged {
        /// By node.
        nodes: BTreeMap<String, OfNode>,
        /// What people would read.
        message: String,
        /// Where the engine would put it.
        chosen: Option<String>,
    },
}

/// What one node has against a pod; nothing if it fits.
#[derive(Debug, Default)]
pub(crate) struct OfNode {
    pub(crate) plugin: Option<&'static str>,
    pub(crate) reasons: Vec<String>,
}

impl Said {
    /// Whether the pod asks for what dovetail leaves to later, and says so.
    pub(crate) fn is_left_by_design(&self) -> bool {
        let Verdict::Left(reason) = &self.verdict else { return false };
        matches!(
            reason,
            NotYet::StaticVolume { .. }
                | NotYet::InTreeVolume { .. }
                | NotYet::ResourceClaims
                | NotYet::ResourceByClass { .. }
                | NotYet::Fraction { .. }
        )
    }
}

/// A world that dovetail has read.
pub(crate) struct Asked {
    engine: Engine,
    nodes: Vec<Node>,
    rules: Rules,
    pods: Vec<(String, bool, Pending)>,
}

enum Pending {
    Gated,
    Left(NotYet),
    Waits(Box<Requirement>),
}

impl Asked {
    pub(crate) fn about(world: &GeneratedCluster) -> Self {
        let settings = Settings::default();
        let rules = settings.rules.clone();
        let mut index = Index::new(settings);
        let mut read = |kind: Kind, value: &Value| {
            let object = Object::read(kind, value.to_string().as_bytes());
            assert_eq!(index.apply(Change::Applied(object)), []);
        };
        for (kind, objects) in lists(world) {
            objects.iter().for_each(|object| read(kind, object));
        }
        // A pod with a node is placed already; here the name is one more thing that it asks for.
        for pod in &world.pending {
            let mut pod = pod.clone();
            pod["spec"]["schedulerName"] = json!("dovetail");
            pod["spec"].as_object_mut().expect("a pod has a spec").remove("nodeName");
            read(Kind::Pod, &pod);
        }
        for kind in Kind::ALL {
            assert_eq!(index.apply(Change::Listed(kind)), []);
        }
        let strange = |report: &ObjectReport| matches!(report, ObjectReport::Strange(_));
        assert!(
            !index.notices().reports().iter().any(strange),
            "an object of the API was not understood"
        );
        let snapshot = index.snapshot(0);
        let requirements: BTreeMap<JobId, Arc<Requirement>> = snapshot
            .jobs
            .iter()
            .map(|job| (job.id, Arc::clone(&job.pod_sets[0].requirement)))
            .collect();
        let left: BTreeMap<(&str, &str), &NotYet> = index
            .pods()
            .refused()
            .map(|(pod, reason)| ((&*pod.meta.namespace, &*pod.meta.name), reason))
            .collect();
        let pods = world.pending.iter().map(|pod| {
            let meta = &pod["metadata"];
            let text = |field: &str| meta[field].as_str().expect("a text");
            let (namespace, name) = (text("namespace"), text("name"));
            let job = index.pods().job_of(namespace, name);
            let requirement = job.and_then(|job| requirements.get(&job));
            let pending = match (left.get(&(namespace, name)), requirement) {
                (Some(reason), _) => Pending::Left((*reason).clone()),
                (None, Some(requirement)) => {
                    let mut requirement = Requirement::clone(requirement);
                    let chosen = pod["spec"]["nodeName"].as_str().map(str::to_owned);
                    requirement.node_names = chosen.into_iter().collect();
                    Pending::Waits(Box::new(requirement))
                }
                (None, None) => Pending::Gated,
            };
            let volumes = pod["spec"]["volumes"].as_array().map_or(0, Vec::len);
            (format!("{namespace}/{name}"), volumes > 1, pending)
        });
        let pods = pods.collect();
        let engine = Engine::new(EngineConfig::default(), &snapshot).unwrap();
        Self { engine, nodes: snapshot.nodes, rules, pods }
    }

    /// What dovetail says, as if it had no such filter.
    pub(crate) fn answers(&mut self, without: Option<&Filter>) -> Vec<Said> {
        let Self { engine, nodes, rules, pods } = self;
        let answer = |(pod, several_volumes, pending): &(String, bool, Pending)| {
            let verdict = match pending {
                Pending::Gated => Verdict::Gated,
                Pending::Left(reason) => Verdict::Left(reason.clone()),
                Pending::Waits(requirement) => {
                    let mut requirement = Requirement::clone(requirement);
                    if let Some(filter) = without {
                        (filter.take_out)(&mut requirement, nodes);
                    }
                    judge(engine, nodes, rules, &Arc::new(requirement))
                }
            };
            Said { pod: pod.clone(), several_volumes: *several_volumes, verdict }
        };
        pods.iter().map(answer).collect()
    }
}

fn judge(
    engine: &mut Engine,
    nodes: &[Node],
    rules: &Rules,
    requirement: &Arc<Requirement>,
) -> Verdict {
    // The engine's names narrow what a spread rule counts; `nodeName` does not, so that here it
    // stands apart.
    let spreads = requirement.rules.iter().any(|rule| rule.cause == RuleCause::Spread);
    let mut asked = Arc::clone(requirement);
    let names = match spreads {
        true => std::mem::take(&mut Arc::make_mut(&mut asked).node_names),
        false => BTreeSet::new(),
    };
    let mut said: BTreeMap<String, Vec<Refusal>> = BTreeMap::new();
    for node in nodes {
        let refusals = match names.is_empty() || names.contains(&*node.name) {
            true => engine.ask().refusals(&asked, &node.name).expect("a node of the world"),
            false => vec![Refusal { cause: Cause::NodeName, resource: None }],
        };
        said.insert(node.name.to_string(), refusals);
    }
    let reasons = |refusals: &Vec<Refusal>| {
        refusals.iter().map(|refusal| reason(refusal, rules)).collect::<BTreeSet<_>>()
    };
    let message = none_is_available(said.values().map(reasons));
    let of_node = |refusals: Vec<Refusal>| OfNode {
        plugin: refusals.first().and_then(|refusal| plugin(refusal.cause)),
        reasons: refusals.iter().map(|refusal| reason(refusal, rules).into_owned()).collect(),
    };
    let chosen = match names.is_empty() {
        true => {
            let job = Job::single(JobId(u64::MAX - 1), "asked", 0, asked);
            let chosen =
                engine.ask().what_if_job(&job, &View::Now).expect("a job without topology");
            chosen.map(|pods| pods[0].node.to_string())
        }
        false => said.iter().find(|(_, refusals)| refusals.is_empty()).map(|(n, _)| n.clone()),
    };
    Verdict::Judged {
        nodes: said.into_iter().map(|(node, refusals)| (node, of_node(refusals))).collect(),
        message,
        chosen,
    }
}

fn lists(world: &GeneratedCluster) -> [(Kind, &[Value]); 14] {
    [
        (Kind::Namespace, &world.namespaces),
        (Kind::Node, &world.nodes),
        (Kind::CsiDriver, &world.csi_drivers),
        (Kind::CsiNode, &world.csi_nodes),
        (Kind::StorageClass, &world.storage_classes),
        (Kind::StorageCapacity, &world.csi_storage_capacities),
        (Kind::PersistentVolume, &world.persistent_volumes),
        (Kind::Claim, &world.persistent_volume_claims),
        (Kind::VolumeAttachment, &world.volume_attachments),
        (Kind::DeviceClass, &world.device_classes),
        (Kind::ResourceSlice, &world.resource_slices),
        (Kind::DeviceTaintRule, &world.device_taint_rules),
        (Kind::DeviceClaim, &world.resource_claims),
        (Kind::Pod, &world.pods),
    ]
}
