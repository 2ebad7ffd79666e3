//! What a lookup answers.

use std::fmt;

/// The price of one GPU-hour, or that nobody gave one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Price {
    /// A price with everything a report must say about it.
    Known(KnownPrice),
    /// No row agrees with the question. Report the GPU-seconds, not dollars: unknown is not zero.
    Unknown,
}

impl Price {
    /// The figure in micro-USD per GPU-hour, if there is one.
    pub fn usd_micros_per_gpu_hour(&self) -> Option<i64> {
        match self {
            Self::Known(known) => Some(known.usd_micros_per_gpu_hour),
            Self::Unknown => None,
        }
    }
}

/// A price and its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownPrice {
    /// Micro-USD for one whole physical GPU during one hour, with the CPU and memory sold with it.
    pub usd_micros_per_gpu_hour: i64,
    /// Who said so.
    pub origin: PriceOrigin,
    /// Where the figure can be read: a public list, a file and line, or a command-line flag.
    pub source: String,
    /// Day of the figure as `YYYY-MM-DD`, where the source states one.
    pub as_of: Option<String>,
    /// Provider the figure belongs to; none where it holds for every provider.
    pub provider: Option<String>,
    /// Region the figure belongs to; none where it holds for every region.
    pub region: Option<String>,
    /// Instance type the figure belongs to; none where it holds for every type. It is another one
    /// than was asked for where the built-in book does not know that one.
    pub instance_type: Option<String>,
    /// Of which way of buying it is the price: the one that was asked for, or on demand where
    /// nobody named a committed rate.
    pub purchase: Purchase,
}

/// Which layer of the book answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PriceOrigin {
    /// A public list price that ships with the program.
    BuiltIn,
    /// A row of the user's price file.
    Override,
    /// A machine that was bought.
    Owned,
    /// What prices of other places suggest.
    Estimated,
    /// A stand-in from the command line; reports call it assumed.
    Assumed,
}

impl fmt::Display for PriceOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BuiltIn => "built in",
            Self::Override => "override",
            Self::Owned => "owned",
            Self::Estimated => "estimated",
            Self::Assumed => "assumed",
        })
    }
}

/// How a GPU is bought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purchase {
    /// List price, by the hour, no commitment.
    #[default]
    OnDemand,
    /// Capacity that the provider may take back.
    Spot,
    /// At a rate agreed for a term: reservations, savings plans, committed use. The built-in book
    /// has none: agreed rates are the user's.
    Committed,
}

/// What price files of earlier versions call a committed rate.
const COMMITTED_BEFORE: &str = "reserved";

impl Purchase {
    /// Every kind, in the order in which messages list them.
    pub const ALL: [Self; 3] = [Self::OnDemand, Self::Spot, Self::Committed];

    /// The word used in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::OnDemand => "on_demand",
            Self::Spot => "spot",
            Self::Committed => "committed",
        }
    }

    /// The kind with that name, if there is one; `reserved` is another name of `committed`.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = if name == COMMITTED_BEFORE { Self::Committed.name() } else { name };
        Self::ALL.into_iter().find(|purchase| purchase.name() == name)
    }
}

impl fmt::Display for Purchase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
