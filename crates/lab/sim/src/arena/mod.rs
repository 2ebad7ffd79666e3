//! The arena: policies compared in many kinds of worlds, each against the best simple policy.
//!
//! A *regime* is a documented, seeded recipe of worlds. Every policy runs in the same worlds of a
//! regime: several seeds of the jobs, several orders of the machines for each. One simple policy is
//! its *reference*; how much worse another policy is, is its *regret*.
//!
//! | module | what |
//! |---|---|
//! | `catalogue` | all regimes |
//! | `data` | outside traces, and what can be wrong with one |
//! | `recipe`, `arrivals` | how the world of a seed and an order is made |
//! | `transform`, `streams`, `machines` | what recipes are made of |
//! | `figures` | what is measured of one run |
//! | `plan`, `run` | which runs there are; one of them |
//! | `record` | finished runs as text, to be resumed |
//! | `groups`, `bounds` | what regimes of one kind say together, and what they must say |
//! | `statistics`, `verdict` | means with intervals; reference, regret, summary |
//!
//! Traces come in parsed; nothing here reads a file or a clock.

mod arrivals;
mod bounds;
mod catalogue;
mod data;
mod figures;
mod groups;
mod machines;
mod plan;
mod recipe;
mod record;
mod run;
mod statistics;
mod streams;
mod transform;
mod verdict;

pub use arrivals::{ArrivalNodes, ArrivalRecipe};
pub use bounds::{Bound, bounds};
pub use catalogue::{OPENB_LISTS, Regime, RegimeFigure, families, regimes};
pub use data::{ArenaData, DataError, Outside};
pub use figures::{ALLOCATION, DELIVERED, GPU_WEIGHTED_WAIT, MeasuredWindow, RunFigures};
pub use groups::{GroupRegret, Judged, Points, Ratio, RegimeGroup, groups};
pub use machines::MachinePool;
pub use plan::{ArenaPlan, WorldKey};
pub use recipe::{
    ArenaError, CountedJobs, Recipe, RegimeInput, TimedRecipe, Twist, WARM_UP_PERCENT, WorkSource,
};
pub use record::{Resumed, RunRecord, RunRecordError, Settings, resumed};
pub use run::{LOAD, POOL_NODE_HOURS};
pub use statistics::{Estimate, mean};
pub use streams::{Tide, demand_inside};
pub use transform::{Arrival, Transform};
pub use verdict::{
    ArenaRun, ORACLE, RegimeVerdict, SIMPLE, Summary, TIE_PERCENT, WAIT_FLOOR_HOURS,
    simple_not_run, summary,
};
