//! What is planned for a fleet: without moves first, and with them where a policy allows it.

use anyhow::Result;
use dovetail_console::app::App;
use dovetail_console::connection::connection_runtime;
use dovetail_model::MigTable;
use dovetail_partition::{PartitionPlan, plan};
use dovetail_sharing::PolicySpec;
use dovetail_sources::node_prices::NodeToPrice;
use dovetail_sources::objects::ObjectFlags;
use dovetail_sources::prometheus::{ServerChoice, WayFlags};

use crate::changes::{NodeChange, changes};
use crate::cluster::{Age, fleet_beside, objects, selects_none};
use crate::expected::ExpectedNodes;
use crate::fleet::{Fleet, bad_world, table_of};
use crate::gpu_users::GpuUsers;
use crate::moves::{Moved, with_moves};
use crate::objects::Objects;
use crate::price_facts::PriceFacts;
use crate::several::plan_with_several;

/// A fleet and what is planned for it.
#[derive(Debug)]
pub struct Planned {
    pub fleet: Fleet,
    pub(crate) plan: PartitionPlan,
    pub(crate) moved: Option<Moved>,
    /// What decides the prices of its nodes, where they are those of a cluster.
    price_facts: Vec<PriceFacts>,
}

impl Planned {
    /// Plans for a fleet in which no pod moves.
    ///
    /// # Errors
    /// A world whose instances cannot be on its GPUs.
    pub fn of(fleet: Fleet) -> Result<Self> {
        let plan = plan(&fleet.world, &fleet.rules()).map_err(bad_world)?;
        Ok(Self { fleet, plan, moved: None, price_facts: Vec::new() })
    }

    /// Plans for objects under a policy, which may let pods move, as if some nodes had the layout
    /// that they are about to get.
    pub(crate) fn of_objects(
        objects: &Objects,
        policy: &PolicySpec,
        tables: &[MigTable],
        age: Age,
        expected: &ExpectedNodes,
    ) -> Result<Self> {
        let fleet = fleet_beside(objects, policy, tables, age, expected);
        let (mut fleet, plan) = plan_with_several(fleet)?;
        let moved = with_moves(&mut fleet, &plan, objects, policy, age)?;
        Ok(Self { fleet, plan, moved, price_facts: Vec::new() })
    }

    /// The nodes of the cluster whose GPUs are in the plan, by name.
    pub fn nodes_to_price(&self) -> impl Iterator<Item = (&str, NodeToPrice<'_>)> {
        self.price_facts.iter().map(PriceFacts::to_price)
    }

    /// Node by node, with the one for which pods move.
    pub(crate) fn changes(self) -> Vec<NodeChange> {
        let moved = self.moved.map(|moved| moved.change);
        changes(&self.fleet, &self.plan).into_iter().chain(moved).collect()
    }
}

/// What a plan for a cluster rests on besides its objects.
#[derive(Debug)]
pub struct Basis<'a> {
    /// Pods that have been pending for less are not planned for, in milliseconds.
    pub young_ms: u64,
    /// Where it is read which GPUs pods use, and how that is reached.
    pub prometheus: ServerChoice,
    pub way: &'a WayFlags,
}

/// Plans for the objects that flags name.
///
/// # Errors
/// Objects that cannot be read.
pub fn read(
    app: &App,
    flags: &ObjectFlags,
    basis: &Basis<'_>,
    policy: &PolicySpec,
    tables: &[MigTable],
) -> Result<Planned> {
    let (mut objects, now_ms) = objects(app, flags)?;
    if let Some(connection) = flags.server() {
        let Basis { prometheus: choice, way, .. } = basis;
        let users = GpuUsers { choice, way, connection };
        let add = users.add_to(&mut objects, |seen| table_of(tables, seen));
        connection_runtime()?.block_on(add);
    }
    if selects_none(&objects, policy) {
        app.note("the policy's nodeSelector selects no node with GPUs");
    }
    let age = Age { now_ms, young_ms: basis.young_ms };
    let planned = Planned::of_objects(&objects, policy, tables, age, &ExpectedNodes::new())?;
    let price_facts = PriceFacts::all_of(&objects, &planned.fleet);
    Ok(Planned { price_facts, ..planned })
}
