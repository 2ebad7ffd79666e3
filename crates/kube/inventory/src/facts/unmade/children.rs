//! Which makers stand for the same pods: those of what others made are theirs.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::ObjectRef;

use super::{Maker, Unmade, Why};
use crate::facts::owner::Owners;

/// The role of an MPIJob whose pod is made by a Job.
const LAUNCHER: &str = "Launcher";

impl Unmade {
    /// Leaves out of suspended objects what they have made already: that waits by itself, or runs.
    pub(in crate::facts) fn leave_out_what_is_made(&mut self, owners: &Owners) {
        let mut made: BTreeMap<(&ObjectRef, &str), u64> = BTreeMap::new();
        for (set, name) in self.of_job_sets.values() {
            *made.entry((set, name)).or_default() += 1;
        }
        let is_suspended = |(_, maker): &(&ObjectRef, &Maker)| maker.why == Why::Suspended;
        let controllers = self.makers.iter().filter(is_suspended);
        let controllers = controllers.filter_map(|(object, _)| owners.controller(object));
        let parents: BTreeSet<ObjectRef> = controllers.cloned().collect();
        for (object, maker) in &mut self.makers {
            match object.kind.as_str() {
                "JobSet" => {
                    for set in &mut maker.sets {
                        let made = made.get(&(object, &*set.name)).copied().unwrap_or(0);
                        set.parts = set.parts.saturating_sub(made);
                    }
                }
                _ if !parents.contains(object) => {}
                "MPIJob" => maker.sets.retain(|set| set.name != LAUNCHER),
                _ => maker.sets.clear(),
            }
        }
    }
}
