//! Workloads whose pods are to ask for another resource: changed one after the other, watched, and
//! returned if their latency gets worse.

use std::collections::BTreeSet;

use anyhow::Result;
use dovetail_console::clock::now_ms;
use dovetail_console::plain::plain;
use dovetail_sharing::watch::{Gate, Outcome, Period};
use dovetail_sharing::{
    Around, NextRequests, Owner, RequestsRecord, RequestsWrite, SharingPolicy, Workload,
    allowed_by, change, decided, due, event_about, gate_of_workloads, returned, roll_back, rolled,
};
use dovetail_sources::prometheus::AnyClient;

use super::Apply;
use super::document::Document;
use super::latency::{named_policy, outcome, refused};
use super::policy_nodes::{gate_of, why_no_more};
use super::workload_row::WorkloadRow;
use crate::asked::{AskedChange, WorkloadName};
use crate::objects::Objects;
use crate::workload_room::{MOST_READS, could_take, free, tool};

const CHANGES: &str = "it kept changing while dovetail read it: run the command again";

/// The workloads of a cluster, and the policies that they may change under.
pub(super) struct Workloads<'a> {
    apply: &'a Apply<'a>,
    policies: Vec<&'a SharingPolicy>,
    /// In a dry run, as they would be after what it reports.
    objects: &'a mut Objects,
    client: Option<Result<AnyClient, String>>,
    has_written: bool,
}

impl<'a> Workloads<'a> {
    /// `policies`: those that can be followed.
    pub(super) fn new(
        apply: &'a Apply<'a>,
        policies: Vec<&'a SharingPolicy>,
        objects: &'a mut Objects,
    ) -> Self {
        Self { apply, policies, objects, client: None, has_written: false }
    }

    /// Goes on with workloads that were changed, and changes those that are asked for; whether
    /// anything was written.
    pub(super) async fn run(
        mut self,
        asked: &[AskedChange],
        document: &mut Document,
    ) -> Result<bool> {
        if !self.objects.unlisted.is_empty() {
            let kinds = self.objects.unlisted.join(" and ");
            self.apply.app.note(&format!(
                "the credentials are not allowed to list {kinds}, so changed workloads are not \
                 checked: grant the permissions in deploy/sharing/rbac.yaml"
            ));
        }
        for place in 0..self.objects.owners.len() {
            if let Some(row) = self.go_on(place).await? {
                document.workloads.push(row);
            }
        }
        for one in asked {
            let name = one.workload.to_string();
            let back = document.workloads.iter().find(|row| row.is_back && row.workload == name);
            if let Some(row) = self.ask(one, back).await? {
                document.workloads.retain(|known| known.workload != row.workload);
                document.workloads.push(row);
            }
        }
        Ok(self.has_written)
    }

    /// Changes a workload that is asked for. `None` if its row about its way back says more: what
    /// goes back changes again in a later call at the earliest.
    async fn ask(
        &mut self,
        asked: &AskedChange,
        back: Option<&WorkloadRow>,
    ) -> Result<Option<WorkloadRow>> {
        if back.is_some_and(|row| matches!(&*row.outcome, "planned" | "Returned")) {
            return Ok(None);
        }
        let row = self.change(asked).await?;
        let is_as_before = matches!(&*row.outcome, "unchanged" | "waits");
        Ok((back.is_none() || !is_as_before).then_some(row))
    }

    fn is_dry_run(&self) -> bool {
        self.apply.options.is_dry_run
    }

    fn policy(&self, name: &str) -> Option<&'a SharingPolicy> {
        self.policies.iter().find(|policy| policy.name == name).copied()
    }

    /// The next step of a workload that was changed: its watch begins, its verdict, its return.
    async fn go_on(&mut self, place: usize) -> Result<Option<WorkloadRow>> {
        let mut owner = self.objects.owners[place].clone();
        let Some(record) = owner.record.clone() else { return Ok(None) };
        let Some(policy) = self.policy(&record.policy) else { return Ok(None) };
        if policy.spec.guard.is_none() || !policy.spec.apply {
            return Ok(None);
        }
        let is_unfinished = record.is_open() || record.returns();
        if is_unfinished && !owner.is_as_recorded() {
            let why = "another client changed its requests: dovetail no longer watches it";
            let row = WorkloadRow::of(&owner, &record, "overridden");
            return Ok(Some(row.with("overridden", why)));
        }
        if let Some(write) = rolled(&owner, now_ms()) {
            self.send(&owner, &write).await?;
            let record = if self.is_dry_run() { record } else { write.record };
            return Ok(Some(WorkloadRow::of(&owner, &record, record.step.word())));
        }
        let mut verdict = None;
        if let (Some(periods), Some(watch)) = (due(&owner, now_ms()), &record.watch) {
            let (outcome, why) = self.verdict(&owner, periods, &watch.query, policy).await;
            verdict = Some(format!("{}: {}", outcome.word(), plain(&why)));
            if outcome != Outcome::Waiting
                && let Some(write) = decided(&owner, outcome, &why)
                && self.send(&owner, &write).await?
            {
                owner = self.objects.owners[place].clone();
            }
        }
        let row = self.give_back(owner.clone()).await?;
        let row = row.or_else(|| {
            let record = owner.record.as_ref()?;
            let is_shown = is_unfinished || verdict.is_some();
            is_shown.then(|| rolling(&owner, record))
        });
        let judged = |row: WorkloadRow| match &verdict {
            Some(latency) => WorkloadRow { latency: latency.clone(), ..row },
            None => row,
        };
        Ok(row.map(judged))
    }

    /// Makes a workload whose latency got worse ask for its former resource.
    async fn give_back(&mut self, mut owner: Owner) -> Result<Option<WorkloadRow>> {
        for _ in 0..MOST_READS {
            let Some(record) = owner.record.clone() else { return Ok(None) };
            let around = self.around(&owner, &record.from, None);
            let Some(next) = returned(&owner, &around, now_ms()) else { return Ok(None) };
            if let Some(row) = self.back(&owner, &record, next).await? {
                return Ok(Some(row));
            }
            // Its controller writes its status after each change.
            match self.read(&WorkloadName::of(&owner.about)).await? {
                Ok(now) => owner = now,
                Err(_) => return Ok(None),
            }
        }
        let record = owner.record.as_ref();
        let row = record.map(|record| WorkloadRow::of(&owner, record, "waits"));
        Ok(row.map(|row| WorkloadRow { is_back: true, ..row.with("waits", CHANGES) }))
    }

    /// Latency of all pods of a workload before and after its change.
    async fn verdict(
        &mut self,
        owner: &Owner,
        periods: [Period; 2],
        query: &str,
        policy: &SharingPolicy,
    ) -> (Outcome, String) {
        if self.client.is_none() {
            self.client = Some(self.apply.prometheus().await);
        }
        let client = match self.client.as_mut() {
            Some(Ok(client)) => client,
            // The next call asks again.
            Some(Err(problem)) => return (Outcome::Waiting, problem.clone()),
            None => return (Outcome::Waiting, String::new()),
        };
        let workload = Workload::of_owner(&owner.about);
        match outcome(&policy.spec, &workload, periods, query, client).await {
            Ok(verdict) => verdict,
            Err(error) => {
                if let Some(why) = refused(&error) {
                    self.apply.query_refused(policy, &why).await;
                }
                (Outcome::Waiting, error.to_string())
            }
        }
    }

    /// Makes the pods of a workload ask for another resource, if that may be.
    async fn change(&mut self, asked: &AskedChange) -> Result<WorkloadRow> {
        let AskedChange { workload, resource } = asked;
        let row = WorkloadRow::asked(workload, resource);
        for _ in 0..MOST_READS {
            let owner = match self.read(workload).await? {
                Ok(owner) => owner,
                Err(why) => return Ok(row.with("refused", &why)),
            };
            let (container, from) = match owner.asks() {
                Ok(asks) => asks,
                Err(why) => return Ok(row.with("refused", &why)),
            };
            let row = WorkloadRow {
                container: container.name.clone(),
                from: from.to_owned(),
                ..row.clone()
            };
            if from == resource {
                let latency = owner.record.as_ref().map(RequestsRecord::latency);
                let latency = latency.unwrap_or_default();
                return Ok(WorkloadRow { latency, ..row.with("unchanged", "") });
            }
            let policy = match self.allowing(&owner, resource) {
                Ok(policy) => policy,
                Err(why) => return Ok(row.with("refused", &why)),
            };
            let row = WorkloadRow { policy: policy.name.clone(), ..row };
            let held = match self.held(policy) {
                Ok(held) => held,
                Err(why) => return Ok(row.with("refused", &why)),
            };
            let around = self.around(&owner, resource, held);
            match change(&owner, resource, policy, &around, now_ms()) {
                NextRequests::Write(write) => {
                    if let Some(row) = self.written(&owner, &write).await? {
                        return Ok(row);
                    }
                }
                next => return Ok(unwritten(row, &owner, next, resource)),
            }
        }
        Ok(row.with("refused", CHANGES))
    }

    /// Makes a workload ask for its former resource because people want that.
    pub(super) async fn roll_back(&mut self, workload: &WorkloadName) -> Result<WorkloadRow> {
        let row = WorkloadRow::asked(workload, "");
        for _ in 0..MOST_READS {
            let owner = match self.read(workload).await? {
                Ok(owner) => owner,
                Err(why) => return Ok(row.with("refused", &why)),
            };
            let former = owner.record.as_ref().map(|record| record.from.clone());
            let around = self.around(&owner, &former.unwrap_or_default(), None);
            let next = roll_back(&owner, &around, now_ms());
            let Some(record) = owner.record.clone() else {
                return Ok(unwritten(row, &owner, next, ""));
            };
            if let Some(row) = self.back(&owner, &record, next).await? {
                return Ok(row);
            }
        }
        Ok(row.with("refused", CHANGES))
    }

    /// Does what follows for a workload that is to ask for its former resource; `None` if it has
    /// changed since it was read.
    async fn back(
        &mut self,
        owner: &Owner,
        record: &RequestsRecord,
        next: NextRequests,
    ) -> Result<Option<WorkloadRow>> {
        let mut row = WorkloadRow { is_back: true, ..WorkloadRow::of(owner, record, "") };
        (row.from, row.to) = (record.to.clone(), record.from.clone());
        let NextRequests::Write(write) = next else {
            let to = row.to.clone();
            return Ok(Some(unwritten(row, owner, next, &to)));
        };
        let written = self.written(owner, &write).await?;
        let WorkloadRow { from, to, is_back, .. } = row;
        Ok(written.map(|written| WorkloadRow { from, to, is_back, ..written }))
    }

    /// Writes a change; `None` if the workload has changed since it was read.
    async fn written(
        &mut self,
        owner: &Owner,
        write: &RequestsWrite,
    ) -> Result<Option<WorkloadRow>> {
        let record = &write.record;
        let former = if record.asked() == record.to { &record.from } else { &record.to };
        let row = WorkloadRow::of(owner, record, record.step.word());
        let mut row = row.with_manifest(owner, former, record.asked());
        if self.is_dry_run() {
            row = row.with("planned", "");
            // Nothing is watched yet.
            if record.is_open() {
                row.latency.clear();
            }
        }
        Ok(self.send(owner, write).await?.then_some(row))
    }

    /// Sends a write, its events first; `false` if the workload has changed since it was read. A
    /// process that dies in between repeats both. A dry run goes on as if it had been sent.
    async fn send(&mut self, owner: &Owner, write: &RequestsWrite) -> Result<bool> {
        if self.is_dry_run() {
            self.keep(write.applied_to(owner));
            return Ok(true);
        }
        if let Some((reason, message, is_warning)) = &write.event {
            let said = format!("{} {} {reason}", owner.about.uid, write.record.started_ms);
            let sender = self.apply.sender();
            let what = (*reason, &**message, *is_warning);
            sender.tell(&event_about(&owner.about, what, &said, now_ms())).await;
            if let Some(policy) = self.policy(&write.record.policy) {
                let message = format!("{}: {message}", owner.words());
                let what = (*reason, &*message, *is_warning);
                sender.tell(&event_about(&named_policy(policy), what, &said, now_ms())).await;
            }
        }
        let name = WorkloadName::of(&owner.about);
        if !self.apply.server.apply(&name, &write.body).await? {
            return Ok(false);
        }
        self.has_written = true;
        self.apply.app.note(&format!("{name}: {}", write.record.step.word()));
        if let Ok(now) = self.read(&name).await? {
            self.keep(now);
        }
        Ok(true)
    }

    /// Takes a workload in place of what was known of it.
    fn keep(&mut self, now: Owner) {
        match self.objects.owners.iter_mut().find(|one| one.about == now.about) {
            Some(known) => *known = now,
            None => self.objects.owners.push(now),
        }
    }

    /// A workload as it is now, or why it cannot be changed.
    async fn read(&self, name: &WorkloadName) -> Result<Result<Owner, String>> {
        if let Some(why) = name.other_kind() {
            return Ok(Err(why));
        }
        let Some(object) = self.apply.server.owner(name).await? else {
            return Ok(Err(
                "the cluster has no such workload: check the namespace and name".to_owned()
            ));
        };
        Ok(Owner::read(&object))
    }

    /// The policy that lets the pods of a workload ask for a resource.
    fn allowing(&self, owner: &Owner, resource: &str) -> Result<&'a SharingPolicy, String> {
        let nodes = self.apply.gpu_nodes(self.objects);
        let takes = could_take(owner, resource, self.objects);
        let policies = self.policies.iter().copied();
        allowed_by(resource, policies, &nodes, self.apply.tables, takes)
    }

    /// Why the guard of a policy lets no workload change now; an error if that is not known.
    fn held(&self, policy: &SharingPolicy) -> Result<Option<String>, String> {
        if policy.spec.guard.is_none() {
            return Ok(None);
        }
        if !self.objects.unlisted.is_empty() {
            return Err(format!(
                "the credentials are not allowed to list {}, so whether another change is being \
                 watched is unknown: grant the permissions in deploy/sharing/rbac.yaml",
                self.objects.unlisted.join(" and ")
            ));
        }
        let gate = gate_of(policy, self.objects, &BTreeSet::new());
        let gate = gate.and(gate_of_workloads(policy, self.objects.owners.iter(), false));
        Ok(match gate {
            Gate::Open | Gate::Canary => None,
            gate => why_no_more(&gate),
        })
    }

    fn around(&self, owner: &Owner, resource: &str, held: Option<String>) -> Around {
        let free = match owner.ends_pods() {
            Some(_) => free(owner, resource, self.objects),
            None => 0,
        };
        Around { free, tool: tool(owner), held }
    }
}

/// A workload that is watched, or whose pods are being replaced.
fn rolling(owner: &Owner, record: &RequestsRecord) -> WorkloadRow {
    let row = WorkloadRow::of(owner, record, record.step.word());
    match record.step.word() {
        "Rolling" => {
            let (ready, replicas) = (owner.ready, owner.replicas);
            row.with("Rolling", &format!("{ready} of {replicas} new pods are ready"))
        }
        step => row.with(step, ""),
    }
}

/// The row of a workload that is not written now.
fn unwritten(row: WorkloadRow, owner: &Owner, next: NextRequests, to: &str) -> WorkloadRow {
    match next {
        NextRequests::Unchanged | NextRequests::Write(_) => row.with("unchanged", ""),
        NextRequests::Refused(why) => row.with("refused", &why),
        NextRequests::Waits(why) => row.with("waits", &why),
        NextRequests::Manifest(why) => {
            let from = row.from.clone();
            row.with("manifest", &why).with_manifest(owner, &from, to)
        }
    }
}
