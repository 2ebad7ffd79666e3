//! Which of the rooms that are kept for jobs of a lower priority a job needs: as few as it can do
//! with, of the least important ones.

use std::cmp::Reverse;

use dovetail_model::Owner;

use super::rooms::importance;
use super::search::{FoundVictims, Search};
use super::units::Unit;
use crate::gang::PlacedPod;
use dovetail_state::holdings::HoldingRecord;

impl FoundVictims {
    /// Keeps what need not be given up of these rooms, all of which are free so far: the job starts
    /// without the rest of them. `None` if the search took too long.
    pub(super) fn beside_rooms(
        mut self,
        search: &mut Search<'_>,
        mut rooms: Vec<HoldingRecord>,
    ) -> Option<Self> {
        // Of rooms of one priority a small one is kept before a large one, so that few are given
        // up, and then the other way round, so that no more is given up than is needed.
        rooms.sort_by_key(|room| {
            let (priority, gpu_milli, cpu_milli) = importance(room);
            (Reverse(priority), gpu_milli, cpu_milli)
        });
        let few = Needed::of(search, &self.units, &rooms)?;
        rooms.sort_by_key(|room| Reverse(importance(room)));
        let small = Needed::of(search, &self.units, &rooms)?;
        let needed = if few.cost < small.cost { few } else { small };
        self.places = needed.places.unwrap_or(self.places);
        self.rooms = needed.rooms;
        Some(self)
    }
}

/// Rooms that are to be given up.
#[derive(Default)]
struct Needed {
    rooms: Vec<String>,
    /// The highest priority among them, how many they are, and how much.
    cost: (Option<i32>, usize, i64),
    /// Where the job starts then; `None` if none of the rooms is kept.
    places: Option<Vec<PlacedPod>>,
}

impl Needed {
    /// Puts rooms back, in this order, in stretches that grow while the job starts beside all of
    /// one.
    fn of(search: &mut Search<'_>, units: &[Unit], rooms: &[HoldingRecord]) -> Option<Self> {
        let mark = search.state.begin();
        let mut needed = Self::default();
        let (mut from, mut stretch) = (0, rooms.len());
        while from < rooms.len() && search.operations_left > 0 {
            stretch = stretch.clamp(1, rooms.len() - from);
            let tried = &rooms[from..from + stretch];
            let held: Vec<_> =
                tried.iter().map(|room| search.state.hold_again(room.clone())).collect();
            search.operations_left = search.operations_left.saturating_sub(2 * held.len() as u64);
            if let Some(places) = search.suffices(units) {
                needed.places = Some(places);
                (from, stretch) = (from + stretch, 2 * stretch);
                continue;
            }
            held.into_iter().rev().for_each(|id| drop(search.state.release(id)));
            if stretch == 1 {
                needed.add(&tried[0]);
                from += 1;
            }
            stretch /= 2;
        }
        search.state.rollback(mark);
        (from == rooms.len()).then_some(needed)
    }

    fn add(&mut self, room: &HoldingRecord) {
        let Owner::Foreign(name) = &room.owner else { return };
        self.rooms.push(name.clone());
        let (priority, gpu_milli, _) = importance(room);
        let (highest, count, sum_gpu_milli) = self.cost;
        self.cost = (highest.max(Some(priority)), count + 1, sum_gpu_milli + gpu_milli);
    }
}
