//! What is planned for a fleet: without moves first, and with them where a policy allows it.

use anyhow::Result;
use dovetail_console::app::App;
use dovetail_model::MigTable;
use dovetail_partition::{PartitionPlan, plan};
use dovetail_sharing::PolicySpec;
use dovetail_sources::objects::ObjectFlags;

use crate::changes::{NodeChange, changes};
use crate::cluster::{Age, YOUNG_MS, fleet, objects, selects_none};
use crate::fleet::{Fleet, bad_world};
use crate::moves::{Moved, with_moves};
use crate::objects::Objects;

/// A fleet and what is planned for it.
#[derive(Debug)]
pub struct Planned {
    pub fleet: Fleet,
    pub(crate) plan: PartitionPlan,
    pub(crate) moved: Option<Moved>,
}

impl Planned {
    /// Plans for a fleet in which no pod moves.
    ///
    /// # Errors
    /// A world whose instances cannot be on its GPUs.
    pub fn of(fleet: Fleet) -> Result<Self> {
        let plan = plan(&fleet.world, &fleet.rules()).map_err(bad_world)?;
        Ok(Self { fleet, plan, moved: None })
    }

    /// Plans for objects under a policy, which may let pods move.
    pub(crate) fn of_objects(
        objects: &Objects,
        policy: &PolicySpec,
        tables: &[MigTable],
        age: Age,
    ) -> Result<Self> {
        let mut fleet = fleet(objects, policy, tables, age);
        let plan = plan(&fleet.world, &fleet.rules()).map_err(bad_world)?;
        let moved = with_moves(&mut fleet, &plan, objects, policy, age)?;
        Ok(Self { fleet, plan, moved })
    }

    /// Node by node, with the one for which pods move.
    pub(crate) fn changes(self) -> Vec<NodeChange> {
        let moved = self.moved.map(|moved| moved.change);
        changes(&self.fleet, &self.plan).into_iter().chain(moved).collect()
    }
}

/// Plans for the objects that flags name.
///
/// # Errors
/// Objects that cannot be read.
pub fn read(
    app: &App,
    flags: &ObjectFlags,
    policy: &PolicySpec,
    tables: &[MigTable],
) -> Result<Planned> {
    let (objects, now_ms) = objects(app, flags)?;
    if selects_none(&objects, policy) {
        app.note("the policy's nodeSelector selects no node with GPUs");
    }
    Planned::of_objects(&objects, policy, tables, Age { now_ms, young_ms: YOUNG_MS })
}
