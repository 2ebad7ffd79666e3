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
}

impl Batch {
    /// These events, after which the engine decides.
    pub fn of(events: impl IntoIterator<Item = Event>) -> Self {
        Self { events: events.into_iter().collect(), decides: true }
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
