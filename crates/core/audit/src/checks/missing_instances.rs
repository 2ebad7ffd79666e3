//! SHR-08: pending pods ask for MIG instances of which too few are free, and another layout of a
//! GPU has them.
//!
//! A node that another layout lets serve pending pods is needed: as many of them as the pods lack
//! instances are neither removed nor offered to other work. Pods that only wait until others end
//! are no finding: no layout serves them sooner.

use dovetail_model::labels;

use super::instance_request::InstanceRequest;
use super::instance_supply::{Never, Outlook, Supplier, Supply};
use super::{View, claims_on, pod_ref};
use crate::catalogue::Check;
use crate::facts::Pod;
use crate::finding::Finding;

/// What a finding says where GPUs are not in MIG mode: a plan leaves these as they are unless its
/// policy allows the change.
const CUT_WHOLE: &str = "dovetail partition plan --policy FILE  # the policy must set \
                         allowModeChange: the GPU is not in MIG mode";

pub(super) fn instances_of_no_layout(
    view: &View<'_>,
    check: &'static Check,
    found: &mut Vec<Finding>,
) {
    let mut supply: Option<Supply<'_>> = None;
    for workload in view.gpu_workloads() {
        let pending: Vec<&Pod> = workload.pods.iter().filter(|pod| pod.is_pending()).collect();
        if pending.is_empty() {
            continue;
        }
        let Some(request) = InstanceRequest::of(workload) else { continue };
        let supply = supply.get_or_insert_with(|| Supply::of(view));
        let outlook = supply.outlook(&request, pending.len() as i64);
        if matches!(outlook, Outlook::Waits) {
            continue;
        }
        let finding = Finding::new(check, &workload.owner)
            .with("pending pods", asked(&request, pending.len(), &supply.free(&request)))
            .affecting(pending.iter().map(|pod| pod_ref(workload, pod)));
        found.extend(match outlook {
            Outlook::Waits => None,
            Outlook::ByLayout(nodes) => Some(with_nodes(view, finding, &nodes)),
            Outlook::Never(why) => Some(without_node(finding, &why)),
        });
    }
}

/// What so many pods ask for, and how much of it is free.
fn asked(request: &InstanceRequest<'_>, pods: usize, free: &[i64]) -> String {
    let each = request.instances.iter().zip(free).map(|((resource, count), free)| match count {
        1 => format!("{resource}, {free} free"),
        _ => format!("{count} × {resource}, {free} free"),
    });
    let each: Vec<String> = each.collect();
    let mut all = request.instances.iter().zip(free);
    let is_enough = all.all(|((_, count), free)| *free >= count.saturating_mul(pods as i64));
    let apart = if is_enough { ", but not all where a whole pod fits" } else { "" };
    format!("{pods} that request {}{apart}", each.join(" and "))
}

/// What a finding says where no node could provide instances under the requested name.
fn without_node(mut finding: Finding, why: &Never) -> Finding {
    finding.most_milli = Some(0);
    let (none, example) = match why {
        Never::NamedOtherwise(name) => (
            format!("the GPUs that these pods may use offer this profile as {name}"),
            format!(
                "{}{} in the resources that the pods request",
                labels::NVIDIA_MIG,
                name.replace('+', ".")
            ),
        ),
        Never::TooMany => (
            "no node that these pods may use can have all instances of one pod".to_owned(),
            "fewer instances in the resources that each pod requests: one node provides all of them"
                .to_owned(),
        ),
        Never::TooSmall => (
            "one pod requests more CPU, memory or other resources than the nodes that it may use \
             have"
            .to_owned(),
            "smaller requests in the pods, or larger nodes whose GPUs support the profile"
                .to_owned(),
        ),
        Never::Unsupported => (
            "no GPU on a node that these pods may use supports this profile".to_owned(),
            "nodes whose GPUs support the profile; or a toleration in the pods for nodes that have \
             it (see SCH-04)"
                .to_owned(),
        ),
    };
    finding.with("node that could provide them", format!("none: {none}")).for_example(example)
}

/// What a finding says of the nodes that could provide the instances.
fn with_nodes(view: &View<'_>, mut finding: Finding, nodes: &[Supplier<'_>]) -> Finding {
    let Some(first) = nodes.first() else { return finding };
    // What is free there is of other profiles; the pods need no more of it than the instances that
    // they lack.
    let states = finding.check.reach.states();
    let period = view.facts.period;
    finding.claims = nodes.iter().flat_map(|of| claims_on(of.node, None, states, period)).collect();
    finding.most_milli = Some(first.lacking_milli);
    finding.starts_on = nodes.iter().map(|of| of.node.node.name.to_string()).collect();
    // The pods need these nodes, in whatever layout: none of them leaves the bill.
    finding.stays.extend(finding.starts_on.iter().cloned());
    let example = if first.is_whole { CUT_WHOLE } else { finding.check.fix_example };
    finding = finding
        .for_example(example)
        .with("node that could provide them", &first.node.node.name)
        .with("layout of one of its GPUs", &first.layout)
        .with("pods with GPUs on that node", first.pods);
    let more = &nodes[1..];
    more.iter().fold(finding, |finding, of| {
        finding.with("node that could provide them", &of.node.node.name)
    })
}
