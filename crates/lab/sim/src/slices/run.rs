//! One run of the protocol, whoever places.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use dovetail_model::MigTable;
use dovetail_partition::{Instance, move_for};
use dovetail_plan::EngineError;
use thiserror::Error;

use crate::slices::{SliceRequest, SlicesWorld};

/// Where a slice lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlicePosition {
    /// Number of the GPU, over all nodes.
    pub gpu: usize,
    /// Memory slice at which it starts.
    pub start: u8,
}

/// Somebody who places slices.
pub trait Places {
    /// Places pod number `pod`; `None` if it fits nowhere, and then it is forgotten.
    ///
    /// # Errors
    /// What the engine says.
    fn place(
        &mut self,
        pod: u64,
        profile: usize,
        now_ms: u64,
    ) -> Result<Option<SlicePosition>, EngineError>;

    /// A pod that was placed has ended.
    ///
    /// # Errors
    /// What the engine says.
    fn end(&mut self, pod: u64, now_ms: u64) -> Result<(), EngineError>;
}

/// How pods may be moved so that another one fits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moves {
    /// Most GPU-time that moves may take, in percent of the GPU-time served; 0 moves nothing.
    pub percent: f64,
    /// Time for which a move takes the slice away from its pod.
    pub cost_ms: u64,
}

/// What cannot be simulated, or what should not have happened.
#[derive(Debug, Error)]
pub enum SlicesError {
    /// The engine refused an event.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A pod was moved away and found no place: a fault of dovetail.
    #[error("pod {pod} was moved and found no other place")]
    Lost { pod: u64 },
    /// Two slices lie on one another: a fault of dovetail.
    #[error("pod {pod}: a slice cannot start at position {start} of GPU {gpu}")]
    Overlap { pod: u64, gpu: usize, start: u8 },
}

/// What came out of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlicesRun {
    /// Requests that count: all after the first quarter.
    pub counted: u64,
    pub rejected: u64,
    /// Moves while requests counted.
    pub moves: u64,
    /// GPU-seconds that these moves took: the parts of GPUs that the slices are.
    pub moved_gpu_s: f64,
    /// GPU-seconds of the pods that were placed while requests counted.
    pub served_gpu_s: f64,
}

/// Runs the protocol.
///
/// # Errors
/// See [`SlicesError`].
pub fn run_slices(
    world: &SlicesWorld,
    places: &mut dyn Places,
    moves: Moves,
) -> Result<SlicesRun, SlicesError> {
    let stream = world.stream();
    let mut state = SlicesRunner {
        world,
        live: Live::new(&world.table, world.gpus()),
        spent: Spent::default(),
    };
    let mut ends: BinaryHeap<Reverse<(u64, u64)>> = BinaryHeap::new();
    let mut result = SlicesRun::default();
    let warm_up = stream.len() / 4;
    for (number, request) in stream.iter().enumerate() {
        while let Some(Reverse((at_ms, pod))) = ends.peek().copied()
            && at_ms <= request.at_ms
        {
            ends.pop();
            places.end(pod, at_ms)?;
            state.live.end(pod);
        }
        let pod = number as u64;
        let before = state.spent;
        let placed = state.serve(places, pod, request, moves)?;
        if placed {
            ends.push(Reverse((request.at_ms + request.run_ms, pod)));
        }
        if number >= warm_up {
            result.counted += 1;
            result.rejected += u64::from(!placed);
            result.moves += state.spent.moves - before.moves;
            result.moved_gpu_s += state.spent.moved_gpu_s - before.moved_gpu_s;
            result.served_gpu_s += state.spent.served_gpu_s - before.served_gpu_s;
        }
    }
    Ok(result)
}

/// Totals since the beginning, the warm-up included.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    moves: u64,
    moved_gpu_s: f64,
    served_gpu_s: f64,
}

struct SlicesRunner<'w> {
    world: &'w SlicesWorld,
    live: Live<'w>,
    spent: Spent,
}

impl SlicesRunner<'_> {
    /// Places a pod, if need be after a move; true if it runs.
    fn serve(
        &mut self,
        places: &mut dyn Places,
        pod: u64,
        request: &SliceRequest,
        moves: Moves,
    ) -> Result<bool, SlicesError> {
        let mut slice = places.place(pod, request.profile, request.at_ms)?;
        if slice.is_none() && moves.percent > 0.0 {
            slice = self.make_room(places, pod, request, moves)?;
        }
        let Some(slice) = slice else { return Ok(false) };
        self.live.begin(pod, request.profile, slice)?;
        self.spent.served_gpu_s += self.part(request.profile) * request.run_ms as f64 / 1000.0;
        Ok(true)
    }

    /// Moves one pod within the budget so that another one fits.
    fn make_room(
        &mut self,
        places: &mut dyn Places,
        pod: u64,
        request: &SliceRequest,
        moves: Moves,
    ) -> Result<Option<SlicePosition>, SlicesError> {
        let (table, live) = (&self.world.table, &self.live);
        let SliceRequest { at_ms, profile, .. } = *request;
        let Some(found) = move_for(table, &live.instances(), profile) else { return Ok(None) };
        let (moved, its_profile) = live.at(found.gpu, found.instance);
        let cost_s = self.part(its_profile) * moves.cost_ms as f64 / 1000.0;
        if (self.spent.moved_gpu_s + cost_s) * 100.0 > self.spent.served_gpu_s * moves.percent {
            return Ok(None);
        }
        places.end(moved, at_ms)?;
        self.live.end(moved);
        let slice = places.place(pod, profile, at_ms)?;
        // It fits on another GPU, as the move says: what came fitted on no other one.
        let there = places.place(moved, its_profile, at_ms)?;
        let there = there.ok_or(SlicesError::Lost { pod: moved })?;
        self.live.begin(moved, its_profile, there)?;
        self.spent.moves += 1;
        self.spent.moved_gpu_s += cost_s;
        Ok(slice)
    }

    /// The part of a GPU that a profile is.
    fn part(&self, profile: usize) -> f64 {
        let slices = self.world.table.profiles[profile].compute_slices;
        f64::from(slices) / f64::from(self.world.table.compute_slices)
    }
}

/// What lies where, kept apart from whoever places, and checked.
struct Live<'t> {
    table: &'t MigTable,
    gpus: Vec<Vec<(u64, Instance)>>,
    of: BTreeMap<u64, usize>,
}

impl<'t> Live<'t> {
    fn new(table: &'t MigTable, gpus: usize) -> Self {
        Self { table, gpus: vec![Vec::new(); gpus], of: BTreeMap::new() }
    }

    fn instances(&self) -> Vec<Vec<Instance>> {
        self.gpus.iter().map(|gpu| gpu.iter().map(|(_, instance)| *instance).collect()).collect()
    }

    /// The pod and its profile.
    fn at(&self, gpu: usize, instance: usize) -> (u64, usize) {
        let (pod, instance) = self.gpus[gpu][instance];
        (pod, instance.profile)
    }

    fn check(&self, pod: u64, profile: usize, slice: SlicePosition) -> Result<(), SlicesError> {
        let SlicePosition { gpu, start } = slice;
        let new = &self.table.profiles[profile];
        let lies = self.gpus.get(gpu).is_some_and(|held| {
            let profiles =
                held.iter().map(|(_, other)| (&self.table.profiles[other.profile], other));
            let (mut mask, mut compute) = (0, new.compute_slices);
            for (other, instance) in profiles {
                mask |= other.mask_at(instance.start);
                compute += other.compute_slices;
            }
            new.starts.contains(&start)
                && mask & new.mask_at(start) == 0
                && compute <= self.table.compute_slices
        });
        if lies { Ok(()) } else { Err(SlicesError::Overlap { pod, gpu, start }) }
    }

    fn begin(&mut self, pod: u64, profile: usize, slice: SlicePosition) -> Result<(), SlicesError> {
        self.check(pod, profile, slice)?;
        self.gpus[slice.gpu].push((pod, Instance { profile, start: slice.start }));
        self.of.insert(pod, slice.gpu);
        Ok(())
    }

    fn end(&mut self, pod: u64) {
        if let Some(gpu) = self.of.remove(&pod) {
            self.gpus[gpu].retain(|(other, _)| *other != pod);
        }
    }
}
