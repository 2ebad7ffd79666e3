//! A job as the search sees it: shapes, counts and levels as numbers.

use dovetail_model::{Charge, ConditionCause, Job, NodeCondition, RuleKind, TopologyRequest};

use dovetail_state::State;
use dovetail_state::cause::Cause;
use dovetail_state::shapes::{Demand, ShapeId};

/// What is to be placed together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Gang {
    pub(crate) sets: Vec<GangSet>,
    /// Depth of the level that all pods must share.
    pub(crate) required: Option<usize>,
    /// Depth of the level of which as few domains as possible are used.
    pub(crate) preferred: Option<usize>,
    /// Whether pods of it need devices of claims.
    pub(crate) needs_devices: bool,
}

/// One pod set of a gang.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct GangSet {
    pub(crate) pod_set: u16,
    pub(crate) shape: ShapeId,
    pub(crate) min: u32,
    pub(crate) max: u32,
    pub(crate) first_ordinal: u32,
    pub(crate) required: Option<usize>,
    pub(crate) preferred: Option<usize>,
    /// The hardest pods are placed first: most GPU, then claims with the fewest devices in the
    /// cluster, then most units of claims, then most CPU, then most memory.
    pub(crate) weight: (i64, i64, u32, i64, i64),
}

/// A level that the topology does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "job {job} requests the topology level `{level}`, which this cluster does not have: use one of {known}"
)]
pub struct UnknownLevel {
    /// Name of the job.
    pub job: String,
    /// The level it asks for.
    pub level: String,
    /// The levels there are.
    pub known: String,
}

impl Gang {
    /// What it counts for its queue at its largest size.
    pub(crate) fn largest(&self, state: &State) -> Charge {
        let mut charge = Charge::default();
        for set in &self.sets {
            charge.add_times(&state.shapes.get(set.shape).charge, i64::from(set.max));
        }
        charge
    }

    /// The same without what it could use beyond its smallest size.
    pub(crate) fn at_smallest(&self) -> Self {
        let mut gang = self.clone();
        gang.sets.iter_mut().for_each(|set| set.max = set.min);
        gang
    }

    /// The gang of a job: what is missing to its smallest size, and what it could use beyond.
    pub(crate) fn of(state: &mut State, job: &Job) -> Result<Self, UnknownLevel> {
        let (required, preferred) = depths(state, job, &job.topology)?;
        let mut sets = Vec::with_capacity(job.pod_sets.len());
        for (index, set) in job.pod_sets.iter().enumerate() {
            let (required, preferred) = depths(state, job, &set.topology)?;
            let shape = state.intern_shape(&set.requirement);
            let demand = &state.shapes.get(shape).demand;
            let bounded = demand.rules.iter().filter(|rule| rule.cause == Cause::DeviceClaims);
            sets.push(GangSet {
                pod_set: index as u16,
                shape,
                min: set.min.saturating_sub(set.present),
                max: set.max.saturating_sub(set.present),
                first_ordinal: set.present,
                required,
                preferred,
                weight: (
                    state.shapes.get(shape).gpu_milli,
                    scarcity(demand),
                    bounded.map(|rule| rule.counts_itself).sum(),
                    demand.amounts.cpu_milli,
                    demand.amounts.memory_bytes,
                ),
            });
        }
        let of_claims = |condition: &NodeCondition| condition.cause == ConditionCause::DeviceClaims;
        let mut conditions = job.pod_sets.iter().flat_map(|set| &set.requirement.node_conditions);
        Ok(Self { sets, required, preferred, needs_devices: conditions.any(of_claims) })
    }

    /// Pods of the smallest size.
    pub(crate) fn min_pods(&self) -> u32 {
        self.sets.iter().map(|set| set.min).sum()
    }

    /// What the smallest size counts for a queue.
    pub(crate) fn smallest(&self, state: &State) -> Charge {
        let mut charge = Charge::default();
        for set in &self.sets {
            charge.add_times(&state.shapes.get(set.shape).charge, i64::from(set.min));
        }
        charge
    }

    /// The set, if the gang is one pod without a wish for a place.
    pub(crate) fn only_pod(&self) -> Option<&GangSet> {
        match self.sets.as_slice() {
            [set] if set.min == 1 && set.max == 1 => {
                let anywhere =
                    self.required.is_none() && self.preferred.is_none() && !set.has_topology();
                anywhere.then_some(set)
            }
            _ => None,
        }
    }
}

impl GangSet {
    pub(crate) fn has_topology(&self) -> bool {
        self.required.is_some() || self.preferred.is_some()
    }
}

/// How few devices the cluster has for claims of a pod, by the tightest bound; the least for a pod
/// without claims that are bounded.
fn scarcity(demand: &Demand) -> i64 {
    let devices = demand.rules.iter().filter_map(|rule| match &rule.kind {
        RuleKind::AtMost { most } => Some(most.values().map(|most| i64::from(*most)).sum::<i64>()),
        _ => None,
    });
    devices.min().map_or(i64::MIN, |devices| -devices)
}

fn depths(
    state: &State,
    job: &Job,
    request: &TopologyRequest,
) -> Result<(Option<usize>, Option<usize>), UnknownLevel> {
    let depth = |level: &Option<String>| match level {
        None => Ok(None),
        Some(level) => state.topology.depth(level).map(Some).ok_or_else(|| UnknownLevel {
            job: job.name.clone(),
            level: level.clone(),
            known: known_levels(state),
        }),
    };
    Ok((depth(&request.required)?, depth(&request.preferred)?))
}

fn known_levels(state: &State) -> String {
    let mut names: Vec<&str> =
        state.topology.levels.iter().map(|level| level.name.as_str()).collect();
    names.push(dovetail_model::topology::NODE_LEVEL);
    names.join(", ")
}
