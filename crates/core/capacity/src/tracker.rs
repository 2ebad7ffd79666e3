//! The account of one moment: every milli-GPU unavailable, allocated, or free by one cause.
//!
//! [`what_is_free`] computes it from nothing. A [`FreeTracker`] keeps it up to date: it reads the
//! engine's change log and surveys only nodes that changed, and remembers per waiting shape what
//! kept it off each node until the node changes. Which demand explains which piece depends on all
//! of them, so that last step is done anew each time. It costs the number of waiting shapes × the
//! number of free pieces in byte comparisons, and a backlog has few free pieces; where nothing
//! waits it costs nothing. Gangs of several pods that no attempt of the engine has settled (held by
//! quota or by strict order) cost one attempt each per state of the nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_model::{FreeCause, NodeId, NodeName, Requirement};
use dovetail_plan::engine::supply::ChangeCursor;
use dovetail_plan::{Engine, ShapeId};
use serde::Serialize;

use crate::assign::{ByCause, ShapeAnswers, ShapeDemand, assign};
use crate::cause::CAUSES;
use crate::demand::DemandReader;
use crate::states::States;
use crate::survey::{CapacityAccount, NodeSurvey, Surveyor};
use crate::verdicts::{NO_DEMAND, OpenPiece, Verdicts, is_of_kind};
use crate::weight;

/// What is free and why, from nothing. `turned_away` is demand that does not wait in the engine, as
/// requirement and number of pods.
///
/// Ask after a decision cycle: before it, what is about to start still waits. Nothing that the
/// engine decides changes; it is borrowed mutably because it remembers answers.
pub fn what_is_free(engine: &mut Engine, turned_away: &[(Arc<Requirement>, u64)]) -> Picture {
    let mut tracker = FreeTracker::new();
    for (requirement, pods) in turned_away {
        tracker.turn_away(engine, requirement, *pods);
    }
    tracker.picture(engine)
}

/// All capacity at one moment, in milli-GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Picture {
    /// Of the whole cluster.
    pub total_gpu_milli: States<i64>,
    /// By GPU model; the empty name is an unknown model.
    pub models_gpu_milli: BTreeMap<String, States<i64>>,
    /// The pieces whose cause rests on demand, by rank of the node.
    pub pieces: Vec<FreePiece>,
}

/// The free part of the devices of one ready node that are in the same state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FreePiece {
    pub node: NodeName,
    pub model: String,
    /// What is free, by cause; causes of nothing are left out.
    pub gpu_milli: BTreeMap<FreeCause, i64>,
}

/// Follows an engine and tells at any moment what is free and why.
#[derive(Clone, Debug, Default)]
pub struct FreeTracker {
    cursor: ChangeCursor,
    built: bool,
    changed: Vec<NodeId>,
    stamps: u64,
    nodes: Vec<(u64, NodeSurvey)>,
    by_rank: Vec<NodeId>,
    fleet: u64,
    pub(crate) surveyor: Surveyor,
    pub(crate) accounts: Accounts,
    turned_away: Vec<(ShapeId, Arc<Requirement>, u64)>,
    demand: DemandReader,
    verdicts: Verdicts,
}

/// Sums over all nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accounts {
    numbers: BTreeMap<(u32, CapacityAccount), usize>,
    pub(crate) keys: Vec<(u32, CapacityAccount)>,
    pub(crate) levels_milli: Vec<i64>,
}

impl Accounts {
    fn number(&mut self, key: (u32, CapacityAccount)) -> usize {
        let next = self.keys.len();
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.keys.push(key);
            self.levels_milli.push(0);
        }
        number
    }

    /// Milli-GPU in an account.
    pub(crate) fn level(&self, model: u32, account: CapacityAccount) -> i64 {
        self.numbers.get(&(model, account)).map_or(0, |number| self.levels_milli[*number])
    }

    pub(crate) fn find(&self, model: u32, account: CapacityAccount) -> Option<usize> {
        self.numbers.get(&(model, account)).copied()
    }
}

impl FreeTracker {
    /// A tracker that has seen nothing; it must stay with one engine.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds pods that were turned away and do not wait in the engine.
    pub fn turn_away(&mut self, engine: &mut Engine, requirement: &Arc<Requirement>, pods: u64) {
        let shape = engine.ask().shape_of(requirement);
        match self.turned_away.iter_mut().find(|(have, ..)| *have == shape) {
            Some((_, _, have)) => *have += pods,
            None => self.turned_away.push((shape, Arc::clone(requirement), pods)),
        }
    }

    /// The account of this moment.
    pub fn picture(&mut self, engine: &mut Engine) -> Picture {
        self.sync(engine, |_, _| {});
        let (pieces, split) = self.classify(engine);
        let causes = self.by_model(&pieces, &split);
        let models = (0..self.surveyor.models.len()).map(|model| {
            let name = self.surveyor.models.name(model as u32).to_owned();
            (name, self.states_of(model as u32, &causes[model]))
        });
        let models: BTreeMap<String, States<i64>> = models.collect();
        let mut total = States::zero();
        models.values().for_each(|states| total.add(states));
        let pieces = pieces.iter().zip(&split).filter_map(|(open, split)| {
            let some = FreeCause::ALL.into_iter().map(|cause| (cause, split[cause as usize]));
            Some(FreePiece {
                node: engine.supply().node(open.node)?.name.clone(),
                model: self.surveyor.models.name(open.piece.model).to_owned(),
                gpu_milli: some.filter(|(_, milli)| *milli > 0).collect(),
            })
        });
        Picture { total_gpu_milli: total, pieces: pieces.collect(), models_gpu_milli: models }
    }

    fn states_of(&self, model: u32, causes: &ByCause) -> States<i64> {
        let mut states = States::zero();
        for (number, (of, account)) in self.accounts.keys.iter().enumerate() {
            let level = self.accounts.levels_milli[number];
            if *of == model {
                add_to(&mut states, &self.surveyor, *account, level);
            }
        }
        for cause in FreeCause::ALL {
            states.add_free(cause, causes[cause as usize]);
        }
        states
    }

    /// Surveys the nodes that changed. `before` hears of each account, with what it held, before it
    /// changes.
    pub(crate) fn sync(&mut self, engine: &Engine, mut before: impl FnMut(usize, i64)) {
        self.changed.clear();
        let known = engine.supply().changed_nodes(&mut self.cursor, &mut self.changed);
        if !known || !self.built {
            self.built = true;
            self.changed =
                (0..engine.supply().node_slots()).map(|slot| NodeId(slot as u32)).collect();
        }
        if self.changed.is_empty() {
            return;
        }
        self.demand.forget_fits();
        self.nodes.resize_with(engine.supply().node_slots(), Default::default);
        for slot in std::mem::take(&mut self.changed) {
            let survey = self.surveyor.survey(engine, slot);
            self.stamps += 1;
            let stamp = self.stamps;
            let old = std::mem::replace(&mut self.nodes[slot.index()], (stamp, survey)).1;
            let new = &self.nodes[slot.index()].1;
            if old.booked == new.booked {
                continue;
            }
            let taken = old.booked.iter().map(|(key, milli)| (*key, -milli));
            for (key, milli) in taken.chain(new.booked.iter().copied()) {
                let number = self.accounts.number(key);
                let level = &mut self.accounts.levels_milli[number];
                before(number, *level);
                *level += milli;
            }
        }
        if self.fleet != engine.supply().fleet_version() {
            self.fleet = engine.supply().fleet_version();
            let slots = (0..engine.supply().node_slots()).map(|slot| NodeId(slot as u32));
            self.by_rank = slots.filter(|slot| engine.supply().node(*slot).is_some()).collect();
            self.by_rank.sort_by_key(|slot| engine.supply().node_rank(*slot));
        }
    }

    /// The open pieces, and each split by cause. Up to date with [`FreeTracker::sync`] before.
    pub(crate) fn classify(&mut self, engine: &mut Engine) -> (Vec<OpenPiece>, Vec<ByCause>) {
        let pieces = self.open_pieces();
        let (rows, demand) = match pieces.is_empty() {
            true => (Vec::new(), Vec::new()),
            false => self.demand_for(engine, &pieces),
        };
        // Asking whether gangs fit touches nodes and leaves them as they were.
        self.changed.clear();
        engine.supply().changed_nodes(&mut self.cursor, &mut self.changed);
        let split = assign(&pieces, &rows, demand);
        (pieces, split)
    }

    fn open_pieces(&self) -> Vec<OpenPiece> {
        let mut found = Vec::new();
        for node in &self.by_rank {
            let (stamp, survey) = &self.nodes[node.index()];
            let open = |piece| OpenPiece { node: *node, stamp: *stamp, piece };
            found.extend(survey.pieces.iter().copied().map(open));
        }
        found
    }

    fn demand_for(
        &mut self,
        engine: &mut Engine,
        pieces: &[OpenPiece],
    ) -> (Vec<ShapeAnswers>, Vec<ShapeDemand>) {
        self.verdicts.begin_round();
        let mut rows: Vec<ShapeAnswers> = Vec::new();
        let mut row_of: BTreeMap<(ShapeId, Option<usize>), usize> = BTreeMap::new();
        let mut demand: Vec<ShapeDemand> = Vec::new();
        let mut entry_of: BTreeMap<(usize, Option<FreeCause>), usize> = BTreeMap::new();
        let mut add = |row: usize, fate: Option<FreeCause>, gpu_milli: i64| {
            let next = demand.len();
            let place = *entry_of.entry((row, fate)).or_insert(next);
            if place == next {
                demand.push(ShapeDemand { row, where_it_fits: fate, gpu_milli: 0 });
            }
            demand[place].gpu_milli += gpu_milli;
        };
        for jobs in self.demand.read(engine) {
            let mut own = Vec::with_capacity(jobs.pods.len());
            for pods in &jobs.pods {
                let row = *row_of.entry((pods.shape, pods.level)).or_insert_with(|| {
                    let asked = (pods.shape, &*pods.requirement);
                    let mut answers = self.verdicts.row(engine, asked, pieces);
                    keep_off_outside(engine, &mut answers, pods.level, pieces);
                    rows.push(ShapeAnswers::new(answers));
                    rows.len() - 1
                });
                own.push((row, pods.gpu_milli));
            }
            let fits_somewhere = own.iter().any(|(row, _)| rows[*row].fits_somewhere());
            let fate = fits_somewhere.then(|| self.demand.fate(engine, &jobs));
            own.into_iter().for_each(|(row, gpu_milli)| add(row, fate, gpu_milli));
        }
        for (shape, requirement, pods) in &self.turned_away {
            let row = *row_of.entry((*shape, None)).or_insert_with(|| {
                let answers = self.verdicts.row(engine, (*shape, requirement), pieces);
                rows.push(ShapeAnswers::new(answers));
                rows.len() - 1
            });
            add(row, None, weight::waiting_milli(engine, requirement) * *pods as i64);
        }
        (rows, demand)
    }

    /// Splits summed up by number of the model.
    pub(crate) fn by_model(&self, pieces: &[OpenPiece], split: &[ByCause]) -> Vec<ByCause> {
        let mut sums = vec![[0; CAUSES]; self.surveyor.models.len()];
        for (open, split) in pieces.iter().zip(split) {
            let sum = &mut sums[open.piece.model as usize];
            sum.iter_mut().zip(split).for_each(|(sum, part)| *sum += part);
        }
        sums
    }
}

/// A piece outside of every domain of a level that must be shared is out of reach, whatever it has
/// and of whatever type it is.
fn keep_off_outside(engine: &Engine, row: &mut [u8], level: Option<usize>, pieces: &[OpenPiece]) {
    let Some(depth) = level else { return };
    for (answer, open) in row.iter_mut().zip(pieces) {
        if !engine.supply().is_in_level(open.node, depth) {
            *answer = match *answer {
                NO_DEMAND => NO_DEMAND,
                answer if is_of_kind(answer) => NO_DEMAND,
                answer => answer.min(FreeCause::Topology as u8),
            };
        }
    }
}

/// Adds what an account holds to where it belongs; what is open goes by its causes.
pub(crate) fn add_to<N: Copy + Default + std::ops::AddAssign>(
    states: &mut States<N>,
    surveyor: &Surveyor,
    account: CapacityAccount,
    amount: N,
) {
    match account {
        CapacityAccount::Installed => states.installed += amount,
        CapacityAccount::Unavailable => states.unavailable += amount,
        CapacityAccount::Allocated(queue) => {
            states.add_allocated(queue.map(|queue| surveyor.queues.name(queue)), amount);
        }
        CapacityAccount::Draining => states.add_free(FreeCause::DrainingOrCordoned, amount),
        CapacityAccount::Starting => states.add_free(FreeCause::Starting, amount),
        CapacityAccount::Kept => states.add_free(FreeCause::Reserved, amount),
        CapacityAccount::Open => {}
    }
}
