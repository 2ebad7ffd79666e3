//! Reservations: what is to be reserved from one time to another.

use std::collections::BTreeMap;

use dovetail_model::{Booked, Booking, Event};
use dovetail_objects::Reservation;

use crate::reservations::{Unusable, booking, is_settled};
use dovetail_translate::{ReferredObjects, Rules};

/// In the words of the engine, or why it cannot be reserved; `None` if that is settled.
type Read = Option<Result<Booking, Unusable>>;

/// All reservations, each in the words of the engine; nothing more is decided about those without.
#[derive(Debug, Default)]
pub(crate) struct Reservations {
    all: BTreeMap<Box<str>, (Reservation, Read)>,
    /// Events that were not taken yet.
    events: Vec<Event>,
}

impl Reservations {
    pub(crate) fn get(&self, name: &str) -> Option<&Reservation> {
        self.all.get(name).map(|(object, _)| object)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.all.keys().map(|name| &**name)
    }

    /// All of them, with why one cannot be reserved.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Reservation, Option<&Unusable>)> {
        self.all.values().map(|(object, read)| {
            let problem = read.as_ref().and_then(|read| read.as_ref().err());
            (object, problem)
        })
    }

    /// What is to be reserved, as nothing was decided about it yet.
    pub(crate) fn translated(&self) -> Vec<Booked> {
        let bookings = self.all.values().filter_map(|(_, read)| read.as_ref()?.as_ref().ok());
        let numbered = bookings.cloned().enumerate();
        numbered.map(|(number, booking)| Booked::requested(booking, number as u32)).collect()
    }

    /// What is to be reported to the engine since the last call.
    pub(crate) fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// A reservation is there or different.
    pub(crate) fn put(&mut self, object: Reservation, facts: &ReferredObjects, rules: &Rules) {
        let name = object.meta.name.clone();
        let read = (!is_settled(&object)).then(|| booking(&object, facts, rules));
        let now = read.as_ref().and_then(|read| read.as_ref().ok()).cloned();
        let before = self.all.insert(name.clone(), (object, read));
        let before = before.and_then(|(_, read)| read?.ok());
        let name = name.to_string();
        match (before, now) {
            (Some(before), Some(now)) if before.asks_as(&now) => {}
            (_, Some(now)) => self.events.push(Event::BookingSet(Box::new(now))),
            (Some(_), None) => self.events.push(Event::BookingRemoved { name }),
            (None, None) => {}
        }
    }

    pub(crate) fn remove(&mut self, name: &str) {
        if self.all.remove(name).is_some_and(|(_, read)| matches!(read, Some(Ok(_)))) {
            self.events.push(Event::BookingRemoved { name: name.to_owned() });
        }
    }
}
