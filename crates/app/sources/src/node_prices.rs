//! What the GPUs of each node cost: by model, provider, region and purchase, as the node's labels
//! name them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use dovetail_account::Priced;
use dovetail_audit::NodePrice;
use dovetail_console::clock::today;
use dovetail_console::plain::{plain, plain_sentence};
use dovetail_console::table::counted;
use dovetail_inventory::facts::{Gathered, GpuCount};
use dovetail_model::to_nearest;
use dovetail_price::{
    ExchangeRate, KnownPrice, NodePlace, Price, PriceBook, PriceOrigin, PriceQuery, Purchase,
    canonical_gpu_model, node_place,
};
use dovetail_settings::Settings;
use serde::Serialize;

use crate::own_prices::OwnPriceFlags;

/// A node whose GPUs want a price.
#[derive(Clone, Copy, Debug)]
pub struct NodeToPrice<'a> {
    pub gpus: i64,
    /// GPUs of its instance type, where another number counts.
    pub of_machine: Option<i64>,
    pub model: Option<&'a str>,
    pub labels: &'a BTreeMap<String, String>,
    pub provider_id: &'a str,
    /// Resources by which pods ask for them.
    pub resources: &'a [String],
}

impl<'a> NodeToPrice<'a> {
    /// The nodes with GPUs, in their order.
    pub fn all_of(gathered: &'a Gathered) -> Vec<Self> {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        let labels = gathered.facts.nodes.iter().map(|node| (&*node.node.name, &node.node.labels));
        let labels: BTreeMap<&str, _> = labels.collect();
        let counts = gathered.gpu_counts.iter().map(|(name, count)| (name.as_str(), count));
        let counts: BTreeMap<&str, &GpuCount> = counts.collect();
        let nodes = gathered.moment.nodes.iter().map(|node| NodeToPrice {
            gpus: node.gpus,
            of_machine: counts.get(&*node.node).and_then(|count| count.of_machine()),
            model: node.model.as_deref(),
            labels: labels.get(&*node.node).copied().unwrap_or(&NONE),
            provider_id: gathered.provider_ids.get(&node.node).map_or("", String::as_str),
            resources: gathered.resources.get(&node.node).map_or(&[], Vec::as_slice),
        });
        nodes.collect()
    }

    /// A price of a GPU of it: a list price is that of the whole node, however many GPUs count.
    fn listed(&self, price: Price) -> Price {
        let (Some(of_machine), 1..) = (self.of_machine, self.gpus) else { return price };
        match price {
            Price::Known(known)
                if matches!(known.origin, PriceOrigin::BuiltIn | PriceOrigin::Estimated) =>
            {
                let of_node = known.usd_micros_per_gpu_hour.saturating_mul(of_machine);
                let source = format!(
                    "{}, of {of_machine} GPUs of the instance type over the {} that count",
                    known.source, self.gpus
                );
                let usd_micros_per_gpu_hour = to_nearest(of_node, self.gpus);
                Price::Known(KnownPrice { usd_micros_per_gpu_hour, source, ..known })
            }
            price => price,
        }
    }
}

/// Prices of nodes, and what is said about them.
#[derive(Debug)]
pub struct Prices {
    /// In the order of the nodes.
    pub of_nodes: Vec<NodePrice>,
    /// The same with where each price is from.
    pub(crate) priced: Vec<Priced>,
    /// What their labels say of them, in the same order.
    pub places: Vec<NodePlace>,
    /// List prices on demand of a GPU-hour of nodes that are bought at a committed rate, in the
    /// same order.
    pub lists: Vec<Option<i64>>,
    pub told: Vec<PriceLine>,
    pub used: PricesUsed,
    /// What is to be said of them.
    pub notes: Vec<String>,
}

/// What of a price list was used, and how.
#[derive(Clone, Debug, Default)]
pub struct PricesUsed {
    /// GPUs by model, instance type of their node, and the one whose price stands in for it.
    stand_ins: BTreeMap<[String; 3], i64>,
    /// GPUs by model and the place whose price they have, where nobody knows theirs.
    guessed: BTreeMap<GuessedPlace, i64>,
    /// Where machines stand that are somebody's own, of which there are some.
    owned: BTreeSet<String>,
    /// Texts of `prices.committed_nodes` that find a node.
    committing: BTreeSet<String>,
    /// GPUs by model and what their price is estimated from.
    estimated: BTreeMap<[String; 2], i64>,
    /// GPUs of no known provider and of no price, by model.
    homeless: BTreeMap<String, Homeless>,
    /// Resources by which pods ask for GPUs here.
    resources: BTreeSet<String>,
}

/// GPUs of no known provider and of no price.
#[derive(Clone, Debug, Default)]
struct Homeless {
    gpus: i64,
    /// Resources by which pods ask for them.
    resources: BTreeSet<String>,
}

impl Prices {
    /// The model of most GPUs, else a resource, whose price a flag can set; `None` where something
    /// has a price.
    pub fn flag_without_any(&self) -> Option<String> {
        if self.told.iter().any(|line| line.usd_micros_per_gpu_hour.is_some()) {
            return None;
        }
        let named = self.told.iter().filter(|line| line.model.is_some());
        let model = named.max_by_key(|line| line.gpus).and_then(|line| line.model.clone());
        let resource = || self.used.resources.first().map(|resource| plain(resource));
        let any = || (!self.told.is_empty()).then(|| "*".to_owned());
        model.or_else(resource).or_else(any)
    }

    /// GPUs whose price is an estimate.
    pub fn estimated_gpus(&self) -> i64 {
        self.told.iter().filter(|line| line.is_estimate).map(|line| line.gpus).sum()
    }
}

impl PricesUsed {
    /// Adds what was used at another time.
    pub fn add(&mut self, other: Self) {
        for (types, gpus) in other.stand_ins {
            let most = self.stand_ins.entry(types).or_default();
            *most = gpus.max(*most);
        }
        for (place, gpus) in other.guessed {
            let most = self.guessed.entry(place).or_default();
            *most = gpus.max(*most);
        }
        for (from, gpus) in other.estimated {
            let most = self.estimated.entry(from).or_default();
            *most = gpus.max(*most);
        }
        for (model, Homeless { gpus, resources }) in other.homeless {
            let most = self.homeless.entry(model).or_default();
            most.gpus = gpus.max(most.gpus);
            most.resources.extend(resources);
        }
        self.resources.extend(other.resources);
        self.owned.extend(other.owned);
        self.committing.extend(other.committing);
    }
}

/// A place whose price stands in for that of a place that nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct GuessedPlace {
    model: String,
    /// Whether the provider is known, and only the region is not.
    is_provider_known: bool,
    provider: String,
    region: String,
}

/// GPUs with one price.
#[derive(Clone, Debug, Serialize)]
pub struct PriceLine {
    pub model: Option<String>,
    pub provider: Option<String>,
    pub region: Option<String>,
    /// The instance type whose price it is; null where it holds for every type.
    pub instance_type: Option<String>,
    /// How they are bought.
    pub purchase: &'static str,
    /// Of which way of buying it is the price, if not of that one: of committed GPUs without a
    /// committed rate.
    pub priced_as: Option<&'static str>,
    pub gpus: i64,
    pub usd_micros_per_gpu_hour: Option<i64>,
    /// Whether it is an estimate: of another region, another instance type, or of spot by what it
    /// costs elsewhere.
    pub is_estimate: bool,
    /// The region that it is estimated from.
    pub estimated_from: Option<String>,
    pub source: Option<String>,
    pub as_of: Option<String>,
}

impl OwnPriceFlags {
    /// Prices of nodes.
    ///
    /// # Errors
    /// A price that cannot be read.
    pub fn of(&self, nodes: &[NodeToPrice<'_>], settings: &Settings) -> Result<Prices> {
        let book = self.book(settings)?;
        let mut told: BTreeMap<LineKey, PriceLine> = BTreeMap::new();
        let mut used = PricesUsed::default();
        let (mut of_nodes, mut places, mut lists) = (Vec::new(), Vec::new(), Vec::new());
        let mut priced = Vec::new();
        for node in nodes {
            let mut place = place_of(node);
            // What the provider may take back is not bought for a term, whatever pool it is in.
            let committing = settings.prices.committed_by(node.labels).map(str::to_owned);
            used.committing.extend(committing);
            if place.purchase == Purchase::OnDemand && settings.prices.is_committed(node.labels) {
                place.purchase = Purchase::Committed;
            }
            // What a machine costs its type says, whatever a label says of its GPUs.
            let by_type = place.instance_type.as_deref().and_then(PriceBook::model_of_instance);
            let model = by_type.or(node.model).map(canonical_gpu_model);
            let region = place.region.as_deref();
            // A region means nothing without its provider.
            let region = region.filter(|_| place.provider.is_some());
            let asked = PriceQuery {
                model: model.as_deref(),
                provider: place.provider,
                region,
                instance_type: place.instance_type.as_deref(),
                purchase: place.purchase,
                provider_id: node.provider_id,
                resources: node.resources,
                labels: Some(node.labels),
            };
            used.resources.extend(node.resources.iter().cloned());
            used.owned.extend(book.owned_by(&asked).map(str::to_owned));
            let price_as = |purchase| node.listed(book.price_of(&PriceQuery { purchase, ..asked }));
            let price = price_as(place.purchase);
            let estimated = known_of(&price).filter(|known| known.origin == PriceOrigin::Estimated);
            let is_listed = estimated.is_none();
            if let Some(types) = stand_in(&asked, &price).filter(|_| is_listed) {
                *used.stand_ins.entry(types).or_default() += node.gpus;
            }
            if let Some(known) = estimated {
                let from = [model.clone().unwrap_or_else(|| "*".to_owned()), known.source.clone()];
                *used.estimated.entry(from).or_default() += node.gpus;
            } else if place.provider.is_none() && known_of(&price).is_none() {
                let model = model.clone().unwrap_or_else(|| "*".to_owned());
                let homeless = used.homeless.entry(model).or_default();
                homeless.gpus += node.gpus;
                homeless.resources.extend(node.resources.iter().cloned());
            } else if let Some(place) = guessed(&asked, &price) {
                *used.guessed.entry(place).or_default() += node.gpus;
            }
            let is_estimate = !is_listed
                || stand_in(&asked, &price).is_some()
                || guessed(&asked, &price).is_some();
            let is_committed = place.purchase == Purchase::Committed;
            let list = is_committed.then(|| price_as(Purchase::OnDemand).usd_micros_per_gpu_hour());
            lists.push(list.flatten());
            of_nodes.push(NodePrice { usd_micros_per_gpu_hour: price.usd_micros_per_gpu_hour() });
            let place_of_line = NodePlace { instance_type: None, ..place.clone() };
            let (model_of_line, amount) = (model.clone(), price.usd_micros_per_gpu_hour());
            let source = known_of(&price).map(|known| known.source.clone());
            told.entry((model_of_line, place_of_line, amount, source))
                .or_insert_with(|| line(model, &place, &price, is_estimate))
                .gpus += node.gpus;
            places.push(place);
            priced.push(Priced::from(price));
        }
        let told: Vec<PriceLine> = told.into_values().collect();
        let notes = self.notes(&book, settings, &told, &used);
        Ok(Prices { of_nodes, priced, places, lists, told, used, notes })
    }

    /// What is to be said of prices that were used at several times.
    ///
    /// # Errors
    /// A price that cannot be read.
    pub fn notes_of(
        &self,
        settings: &Settings,
        told: &[PriceLine],
        used: &PricesUsed,
    ) -> Result<Vec<String>> {
        Ok(self.notes(&self.book(settings)?, settings, told, used))
    }

    fn notes(
        &self,
        book: &PriceBook,
        settings: &Settings,
        told: &[PriceLine],
        used: &PricesUsed,
    ) -> Vec<String> {
        // What no amount has comes first: an answer of one screen shows only the first notes.
        let mut notes: Vec<String> = used.homeless.iter().map(homeless_in_words).collect();
        notes.extend(without_committed_rate(told));
        notes.extend(used.stand_ins.iter().map(stand_in_in_words));
        notes.extend(used.guessed.iter().map(guessed_in_words));
        notes.extend(used.estimated.iter().map(estimated_in_words));
        notes.extend(of_days_to_come(told));
        notes.extend(machines_of_nothing(book, &used.owned));
        notes.extend(committed_of_nothing(settings, &used.committing));
        notes.extend(book.converted_at().into_iter().map(converted_in_words));
        notes.extend(self.prices_of_nothing(book, told, used));
        notes
    }

    /// Prices of models that no node has: a slip would leave the true one with another price.
    fn prices_of_nothing(
        &self,
        book: &PriceBook,
        told: &[PriceLine],
        used: &PricesUsed,
    ) -> Vec<String> {
        let there: BTreeSet<&str> = told.iter().filter_map(|line| line.model.as_deref()).collect();
        if told.is_empty() {
            return Vec::new();
        }
        let models = if there.is_empty() {
            "none is named".to_owned()
        } else {
            there.iter().copied().collect::<Vec<_>>().join(", ")
        };
        let assumed = book
            .assumed_models()
            .filter(|(model, _)| !there.contains(model) && !used.resources.contains(*model));
        let mut notes: Vec<String> = assumed
            .map(|(_, written)| {
                format!(
                    "--gpu-price {}: no node has GPUs of this model, so the price has no effect; models in the \
                     cluster: {models}",
                    plain(written)
                )
            })
            .collect();
        let unused: Vec<&str> = book.overridden_models().filter(|m| !there.contains(m)).collect();
        if !unused.is_empty() {
            let own = match &self.prices {
                Some(path) => path.display().to_string(),
                None => "prices.rates of dovetail.toml".to_owned(),
            };
            notes.push(plain_sentence(&format!(
                "{own}: no node has GPUs of {}; models in the cluster: {models}",
                unused.join(", ")
            )));
        }
        let strangers = book.unknown_providers();
        notes.extend(strangers.into_iter().map(|(provider, place)| {
            plain_sentence(&format!(
                "{place}: `{provider}` is not a provider that node labels identify: use aws, gcp \
                 or azure"
            ))
        }));
        notes
    }
}

/// Where a node stands. One without an identity of its provider may have an instance type that only
/// one has; one of another cloud is not what its labels copy.
fn place_of(node: &NodeToPrice<'_>) -> NodePlace {
    let mut place = node_place(node.labels, node.provider_id);
    if node.provider_id.is_empty() {
        let of_type = || PriceBook::provider_of_instance(place.instance_type.as_deref()?);
        place.provider = place.provider.or_else(of_type);
    }
    place
}

/// Model, place, price and source of GPUs that are told in one line.
type LineKey = (Option<String>, NodePlace, Option<i64>, Option<String>);

/// The model, the instance type of a node, and the one whose price stands in for it, where that is
/// another one.
fn stand_in(asked: &PriceQuery<'_>, price: &Price) -> Option<[String; 3]> {
    let (own, of) = (asked.instance_type?, known_of(price)?.instance_type.as_deref()?);
    let differs = !own.eq_ignore_ascii_case(of);
    differs.then(|| [asked.model.unwrap_or("*"), own, of].map(str::to_owned))
}

/// The place whose price a GPU has, where nobody knows its own.
fn guessed(asked: &PriceQuery<'_>, price: &Price) -> Option<GuessedPlace> {
    let known = known_of(price)?;
    let is_provider_known = asked.provider.is_some();
    let is_guessed = match is_provider_known {
        true => asked.region.is_none() && known.region.is_some(),
        false => known.provider.is_some(),
    };
    is_guessed.then(|| GuessedPlace {
        model: asked.model.unwrap_or("*").to_owned(),
        is_provider_known,
        provider: known.provider.clone().unwrap_or_default(),
        region: known.region.clone().unwrap_or_default(),
    })
}

fn guessed_in_words((place, gpus): (&GuessedPlace, &i64)) -> String {
    let GuessedPlace { model, is_provider_known, provider, region } = place;
    let (whose, without) = match is_provider_known {
        true => ("region", "a region"),
        false => ("provider", "a provider"),
    };
    let at = format!("{provider} {region}");
    plain_sentence(&format!(
        "{} of model {model} on nodes of unknown {whose}: priced as in {}, an estimate; set their price \
         with a row without {without} in --prices, or with --gpu-price",
        counted(usize::try_from(*gpus).unwrap_or(0), "GPU"),
        at.trim()
    ))
}

fn estimated_in_words(([model, source], gpus): (&[String; 2], &i64)) -> String {
    plain_sentence(&format!(
        "{} of model {model}: no price known for this region, so dovetail uses an {source}; set one with --gpu-price, \
         or with a row for this region in --prices",
        counted(usize::try_from(*gpus).unwrap_or(0), "GPU")
    ))
}

/// Whether a note says that GPUs of a model have no price.
pub fn tells_missing_price(note: &str, model: &str) -> bool {
    note.contains(NO_PRICE) && note.contains(&of_model(model))
}

/// Resources that a note names.
const MOST_RESOURCES: usize = 4;

const NO_PRICE: &str = ": no price, so not included in any amount";

fn of_model(model: &str) -> String {
    match model {
        "" | "*" => " of unknown model ".to_owned(),
        model => format!(" of model {model} "),
    }
}

fn homeless_in_words((model, homeless): (&String, &Homeless)) -> String {
    let resources: Vec<&str> = homeless.resources.iter().map(String::as_str).collect();
    let by_resource = match resources[..] {
        [] => String::new(),
        [only] => format!(", or by resource with --gpu-price {only}=USD"),
        _ => format!(
            ", or by resource ({}) with --gpu-price RESOURCE=USD",
            resources.iter().take(MOST_RESOURCES).copied().collect::<Vec<_>>().join(", ")
        ),
    };
    plain_sentence(&format!(
        "{}{}on nodes without a known cloud provider{NO_PRICE}; set one per hour with --gpu-price \
         {model}=USD{by_resource}",
        counted(usize::try_from(homeless.gpus).unwrap_or(0), "GPU"),
        of_model(model)
    ))
}

/// Prices of days that are yet to come.
fn of_days_to_come(told: &[PriceLine]) -> Vec<String> {
    // Days are written so that they sort as they come.
    let today = today().to_string();
    let later = told.iter().filter_map(|line| {
        let day = line.as_of.as_deref().filter(|day| **day > *today)?;
        Some((day, line.model.as_deref().unwrap_or("*")))
    });
    let later: BTreeSet<(&str, &str)> = later.collect();
    let note = |(day, model): (&str, &str)| {
        plain_sentence(&format!(
            "prices of {model} date from {day}, which is in the future: check their `as_of`"
        ))
    };
    later.into_iter().map(note).collect()
}

fn stand_in_in_words(([model, own, of], gpus): (&[String; 3], &i64)) -> String {
    plain_sentence(&format!(
        "{} of model {model} on instance type {own}, which has no known price: priced as {of}, the cheapest with this \
         model there; set their price with a row for instance_type {own} in --prices",
        counted(usize::try_from(*gpus).unwrap_or(0), "GPU")
    ))
}

/// Machines of one's own that no node is: a slip would leave the true ones with a list price.
fn machines_of_nothing(book: &PriceBook, owned: &BTreeSet<String>) -> Vec<String> {
    let unused = book.owned_machines().filter(|(_, place)| !owned.contains(*place));
    let note = |(model, place): (&str, &str)| {
        plain_sentence(&format!(
            "{place}: matches no node ({model}), so its price is unused; it applies to nodes that match `provider` and \
             `nodes`, or without these to nodes with no known cloud provider"
        ))
    };
    unused.map(note).collect()
}

/// Labels of committed nodes that no node has: a slip would leave the nodes that are meant at their
/// price on demand.
fn committed_of_nothing(settings: &Settings, committing: &BTreeSet<String>) -> Vec<String> {
    let texts = settings.prices.committed_nodes.iter().flatten();
    let unused = texts.filter(|text| !committing.contains(*text));
    let note = |text: &String| {
        plain_sentence(&format!(
            "prices.committed_nodes: `{text}` matches no node; in an anonymized collection, label values are replaced"
        ))
    };
    unused.map(note).collect()
}

/// GPUs at a committed rate that nobody gave.
fn without_committed_rate(told: &[PriceLine]) -> Vec<String> {
    let mut models: BTreeMap<&str, i64> = BTreeMap::new();
    for line in told.iter().filter(|line| line.priced_as.is_some()) {
        *models.entry(line.model.as_deref().unwrap_or("*")).or_default() += line.gpus;
    }
    let note = |(model, gpus): (&str, i64)| {
        format!(
            "{} of model {model} at an unknown committed rate: priced at the higher on-demand list price; set the rate \
             with a row `{model}` with purchase `committed` in --prices or in prices.rates of dovetail.toml, or pass \
             --bill",
            counted(usize::try_from(gpus).unwrap_or(0), "GPU")
        )
    };
    models.into_iter().map(note).collect()
}

/// A rate of exchange with its age.
pub fn converted_in_words(rate: &ExchangeRate) -> String {
    let age_days = rate.as_of.as_deref().and_then(|day| {
        let day: jiff::civil::Date = day.parse().ok()?;
        let today = today();
        day.until(today).ok().map(|span| span.get_days())
    });
    let age = match age_days {
        Some(days) if days >= 0 => {
            format!(", {} old", counted(days.unsigned_abs() as usize, "day"))
        }
        Some(_) => ", which is in the future".to_owned(),
        None => String::new(),
    };
    plain_sentence(&format!("amounts in {} are converted: {}{age}", rate.currency, rate.in_words()))
}

fn known_of(price: &Price) -> Option<&KnownPrice> {
    match price {
        Price::Known(known) => Some(known),
        Price::Unknown => None,
    }
}

/// Provider and region for which a price holds: those of the node, else those of the price. Where
/// the provider of a node is not known, neither is whose region its label names.
fn place_of_price(place: &NodePlace, known: Option<&KnownPrice>) -> [Option<String>; 2] {
    let region = place.region.as_deref().map(plain);
    let of_price = known.map(|known| [known.provider.clone(), known.region.clone()]);
    let [of_provider, of_region] = of_price.unwrap_or_default();
    match place.provider {
        Some(provider) => [Some(provider.to_owned()), region.or(of_region)],
        None if of_provider.is_some() => [of_provider, of_region],
        None => [None, region],
    }
}

fn line(model: Option<String>, place: &NodePlace, price: &Price, is_estimate: bool) -> PriceLine {
    let known = known_of(price);
    let [provider, region] = place_of_price(place, known);
    PriceLine {
        model: model.map(|model| plain(&model)),
        provider,
        region,
        instance_type: known.and_then(|known| known.instance_type.as_deref()).map(plain),
        purchase: place.purchase.name(),
        priced_as: known
            .map(|known| known.purchase)
            .filter(|purchase| *purchase != place.purchase)
            .map(Purchase::name),
        gpus: 0,
        usd_micros_per_gpu_hour: price.usd_micros_per_gpu_hour(),
        is_estimate,
        estimated_from: known.filter(|_| is_estimate).and_then(|known| known.region.clone()),
        source: known.map(|known| plain(&known.source)),
        as_of: known.and_then(|known| known.as_of.clone()),
    }
}
