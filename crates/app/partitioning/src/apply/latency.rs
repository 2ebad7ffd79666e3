//! Latency after changes: verdicts that are due, and what follows from them.

use anyhow::Result;
use dovetail_console::clock::now_ms;
use dovetail_console::plain::plain;
use dovetail_guard::{Judgement, LatencyVerdict, Load, QuantileVerdict, Unknown, judge};
use dovetail_metrics::latency::{BLOCKS, Blocks, LatencyError, read};
use dovetail_metrics::prometheus::{AnswerError, QueryError};
use dovetail_sharing::latency_query::{Asked, BUILT_IN, fill};
use dovetail_sharing::watch::{
    Outcome, Period, after, before, conclude, is_due, is_warning, reason,
};
use dovetail_sharing::{
    ObjectName, PolicySpec, Problem, Record, Seen, SharingPolicy, Step, Workload, event_about,
    give_back, record_not_rolled_back, why_not_rolled_back, workloads,
};
use dovetail_sources::prometheus::AnyClient;
use dovetail_units::amount::percent;

use super::Apply;
use super::document::{Document, NodeRow, VerdictRow};
use super::policy_nodes::changed_under;
use crate::expected::Expected;
use crate::objects::{Objects, SeenNode};
use crate::policy::VERSION;

/// A verdict on a node, with the ones on its workloads.
struct NodeVerdict {
    outcome: Outcome,
    why: String,
    workloads: Vec<(Workload, Outcome, String)>,
    /// Why the server refuses the query.
    refused: Option<String>,
}

impl Apply<'_> {
    /// Judges the nodes of a policy whose watch is over, and sends nodes that got worse back;
    /// what is wrong with its query. In a dry run, only `objects` and `expected` have the verdicts
    /// and what becomes of the nodes.
    pub(super) async fn judge(
        &self,
        policy: &SharingPolicy,
        objects: &mut Objects,
        (expected, document): (&mut Expected, &mut Document),
    ) -> Result<Option<Problem>> {
        if policy.spec.guard.is_none() || !policy.spec.apply {
            return Ok(None);
        }
        let (mut problem, mut client) = (None, None);
        let mut judged = Vec::new();
        for (node, seen, record) in changed_under(policy, objects) {
            let mut given = None;
            if is_due(&record, now_ms()) {
                if client.is_none() {
                    client = Some(self.prometheus().await);
                }
                let client = client.as_mut().expect("it was set");
                let verdict = self.verdict(policy, node, &record, client).await?;
                let row = VerdictRow {
                    node: node.clone(),
                    verdict: verdict.outcome.word().to_owned(),
                    why: plain(&verdict.why).to_string(),
                };
                document.verdicts.push(row);
                if let Some(refused) = &verdict.refused {
                    problem = Some(self.query_refused(policy, refused).await);
                }
                if verdict.outcome == Outcome::Waiting {
                    continue;
                }
                if !self.options.is_dry_run {
                    self.conclude(policy, node, seen, &verdict).await?;
                }
                given = Some(verdict);
            }
            if self.options.is_dry_run {
                let about = (node.as_str(), seen, &record);
                let record = would_send_back(self, about, given.as_ref(), document).await?;
                judged.extend(record.map(|record| (node.clone(), record)));
            } else {
                self.send_back(policy, node, seen, document).await?;
            }
        }
        for (node, record) in judged {
            expected.add_return(&node, &record);
            objects.nodes.entry(node).and_modify(|seen| seen.set_record(&record));
        }
        Ok(problem)
    }

    /// A server that has latency, or why there is none.
    pub(super) async fn prometheus(&self) -> Result<AnyClient, String> {
        let (choice, cluster) = (&self.options.prometheus, &self.options.connection);
        let none = "no Prometheus server was found: pass --prometheus URL";
        match self.options.way.reach(choice, cluster).await {
            Ok((client, told)) => {
                told.iter().for_each(|line| self.app.note(line));
                client.ok_or_else(|| none.to_owned())
            }
            Err(error) => Err(format!("{error:#}")),
        }
    }

    async fn verdict(
        &self,
        policy: &SharingPolicy,
        node: &str,
        record: &Record,
        client: &mut Result<AnyClient, String>,
    ) -> Result<NodeVerdict> {
        let none = |outcome: Outcome, why: &str| {
            Ok(NodeVerdict { outcome, why: why.to_owned(), workloads: Vec::new(), refused: None })
        };
        // Nothing is known of what a server that does not answer has: the next call asks again.
        let client = match client {
            Ok(client) => client,
            Err(problem) => return none(Outcome::Waiting, problem),
        };
        let Some(watch) = &record.watch else { return none(Outcome::Waiting, "") };
        let found = workloads(&self.server.pods_of(node).await?);
        if found.is_empty() {
            return none(Outcome::Unknown, "no pod uses its GPUs");
        }
        let mut judged = Vec::new();
        for workload in found {
            let periods = [before(record, watch), after(record, watch)];
            let measured = outcome(&policy.spec, &workload, periods, &watch.query, client).await;
            let (outcome, why) = match measured {
                Ok(verdict) => verdict,
                Err(error) => {
                    let waiting = none(Outcome::Waiting, &error.to_string())?;
                    return Ok(NodeVerdict { refused: refused(&error), ..waiting });
                }
            };
            judged.push((workload, outcome, why));
        }
        let order = [Outcome::Worse, Outcome::Unknown, Outcome::Better, Outcome::Same];
        let first = order.into_iter().find_map(|outcome| {
            judged
                .iter()
                .find(|(_, of, _)| *of == outcome)
                .map(|(_, _, why)| (outcome, why.clone()))
        });
        let (outcome, why) = first.unwrap_or((Outcome::Unknown, String::new()));
        Ok(NodeVerdict { outcome, why, workloads: judged, refused: None })
    }

    /// Tells that the server refuses the query of a policy.
    pub(super) async fn query_refused(&self, policy: &SharingPolicy, why: &str) -> Problem {
        let why = format!("Prometheus rejected the query: {}", plain(why));
        let problem = Problem::WrongField { field: "guard.query".to_owned(), why };
        if !self.options.is_dry_run {
            let message = problem.to_string();
            let said = format!("{} {message}", policy.uid);
            let what = ("LatencyQueryRefused", &*message, true);
            self.sender().tell(&event_about(&named_policy(policy), what, &said, now_ms())).await;
        }
        problem
    }

    /// Writes a verdict into the record of its node, with events on node, owners and policy.
    async fn conclude(
        &self,
        policy: &SharingPolicy,
        node: &str,
        seen: &SeenNode,
        verdict: &NodeVerdict,
    ) -> Result<()> {
        let (now, _) = self.server.seen(node, self.table(seen), &self.options.timing, None).await?;
        let Some(write) = conclude(&now, verdict.outcome, &verdict.why, now_ms()) else {
            return Ok(());
        };
        if !self.sender().write(node, &write).await? {
            return Ok(());
        }
        let started_ms = write.record.started_ms;
        let judged = Seen { record: Some(write.record), ..now };
        let of_worse = match why_not_rolled_back(&judged) {
            Some(why) => format!("; {why}"),
            None if give_back(&judged, now_ms()).is_some() => {
                "; the node is rolled back: restart its pods to move them".to_owned()
            }
            None => String::new(),
        };
        for (workload, outcome, why) in &verdict.workloads {
            let mut owner = workload.owner.clone();
            if let Some(replica_set) = &workload.replica_set {
                let uid = self.server.owner_uid(&owner.namespace, replica_set).await;
                owner.uid = uid.unwrap_or_default();
            }
            let advice = match outcome {
                Outcome::Worse => &*of_worse,
                _ => "",
            };
            let message = format!("latency on node {node} since its layout changed: {why}{advice}");
            self.receipt(&owner, *outcome, &message, node, started_ms).await;
        }
        let message =
            format!("latency on node {node}: {}: {}", verdict.outcome.word(), verdict.why);
        self.receipt(&named_policy(policy), verdict.outcome, &message, node, started_ms).await;
        Ok(())
    }

    async fn receipt(
        &self,
        about: &ObjectName,
        outcome: Outcome,
        message: &str,
        node: &str,
        started_ms: u64,
    ) {
        let said = format!("{} {node} {started_ms} {}", about.uid, reason(outcome));
        let what = (reason(outcome), message, is_warning(outcome));
        self.sender().tell(&event_about(about, what, &said, now_ms())).await;
    }

    /// Sends a node whose latency got worse back to its former layout, or reports why it does not.
    async fn send_back(
        &self,
        policy: &SharingPolicy,
        node: &str,
        seen: &SeenNode,
        document: &mut Document,
    ) -> Result<()> {
        let table = self.table(seen);
        let now = self.seen(node, table).await?;
        let Some(write) = give_back(&now, now_ms()) else {
            return report_not_rolled_back(self, policy, node, &now, document).await;
        };
        self.check(write.record.by).await?;
        if !self.sender().write(node, &write).await? {
            return Ok(());
        }
        self.sender().told(node, &write.record);
        let record = self.run_to_end(node, table).await?;
        document.nodes.push(NodeRow::ended(node, &record));
        Ok(())
    }
}

/// Reports what [`Apply::send_back`] would do with a node that has a record, once a verdict on it
/// is given; answers with the record that the node would have at the end of the call, if that is
/// another one.
async fn would_send_back(
    this: &Apply<'_>,
    (node, seen, record): (&str, &SeenNode, &Record),
    given: Option<&NodeVerdict>,
    document: &mut Document,
) -> Result<Option<Record>> {
    let is_worse = record.watch.as_ref().is_some_and(|of| of.outcome == Outcome::Worse);
    if given.is_none() && !is_worse {
        return Ok(None);
    }
    let mut now = this.seen(node, this.table(seen)).await?;
    let write = given.and_then(|of| conclude(&now, of.outcome, &of.why, now_ms()));
    let judged = write.map(|write| write.record);
    if judged.is_some() {
        now.record.clone_from(&judged);
    }
    if let Some(write) = give_back(&now, now_ms()) {
        this.check(write.record.by).await?;
        document.nodes.push(NodeRow::would_return(node, &write.record));
        return Ok(Some(at_the_end(record, write.record)));
    }
    let why = why_not_rolled_back(&now);
    document.nodes.extend(why.map(|why| NodeRow::stays(node.to_owned(), why)));
    Ok(judged)
}

/// The record of a node that goes back, at the end of the call: pods that are in the way have to
/// finish first; without them the node has its former layout after as long as its change took.
fn at_the_end(change: &Record, back: Record) -> Record {
    if back.step == Step::Emptying {
        return back;
    }
    let took_ms = change.since_ms.saturating_sub(change.started_ms);
    let started_ms = back.since_ms.saturating_sub(took_ms);
    Record { step: Step::Done, attempt: 1, started_ms, ..back }
}

/// If a node whose latency got worse is not rolled back, reports it on the node, on the policy
/// and in the answer.
async fn report_not_rolled_back(
    this: &Apply<'_>,
    policy: &SharingPolicy,
    node: &str,
    now: &Seen,
    document: &mut Document,
) -> Result<()> {
    let why = why_not_rolled_back(now);
    if let Some(write) = record_not_rolled_back(now, now_ms()) {
        if !this.sender().write(node, &write).await? {
            return Ok(());
        }
        if let Some(why) = &why {
            let (message, said) = (format!("node {node}: {why}"), format!("{node} {why}"));
            let what = ("NotRolledBack", &*message, true);
            let event = event_about(&named_policy(policy), what, &said, now_ms());
            this.sender().tell(&event).await;
        }
    }
    document.nodes.extend(why.map(|why| NodeRow::stays(node.to_owned(), why)));
    Ok(())
}

/// The policy as an object that events can be about.
pub(super) fn named_policy(policy: &SharingPolicy) -> ObjectName {
    ObjectName {
        api_version: VERSION.to_owned(),
        kind: "SharingPolicy".to_owned(),
        namespace: String::new(),
        name: policy.name.clone(),
        uid: policy.uid.clone(),
    }
}

/// Why a server refuses a query; `None` if it does not.
pub(super) fn refused(error: &QueryError) -> Option<String> {
    let QueryError::Answer { source: AnswerError::Refused { kind, message }, .. } = error else {
        return None;
    };
    matches!(&**kind, "bad_data" | "execution").then(|| message.clone())
}

/// What came of the latency of a workload between two periods, with what that rests on, by the
/// query that the policy had when the change began. If the server refuses it, the present one is
/// used.
///
/// # Errors
/// A server without an answer: it is asked again later.
pub(super) async fn outcome(
    spec: &PolicySpec,
    workload: &Workload,
    periods: [Period; 2],
    query: &str,
    client: &mut AnyClient,
) -> Result<(Outcome, String), QueryError> {
    let present = spec.guard.as_ref().map(|guard| &*guard.query).unwrap_or_default();
    let mut measured = measure_by(query, workload, periods, client).await;
    if let Err(LatencyError::Query(error)) = &measured
        && present != query
        && refused(error).is_some()
    {
        measured = measure_by(present, workload, periods, client).await;
    }
    match measured {
        Ok((source, judgement)) => Ok(words(workload, source, &judgement)),
        Err(LatencyError::Query(error)) => Err(error),
        Err(error) => Ok((Outcome::Unknown, format!("{}: {error}", named(workload)))),
    }
}

/// Latency of a workload: of its pods on the node after the change, of all its pods in the same
/// hours before. The first histogram that has series decides.
async fn measure_by(
    query: &str,
    workload: &Workload,
    periods: [Period; 2],
    client: &mut AnyClient,
) -> Result<(String, Judgement), LatencyError> {
    let queries = match query {
        "" => BUILT_IN.to_vec(),
        own => vec![("spec.guard.query", own)],
    };
    let unknown = |unknown: Unknown| Judgement {
        verdict: LatencyVerdict::Unknown(unknown),
        quantiles: Vec::new(),
    };
    let [before, after] = periods.map(blocks);
    for (source, query) in queries {
        let ask = |pods: &str| {
            let asked = Asked {
                namespace: &workload.owner.namespace,
                workload: &workload.owner.name,
                pods,
                window_ms: after.block_ms,
            };
            fill(query, &asked)
        };
        let earlier = read(client, &ask(&workload.all_pods), before).await?;
        let there = read(client, &ask(&workload.pods), after).await?;
        let (earlier, there) = match (earlier, there) {
            (None, None) => continue,
            (Some(earlier), Some(there)) => (earlier, there),
            _ => return Ok((source.to_owned(), unknown(Unknown::NoSeries))),
        };
        let all = read(client, &ask(&workload.all_pods), after).await?;
        let load = Load::of(&earlier, all.as_ref().unwrap_or(&there));
        return Ok((source.to_owned(), judge(&earlier, &there, load)));
    }
    Ok((String::new(), unknown(Unknown::NoSeries)))
}

fn blocks(period: Period) -> Blocks {
    let length_ms = period.to_ms - period.from_ms;
    Blocks { from_ms: period.from_ms, block_ms: length_ms / BLOCKS as u64 }
}

fn named(workload: &Workload) -> String {
    format!("{}/{}", workload.owner.namespace, workload.owner.name)
}

fn signed(share: f64) -> String {
    let sign = if share < 0.0 { '-' } else { '+' };
    format!("{sign}{}", percent(share.abs()))
}

/// A judgement in words, for events.
fn words(workload: &Workload, source: String, judgement: &Judgement) -> (Outcome, String) {
    let outcome = match judgement.verdict {
        LatencyVerdict::Better => Outcome::Better,
        LatencyVerdict::Same => Outcome::Same,
        LatencyVerdict::Worse => Outcome::Worse,
        LatencyVerdict::Unknown(_) => Outcome::Unknown,
    };
    let of = |one: &QuantileVerdict| {
        let name = format!("p{:.0}", one.quantile * 100.0);
        match &one.change {
            Ok(change) => {
                let [estimate, low, high] = [change.estimate, change.low, change.high].map(signed);
                format!("{name} {estimate} ({low} to {high})")
            }
            Err(unknown) => format!("{name} unknown ({unknown})"),
        }
    };
    let quantiles: Vec<String> = judgement.quantiles.iter().map(of).collect();
    let what = match (&judgement.verdict, quantiles.is_empty()) {
        (LatencyVerdict::Unknown(unknown), true) => unknown.to_string(),
        _ => quantiles.join(", "),
    };
    let source = if source.is_empty() { source } else { format!(" ({source})") };
    (outcome, format!("{}{source}: {what}", named(workload)))
}

#[cfg(test)]
mod tests {
    use dovetail_guard::QuantileChange;

    use super::*;

    /// On both sides: the bound that matters is the one nearer to zero.
    #[test]
    fn a_change_is_told_with_both_bounds() {
        let [api_version, kind, namespace, name] =
            ["apps/v1", "Deployment", "prod", "chat"].map(str::to_owned);
        let owner = ObjectName { api_version, kind, namespace, name, uid: String::new() };
        let workload = Workload::of_owner(&owner);
        let change = QuantileChange { estimate: -0.203, low: -0.218, high: -0.188 };
        let quantiles = vec![QuantileVerdict { quantile: 0.5, change: Ok(change) }];
        let judgement = Judgement { verdict: LatencyVerdict::Better, quantiles };
        let (outcome, told) = words(&workload, "vLLM".to_owned(), &judgement);
        assert_eq!(outcome, Outcome::Better);
        assert_eq!(told, "prod/chat (vLLM): p50 -20.3% (-21.8% to -18.8%)");
    }

    #[test]
    fn a_query_that_the_server_refuses_is_told_from_a_server_that_has_no_answer() {
        let answer = |kind: &str| QueryError::Answer {
            server: "s".to_owned(),
            query: "q".to_owned(),
            source: AnswerError::Refused { kind: kind.to_owned(), message: "no".to_owned() },
        };
        assert_eq!(refused(&answer("bad_data")).as_deref(), Some("no"));
        assert_eq!(refused(&answer("timeout")), None);
        assert_eq!(refused(&QueryError::Step { step_ms: 0 }), None);
    }
}
