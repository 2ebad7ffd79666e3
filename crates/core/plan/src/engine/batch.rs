//! What one step of an engine is about.

use dovetail_model::Event;
use smallvec::SmallVec;

/// What happened at one time, in this order, and whether the engine decides after it.
///
/// A simulator knows everything that happens at one time and decides after it. A live scheduler
/// hears of one event after the other, at several times, and decides once nothing more is at hand.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    pub(super) events: SmallVec<[Event; 1]>,
    pub(super) decides: bool,
    pub(super) most_victims: Option<u64>,
}

impl Batch {
    /// These events, after which the engine decides.
    pub fn of(events: impl IntoIterator<Item = Event>) -> Self {
        Self { events: events.into_iter().collect(), decides: true, most_victims: None }
    }

    /// An event after which the engine does not decide yet.
    pub fn pending(event: Event) -> Self {
        Self::of([event]).undecided()
    }

    /// No event: the engine decides about those before. That time has passed is an
    /// [`Event::Tick`].
    pub fn decision() -> Self {
        Self::of([])
    }

    /// The same events, after which the engine names at most so many victims: preemption for
    /// further jobs waits for the next decision
    /// ([`Engine::is_held_back`](super::Engine::is_held_back)). The last job may need more victims
    /// than are left; it does not get fewer.
    #[must_use]
    pub fn with_victims(self, most: u64) -> Self {
        Self { most_victims: Some(most), ..self }
    }

    /// The same events, after which the engine does not decide yet.
    #[must_use]
    pub fn undecided(self) -> Self {
        Self { decides: false, ..self }
    }
}

impl From<Event> for Batch {
    fn from(event: Event) -> Self {
        Self::of([event])
    }
}
