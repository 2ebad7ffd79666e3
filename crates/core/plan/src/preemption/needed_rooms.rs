//! Which of the rooms that are kept for jobs of a lower priority a job needs: as few as it can do
//! with, of the least important ones.

use std::cmp::Reverse;

use dovetail_model::Owner;

use super::rooms::importance;
use super::search::{Found, Search};
use super::units::Unit;
use crate::gang::PlacedPod;
use dovetail_state::holdings::HoldingRecord;

impl Search<'_> {
    /// Keeps what need not be given up of these rooms, all of which are free so far: the job starts
    /// without the rest of them. `None` if the search took too long.
    pub(super) fn keep_rooms(
        &mut self,
        mut found: Found,
        mut rooms: Vec<HoldingRecord>,
    ) -> Option<Found> {
        // Of rooms of one priority a small one is kept before a large one, so that few are given
        // up, and then the other way round, so that no more is given up than is needed.
        rooms.sort_by_key(|room| {
            let (priority, gpu_milli, cpu_milli) = importance(room);
            (Reverse(priority), gpu_milli, cpu_milli)
        });
        let few = self.needed(&found.units, &rooms)?;
        rooms.sort_by_key(|room| Reverse(importance(room)));
        let small = self.needed(&found.units, &rooms)?;
        let needed = if few.cost < small.cost { few } else { small };
        found.places = needed.places.unwrap_or(found.places);
        found.rooms = needed.rooms;
        Some(found)
    }

    /// Puts rooms back, in this order, in stretches that grow while the job starts beside all of
    /// one.
    fn needed(&mut self, units: &[Unit], rooms: &[HoldingRecord]) -> Option<Needed> {
        let mark = self.state.begin();
        let mut needed = Needed::default();
        let (mut from, mut stretch) = (0, rooms.len());
        while from < rooms.len() && self.operations_left > 0 {
            stretch = stretch.clamp(1, rooms.len() - from);
            let tried = &rooms[from..from + stretch];
            let held: Vec<_> =
                tried.iter().map(|room| self.state.hold_again(room.clone())).collect();
            self.operations_left = self.operations_left.saturating_sub(2 * held.len() as u64);
            if let Some(places) = self.suffices(units) {
                needed.places = Some(places);
                (from, stretch) = (from + stretch, 2 * stretch);
                continue;
            }
            held.into_iter().rev().for_each(|id| drop(self.state.release(id)));
            if stretch == 1 {
                needed.add(&tried[0]);
                from += 1;
            }
            stretch /= 2;
        }
        self.state.rollback(mark);
        (from == rooms.len()).then_some(needed)
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
    fn add(&mut self, room: &HoldingRecord) {
        let Owner::Foreign(name) = &room.owner else { return };
        self.rooms.push(name.clone());
        let (priority, gpu_milli, _) = importance(room);
        let (highest, count, sum_gpu_milli) = self.cost;
        self.cost = (highest.max(Some(priority)), count + 1, sum_gpu_milli + gpu_milli);
    }
}
