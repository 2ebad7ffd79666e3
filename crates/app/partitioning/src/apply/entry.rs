//! The commands that change a cluster: policies followed, changes rolled back.

use anyhow::{Context, Result, bail};
use dovetail_console::app::App;
use dovetail_console::clock::now_ms;
use dovetail_console::plain::{plain, plain_message};
use dovetail_model::MigTable;
use dovetail_settings::errors::UsageError;
use dovetail_sharing::{Next, Problem, Record, SharingPolicy, problems, revert};

use super::classes::annotate_classes;
use super::document::{Document, NodeRow, PolicyRow};
use super::replace::settle;
use super::workloads::Workloads;
use super::{Apply, Followed, Options};
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
        let mut followed = Followed::default();
        if problem.is_none() {
            match judge_and_follow(&this, policy, &mut objects, (&mut expected, &mut document))
                .await
            {
                Ok(found) => (problem, followed) = found,
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
            problem: problem.as_ref().map(|one| plain_message(&one.to_string())),
            warnings: warnings(&objects, &policy.spec),
        });
        if is_of_server && !options.is_dry_run {
            let reported = this.report(policy, &objects, problem.as_ref(), followed).await;
            reported.unwrap_or_else(|error| document.failed(error));
        }
    }
    Ok(document)
}

/// Gives the verdicts that are due under a policy, and changes its nodes; answers with what is
/// wrong with the policy, and with what is left to do.
async fn judge_and_follow(
    this: &Apply<'_>,
    policy: &SharingPolicy,
    objects: &mut Objects,
    (expected, document): (&mut Expected, &mut Document),
) -> Result<(Option<Problem>, Followed)> {
    let problem = this.judge(policy, objects, (&mut *expected, &mut *document)).await?;
    // Verdicts decide about the nodes that follow. Those of a dry run are in these objects only.
    if policy.spec.guard.is_some() && !this.options.is_dry_run {
        *objects = this.objects().await?;
    }
    let followed = this.follow(policy, objects, expected, document).await?;
    if followed.has_changed {
        *objects = this.objects().await?;
    }
    Ok((problem, followed))
}

/// Takes nodes back to the layout that they had before their last change, and workloads to what
/// they asked for. What one of them is refused for does not keep the others, and is an error of the
/// document.
///
/// # Errors
/// As [`apply`].
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
            match all.roll_back(workload).await {
                Ok(row) => document.workloads.push(row),
                Err(error) => document.failed(error),
            }
        }
    }
    for node in nodes {
        let table = objects.nodes.get(node).and_then(|seen| this.table(seen));
        let row = match begin_return(&this, &objects, node).await {
            Err(error) => {
                let row = NodeRow::not_rolled_back(node, &error);
                document.failed(error);
                row
            }
            Ok(record) if options.is_dry_run => NodeRow::of(node, &record, "planned"),
            Ok(record) => match this.run_to_end(node, table).await {
                Ok(record) => NodeRow::ended(node, &record),
                Err(error) => {
                    let row = NodeRow::of(node, &record, record.step.word());
                    let row = NodeRow { problem: format!("{error:#}"), ..row };
                    document.failed(error);
                    row
                }
            },
        };
        document.nodes.push(row);
    }
    Ok(document)
}

/// Begins the way back of a node, except in a dry run; answers with the record of its first step.
async fn begin_return(this: &Apply<'_>, objects: &Objects, node: &str) -> Result<Record> {
    let seen = objects.nodes.get(node);
    let seen = seen.with_context(|| format!("the cluster has no node {}", plain(node)))?;
    let now = this.seen(node, this.table(seen)).await?;
    let write = revert(&now, now_ms())?;
    this.check(write.record.by).await?;
    if this.options.is_dry_run {
        return Ok(write.record);
    }
    if let Some(record) = &now.record {
        settle(&this.server, record, &Next::Over).await?;
    }
    if !this.sender().write(node, &write).await? {
        bail!("node {node} changed while it was read: run the command again");
    }
    Ok(write.record)
}
