//! SHR-08: pending pods ask for MIG instances of which too few are free, and another layout of a
//! GPU has them.
//!
//! A node that another layout lets serve pending pods is needed: as many of them as the pods lack
//! instances are neither removed nor offered to other work. Pods that only wait until others end
//! are no finding: no layout serves them sooner.

use dovetail_facts::{Facts, Node, Pod, Workload};
use dovetail_model::{NodeAvailability, labels};

use super::gpu_pods::GpuPods;
use super::instance_request::InstanceRequest;
use super::instance_supply::{Never, NewLayouts, Outlook, Supply};
use super::profile_names::lacks_memory_size;
use super::{View, claims_on, pod_ref};
use crate::catalogue::{Check, check};
use crate::finding::Finding;

/// What a finding says where GPUs are not in MIG mode: a plan leaves these as they are unless its
/// policy allows the change.
const CUT_WHOLE: &str = "dovetail partition plan --policy FILE  # the policy must set \
                         allowModeChange: the GPU is not in MIG mode";

/// What it says where pods use GPUs of the node: no plan changes it.
const CUT_LATER: &str = "dovetail partition plan  # once the pods that must leave first have \
                         finished";

/// Pending pods of a workload that ask for MIG instances.
struct PendingPods<'f> {
    workload: &'f Workload,
    pods: Vec<&'f Pod>,
}

impl<'f> PendingPods<'f> {
    /// `None` if no pod of the workload is pending.
    fn of(workload: &'f Workload) -> Option<Self> {
        let pods: Vec<&Pod> = workload.pods.iter().filter(|pod| pod.is_pending()).collect();
        (!pods.is_empty()).then_some(Self { workload, pods })
    }

    /// When the first of them was made; those of which nobody knows it come last.
    fn since_ms(&self) -> u64 {
        self.pods.iter().filter_map(|pod| pod.created_ms).min().unwrap_or(u64::MAX)
    }

    /// Since when they lack instances if so many of them start, the first ones first; `None` if
    /// nobody knows.
    fn short_since_ms(&self, started: i64) -> Option<u64> {
        let mut made: Vec<u64> = self.pods.iter().filter_map(|pod| pod.created_ms).collect();
        made.sort_unstable();
        made.get(usize::try_from(started).ok()?).copied()
    }

    fn count(&self) -> i64 {
        self.pods.len() as i64
    }
}

pub(super) fn instances_of_no_layout(view: &View<'_>, _: &'static Check, found: &mut Vec<Finding>) {
    found.extend(shortages(view).iter().cloned());
}

/// The findings of SHR-08.
pub(super) fn shortages<'v>(view: &'v View<'_>) -> &'v [Finding] {
    view.shortages.get_or_init(|| {
        let mut found = Vec::new();
        let check = check("SHR-08").expect("it is in the catalogue");
        find_shortages(view, check, &mut found);
        found
    })
}

fn find_shortages(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let workloads = view.gpu_workloads().filter_map(PendingPods::of);
    let (pending, requests): (Vec<PendingPods<'_>>, Vec<InstanceRequest<'_>>) =
        workloads.filter_map(|of| InstanceRequest::of(of.workload).map(|one| (of, one))).unzip();
    if pending.is_empty() {
        return;
    }
    let gpu_pods = GpuPods::of(view);
    let (mut supply, classes) = Supply::of(view, &gpu_pods, requests);
    // As they queue: those that are alike in this stay in the order of the facts.
    let mut queue: Vec<usize> = (0..pending.len()).collect();
    queue.sort_by_key(|number| pending[*number].since_ms());
    let mut started = vec![0i64; pending.len()];
    for number in &queue {
        started[*number] = supply.start(classes[*number], pending[*number].count());
    }
    let short = |number: &usize| started[*number] < pending[*number].count();
    queue.retain(short);
    if queue.is_empty() {
        return;
    }
    supply.open_gpus(view);
    let mut of_workloads: Vec<(usize, Finding)> = Vec::new();
    for number in queue {
        let (of, class) = (&pending[number], classes[number]);
        let outlook = supply.outlook(class, of.count() - started[number]);
        if matches!(outlook, Outlook::Waits) {
            continue;
        }
        let finding = Finding::new(check, &of.workload.owner)
            .dated(of.short_since_ms(started[number]))
            .with("pending pods", asked(of, &mut supply, class, started[number]))
            .affecting(of.pods.iter().map(|pod| pod_ref(of.workload, pod)));
        let finding = match outlook {
            Outlook::Waits => None,
            Outlook::ByLayout(layouts) => Some(with_nodes(view, finding, &layouts, &gpu_pods)),
            Outlook::Never(why) => Some(without_node(finding, &why)),
        };
        of_workloads.extend(finding.map(|finding| (number, finding)));
    }
    of_workloads.sort_by_key(|(number, _)| *number);
    found.extend(of_workloads.into_iter().map(|(_, finding)| finding));
}

/// Nodes with GPUs of a model that differs by its memory size, which nothing states, where pods may
/// start that wait for MIG instances: whether another layout serves these pods, nobody can tell.
pub fn nodes_without_memory_size(facts: &Facts) -> Vec<&Node> {
    let ready = facts.nodes.iter().filter(|node| node.node.condition == NodeAvailability::Ready);
    let mut nodes: Vec<&Node> = ready.filter(|node| lacks_memory_size(node)).collect();
    if nodes.is_empty() {
        return nodes;
    }
    let pending = facts.workloads.iter().filter_map(PendingPods::of);
    let requests = pending.filter_map(|of| InstanceRequest::of(of.workload));
    let requests: Vec<InstanceRequest<'_>> = requests.collect();
    nodes.retain(|node| requests.iter().any(|request| request.may_use(node)));
    nodes
}

/// What pods ask for, and how much of it is free beside what other pending pods get.
fn asked(of: &PendingPods<'_>, supply: &mut Supply<'_>, class: usize, started: i64) -> String {
    let free = supply.free(class);
    let instances = &supply.request(class).instances;
    let free = instances.iter().zip(free).map(|((_, count), left)| {
        // Those of them that start get theirs of it.
        count.saturating_mul(started).saturating_add(left)
    });
    let free: Vec<i64> = free.collect();
    let each = instances.iter().zip(&free).map(|((resource, count), free)| match count {
        1 => format!("{resource}, {free} free"),
        _ => format!("{count} × {resource}, {free} free"),
    });
    let each: Vec<String> = each.collect();
    let mut all = instances.iter().zip(&free);
    let is_enough = all.all(|((_, count), free)| *free >= count.saturating_mul(of.count()));
    let apart = if is_enough { ", but not all where a whole pod fits" } else { "" };
    format!("{} that request {}{apart}", of.count(), each.join(" and "))
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
fn with_nodes(
    view: &View<'_>,
    mut finding: Finding,
    NewLayouts { nodes, milli }: &NewLayouts<'_>,
    gpu_pods: &GpuPods<'_>,
) -> Finding {
    let Some(first) = nodes.first() else { return finding };
    // What is free there is of other profiles; the pods need no more of it than the instances that
    // they lack.
    let states = finding.check.reach.states();
    let period = view.facts.period;
    finding.claims = nodes.iter().flat_map(|of| claims_on(of.node, None, states, period)).collect();
    finding.most_milli = Some(*milli);
    finding.starts_on = nodes.iter().map(|of| of.node.node.name.to_string()).collect();
    for of in nodes {
        let recut = finding.recuts.entry(of.node.node.name.to_string()).or_default();
        recut.gpus += of.recut.gpus;
        recut.resources.add_times(&of.recut.resources, 1);
    }
    // The pods need these nodes, in whatever layout: none of them leaves the bill.
    finding.stays.extend(finding.starts_on.iter().cloned());
    let example = match (first.pods > 0, first.is_whole) {
        (true, _) => CUT_LATER,
        (false, true) => CUT_WHOLE,
        (false, false) => finding.check.fix_example,
    };
    finding = finding
        .for_example(example)
        .with("node that could provide them", &first.node.node.name)
        .with("layout of one of its GPUs", &first.layout)
        .with("pods with GPUs on that node", first.pods);
    let more = nodes[1..].iter();
    finding = more.fold(finding, |finding, of| {
        finding.with("node that could provide them", &of.node.node.name)
    });
    // mig-manager ends what uses the instances that it replaces, so no plan changes these nodes.
    nodes.iter().fold(finding, |finding, of| gpu_pods.must_leave(finding, of.node))
}
