//! How a history goes on: events by their times, the draws, the network between all, and the log.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use crate::dice::Dice;
use crate::event::Event;
use crate::network::{Network, Way};
use crate::recipe::Recipe;
use crate::scene::Options;

/// The course of one history.
#[derive(Debug)]
pub(crate) struct Course<'r> {
    recipe: &'r Recipe,
    dice: Dice,
    network: Network,
    queue: BTreeMap<(u64, u64), Event>,
    made: u64,
    /// Events that are about more than waiting.
    busy: u64,
    pub(crate) now_ms: u64,
    pub(crate) log: String,
}

impl<'r> Course<'r> {
    pub(crate) fn new(recipe: &'r Recipe, options: &Options) -> Self {
        Self {
            recipe,
            dice: Dice::new(recipe.seed),
            network: Network::new(options),
            queue: BTreeMap::new(),
            made: 0,
            busy: 0,
            now_ms: 0,
            log: String::new(),
        }
    }

    /// An event is to happen after a while.
    pub(crate) fn after(&mut self, delay_ms: u64, event: Event) {
        self.made += 1;
        self.busy += u64::from(event.is_busy());
        self.queue.insert((self.now_ms + delay_ms, self.made), event);
    }

    /// The next event; its time is the present.
    pub(crate) fn next(&mut self) -> Option<Event> {
        let ((at_ms, _), event) = self.queue.pop_first()?;
        self.now_ms = at_ms;
        self.busy -= u64::from(event.is_busy());
        Some(event)
    }

    /// Whether more than waiting is to happen.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy > 0
    }

    /// Adds a line to the log.
    pub(crate) fn say(&mut self, text: fmt::Arguments<'_>) {
        // A String takes everything.
        _ = writeln!(self.log, "{:>8} {text}", self.now_ms);
    }

    pub(crate) fn below(&mut self, what: &str, bound: u64) -> u64 {
        self.dice.below(what, "", bound)
    }

    /// How long a message takes.
    pub(crate) fn delay_ms(&mut self, what: &str, about: &str) -> u64 {
        self.network.delay_ms(&mut self.dice, what, about)
    }

    /// What happens to a request that may take so long.
    pub(crate) fn way(&mut self, request: (&str, &str), limit_ms: u64) -> Way {
        self.network.way(&mut self.dice, self.recipe, request, limit_ms)
    }

    /// From now on nothing goes wrong.
    pub(crate) fn calm_down(&mut self) {
        self.network.calm_down();
        self.say(format_args!("calm"));
    }

    /// Names of the faults that struck.
    pub(crate) fn struck(&self) -> &[String] {
        &self.network.struck
    }
}
