//! Which change of a layout is under way or planned for a pending pod that requests slices, or why
//! none is.
//!
//! Nothing is planned here: the nodes record the change that they are in, and the policies report
//! what the last run of `dovetail partition apply` has planned.

use std::collections::BTreeMap;

use anyhow::Result;
use dovetail_console::app::App;
use dovetail_console::connection::connection_runtime;
use dovetail_console::plain::plain;
use dovetail_model::MigTable;
use dovetail_model::labels::NVIDIA_MIG;
use dovetail_objects::Pod;
use dovetail_sharing::{Record, SharingPolicy, Step, shared_resource};
use dovetail_sources::kubeconfig::ConnectionFlags;
use dovetail_units::duration::duration;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::changes::reason;
use crate::fleet::{table_of, tables};
use crate::objects::SeenNode;
use crate::server::Server;
use crate::waiting::YOUNG_MS;

/// The change of a layout that provides a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LayoutChange {
    /// The resource that pods request, such as `nvidia.com/mig-1g.10gb`.
    pub resource: String,
    pub state: ChangeState,
    /// The policy that plans it; null if that is not known.
    pub policy: Option<String>,
    pub node: Option<String>,
    /// Layouts of its GPUs before and after.
    pub from: Option<String>,
    pub to: Option<String>,
    /// The step of the node that changes; of a plan, the step of its policy.
    pub step: Option<String>,
    /// Why it is planned, why it does not happen yet, or why there is none.
    pub why: String,
}

/// How far a change is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeState {
    /// A node is in the middle of it.
    Changing,
    /// A policy reports it as its next one.
    Planned,
    /// There is none.
    None,
}

/// The changes for the resources that pods of a namespace request; empty if none of them requests
/// slices or replicas of GPUs.
///
/// # Errors
/// A server that does not answer, and credentials that may not list SharingPolicies.
pub fn read(
    app: &App,
    connection: &ConnectionFlags,
    (namespace, pods): (&str, &[&str]),
    now_ms: u64,
) -> Result<Vec<LayoutChange>> {
    let tables = tables(app);
    connection_runtime()?.block_on(async {
        let server = Server::connect(connection, "").await?;
        let selector = match pods {
            [one] => format!("?fieldSelector=metadata.name%3D{one}"),
            _ => String::new(),
        };
        let path = format!("/api/v1/namespaces/{namespace}/pods{selector}");
        let list = server.get(path).await?.unwrap_or_default();
        let requested = requested(&list, pods);
        if requested.is_empty() {
            return Ok(Vec::new());
        }
        let policies = server.policies().await?;
        let nodes = nodes(&server.get("/api/v1/nodes".to_owned()).await?.unwrap_or_default());
        let cluster = Cluster { policies, nodes, tables, now_ms };
        let of = |(resource, since_ms): (&String, &u64)| cluster.change(resource, *since_ms);
        Ok(requested.iter().map(of).collect())
    })
}

/// The slices and replicas that these pods request, each with the creation of its oldest pod.
fn requested(list: &Value, pods: &[&str]) -> BTreeMap<String, u64> {
    let mut requested: BTreeMap<String, u64> = BTreeMap::new();
    let items = list["items"].as_array().into_iter().flatten();
    for pod in items.filter_map(|object| Pod::deserialize(object).ok()) {
        if !pods.contains(&&*pod.meta.name) {
            continue;
        }
        for (name, count) in &pod.requests.extended {
            if *count > 0 && (name.starts_with(NVIDIA_MIG) || **name == *shared_resource()) {
                let since_ms = requested.entry(name.to_string()).or_insert(u64::MAX);
                *since_ms = pod.meta.created_ms.min(*since_ms);
            }
        }
    }
    requested
}

fn nodes(list: &Value) -> BTreeMap<String, SeenNode> {
    let items = list["items"].as_array().into_iter().flatten();
    let read = |object: &Value| {
        let name = object["metadata"]["name"].as_str()?.to_owned();
        Some((name, SeenNode::read(object)?))
    };
    items.filter_map(read).collect()
}

struct Cluster {
    policies: Vec<Result<SharingPolicy, String>>,
    nodes: BTreeMap<String, SeenNode>,
    tables: Vec<MigTable>,
    now_ms: u64,
}

impl Cluster {
    fn change(&self, resource: &str, since_ms: u64) -> LayoutChange {
        let known = self.under_way(resource).or_else(|| self.planned(resource));
        known.unwrap_or_else(|| LayoutChange {
            resource: resource.to_owned(),
            state: ChangeState::None,
            policy: None,
            node: None,
            from: None,
            to: None,
            step: None,
            why: self.why_none(resource, since_ms).join("; "),
        })
    }

    fn records(&self) -> impl Iterator<Item = (&String, Record)> {
        self.nodes.iter().filter_map(|(name, seen)| Some((name, seen.record()?)))
    }

    /// The change of a node, under way, that adds to what it offers.
    fn under_way(&self, resource: &str) -> Option<LayoutChange> {
        let (node, record) = self.records().find(|(_, record)| {
            let (from, to) = sides(record);
            !record.step.is_over() && amount(&to, resource) > amount(&from, resource)
        })?;
        let (from, to) = sides(&record);
        let since = duration(self.now_ms.saturating_sub(record.since_ms));
        let problem = if record.problem.is_empty() { "" } else { ": " };
        Some(LayoutChange {
            resource: resource.to_owned(),
            state: ChangeState::Changing,
            policy: self.policy_of(node).map(|policy| policy.name.clone()),
            node: Some(node.clone()),
            from: Some(from),
            to: Some(to),
            step: Some(record.step.word().to_owned()),
            why: format!("the node has been in this step for {since}{problem}{}", record.problem),
        })
    }

    /// The change that a policy reports as its next one.
    fn planned(&self, resource: &str) -> Option<LayoutChange> {
        self.policies.iter().flatten().find_map(|policy| {
            let next = &policy.status["next"];
            let text = |field: &str| next[field].as_str().map(|text| plain(text).to_string());
            let (from, to) = (text("from")?, text("to")?);
            (amount(&to, resource) > amount(&from, resource)).then(|| LayoutChange {
                resource: resource.to_owned(),
                state: ChangeState::Planned,
                policy: Some(policy.name.clone()),
                node: text("node"),
                from: Some(from),
                to: Some(to),
                step: policy.status["step"].as_str().map(|step| plain(step).to_string()),
                why: reason(&text("why").unwrap_or_default()).to_owned(),
            })
        })
    }

    fn policy_of(&self, node: &str) -> Option<&SharingPolicy> {
        let labels = &self.nodes.get(node)?.node.meta.labels;
        self.policies.iter().flatten().find(|policy| policy.spec.selects(|key| labels.get(key)))
    }

    fn why_none(&self, resource: &str, since_ms: u64) -> Vec<String> {
        let mut reasons = Vec::new();
        let waited_ms = self.now_ms.saturating_sub(since_ms);
        if waited_ms < YOUNG_MS {
            reasons.push(format!(
                "layouts change only for pods that have been pending for at least {}",
                duration(YOUNG_MS)
            ));
        }
        for (node, record) in self.records().filter(|(_, record)| record.step == Step::Stuck) {
            if amount(&sides(&record).1, resource) > 0 {
                reasons.push(format!("the change of node {node} is Stuck: {}", record.problem));
            }
        }
        if self.policies.is_empty() {
            reasons.push("the cluster has no SharingPolicy".to_owned());
        }
        reasons.extend(self.policies.iter().map(|policy| {
            let told = match policy {
                Ok(policy) => format!("policy {} {}", policy.name, self.why_not(policy, resource)),
                Err(problem) => format!("policy {problem}"),
            };
            plain(&told).to_string()
        }));
        reasons
    }

    /// Why a policy has no change for a resource, after its name.
    fn why_not(&self, policy: &SharingPolicy, resource: &str) -> String {
        let conditions = policy.status["conditions"].as_array().into_iter().flatten();
        let mut failed =
            conditions.filter(|one| one["type"] == "Ready" && one["status"] == "False");
        if let Some(failed) = failed.next() {
            return format!("is not ready: {}", failed["message"].as_str().unwrap_or_default());
        }
        let spec = &policy.spec;
        if !spec.mode.provides(resource) {
            return format!("has mode {}, which does not provide {resource}", spec.mode.word());
        }
        let selected = self.nodes.values();
        let selected = selected.filter(|seen| spec.selects(|key| seen.node.meta.labels.get(key)));
        let mut tables = selected.filter_map(|seen| table_of(&self.tables, seen));
        if let Some(profile) = resource.strip_prefix(NVIDIA_MIG) {
            if !tables.any(|table| table.named(profile, &self.tables).is_some()) {
                return format!("selects no node whose GPUs support profile {profile}");
            }
            if !spec.lists(profile, &self.tables) {
                return format!("does not list profile {profile} in spec.profiles");
            }
        }
        let only = if spec.apply { "" } else { "only reports (spec.apply is false), and " };
        let Some(step) = policy.status["step"].as_str() else {
            return format!("{only}has no report yet: run `dovetail partition apply`");
        };
        let stopped = policy.status["rollOut"]["why"].as_str().filter(|_| step == "Stopped");
        match (stopped, policy.status["next"]["node"].as_str()) {
            (Some(why), _) => format!("{only}is Stopped: {why}"),
            (None, Some(node)) => {
                format!("{only}changes node {node} next, which adds no {resource} (step {step})")
            }
            (None, None) => format!(
                "{only}planned no change for it in its last run (step {step}): `dovetail partition \
                 plan` shows which GPUs stay as they are, and why"
            ),
        }
    }
}

/// Layouts of a node before and after a change, in words.
fn sides(record: &Record) -> (String, String) {
    (record.from.words(), record.to.words())
}

/// How many devices of a resource GPUs offer, by their layouts in words, such as `2 × [3g.40gb],
/// 6 × whole` and `8 × 4 replicas (mps)`.
fn amount(words: &str, resource: &str) -> u64 {
    let of_group = |group: &str| {
        let (gpus, layout) = group.split_once(" × ")?;
        let gpus: u64 = gpus.parse().ok()?;
        if let Some((count, _)) = layout.split_once(" replicas") {
            let is_asked = *resource == *shared_resource();
            return count.parse::<u64>().ok().filter(|_| is_asked).map(|count| gpus * count);
        }
        let profile = resource.strip_prefix(NVIDIA_MIG)?;
        let instances = layout.split(['[', ']']);
        // A name of a resource has no plus sign.
        Some(gpus * instances.filter(|name| name.replace('+', ".") == profile).count() as u64)
    };
    words.split(", ").filter_map(of_group).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SLICE: &str = "nvidia.com/mig-1g.10gb";
    const NOW_MS: u64 = 1_000_000;

    fn policy(spec: &Value, status: &Value) -> Result<SharingPolicy, String> {
        let object = json!({"metadata": {"name": "p"}, "spec": spec, "status": status});
        Ok(serde_json::from_value(object).expect("a policy"))
    }

    fn cluster(policies: Vec<Result<SharingPolicy, String>>) -> Cluster {
        let labels = json!({"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
            "nvidia.com/gpu.memory": "81920", "nvidia.com/gpu.count": "1"});
        let seen = SeenNode::example("n0", &[labels], &json!({"nvidia.com/gpu": "1"}));
        let nodes = BTreeMap::from([("n0".to_owned(), seen)]);
        Cluster { policies, nodes, tables: MigTable::all().collect(), now_ms: NOW_MS }
    }

    #[test]
    fn layouts_in_words_say_how_many_devices_they_offer() {
        assert_eq!(amount("2 × [1g.10gb][1g.10gb][3g.40gb], 6 × whole", SLICE), 4);
        assert_eq!(amount("1 × [1g.10gb+me]", "nvidia.com/mig-1g.10gb.me"), 1);
        assert_eq!(amount("1 × [1g.10gb+me]", SLICE), 0);
        assert_eq!(amount("8 × 4 replicas (mps)", "nvidia.com/gpu.shared"), 32);
    }

    #[test]
    fn a_policy_without_a_change_for_a_profile_says_what_is_in_the_way() {
        let told = |spec: Value, status: Value, waited_ms: u64| {
            let change = cluster(vec![policy(&spec, &status)]).change(SLICE, NOW_MS - waited_ms);
            assert_eq!(change.state, ChangeState::None);
            change.why
        };
        let idle = json!({"step": "Idle"});
        let mig = |more: Value| {
            let mut spec = json!({"mode": "mig", "apply": true});
            spec.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
            spec
        };
        for (spec, status, expected) in [
            (mig(json!({})), Value::Null, "policy p has no report yet"),
            (mig(json!({})), idle.clone(), "policy p planned no change for it in its last run"),
            (mig(json!({"apply": false})), idle.clone(), "policy p only reports"),
            (mig(json!({"profiles": ["3g.40gb"]})), idle.clone(), "policy p does not list profile"),
            (mig(json!({"nodeSelector": {"a": "b"}})), idle.clone(), "policy p selects no node"),
            (json!({"mode": "mps", "replicas": 4}), idle.clone(), "policy p has mode mps"),
            (
                mig(json!({})),
                json!({"conditions": [{"type": "Ready", "status": "False", "message": "no"}]}),
                "policy p is not ready: no",
            ),
        ] {
            let why = told(spec, status, 120_000);
            assert!(why.starts_with(expected), "{why}");
        }
        let young = told(mig(json!({})), idle, 5_000);
        assert!(
            young.starts_with("layouts change only for pods that have been pending"),
            "{young}"
        );
        let none = cluster(Vec::new()).change(SLICE, 0);
        assert_eq!(none.why, "the cluster has no SharingPolicy");
    }
}
