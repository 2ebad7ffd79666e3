//! Reservations, as the scheduler and people ask about them.

use dovetail_objects::Reservation;

use crate::reservations::Unusable;
use crate::world::objects::Objects;

/// Questions about reservations.
#[derive(Clone, Copy, Debug)]
pub struct ReservationView<'w> {
    pub(crate) objects: &'w Objects,
}

impl<'w> ReservationView<'w> {
    /// The reservations by name, each with why it cannot be reserved.
    pub fn all(self) -> impl Iterator<Item = (&'w Reservation, Option<&'w Unusable>)> + use<'w> {
        self.objects.reservations.iter()
    }

    /// A reservation by its name.
    pub fn get(self, name: &str) -> Option<&'w Reservation> {
        self.objects.reservations.get(name)
    }
}
