//! What waits: pods with devices, and why their jobs do not start where a pod would fit.

use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_model::{DeviceRequest, FreeCause, JobId, Requirement};
use dovetail_plan::engine::supply::{LevelCheck, WaitingSet};
use dovetail_plan::{Engine, ShapeId};

use crate::weight;

/// Pods of one shape of jobs that ask for the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WaitingPods {
    pub(crate) shape: ShapeId,
    pub(crate) requirement: Arc<Requirement>,
    /// Depth of the level they must share.
    pub(crate) level: Option<usize>,
    /// Of all of them together.
    pub(crate) gpu_milli: i64,
}

/// Jobs that ask for the same.
#[derive(Clone, Debug)]
pub(crate) struct WaitingJobs {
    first: JobId,
    tried: bool,
    blocked_by_quota: bool,
    /// All sets, those without devices too.
    sets: Vec<WaitingSet>,
    /// Those with devices.
    pub(crate) pods: Vec<WaitingPods>,
}

/// Reads what waits, and remembers what shapes weigh and whether gangs fit.
#[derive(Clone, Debug, Default)]
pub(crate) struct DemandReader {
    weights: BTreeMap<ShapeId, i64>,
    /// Version of the fleet that the weights rest on.
    fleet: u64,
    /// Whether a job fits as a whole: as it asks, and without levels. Void after any change.
    fits: BTreeMap<(JobId, LevelCheck), (Vec<WaitingSet>, bool)>,
}

impl DemandReader {
    /// What waits and needs devices, best place in the queue first.
    pub(crate) fn read(&mut self, engine: &Engine) -> Vec<WaitingJobs> {
        if self.fleet != engine.supply().fleet_version() {
            self.fleet = engine.supply().fleet_version();
            self.weights.clear();
        }
        let mut found = Vec::new();
        for class in engine.list().waiting() {
            let mut pods = Vec::new();
            for (index, set) in class.sets.iter().enumerate() {
                let requirement = &class.first.pod_sets[index].requirement;
                if set.pods == 0 || requirement.device == DeviceRequest::None {
                    continue;
                }
                let weigh = || weight::waiting_milli(engine, requirement);
                let each = *self.weights.entry(set.shape).or_insert_with(weigh);
                let gpu_milli = each * i64::from(set.pods) * class.jobs as i64;
                let requirement = Arc::clone(requirement);
                pods.push(WaitingPods {
                    shape: set.shape,
                    requirement,
                    level: set.level,
                    gpu_milli,
                });
            }
            if pods.is_empty() {
                continue;
            }
            found.push(WaitingJobs {
                first: class.first.id,
                tried: class.tried,
                blocked_by_quota: class.blocked_by_quota,
                sets: class.sets,
                pods,
            });
        }
        found
    }

    /// Forgets what rested on an earlier state of the nodes.
    pub(crate) fn forget_fits(&mut self) {
        self.fits.clear();
    }

    /// Why such jobs do not start although one of their pods fits somewhere.
    pub(crate) fn fate(&mut self, engine: &mut Engine, jobs: &WaitingJobs) -> FreeCause {
        let pods: u64 = jobs.sets.iter().map(|set| u64::from(set.pods)).sum();
        if pods > 1 && !self.gang_fits(engine, jobs, LevelCheck::Required) {
            let has_level = jobs.sets.iter().any(|set| set.level.is_some());
            let level_alone = has_level && self.gang_fits(engine, jobs, LevelCheck::Ignored);
            return if level_alone { FreeCause::Topology } else { FreeCause::GangShort };
        }
        if jobs.blocked_by_quota { FreeCause::Quota } else { FreeCause::Reserved }
    }

    fn gang_fits(&mut self, engine: &mut Engine, jobs: &WaitingJobs, levels: LevelCheck) -> bool {
        // The engine has tried it, quota did not stop it, and nothing that helps has happened
        // since.
        if levels == LevelCheck::Required && jobs.tried && !jobs.blocked_by_quota {
            return false;
        }
        let key = (jobs.first, levels);
        if let Some((_, fits)) = self.fits.get(&key).filter(|(sets, _)| *sets == jobs.sets) {
            return *fits;
        }
        let fits = engine.ask().gang_fits(jobs.first, levels);
        self.fits.insert(key, (jobs.sets.clone(), fits));
        fits
    }
}
