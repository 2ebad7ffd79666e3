//! What is to be said of a period that was read in parts: of each thing once, with the number of
//! all parts.

use anyhow::Result;
use dovetail_settings::Settings;
use dovetail_sources::node_prices::{PriceLine, PricesUsed};
use dovetail_sources::own_prices::OwnPriceFlags;

use super::from_prometheus::LeftOpen;
use super::reading::ReadPart;

/// The parts so far.
#[derive(Debug, Default)]
pub struct PartsTold {
    notes: Vec<String>,
    left: LeftOpen,
    /// Each with the most GPUs that had the price in one part.
    pub prices: Vec<PriceLine>,
    used: PricesUsed,
}

impl PartsTold {
    /// Takes what was said of a part.
    pub fn add(&mut self, told: ReadPart) {
        for note in told.notes {
            self.note(note);
        }
        self.left.add(told.left);
        self.used.add(told.used);
        told.prices.into_iter().for_each(|line| add_price(&mut self.prices, line));
    }

    /// Takes a note, unless it is there.
    pub fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Whether it tells that node names went to another machine.
    pub(crate) fn tells_machines(&self) -> bool {
        self.left.has_reused()
    }

    /// Everything.
    ///
    /// # Errors
    /// A price that cannot be read.
    pub fn in_words(&self, flags: &OwnPriceFlags, settings: &Settings) -> Result<Vec<String>> {
        let mut notes = self.left.in_words(true);
        if !self.prices.is_empty() {
            notes.extend(flags.notes_of(settings, &self.prices, &self.used)?);
        }
        notes.extend(self.notes.iter().cloned());
        Ok(notes)
    }
}

fn add_price(prices: &mut Vec<PriceLine>, line: PriceLine) {
    let same = |other: &PriceLine| {
        let key = |line: &PriceLine| {
            let PriceLine { model, provider, region, instance_type, purchase, .. } = line.clone();
            (model, provider, region, instance_type, purchase, line.usd_micros_per_gpu_hour)
        };
        key(other) == key(&line)
    };
    match prices.iter_mut().find(|other| same(other)) {
        Some(other) => other.gpus = other.gpus.max(line.gpus),
        None => prices.push(line),
    }
}
