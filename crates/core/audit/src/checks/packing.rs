//! SCH-08: GPUs that are free on several nodes, and pending pods that need them on one; and which
//! pods would move where so that these start, checked by the engine.
//!
//! What findings say together has to be possible together. No pod moves from or to a node that
//! AUT-06 or AUT-07 empties, and the pods of those are on their new nodes here: where such a node
//! stays instead, there is only more room. Each workload is asked about with what was found for
//! those before it done, and says so. Of its own moves all have to be made before a pod starts: no
//! money is returned by them, and no other finding relies on them.

mod free_gpus;

use std::collections::BTreeSet;

use dovetail_account::device_time::DeviceState;
use dovetail_facts::{Node, ObjectRef, Workload};
use dovetail_model::FreeCause;
use dovetail_model::device::WHOLE_DEVICE_MILLI;

use super::consolidation::{WHOLE, removals};
use super::oversize::fits_no_node;
use super::pod_rules::{PendingRequests, PodRules};
use super::resource_cluster::{Arranged, Packed};
use super::{View, claims_on, node_ref, pending, pod_ref};
use crate::catalogue::Check;
use crate::example::Example;
use crate::finding::{Finding, Move};
use crate::names::first_of;
use free_gpus::{FreeGpus, FreeUnits, Pieces};

/// So many workloads with pending pods are tried on the engine: each try is a world of its own.
const MOST_TRIES: usize = 8;

/// Tries that a workload takes whose pods depend on other pods: the engine gets full nodes, too,
/// and is asked again once all pods have moved.
const TRIES_WITH_RULES: usize = 4;

/// Workloads that one line names.
const MOST_NAMED: usize = 3;

/// The command for a cordoned node on which pending pods would start.
const ONCE_REPAIRED: &str = "kubectl uncordon NODES  # once its repair or upgrade is over \
                             (AUT-06): pending pods would start there";

/// Why no moves are listed.
const NOT_FOUND: &str = "no arrangement of the pods that can move was found that starts one more";
const OF_CLAIMS: &str =
    "not judged: the audit does not check which devices the resource claims would get";
const OF_PARTS: &str = "not judged: the audit checks only moves of pods with whole GPUs";
const AFTER_OTHERS: &str =
    "not judged: the audit checks this only for the first few workloads with pending pods";
const OF_RULES: &str = "not judged: the required affinity to other pods, or the topology spread constraints, of these \
                        pods could not be evaluated";

/// What starts pending pods once others have moved. An evicted pod alone could return to its node.
const MOVE_AS_LISTED: &str = "cordon the nodes that the listed pods leave, evict these pods, and uncordon the nodes once \
                              the pods run on the listed nodes; schedulerName: dovetail keeps whole nodes free";

/// The same where pods come to a node that others leave: a cordon would keep them pending.
const MOVE_TOGETHER: &str = "evict the listed pods together and make sure that each starts on the listed node: cordon none \
                             of these nodes, because some pods move to a node that other pods leave; \
                             schedulerName: dovetail keeps whole nodes free";

/// How people make these moves.
pub(super) fn how_to_move(moves: &[Move]) -> &'static str {
    let left: BTreeSet<&str> = moves.iter().map(|of| &*of.from).collect();
    match moves.iter().any(|of| left.contains(&*of.to)) {
        true => MOVE_TOGETHER,
        false => MOVE_AS_LISTED,
    }
}

pub(super) fn free_in_pieces(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    pending::in_pieces(view, check, found);
    let mut packing = Packing::new(view);
    for workload in view.gpu_workloads() {
        let waiting: Vec<_> = workload.pods.iter().filter(|pod| pod.node.is_none()).collect();
        if waiting.is_empty() || fits_no_node(view, workload) {
            continue;
        }
        for (resource, gpus) in workload.gpus_per_pod() {
            let FreeUnits { all, largest } = packing.free.units(workload, resource);
            // Of a gang all pods start or none.
            let pods = i64::try_from(waiting.len()).unwrap_or(i64::MAX);
            let least = if workload.is_gang { gpus.saturating_mul(pods) } else { gpus };
            if largest >= gpus || all < least {
                continue;
            }
            let mut finding = Finding::new(check, &workload.owner)
                .with("one pod requests", format!("{gpus} {resource}"))
                .with("free", format!("{all}, on one node at most {largest}"))
                .affecting(waiting.iter().map(|pod| pod_ref(workload, pod)));
            if let Some(node) = packing.free.cordoned(workload, resource, least) {
                // The cordon keeps it pending, and has a finding of its own (AUT-06).
                finding = finding.with("would start on the cordoned node", &node.node.name);
                let (edit, objects) = (ONCE_REPAIRED.to_owned(), vec![node_ref(node)]);
                finding.examples.push(Example { edit, objects });
            } else {
                let most = usize::try_from(pods.min(all / gpus.max(1))).unwrap_or(0);
                finding = packing.with_moves(finding, (workload, resource, gpus), most);
            }
            found.push(finding);
        }
    }
}

/// What would start pending pods.
struct Started<'f> {
    pods: usize,
    /// The nodes with free GPUs that they accept.
    pieces: Pieces<'f>,
    moves: Vec<Move>,
    /// Workloads whose moves are made before, as `Kind namespace/name`.
    after: Vec<String>,
}

/// Asks the engine whether pods would start if others moved, within a number of tries.
struct Packing<'f> {
    view: &'f View<'f>,
    free: FreeGpus<'f>,
    tries_left: usize,
    /// `None` before the first workload whose pods depend on other pods.
    requests: Option<PendingRequests<'f>>,
    /// `None` before the first try.
    arranged: Option<Arranged<'f>>,
    /// Workloads whose pods start by the moves that are made there.
    packed: Vec<String>,
}

impl<'f> Packing<'f> {
    fn new(view: &'f View<'f>) -> Self {
        Self {
            view,
            free: FreeGpus::of(view),
            tries_left: MOST_TRIES,
            requests: None,
            arranged: None,
            packed: Vec::new(),
        }
    }

    /// Adds to a finding the moves that start at most so many of its pending pods, and claims what
    /// these take of what is free.
    fn with_moves(
        &mut self,
        mut finding: Finding,
        pod: (&'f Workload, &'f str, i64),
        most: usize,
    ) -> Finding {
        let (workload, _, gpus) = pod;
        let Started { pods, pieces, moves, after } = match self.started(pod, most) {
            Ok(started) => started,
            Err(reason) => return finding.with("moving pods", reason),
        };
        let waiting = workload.pods.iter().filter(|pod| pod.node.is_none()).count();
        let starting = format!("{pods} of {waiting}");
        finding = finding.with("pods that start after all of these moves, not before", starting);
        let first = format!("those of SCH-08 for {}", first_of(after.iter(), MOST_NAMED));
        if !after.is_empty() {
            finding = finding.with("moves to make first", &first);
        }
        for Move { pod, to, .. } in &moves {
            finding = finding.with("moves", format!("{}/{} to {to}", pod.namespace, pod.name));
        }
        let states = [DeviceState::Free(Some(FreeCause::Fragmented))];
        let stays = |node: &Node| {
            self.arranged.as_ref().is_none_or(|of| !of.gone.contains(&*node.node.name))
        };
        let left = pieces.iter().filter(|(node, _)| stays(node));
        let period = self.view.facts.period;
        finding.claims =
            left.flat_map(|(node, _)| claims_on(node, None, &states, period)).collect();
        let started = gpus.saturating_mul(i64::try_from(pods).unwrap_or(i64::MAX));
        finding.most_milli = Some(started.saturating_mul(WHOLE_DEVICE_MILLI));
        finding.starts_on = self.unused(&moves);
        finding = match moves.is_empty() {
            true => finding.for_example(format!("make the moves of other findings: {first}")),
            false => finding.for_example(how_to_move(&moves)),
        };
        finding.moves = moves;
        finding
    }

    /// Nodes to which pods move and on which no pod has GPUs: AUT-03 would remove them.
    fn unused(&self, moves: &[Move]) -> BTreeSet<String> {
        let is_unused = |name: &&String| {
            let node = self.view.node_of.get(name.as_str());
            node.is_some_and(|node| node.without_gpu_pods_since_ms.is_some())
        };
        moves.iter().map(|of| &of.to).filter(is_unused).cloned().collect()
    }

    /// How many of at most so many pending pods would start, all that are asked about or one, and
    /// which pods move for that.
    ///
    /// # Errors
    /// Why none is known to start, in words.
    fn started(
        &mut self,
        (workload, resource, gpus): (&'f Workload, &'f str, i64),
        most: usize,
    ) -> Result<Started<'f>, &'static str> {
        // What devices its own claims get is not asked.
        if !workload.template.resource_claims.is_empty() {
            return Err(OF_CLAIMS);
        }
        if !WHOLE.contains(&resource) {
            return Err(OF_PARTS);
        }
        if most == 0 {
            return Err(NOT_FOUND);
        }
        if self.tries_left == 0 {
            return Err(AFTER_OTHERS);
        }
        let view = self.view;
        let rules = if workload.template.depends_on_pods {
            let demand = &view.moment.demand;
            let requests: &PendingRequests<'_> =
                self.requests.get_or_insert_with(|| PendingRequests::of(demand));
            Some(PodRules::of(requests, workload, resource).ok_or(OF_RULES)?)
        } else {
            None
        };
        let tries = if rules.is_some() { TRIES_WITH_RULES } else { 1 };
        self.tries_left = self.tries_left.saturating_sub(tries);
        let arranged = self.arranged.get_or_insert_with(|| beside_removals(view));
        let cluster = view.cluster(resource);
        let least = if workload.is_gang { most } else { 1 };
        let pieces = self.free.pieces(workload, resource);
        let nodes: BTreeSet<&str> = pieces.iter().map(|(node, _)| &*node.node.name).collect();
        let packed = |pods| {
            let packed = cluster.packed(&nodes, (workload, gpus), pods, arranged, rules.as_ref());
            Some((pods, packed?))
        };
        let counts = BTreeSet::from([least, most]);
        let found = counts.into_iter().rev().find_map(packed);
        let (pods, Packed { moves, starts }) = found.ok_or(NOT_FOUND)?;
        // The moves that were made before may start it, too; without any, nothing is wrong.
        if moves.is_empty() && self.packed.is_empty() {
            return Err(NOT_FOUND);
        }
        arranged.moved.extend(moves.iter().map(|of| (full_name(&of.pod), of.to.clone())));
        arranged.started.extend(starts.into_iter().map(|node| (workload, node)));
        let after = self.packed.clone();
        self.packed.push(workload.owner.in_words());
        Ok(Started { pods, pieces, moves, after })
    }
}

/// The cluster once every node that can be emptied is.
pub(super) fn beside_removals<'f>(view: &'f View<'f>) -> Arranged<'f> {
    let removals = removals(view);
    let moves = removals.values().flat_map(|removal| &removal.moves);
    Arranged {
        gone: removals.keys().cloned().collect(),
        moved: moves.map(|of| (full_name(&of.pod), of.to.clone())).collect(),
        started: Vec::new(),
    }
}

fn full_name(pod: &ObjectRef) -> String {
    format!("{}/{}", pod.namespace, pod.name)
}
