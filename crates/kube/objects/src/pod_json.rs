//! The shape of a pod's JSON, kept only while it is read.

use std::num::NonZeroU64;

use serde::Deserialize;

use super::affinity::{AffinityJson, SpreadJson, TolerationJson};
use super::images::full_name;
use super::json::{JsonText, deadline_s, nullable, time_ms};
use super::label_set::Labels;
use super::meta::Meta;
use super::pod::{Feature, HostPort, Pod, PodClaim, PodPhase, Unscheduled};
use super::pod_extended::{ExtendedClaimStatus, extended_containers};
use super::pod_preemption::{DISRUPTION_TARGET, NOT_STOPPED, PodPreemption, reason_of};
use super::pod_volume::PodVolumeJson;
use super::requests::{RequestAmounts, effective, in_force};
use crate::labels;

/// Kubernetes' default of `terminationGracePeriodSeconds`.
const DEFAULT_GRACE_S: i64 = 30;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct PodJson<'a> {
    #[serde(deserialize_with = "nullable")]
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    pub(super) spec: SpecJson,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) status: StatusJson<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SpecJson {
    #[serde(deserialize_with = "nullable")]
    scheduler_name: Box<str>,
    #[serde(deserialize_with = "nullable")]
    node_name: Box<str>,
    #[serde(deserialize_with = "nullable")]
    priority: i32,
    #[serde(deserialize_with = "nullable")]
    priority_class_name: Box<str>,
    #[serde(deserialize_with = "nullable")]
    preemption_policy: Box<str>,
    termination_grace_period_seconds: Option<i64>,
    active_deadline_seconds: Option<i64>,
    #[serde(deserialize_with = "nullable")]
    host_network: bool,
    host_users: Option<bool>,
    #[serde(deserialize_with = "nullable")]
    node_selector: Labels,
    #[serde(deserialize_with = "nullable")]
    affinity: AffinityJson,
    #[serde(deserialize_with = "nullable")]
    tolerations: Vec<TolerationJson>,
    #[serde(deserialize_with = "nullable")]
    topology_spread_constraints: Vec<SpreadJson>,
    #[serde(deserialize_with = "nullable")]
    pub(super) containers: Vec<ContainerJson>,
    #[serde(deserialize_with = "nullable")]
    pub(super) init_containers: Vec<ContainerJson>,
    #[serde(deserialize_with = "nullable")]
    ephemeral_containers: Vec<ContainerJson>,
    #[serde(deserialize_with = "nullable")]
    pub(super) overhead: RequestAmounts,
    #[serde(deserialize_with = "nullable")]
    pub(super) resources: WrittenJson,
    #[serde(deserialize_with = "nullable")]
    scheduling_gates: Vec<serde::de::IgnoredAny>,
    #[serde(deserialize_with = "nullable")]
    volumes: Vec<PodVolumeJson>,
    #[serde(deserialize_with = "nullable")]
    resource_claims: Vec<PodClaimJson>,
    #[serde(deserialize_with = "nullable")]
    scheduling_group: SchedulingGroupJson,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodClaimJson {
    #[serde(deserialize_with = "nullable")]
    name: Box<str>,
    resource_claim_name: Option<Box<str>>,
    resource_claim_template_name: Option<Box<str>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct MadeClaimJson {
    #[serde(deserialize_with = "nullable")]
    name: Box<str>,
    resource_claim_name: Option<Box<str>>,
}

impl PodClaimJson {
    /// The claim; none where the pod needs none after all, as its status says.
    fn read(&self, made: &[MadeClaimJson]) -> Option<PodClaim> {
        let is_from_template = self.resource_claim_template_name.is_some();
        let claim = match (is_from_template, made.iter().find(|made| made.name == self.name)) {
            (false, _) => self.resource_claim_name.clone(),
            (true, None) => None,
            (true, Some(made)) => Some(made.resource_claim_name.clone()?),
        };
        Some(PodClaim { name: self.name.clone(), claim, is_from_template })
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SchedulingGroupJson {
    #[serde(deserialize_with = "nullable")]
    pod_group_name: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ContainerJson {
    #[serde(deserialize_with = "nullable")]
    image: Box<str>,
    #[serde(deserialize_with = "nullable")]
    pub(super) name: Box<str>,
    #[serde(deserialize_with = "nullable")]
    pub(super) resources: ResourcesJson,
    #[serde(deserialize_with = "nullable")]
    restart_policy: Box<str>,
    #[serde(deserialize_with = "nullable")]
    restart_policy_rules: Vec<RestartRuleJson>,
    #[serde(deserialize_with = "nullable")]
    ports: Vec<PortJson>,
    #[serde(deserialize_with = "nullable")]
    volume_mounts: Vec<MountJson>,
}

impl ContainerJson {
    /// Whether it is an init container that keeps running (a sidecar).
    pub(super) fn keeps_running(&self) -> bool {
        &*self.restart_policy == "Always"
    }
}

/// What a container asks for. What it limits and does not ask for it asks for as well: the API
/// server writes that into pods, and not into the templates of which they are made.
#[derive(Default, Deserialize)]
#[serde(from = "WrittenJson")]
pub(super) struct ResourcesJson {
    pub(super) requests: RequestAmounts,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct WrittenJson {
    #[serde(deserialize_with = "nullable")]
    pub(super) requests: RequestAmounts,
    #[serde(deserialize_with = "nullable")]
    pub(super) limits: RequestAmounts,
}

impl From<WrittenJson> for ResourcesJson {
    fn from(written: WrittenJson) -> Self {
        let WrittenJson { mut requests, limits } = written;
        requests.add_missing(limits);
        Self { requests }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RestartRuleJson {
    #[serde(deserialize_with = "nullable")]
    action: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PortJson {
    #[serde(deserialize_with = "nullable")]
    host_port: i32,
    #[serde(rename = "hostIP", deserialize_with = "nullable")]
    host_ip: Box<str>,
    #[serde(deserialize_with = "nullable")]
    protocol: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MountJson {
    #[serde(deserialize_with = "nullable")]
    bind_mount_options: Vec<serde::de::IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct StatusJson<'a> {
    #[serde(deserialize_with = "nullable")]
    phase: PodPhase,
    #[serde(deserialize_with = "nullable")]
    nominated_node_name: Box<str>,
    #[serde(borrow, deserialize_with = "nullable")]
    conditions: Vec<ConditionJson<'a>>,
    #[serde(deserialize_with = "nullable")]
    pub(super) container_statuses: Vec<ContainerStatusJson>,
    #[serde(deserialize_with = "nullable")]
    pub(super) init_container_statuses: Vec<ContainerStatusJson>,
    pub(super) allocated_resources: Option<RequestAmounts>,
    pub(super) resources: Option<StatusResourcesJson>,
    #[serde(deserialize_with = "nullable")]
    resource_claim_statuses: Vec<MadeClaimJson>,
    extended_resource_claim_status: Option<Box<ExtendedClaimStatus>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ConditionJson<'a> {
    #[serde(borrow, rename = "type", deserialize_with = "nullable")]
    kind: JsonText<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    status: JsonText<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    reason: JsonText<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    message: JsonText<'a>,
    #[serde(rename = "lastTransitionTime", deserialize_with = "time_ms")]
    since_ms: u64,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ContainerStatusJson {
    #[serde(deserialize_with = "nullable")]
    pub(super) name: Box<str>,
    pub(super) allocated_resources: Option<RequestAmounts>,
    pub(super) resources: Option<StatusResourcesJson>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct StatusResourcesJson {
    pub(super) requests: Option<RequestAmounts>,
}

impl PodJson<'_> {
    /// What is kept of it.
    pub(super) fn read(mut self) -> Pod {
        let preemption = self.preemption();
        let requests = effective(&self.spec);
        let held = in_force(&self.spec, &self.status);
        let held = (held != requests).then(|| Box::new(held));
        let (ports, features) = (self.spec.host_ports(), self.spec.features());
        let extended = match self.spec.node_name.is_empty() {
            true => extended_containers(&self.spec),
            false => Box::default(),
        };
        let node_affinity = self.spec.affinity.node_terms().map(Vec::into_boxed_slice);
        let (preferred_nodes, images) = match self.spec.node_name.is_empty() {
            true => (self.spec.affinity.preferred_nodes(), self.spec.images()),
            false => Default::default(),
        };
        let between_pods = self.spec.affinity.between_pods(&self.metadata.namespace);
        let has_terms = !between_pods.affinity.is_empty() || !between_pods.anti_affinity.is_empty();
        let labels = &self.metadata.labels;
        let spread = self.spec.topology_spread_constraints.into_iter();
        let (hard, soft): (Vec<_>, Vec<_>) = spread.partition(|constraint| constraint.is_hard());
        let read = |constraints: Vec<SpreadJson>| {
            constraints.into_iter().map(|constraint| constraint.read(labels)).collect()
        };
        let placed = !self.spec.node_name.is_empty();
        let extended_claim = self.status.extended_resource_claim_status.take();
        let extended_claim = extended_claim.filter(|_| !placed);
        let (spread, soft_spread) = (read(hard), read(if placed { Vec::new() } else { soft }));
        let scheduled_ms = if placed { self.status.scheduled_ms() } else { 0 };
        let unscheduled = if placed { None } else { self.status.unscheduled() };
        let made = &self.status.resource_claim_statuses;
        let device_claims = self.spec.resource_claims.iter().filter_map(|claim| claim.read(made));
        let device_claims = device_claims.collect();
        let volumes = self.spec.volumes.into_iter();
        let volumes = volumes.filter_map(|volume| volume.read(&self.metadata.name)).collect();
        Pod {
            scheduler: self.spec.scheduler_name,
            node: self.spec.node_name,
            nominated_node: self.status.nominated_node_name,
            phase: self.status.phase,
            unscheduled,
            scheduled_ms,
            priority: self.spec.priority,
            priority_class: self.spec.priority_class_name,
            gated: !self.spec.scheduling_gates.is_empty(),
            active_deadline_s: deadline_s(self.spec.active_deadline_seconds),
            requests,
            held,
            node_selector: self.spec.node_selector,
            node_affinity,
            tolerations: self.spec.tolerations.into_iter().filter_map(|t| t.read()).collect(),
            between_pods: has_terms.then(|| Box::new(between_pods)),
            spread,
            soft_spread,
            preferred_nodes,
            images,
            ports,
            volumes,
            features,
            pod_group: self.spec.scheduling_group.pod_group_name,
            has_resource_claims: !self.spec.resource_claims.is_empty(),
            device_claims,
            extended,
            extended_claim,
            preemption,
            meta: self.metadata,
        }
    }
}

impl PodJson<'_> {
    fn preemption(&self) -> PodPreemption {
        let (meta, spec) = (&self.metadata, &self.spec);
        let is_disrupted =
            |c: &ConditionJson<'_>| &*c.kind == DISRUPTION_TARGET && &*c.status == "True";
        let is_target = |c: &ConditionJson<'_>| is_disrupted(c) && reason_of(&c.reason).is_some();
        let is_own = |c: &ConditionJson<'_>| {
            c.message.strip_prefix(&*spec.scheduler_name).is_some_and(|rest| rest.starts_with(':'))
        };
        let is_kept = |c: &&ConditionJson<'_>| {
            &*c.kind == DISRUPTION_TARGET && &*c.status == "False" && &*c.reason == NOT_STOPPED
        };
        let kept = self.status.conditions.iter().find(is_kept);
        let target = self.status.conditions.iter().find(|c| is_target(c));
        let grace_s = spec.termination_grace_period_seconds.unwrap_or(DEFAULT_GRACE_S);
        PodPreemption {
            never_preempts: &*spec.preemption_policy == "Never",
            is_protected: meta.controller.is_daemon_set
                || meta.annotations.get(labels::MIRROR).is_some()
                || PodPreemption::is_critical(spec.priority, &spec.priority_class_name),
            is_target: target.is_some(),
            reason: target.and_then(|c| reason_of(&c.reason)).unwrap_or_default(),
            is_own_target: self.status.conditions.iter().any(|c| is_target(c) && is_own(c)),
            is_disrupted: self.status.conditions.iter().any(is_disrupted),
            kept_ms: kept.and_then(|condition| NonZeroU64::new(condition.since_ms)),
            grace_s: u32::try_from(grace_s.max(0)).unwrap_or(u32::MAX),
        }
    }
}

impl StatusJson<'_> {
    /// What the condition `PodScheduled` says while it is false.
    fn unscheduled(&self) -> Option<Box<Unscheduled>> {
        let is_it = |c: &&ConditionJson<'_>| &*c.kind == "PodScheduled" && &*c.status == "False";
        let ConditionJson { reason, message, .. } = self.conditions.iter().find(is_it)?;
        Some(Box::new(Unscheduled { reason: (**reason).into(), message: (**message).into() }))
    }

    /// Since when it has its node, as its condition says.
    fn scheduled_ms(&self) -> u64 {
        let says = |condition: &&ConditionJson<'_>| {
            &*condition.kind == "PodScheduled" && &*condition.status == "True"
        };
        self.conditions.iter().find(says).map_or(0, |condition| condition.since_ms)
    }

    /// Whether the kubelet says that a pending resize can never be granted.
    pub(super) fn resize_is_infeasible(&self) -> bool {
        let pending = self.conditions.iter().find(|c| &*c.kind == "PodResizePending");
        pending.is_some_and(|condition| &*condition.reason == "Infeasible")
    }
}

impl SpecJson {
    /// Ports that containers take on the node as long as the pod lives.
    fn host_ports(&self) -> Box<[HostPort]> {
        let lasting = self.init_containers.iter().filter(|c| c.keeps_running());
        let ports = lasting.chain(&self.containers).flat_map(|container| &container.ports);
        let taken = ports.filter_map(|port| {
            let or = |text: &str, default: &str| match text.is_empty() {
                true => Box::from(default),
                false => Box::from(text),
            };
            let number = u32::try_from(port.host_port).ok().filter(|number| *number > 0)?;
            let protocol = or(&port.protocol, "TCP");
            Some(HostPort { protocol, port: number, address: or(&port.host_ip, "0.0.0.0") })
        });
        let mut taken: Vec<HostPort> = taken.collect();
        taken.sort();
        taken.dedup();
        taken.into()
    }

    /// Images by full name, for each container and volume that is made from one.
    fn images(&self) -> Box<[Box<str>]> {
        let containers = self.init_containers.iter().chain(&self.containers);
        let volumes = self.volumes.iter().map(PodVolumeJson::image);
        let named = containers.map(|container| &*container.image).chain(volumes);
        let mut images: Vec<_> = named.filter(|image| !image.is_empty()).map(full_name).collect();
        images.sort();
        images.into()
    }

    /// What `k8s.io/component-helpers/nodedeclaredfeatures` 1.37 infers for scheduling.
    fn features(&self) -> Box<[Feature]> {
        let lasting = || self.containers.iter().chain(&self.init_containers);
        let restarts_all = lasting()
            .flat_map(|container| &container.restart_policy_rules)
            .any(|rule| &*rule.action == "RestartAllContainers");
        let binds_with_options = lasting()
            .chain(&self.ephemeral_containers)
            .flat_map(|container| &container.volume_mounts)
            .any(|mount| !mount.bind_mount_options.is_empty());
        let own_users_on_host_network = self.host_network && self.host_users == Some(false);
        let needed = [
            (restarts_all, Feature::RestartAllContainersOnContainerExits),
            (own_users_on_host_network, Feature::UserNamespacesHostNetworkSupport),
            (binds_with_options, Feature::VolumeBindMountOptions),
        ];
        needed.into_iter().filter(|(needed, _)| *needed).map(|(_, feature)| feature).collect()
    }
}
