//! What a leader does when it begins about gangs that lost members while nobody led: it keeps room for them.

use super::scheduler::Scheduler;

impl Scheduler {
    /// Nobody is to be kept room for: this is a question about the cluster at one moment, and no leader begins.
    pub fn only_ask(&mut self) {
        (self.has_begun, self.only_asks) = (true, true);
    }

    /// Keeps room for what running gangs lost before this leader began; once in a leadership. What is lost from then on
    /// is seen, and its very place is kept.
    pub(super) fn keep_for_the_lost(&mut self) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        for lost in self.world.lost_members() {
            let Some(engine) = self.engine_mut() else { return };
            // Levels that are known to the gang are known to the engine.
            let places = engine.ask().what_fits(&lost.job).unwrap_or_default();
            let places: Vec<_> =
                places.into_iter().map(|place| (place.pod.pod_set, place.node)).collect();
            let events = self.world.keep_for_lost(&lost, &places);
            self.tell(events);
        }
    }
}
