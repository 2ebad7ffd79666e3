//! What time and ends change of standings.

use super::jobs::Jobs;
use super::placement::Placement;
use dovetail_order::book::TurnBook;

/// Takes it in: waiting jobs get the place of their standing, and running ones may be open to
/// others.
pub(super) fn turn(turns: Option<&mut TurnBook>, jobs: &mut Jobs, placement: &mut Placement) {
    let Some(turns) = turns else { return };
    let mut about = turns.due(placement.now_ms);
    about.extend(turns.refresh());
    while !about.is_empty() {
        for job in about {
            let Some(record) = jobs.records.get_mut(&job) else { continue };
            let Some((place, class)) = record.place else {
                if turns.run(&record.job, placement.now_ms) {
                    jobs.note_others_of(&mut placement.state, job);
                }
                continue;
            };
            let standing = turns.standing(&record.job);
            if standing == place.1 {
                continue;
            }
            record.place = Some((jobs.pending.replace(place, standing, class), class));
            if standing < place.1 && jobs.pending.asleep(class).is_some() {
                jobs.pending.wake(class);
            }
        }
        about = turns.refresh();
    }
}
