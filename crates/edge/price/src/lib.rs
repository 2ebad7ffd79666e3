//! The price book: what one GPU-hour costs, where the figure comes from, and what the user says
//! instead.
//!
//! [`PriceBook::built_in`] holds list prices per GPU model, provider, region and purchase kind.
//! [`PriceBook::with_overrides_csv`] and [`PriceBook::with_assumed`] put the user's own prices in
//! front of them. [`PriceBook::lookup`] answers with a [`Price`]; a model nobody priced is
//! [`Price::Unknown`], never zero.
//!
//! # Which price is chosen
//! 1. Layers: assumed (command line) before owned (settings) before override (file) before built in.
//! 2. Inside a layer, only rows that agree with everything the caller named; a row that leaves a
//!    place open agrees with every place. The most specific agreeing row wins.
//! 3. Where the caller named no provider or no region, the default places are tried in the order
//!    of [`DEFAULT_PLACES`], then the cheapest row (ties by provider, then region). The chosen
//!    place is part of the answer, so that every report can say it.
//! 4. Where the caller named no purchase kind, it is on demand. A committed rate that nobody gave is the price on
//!    demand, and the answer says so.
//!
//! # Other currencies
//! All amounts are micro-USD. A row in another currency is converted when it is read, half to even, at the rate that
//! the user gave ([`Exchange`]); its source says the rate and its day. Without a rate it is refused.
//!
//! # How the built-in figures were reduced
//! The sources list whole instances. A row of `data/price_book.csv` is the instance type with the
//! lowest list price per GPU among those with that model in that region; among equals, the one
//! with the most GPUs. Its price is the instance price divided by its GPUs, rounded half to even
//! at the sixth decimal, so it includes the CPU and memory that come with the GPU. Both memory
//! sizes of the V100 are one model.

mod book;
mod day;
mod error;
mod exchange;
mod gpu_model;
mod owned;
mod place;
mod price;
mod rank;
mod table;
mod usd;

pub use book::PriceBook;
pub use error::PriceError;
pub use exchange::{Exchange, ExchangeRate};
pub use gpu_model::canonical_gpu_model;
pub use owned::OwnedMachine;
pub use place::{NodePlace, node_place, place_labels};
pub use price::{KnownPrice, Origin, Price, Purchase};
pub use rank::DEFAULT_PLACES;
pub use table::COLUMNS as PRICE_COLUMNS;
pub use usd::{MAX_USD_MICROS_PER_GPU_HOUR, format_usd_micros, parse_usd_micros};
