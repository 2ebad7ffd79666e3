//! The price book: what one GPU-hour costs, where the figure comes from, and what the user says
//! instead.
//!
//! [`PriceBook::built_in`] holds list prices per GPU model, provider, region and purchase kind.
//! [`PriceBook::with_overrides_csv`] and [`PriceBook::with_assumed`] put the user's own prices in
//! front of them. [`PriceBook::lookup`] answers with a [`Price`]; a model nobody priced is
//! [`Price::Unknown`], never zero.
//!
//! # Which price is chosen
//! 1. Layers: assumed (command line) before owned (settings, of the nodes they are for) before
//!    override (file) before built in.
//! 2. Inside a layer, only rows that agree with everything the caller named; a row that leaves the
//!    instance type or a place open agrees with every one. The most specific agreeing row wins:
//!    first one that names the instance type, then one that names the provider, the region, the
//!    purchase. Where the caller names no region, rows that name none come before all others. Two
//!    rows that name the same are refused when they are read.
//! 3. Where the caller named no provider or no region, the default places are tried in the order of
//!    [`DEFAULT_PLACES`], then the cheapest row (ties by provider, then region). The chosen place
//!    is part of the answer, so that every report can say it. The same holds for an instance type
//!    that the caller does not name: a row for every type, else the cheapest. A type that the
//!    built-in book does not know has the price of the cheapest type with that model there, and the
//!    answer names that type.
//! 4. Where the caller named no purchase kind, it is on demand. A committed rate that nobody gave
//!    is the price on demand, and the answer says so.
//!
//! 5. A node of a known provider in a region without a price has an estimate: on demand the price
//!    of the same instance type in the nearest region that is known (same continent, else the
//!    cheapest), spot in the same way, else the part of it that spot costs elsewhere. The answer
//!    says so ([`PriceOrigin::Estimated`]). A node of no known provider has no price but the
//!    user's own.
//!
//! # Other currencies
//! All amounts are micro-USD. A row in another currency is converted when it is read, half to even,
//! at the rate that the user gave ([`Exchange`]); its source says the rate and its day. Without a
//! rate it is refused.
//!
//! # How the built-in figures were reduced
//! The sources list whole instances. A row of `data/price_book.csv` is one instance type in one
//! region: its price divided by its GPUs, rounded half to even at the sixth decimal, so it includes
//! the CPU and memory that come with the GPU. Rows of a model and region stand in ascending price,
//! among equals the one with the most GPUs first, and it answers for any type. Both memory sizes of
//! the V100 are one model.

mod asked;
mod book;
mod day;
mod error;
mod estimate;
mod exchange;
mod node_place;
mod owned;
mod owned_nodes;
mod price;
mod priced;
mod rank;
mod table;
mod usd;

pub use asked::PriceQuery;
pub use book::PriceBook;
pub use dovetail_model::canonical_gpu_model;
pub use error::PriceError;
pub use exchange::{Exchange, ExchangeRate};
pub use node_place::{NodePlace, node_place, place_labels};
pub use owned::OwnedMachine;
pub use owned_nodes::{LabelPairs, OwnedNodes};
pub use price::{KnownPrice, Price, PriceOrigin, Purchase};
pub use rank::DEFAULT_PLACES;
pub use table::COLUMNS as PRICE_COLUMNS;
pub use usd::{MAX_USD_MICROS_PER_GPU_HOUR, format_usd_micros, parse_usd_micros};
