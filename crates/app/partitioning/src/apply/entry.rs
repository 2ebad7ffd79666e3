//! The commands that change a cluster: policies followed, changes rolled back.

use anyhow::{Context, Result, bail};
use dovetail_console::app::App;
use dovetail_console::clock::now_ms;
use dovetail_console::plain::plain;
use dovetail_model::MigTable;
use dovetail_settings::errors::UsageError;
use dovetail_sharing::{Next, NextChange, Problem, SharingPolicy, problems, revert};

use super::classes::annotate_classes;
use super::document::{Document, NodeRow, PolicyRow};
use super::replace::settle;
use super::workloads::Workloads;
use super::{Apply, Options};
use crate::asked::WorkloadName;
use crate::expected::Expected;
use crate::objects::Objects;
use crate::replicas::warnings;

/// Follows the policies of a cluster, or one from a file.
///
/// # Errors
/// A server that does not answer or refuses; an operator that does not read dovetail's layouts.
pub async fn apply(
    app: &App,
    options: &Options,
    policy: Option<SharingPolicy>,
    tables: &[MigTable],
) -> Result<Document> {
    let this = Apply::new(app, options, tables).await?;
    let mut document = Document::default();
    // A cluster is read again once a node has changed.
    let mut objects = this.objects().await?;
    if this.resume(&objects, &mut document).await {
        objects = this.objects().await?;
    }
    let is_of_server = policy.is_none();
    let (policies, unreadable) = match policy {
        Some(policy) => (vec![policy], Vec::new()),
        None => this.policies().await?,
    };
    document.policies.extend(unreadable);
    let problems = problems(&policies, &this.gpu_nodes(&objects), tables);
    if !options.is_dry_run {
        let followed = policies.iter().zip(problems.iter().map(Option::is_none));
        let is_all = is_of_server && document.policies.is_empty();
        let done = annotate_classes(&this.server, followed, is_all, &objects).await;
        done.unwrap_or_else(|error| document.failed(error));
    }
    if policies.is_empty() && document.policies.is_empty() && document.nodes.is_empty() {
        let text = "the cluster has no SharingPolicy: create one, or name a file with --policy FILE \
                    (docs/sharing.md)";
        return Err(UsageError(text.to_owned()).into());
    }
    let ready = policies.iter().zip(&problems).filter(|(_, problem)| problem.is_none());
    let ready: Vec<&SharingPolicy> = ready.map(|(policy, _)| policy).collect();
    let workloads = Workloads::new(&this, ready, &mut objects);
    if workloads.run(&options.workloads, &mut document).await? {
        objects = this.objects().await?;
    }
    let mut expected = Expected::default();
    for (policy, problem) in policies.iter().zip(&problems) {
        let mut problem = problem.clone();
        let mut next = None;
        if problem.is_none() {
            match judge_and_follow(&this, policy, &mut objects, (&mut expected, &mut document))
                .await
            {
                Ok(found) => (problem, next) = found,
                // The other policies are followed all the same.
                Err(error) => {
                    problem = Some(Problem::Failed(format!("{error:#}")));
                    document.failed(error);
                    objects = this.objects().await?;
                }
            }
        }
        document.policies.push(PolicyRow {
            policy: policy.name.clone(),
            is_ready: problem.is_none(),
            is_applied: policy.spec.apply && !options.is_dry_run,
            problem: problem.as_ref().map(|one| plain(&one.to_string()).to_string()),
            warnings: warnings(&objects, &policy.spec),
        });
        if is_of_server && !options.is_dry_run {
            let reported = this.report(policy, &objects, problem.as_ref(), next).await;
            reported.unwrap_or_else(|error| document.failed(error));
        }
    }
    Ok(document)
}

/// Gives the verdicts that are due under a policy, and changes its nodes; answers with what is
/// wrong with the policy, and with the change that is left to do.
async fn judge_and_follow(
    this: &Apply<'_>,
    policy: &SharingPolicy,
    objects: &mut Objects,
    (expected, document): (&mut Expected, &mut Document),
) -> Result<(Option<Problem>, Option<NextChange>)> {
    let problem = this.judge(policy, objects, document).await?;
    // Verdicts decide about the nodes that follow.
    if policy.spec.guard.is_some() {
        *objects = this.objects().await?;
    }
    let (next, has_changed) = this.follow(policy, objects, expected, document).await?;
    if has_changed {
        *objects = this.objects().await?;
    }
    Ok((problem, next))
}

/// Takes nodes back to the layout that they had before their last change, and workloads to what
/// they asked for.
///
/// # Errors
/// As [`apply`]; a node that cannot go back.
pub async fn rollback(
    app: &App,
    options: &Options,
    nodes: &[String],
    workloads: &[WorkloadName],
    tables: &[MigTable],
) -> Result<Document> {
    let this = Apply::new(app, options, tables).await?;
    let mut objects = this.objects().await?;
    let mut document = Document::default();
    if !workloads.is_empty() {
        let (policies, _) = this.policies().await?;
        let mut all = Workloads::new(&this, policies.iter().collect(), &mut objects);
        for workload in workloads {
            document.workloads.push(all.roll_back(workload).await?);
        }
    }
    for node in nodes {
        let seen = objects.nodes.get(node);
        let seen = seen.with_context(|| format!("the cluster has no node {}", plain(node)))?;
        let table = this.table(seen);
        let now = this.seen(node, table).await?;
        let write = revert(&now, now_ms())?;
        this.check(write.record.by).await?;
        if options.is_dry_run {
            document.nodes.push(NodeRow::of(node, &write.record, "planned"));
            continue;
        }
        if let Some(record) = &now.record {
            settle(&this.server, record, &Next::Over).await?;
        }
        if !this.sender().write(node, &write).await? {
            bail!("node {node} changed while it was read: run the command again");
        }
        let record = this.run_to_end(node, table).await?;
        document.nodes.push(NodeRow::ended(node, &record));
    }
    Ok(document)
}
