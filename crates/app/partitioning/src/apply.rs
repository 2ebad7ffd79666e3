//! Policies followed on a cluster: nodes change one after the other, each to its end.
//!
//! Everything that a change needs is in the annotation of its node, so a call that is cut off is
//! continued by the next one.

mod classes;
mod document;
pub mod entry;
mod evict;
mod latency;
mod policy_nodes;
mod replace;
mod room;
mod run;
mod sender;
mod workload_row;
mod workloads;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use dovetail_console::app::App;
use dovetail_console::clock::now_ms;
use dovetail_model::MigTable;
use dovetail_sharing::watch::Watch;
use dovetail_sharing::{
    Component, GpuNode, Mode, NextChange, PolicyReport, Problem, Receipt, Record, Seen,
    SharingPolicy, Step, Timing, begin, begin_moving, status_patch,
};
use dovetail_sources::kubeconfig::ConnectionFlags;
use dovetail_sources::prometheus::{ServerChoice, WayFlags};
use serde_json::Value;

use crate::amd;
use crate::amd_gpus::{has_gpus, side};
use crate::changes::{NodeChange, present};
use crate::cluster::{Age, fleet};
use crate::expected::Expected;
use crate::fleet::table_of;
use crate::gpu_users::GpuUsers;
use crate::objects::{OWNERS, Objects, SeenNode};
use crate::planned::Planned;
use crate::replicas::{Offered, Wanted, offered, wanted, warnings};
use crate::server::Server;
use crate::{setup, setup_amd};

pub use crate::asked::{AskedChange, WorkloadName};
pub use document::{Document, text};
use document::{NodeRow, PolicyRow};
use policy_nodes::{roll_out_of, selected, stays_words, step_word};
use room::Room;
use sender::Sender;

/// What a change is made with.
#[derive(Debug)]
pub struct Options {
    pub connection: ConnectionFlags,
    /// Namespace of NVIDIA's GPU Operator.
    pub operator_namespace: String,
    pub timing: Timing,
    /// Pods that have been pending for less are not planned for, in milliseconds.
    pub young_ms: u64,
    /// How long to wait for a pod that may not be evicted yet before the next call goes on, in
    /// milliseconds.
    pub move_wait_ms: u64,
    /// How often a node that changes is read, in milliseconds.
    pub poll_ms: u64,
    /// Workloads whose pods are to ask for another resource.
    pub workloads: Vec<AskedChange>,
    /// Nothing is written.
    pub is_dry_run: bool,
    /// Where latency is read, and how it is reached.
    pub prometheus: ServerChoice,
    pub way: WayFlags,
}

struct Apply<'a> {
    app: &'a App,
    options: &'a Options,
    tables: &'a [MigTable],
    server: Server,
    /// The GPU Operator's ClusterPolicy.
    cluster_policy: Option<Value>,
}

impl<'a> Apply<'a> {
    async fn new(app: &'a App, options: &'a Options, tables: &'a [MigTable]) -> Result<Self> {
        let server = Server::connect(&options.connection, &options.operator_namespace).await?;
        let cluster_policy = server.cluster_policy().await?;
        Ok(Self { app, options, tables, server, cluster_policy })
    }

    /// Sees to it that a component reads the layouts that it is to be asked for.
    async fn check(&self, by: Component) -> Result<()> {
        if by == Component::DeviceConfigManager {
            return setup_amd::check(self.server.device_configs().await?);
        }
        let Some(policy) = &self.cluster_policy else {
            bail!(
                "the cluster has no ClusterPolicy of NVIDIA's GPU Operator, whose mig-manager and device plugin \
                 change layouts: install the operator"
            );
        };
        if let Some(missing) = setup::missing(policy, by) {
            bail!(
                "the GPU Operator does not read dovetail's layouts ({missing}): apply the output of `dovetail \
                 partition setup`"
            );
        }
        Ok(())
    }

    /// The same before a change begins.
    async fn check_new(&self, by: Component) -> Result<()> {
        self.check(by).await?;
        let policy = self.cluster_policy.as_ref();
        if let Some(why) = policy.and_then(|policy| setup::kept_away(policy, by)) {
            bail!(
                "the pods of the GPU Operator could not start again during a change ({why}): apply the output of \
                 `dovetail partition setup`"
            );
        }
        Ok(())
    }

    fn sender(&self) -> Sender<'_> {
        Sender { app: self.app, server: &self.server }
    }

    fn gpu_users(&self) -> GpuUsers<'_> {
        let Options { prometheus: choice, way, connection, .. } = self.options;
        GpuUsers { choice, way, connection }
    }

    /// A node as it is now, without the pods that are not in the way of its recorded change.
    async fn seen(&self, node: &str, table: Option<&MigTable>) -> Result<Seen> {
        let (seen, pods) = self.server.seen(node, table, &self.options.timing, None).await?;
        match seen.record.clone() {
            Some(Record { from, to, .. }) => {
                Ok(self.gpu_users().besides(seen, &pods, (&from, &to), table).await)
            }
            None => Ok(seen),
        }
    }

    fn age(&self) -> Age {
        Age { now_ms: now_ms(), young_ms: self.options.young_ms }
    }

    async fn objects(&self) -> Result<Objects> {
        let mut objects = Objects::of(self.app, &self.options.connection, &OWNERS).await?;
        self.gpu_users().add_to(&mut objects, |seen| self.table(seen)).await;
        Ok(objects)
    }

    /// The policies of the cluster in the order of their names, in which pending pods are planned
    /// for: those that the first serves are no demand for the next one.
    async fn policies(&self) -> Result<(Vec<SharingPolicy>, Vec<PolicyRow>)> {
        let (mut policies, mut unreadable) = (Vec::new(), Vec::new());
        for policy in self.server.policies().await? {
            match policy {
                Ok(policy) => policies.push(policy),
                Err(problem) => unreadable.push(PolicyRow::unreadable(&problem)),
            }
        }
        policies.sort_by(|one: &SharingPolicy, other| one.name.cmp(&other.name));
        Ok((policies, unreadable))
    }

    fn table(&self, seen: &SeenNode) -> Option<&'a MigTable> {
        table_of(self.tables, seen)
    }

    fn gpu_nodes<'o>(&self, objects: &'o Objects) -> Vec<GpuNode<'o>>
    where
        'a: 'o,
    {
        let nodes = objects.nodes.iter();
        let with_gpus = nodes.filter(|(_, seen)| has_gpus(seen));
        let of = |(name, seen): (&'o String, &'o SeenNode)| GpuNode {
            name,
            labels: &seen.node.meta.labels,
            table: self.table(seen),
        };
        with_gpus.map(of).collect()
    }

    /// Brings changes that were cut off to their end; whether there were any. One that cannot go on
    /// does not keep the others. A node that is stuck, or whose record cannot be read, is told of
    /// until somebody sees to it.
    async fn resume(&self, objects: &Objects, document: &mut Document) -> bool {
        let mut has_changed = false;
        for (node, seen) in &objects.nodes {
            let Some(record) = seen.record() else {
                let unreadable = seen.unreadable_record();
                document.nodes.extend(unreadable.map(|why| NodeRow::stays(node.clone(), why)));
                continue;
            };
            if record.step == Step::Stuck {
                document.nodes.push(NodeRow::stuck(node, &record));
            }
            if record.step.is_over() {
                continue;
            }
            let is_dry_run = self.options.is_dry_run;
            has_changed |= !is_dry_run;
            let resumed = match is_dry_run {
                true => self.check(record.by).await.map(|()| record.clone()),
                false => self.resume_node(node, seen, record.by).await,
            };
            match resumed {
                Ok(record) => document.nodes.push(NodeRow::ended(node, &record)),
                Err(error) => {
                    let row = NodeRow::of(node, &record, record.step.word());
                    document.nodes.push(NodeRow { problem: format!("{error:#}"), ..row });
                    document.failed(error);
                }
            }
        }
        has_changed
    }

    async fn resume_node(&self, node: &str, seen: &SeenNode, by: Component) -> Result<Record> {
        self.check(by).await?;
        self.run_to_end(node, self.table(seen)).await
    }

    /// What a policy wants of its nodes. `expected`: what policies before it have planned.
    async fn wanted(
        &self,
        policy: &SharingPolicy,
        objects: &Objects,
        expected: &Expected,
    ) -> Result<Wanted> {
        let (spec, age) = (&policy.spec, self.age());
        let by = spec.mode.component();
        Ok(match spec.mode {
            Mode::Mig => {
                self.check_new(by).await?;
                let expected = expected.nodes(objects, spec.apply);
                let planned = Planned::of_objects(objects, spec, self.tables, age, &expected)?;
                planned.wanted(objects, spec)
            }
            Mode::AmdPartition => {
                self.check(by).await?;
                amd::wanted(objects, spec, &self.server.namespace(by).await?, now_ms())
            }
            _ => {
                self.check(by).await?;
                let fleet = fleet(objects, spec, self.tables, age);
                wanted(objects, spec, &fleet, now_ms())
            }
        })
    }

    /// Plans under a policy and changes its nodes, as far as it and its budget allow. `expected`:
    /// what policies before it have planned; what it plans is added.
    async fn follow(
        &self,
        policy: &SharingPolicy,
        objects: &Objects,
        expected: &mut Expected,
        document: &mut Document,
    ) -> Result<Followed> {
        let Wanted { changes, stays } = self.wanted(policy, objects, expected).await?;
        // What became of a node in this call was told, and so was a record that cannot be read.
        let told: BTreeSet<String> = document.nodes.iter().map(|row| row.node.clone()).collect();
        let news = stays.iter().filter(|(node, _)| !told.contains(node));
        let row = |(node, why): &(String, String)| NodeRow::stays(node.clone(), why.clone());
        let rows: Vec<NodeRow> = news.map(row).collect();
        // Where pods are planned for, any node may serve them: those that change come first.
        let (first, last) = match policy.spec.mode {
            Mode::Mig => (Vec::new(), rows),
            _ => (rows, Vec::new()),
        };
        document.nodes.extend(first);
        let into = (expected, &mut *document);
        let followed = follow_changes(self, policy, objects, changes, into).await;
        document.nodes.extend(last);
        let (next, has_changed) = followed?;
        Ok(Followed { next, stays: stays_words(&stays), has_changed })
    }

    /// What a call that is no dry run would do.
    async fn would_change(
        &self,
        policy: &SharingPolicy,
        changes: impl Iterator<Item = NodeChange>,
        mut room: Room,
        (expected, document): (&mut Expected, &mut Document),
    ) {
        for change in changes {
            let held_back = held_back(policy, &room, &change);
            expected.add(&change, held_back.is_none());
            let why = match held_back {
                Some(why) => Some(why),
                None => self.eviction_refused(&change).await,
            };
            room.left = room.left.saturating_sub(1);
            let why = why.unwrap_or_else(|| "planned".to_owned());
            document.nodes.push(NodeRow::planned(change, &why));
        }
    }

    /// The first pod of a change that may not be evicted now, and why: the change begins and then
    /// waits for it.
    async fn eviction_refused(&self, change: &NodeChange) -> Option<String> {
        for one in change.moves.iter().filter(|one| one.waits_until_ms.is_none()) {
            match self.server.refuses_eviction(one).await {
                Ok(None) => {}
                Ok(Some(why)) => {
                    return Some(format!(
                        "planned: pod {} cannot be evicted now ({why}): `apply` taints the node and \
                         waits for up to --move-wait",
                        one.pod
                    ));
                }
                Err(error) => {
                    let of = format!("PodDisruptionBudgets of pod {}", one.pod);
                    self.app.note(&format!("{of} were not checked: {error:#}"));
                }
            }
        }
        None
    }

    async fn change(
        &self,
        policy: &SharingPolicy,
        change: &NodeChange,
        table: Option<&MigTable>,
    ) -> Result<NodeRow> {
        let (node, by) = (&change.node, change.by);
        self.check_new(by).await?;
        let (layouts, _) = self.server.layouts(by).await?;
        let (seen, pods) = self.server.seen(node, table, &self.options.timing, Some(by)).await?;
        let seen = self.gpu_users().besides(seen, &pods, (&change.from, &change.to), table).await;
        let mut from = change.from.clone();
        match seen.asked(by) {
            // The name of a layout that the node does not have is no way back to the one it has.
            Some(name) if layouts.makes(name, &from) == Some(true) => {
                name.clone_into(&mut from.config);
            }
            Some(name) if by != Component::MigManager && !layouts.has(name) => {
                let (label, map) = (by.label(), by.config_map());
                let why = format!("{label} is `{name}`, which ConfigMap {map} does not contain");
                return Ok(NodeRow::refused(change, &why));
            }
            _ => {}
        }
        let watch = Watch::of(policy);
        let to = change.to.clone();
        let write = match change.moves.is_empty() {
            true => begin(&seen, by, from, to, watch, now_ms()),
            false => begin_moving(&seen, (by, from, to), change.moves.clone(), watch, now_ms()),
        };
        let write = match write {
            Ok(write) => write,
            Err(refused) => {
                let is_conflict = seen.record.is_some_and(|record| !record.step.is_over());
                let row = NodeRow::refused(change, &refused.to_string());
                return Ok(NodeRow { is_conflict, ..row });
            }
        };
        // Rights that are missing show before the node is tainted.
        self.write_layouts(&write.record).await?;
        if !self.sender().write(node, &write).await? {
            let why = "the node changed while it was read: the next run retries";
            return Ok(NodeRow { is_conflict: true, ..NodeRow::refused(change, why) });
        }
        self.sender().told(node, &write.record);
        let record = self.run_to_end(node, table).await?;
        Ok(NodeRow { served: change.served.clone(), ..NodeRow::ended(node, &record) })
    }

    /// Writes what became of a policy into its status.
    async fn report(
        &self,
        policy: &SharingPolicy,
        objects: &Objects,
        problem: Option<&Problem>,
        Followed { next, stays, .. }: Followed,
    ) -> Result<()> {
        let selected = selected(objects, &policy.spec);
        let whole = fleet(objects, &policy.spec, self.tables, self.age());
        let mut layouts: BTreeMap<String, usize> = BTreeMap::new();
        let present = present(&whole);
        for (node, seen) in &selected {
            let whole = match offered(seen) {
                Some(Offered::Whole(side)) => Some(side.words()),
                _ => side(seen).and_then(Result::ok).map(|side| side.words()),
            };
            if let Some(words) = whole.or_else(|| Some(present.get(*node)?.words())) {
                *layouts.entry(words).or_default() += 1;
            }
        }
        let words = |(layout, nodes): (String, usize)| match nodes {
            1 => format!("1 node: {layout}"),
            nodes => format!("{nodes} nodes: {layout}"),
        };
        let records = selected.iter().filter_map(|(node, seen)| Some((*node, seen.record()?)));
        let receipt = |(node, record): (&String, Record)| Receipt {
            node: node.clone(),
            outcome: record.step.word().to_owned(),
            seconds: record.seconds(),
            to: record.to.words(),
            problem: record.problem.clone(),
            moved: record.moved_words(),
            latency: record.watch.as_ref().map(Watch::words).unwrap_or_default(),
        };
        let receipts: Vec<Receipt> = records.map(receipt).collect();
        let has = |step: Step| receipts.iter().any(|one| one.outcome == step.word());
        let under_way =
            [Step::Emptying, Step::Tainted, Step::Clearing, Step::Applying, Step::Reverting];
        let step = match (has(Step::Stuck), under_way.into_iter().any(has)) {
            (true, _) => "Stuck",
            (_, true) => "Changing",
            _ => step_word(policy, objects),
        };
        let report = PolicyReport {
            nodes: selected.len(),
            layouts: layouts.into_iter().map(words).collect(),
            next,
            step: step.to_owned(),
            roll_out: roll_out_of(policy, objects),
            receipts,
            warnings: warnings(objects, &policy.spec),
            stays,
        };
        match status_patch(report, problem, &policy.status, now_ms()) {
            Some(patch) => self.server.report(&policy.name, &patch).await,
            None => Ok(()),
        }
    }
}

/// What following a policy has left.
#[derive(Default)]
struct Followed {
    /// The change that is left to do.
    next: Option<NextChange>,
    /// Why nodes stay as they are although they should change.
    stays: Vec<String>,
    /// Whether a change was tried.
    has_changed: bool,
}

/// Changes the nodes of a policy, as far as it and its budget allow; answers with the change that
/// is left to do, and whether one was tried.
async fn follow_changes(
    this: &Apply<'_>,
    policy: &SharingPolicy,
    objects: &Objects,
    changes: Vec<NodeChange>,
    (expected, document): (&mut Expected, &mut Document),
) -> Result<(Option<NextChange>, bool)> {
    let mut has_changed = false;
    let mut planned = changes.into_iter();
    let mut mine = BTreeSet::new();
    let mut room = Room::of(policy, objects, &mine);
    if this.options.is_dry_run {
        this.would_change(policy, planned, room, (expected, document)).await;
        return Ok((None, false));
    }
    while let Some(change) = planned.next() {
        if policy.spec.apply && room.left > 0 {
            // Others may have changed nodes in the meantime.
            room = room.with(Room::of(policy, &this.objects().await?, &mine));
        }
        if let Some(why) = held_back(policy, &room, &change) {
            let why = &*why;
            let next = NextChange {
                node: change.node.clone(),
                from: change.from.words(),
                to: change.to.words(),
                why: why.to_owned(),
            };
            let mut row = |change: NodeChange| {
                expected.add(&change, false);
                NodeRow::planned(change, why)
            };
            document.nodes.push(row(change));
            document.nodes.extend(planned.map(row));
            return Ok((Some(next), has_changed));
        }
        let table = this.table(&objects.nodes[&change.node]);
        let row = this.change(policy, &change, table).await?;
        room = room.after(&row);
        if row.outcome != "refused" {
            mine.insert(row.node.clone());
        }
        // Also what was undone, or refused, leaves the node otherwise than it was read.
        has_changed = true;
        document.nodes.push(row);
    }
    Ok((None, has_changed))
}

/// Why a change does not begin now, after its outcome; `None` if it begins.
fn held_back(policy: &SharingPolicy, room: &Room, change: &NodeChange) -> Option<String> {
    match (policy.spec.apply, room.left) {
        (false, _) => Some("planned: the policy does not set `apply: true`".to_owned()),
        (_, 0) => Some(room.why.clone()),
        _ => change.held_back.clone(),
    }
}
