//! The book: layers of prices, and the lookup.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use dovetail_model::{canonical_gpu_model, instance_type, is_gpu_resource};

use crate::asked::PriceQuery;
use crate::error::PriceError;
use crate::estimate::estimate;
use crate::exchange::{Exchange, ExchangeRate};
use crate::owned::OwnedMachine;
use crate::owned_nodes::OwnedNodes;
use crate::price::{KnownPrice, Price, PriceOrigin, Purchase};
use crate::rank::{DEFAULT_PLACES, RankQuery, best, is_of_type};
use crate::table::{self, PriceRow, Rows};
use crate::usd::parse_usd_micros;

/// The name that stands for nodes which state no GPU model.
const WITHOUT_MODEL: &str = "*";

/// Prices per GPU-hour: built in, overridden, assumed.
#[derive(Clone, Debug, Default)]
pub struct PriceBook {
    assumed: BTreeMap<String, Assumed>,
    /// By model; those that name their nodes stand before those that do not.
    owned: BTreeMap<String, Vec<Owned>>,
    overrides: Rows,
    built_in: Rows,
    exchange: Exchange,
}

#[derive(Clone, Debug)]
struct Assumed {
    written: String,
    usd_micros_per_gpu_hour: i64,
}

/// A kind of machine that was bought.
#[derive(Clone, Debug)]
struct Owned {
    machine: OwnedMachine,
    nodes: OwnedNodes,
    place: String,
}

impl PriceBook {
    /// The list prices that ship with the program. See the crate documentation for their sources
    /// and how they were reduced.
    pub fn built_in() -> Self {
        let built_in = embedded().expect("a test reads the embedded tables");
        Self { built_in, ..Self::default() }
    }

    /// Sets what other currencies are worth in rows that are read from here on.
    pub fn with_exchange(self, exchange: Exchange) -> Self {
        Self { exchange, ..self }
    }

    /// Puts a row in front of the built-in ones, as [`Self::with_overrides_csv`] reads it; `cell`
    /// says what it has in a column, `place` where it is written.
    ///
    /// # Errors
    /// Names the place and the column of the first bad cell.
    pub fn with_row<'t>(
        mut self,
        cell: &dyn Fn(&'static str) -> Option<&'t str>,
        place: &str,
    ) -> Result<Self, PriceError> {
        let bad = |(column, problem): (&str, String)| PriceError::Row {
            place: place.to_owned(),
            column: column.to_owned(),
            problem,
        };
        let (model, row) = table::row(cell, place, &self.exchange).map_err(bad)?;
        let added = table::add(&mut self.overrides, model, row);
        added.map_err(|problem| bad(("gpu_model", problem)))?;
        Ok(self)
    }

    /// Puts the rows of a price file in front of the built-in ones. Columns: `gpu_model` (`*` for
    /// nodes without one) and `usd_per_gpu_hour`, or `price_per_gpu_hour` with its `currency`;
    /// optional `provider`, `region`, `purchase`, `instance_type`, `source`, `as_of`. An empty cell
    /// holds for everything; a row with an instance type holds for nodes of that type alone.
    /// `file_name` is only used in messages. A second file replaces the rows of a model that both
    /// name.
    ///
    /// # Errors
    /// Names file, line and column of the first bad cell; then nothing is taken.
    pub fn with_overrides_csv(
        mut self,
        reader: impl Read,
        file_name: &str,
    ) -> Result<Self, PriceError> {
        self.overrides.extend(table::read(reader, file_name, &self.exchange)?);
        Ok(self)
    }

    /// Assumes a price for a model, or for a resource such as `amd.com/gpu`, whatever provider,
    /// region or purchase is asked for; `*` stands for nodes without a model (not for models
    /// without a price). Beats every other layer; a model comes before a resource.
    ///
    /// # Errors
    /// If the model is empty or was given before under this or another of its names, or if the
    /// amount is not one of USD per hour (see [`parse_usd_micros`]).
    pub fn with_assumed(mut self, model: &str, usd_per_hour: &str) -> Result<Self, PriceError> {
        let error = |problem| PriceError::Assumed { model: model.to_owned(), problem };
        let name = match is_gpu_resource(model) {
            true => model.to_owned(),
            false => canonical_gpu_model(model),
        };
        if name.is_empty() {
            return Err(error("name a GPU model, or * for nodes without one".to_owned()));
        }
        let usd_micros_per_gpu_hour = parse_usd_micros(usd_per_hour).map_err(error)?;
        let assumed = Assumed { written: model.to_owned(), usd_micros_per_gpu_hour };
        if let Some(first) = self.assumed.insert(name.clone(), assumed) {
            let problem = format!("`{}` already sets the price of {name}: keep one", first.written);
            return Err(error(problem));
        }
        Ok(self)
    }

    /// Prices a model as a machine of one's own, on the nodes that are such machines. Beats price
    /// files; an assumed price beats it. Of several that have a node the first counts; those that
    /// name their nodes come before those that do not. `place` says where it is written.
    ///
    /// # Errors
    /// If the machine has no GPU or no year, or a PUE below 1, or if the model has one for the same
    /// nodes already.
    pub fn with_owned(
        mut self,
        model: &str,
        machine: OwnedMachine,
        nodes: OwnedNodes,
        place: &str,
    ) -> Result<Self, PriceError> {
        let error = |problem: &str| PriceError::Owned {
            place: place.to_owned(),
            model: model.to_owned(),
            problem: problem.to_owned(),
        };
        let name = canonical_gpu_model(model);
        if name.is_empty() {
            return Err(error("name a GPU model"));
        }
        if machine.gpus == 0 || machine.years == 0 {
            return Err(error("a machine has at least one GPU and one year"));
        }
        machine.check_pue().map_err(|problem| error(&format!("pue: {problem}")))?;
        let kinds = self.owned.entry(name).or_default();
        if let Some(first) = kinds.iter().find(|first| first.nodes == nodes) {
            let problem = format!("{} is for the same nodes: keep one", first.place);
            return Err(error(&problem));
        }
        kinds.push(Owned { machine, nodes, place: place.to_owned() });
        // Stable: in the order in which they were given.
        kinds.sort_by_key(|owned| owned.nodes.is_open());
        Ok(self)
    }

    /// Models of machines of one's own, each with where it is written.
    pub fn owned_machines(&self) -> impl Iterator<Item = (&str, &str)> {
        let kinds = self.owned.iter();
        kinds.flat_map(|(model, kinds)| kinds.iter().map(|owned| (model.as_str(), &*owned.place)))
    }

    /// Where the machine of one's own is written that a node is, if it is one.
    pub fn owned_by(&self, asked: &PriceQuery<'_>) -> Option<&str> {
        self.owned_of(asked).map(|owned| owned.place.as_str())
    }

    fn owned_of(&self, asked: &PriceQuery<'_>) -> Option<&Owned> {
        let kinds = self.owned.get(&canonical_gpu_model(asked.model.unwrap_or_default()))?;
        kinds.iter().find(|owned| owned.nodes.have(asked))
    }

    /// The price of one GPU-hour; of a committed one without a committed rate that of one on
    /// demand, which the answer says. `model` is a node's own label or any of its other names; none
    /// (or an empty one) is a node that states no model. `provider` and `region` are the names of
    /// the book, such as `aws` and `us-east-1`; where they are none, the default place is taken and
    /// named in the answer.
    pub fn lookup(
        &self,
        model: Option<&str>,
        provider: Option<&str>,
        region: Option<&str>,
        purchase: Purchase,
    ) -> Price {
        self.price_of(&PriceQuery { model, provider, region, purchase, ..PriceQuery::default() })
    }

    /// The same of a GPU of which more is known: the instance type of its machine, and which node
    /// it is.
    pub fn price_of(&self, asked: &PriceQuery<'_>) -> Price {
        let purchase = asked.purchase;
        let model = canonical_gpu_model(asked.model.unwrap_or_default());
        let name = if model.is_empty() { WITHOUT_MODEL } else { &model };
        let by_resource = || asked.resources.iter().find_map(|name| self.assumed.get(name));
        if let Some(assumed) = self.assumed.get(name).or_else(by_resource) {
            return Price::Known(KnownPrice {
                usd_micros_per_gpu_hour: assumed.usd_micros_per_gpu_hour,
                origin: PriceOrigin::Assumed,
                source: format!("assumed price for `{}`", assumed.written),
                as_of: None,
                provider: None,
                region: None,
                instance_type: None,
                purchase,
            });
        }
        if let Some(Owned { machine, .. }) = self.owned_of(asked) {
            return Price::Known(KnownPrice {
                usd_micros_per_gpu_hour: machine.usd_micros_per_gpu_hour(),
                origin: PriceOrigin::Owned,
                source: machine.formula(),
                as_of: None,
                provider: None,
                region: None,
                instance_type: None,
                purchase,
            });
        }
        self.row_of(name, asked)
    }

    /// The price of a row of a file, of the settings or of the built-in book.
    fn row_of(&self, name: &str, asked: &PriceQuery<'_>) -> Price {
        // A committed rate is the user's to say; where nobody does, the list price is what is
        // known.
        let kinds: &[Purchase] = match asked.purchase {
            Purchase::Committed => &[Purchase::Committed, Purchase::OnDemand],
            Purchase::OnDemand => &[Purchase::OnDemand],
            Purchase::Spot => &[Purchase::Spot],
        };
        let found = kinds.iter().find_map(|kind| {
            let PriceQuery { provider, region, instance_type, .. } = *asked;
            let question = RankQuery { provider, region, instance_type, purchase: *kind };
            let any_type = RankQuery { instance_type: None, ..question };
            // A type that the built-in book does not know has the least that a GPU of its model
            // costs there.
            let mut layers = vec![(&self.overrides, question, PriceOrigin::Override)];
            // Whose list price would be that of a node that stands nobody knows where?
            if asked.labels.is_none() || provider.is_some() {
                layers.push((&self.built_in, question, PriceOrigin::BuiltIn));
                layers.push((&self.built_in, any_type, PriceOrigin::BuiltIn));
            }
            let row = layers.into_iter().find_map(|(rows, question, origin)| {
                Some((best(rows.get(name)?, question)?, origin))
            });
            row.map(|(row, origin)| Price::Known(known(row, origin, *kind)))
        });
        let estimated = || estimate(&self.built_in, name, asked).filter(|_| asked.labels.is_some());
        found.or_else(|| estimated().map(Price::Known)).unwrap_or(Price::Unknown)
    }

    /// What a model costs in a region of a provider, and in the region where this provider asks
    /// least for it, bought the same way and by the same layer, and as the same instance type where
    /// that has a price of its own; `None` where the region has no price of its own, and where no
    /// place of a price was named (machines of one's own, assumed prices).
    pub fn cheapest_region(
        &self,
        model: &str,
        provider: &str,
        region: &str,
        instance_type: Option<&str>,
        purchase: Purchase,
    ) -> Option<(KnownPrice, KnownPrice)> {
        let (provider, region) = (Some(provider), Some(region));
        let asked = PriceQuery {
            model: Some(model),
            provider,
            region,
            instance_type,
            purchase,
            ..PriceQuery::default()
        };
        let Price::Known(here) = self.price_of(&asked) else {
            return None;
        };
        // Where the price is that of another type, the least of any type is compared with the least
        // of any type.
        let is_own = |of: &String| instance_type.is_some_and(|t| of.eq_ignore_ascii_case(t));
        let own_type = here.instance_type.as_ref().filter(|of| is_own(of)).cloned();
        let layer = match here.origin {
            PriceOrigin::BuiltIn => &self.built_in,
            PriceOrigin::Override => &self.overrides,
            PriceOrigin::Owned | PriceOrigin::Estimated | PriceOrigin::Assumed => return None,
        };
        // What is committed stays where it is.
        if here.purchase != purchase {
            return None;
        }
        here.region.as_ref()?;
        let rows = layer.get(&canonical_gpu_model(model))?.iter().filter(|row| {
            let is_bought_so = row.purchase.is_none_or(|bought| bought == purchase);
            let is_same_type = is_of_type(row, own_type.as_deref());
            row.provider.as_deref() == provider
                && row.region.is_some()
                && is_bought_so
                && is_same_type
        });
        let cheapest = rows.min_by_key(|row| (row.usd_micros_per_gpu_hour, &row.region))?;
        let there = known(cheapest, here.origin, purchase);
        Some((here, there))
    }

    /// The GPU model of an instance type, for nodes whose labels name none; `None` if the type is
    /// not known. The book need not have a price of it.
    pub fn model_of_instance(name: &str) -> Option<&'static str> {
        instance_type(name).map(|of| of.gpu_model)
    }

    /// The provider of an instance type, if it is one of the built-in book.
    pub fn provider_of_instance(name: &str) -> Option<&'static str> {
        let provider = instance_type(name)?.provider;
        DEFAULT_PLACES.iter().any(|(known, _)| *known == provider).then_some(provider)
    }

    /// The rates at which rows were converted, by currency.
    pub fn converted_at(&self) -> Vec<&ExchangeRate> {
        let rows = self.overrides.values().flatten();
        let used: BTreeSet<&String> = rows.filter_map(|row| row.currency.as_ref()).collect();
        used.into_iter().filter_map(|currency| self.exchange.rate(currency).ok()).collect()
    }

    /// The canonical names of models with an assumed price, each as the user wrote it.
    pub fn assumed_models(&self) -> impl Iterator<Item = (&str, &str)> {
        let named = self.assumed.iter().filter(|(name, _)| *name != WITHOUT_MODEL);
        named.map(|(name, assumed)| (name.as_str(), assumed.written.as_str()))
    }

    /// Providers of the user's own rows that are none of the built-in book, in lower case, each
    /// with where the first of its rows of a model is written. No node's labels lead to them.
    pub fn unknown_providers(&self) -> BTreeMap<&str, &str> {
        let is_known = |name: &str| DEFAULT_PLACES.iter().any(|(known, _)| *known == name);
        let rows = self.overrides.values().flatten().rev();
        let named = rows.filter_map(|row| Some((row.provider.as_deref()?, row.place.as_str())));
        named.filter(|(provider, _)| !is_known(provider)).collect()
    }

    /// The canonical names of models with a price of the user's own, by file or setting, in
    /// alphabetical order.
    pub fn overridden_models(&self) -> impl Iterator<Item = &str> {
        let names = self.overrides.keys().map(String::as_str);
        names.filter(|name| *name != WITHOUT_MODEL)
    }

    /// The canonical names of all models with a price in any layer, in alphabetical order.
    pub fn gpu_models(&self) -> Vec<&str> {
        let names = self
            .assumed
            .keys()
            .chain(self.owned.keys())
            .chain(self.overrides.keys())
            .chain(self.built_in.keys());
        let mut names: Vec<&str> =
            names.map(String::as_str).filter(|name| *name != WITHOUT_MODEL).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

fn known(row: &PriceRow, origin: PriceOrigin, purchase: Purchase) -> KnownPrice {
    KnownPrice {
        usd_micros_per_gpu_hour: row.usd_micros_per_gpu_hour,
        origin,
        source: row.source.clone(),
        as_of: row.as_of.clone(),
        provider: row.provider.clone(),
        region: row.region.clone(),
        instance_type: row.instance_type.clone(),
        purchase,
    }
}

/// The embedded table, each row with the list and day of its provider.
fn embedded() -> Result<Rows, PriceError> {
    const BOOK: &str = include_str!("../data/price_book.csv");
    const SOURCES: &str = include_str!("../data/price_sources.csv");
    let mut sources: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    for line in SOURCES.lines().skip(1) {
        let mut cells = line.split(',');
        if let (Some(provider), Some(source), Some(as_of)) =
            (cells.next(), cells.next(), cells.next())
        {
            sources.insert(provider, (source, as_of));
        }
    }
    let mut rows = table::read(BOOK.as_bytes(), "price_book.csv", &Exchange::default())?;
    for row in rows.values_mut().flatten() {
        let provider = row.provider.as_deref().unwrap_or_default();
        if let Some((source, as_of)) = sources.get(provider) {
            row.source = format!("{} in {source}", row.source);
            row.as_of = Some((*as_of).to_owned());
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_type_names_its_model() {
        assert_eq!(PriceBook::model_of_instance("p5.48xlarge"), Some("H100"));
        assert_eq!(PriceBook::model_of_instance("p5"), None);
        // Types of which the book has no price.
        assert_eq!(PriceBook::model_of_instance("p5e.48xlarge"), Some("H200"));
        assert_eq!(PriceBook::provider_of_instance("p5e.48xlarge"), Some("aws"));
        assert_eq!(PriceBook::provider_of_instance("BM.GPU.H100.8"), None);
    }

    #[test]
    fn the_model_and_the_provider_of_each_embedded_row_are_those_of_its_instance_type() {
        let rows = embedded().unwrap();
        for (model, row) in
            rows.iter().flat_map(|(model, rows)| rows.iter().map(move |row| (model, row)))
        {
            let name = row.instance_type.as_deref().unwrap_or_default();
            let of_type = instance_type(name).map(|of| (of.gpu_model, Some(of.provider)));
            assert_eq!(of_type, Some((&**model, row.provider.as_deref())), "{name}");
        }
    }

    #[test]
    fn every_embedded_row_says_place_purchase_source_and_day() {
        let rows = embedded().unwrap();
        for (model, row) in
            rows.iter().flat_map(|(model, rows)| rows.iter().map(move |row| (model, row)))
        {
            assert_eq!(*model, canonical_gpu_model(model));
            assert!(row.usd_micros_per_gpu_hour > 0, "{model} {row:?}");
            assert!(row.provider.is_some() && row.region.is_some(), "{model} {row:?}");
            assert!(row.purchase.is_some() && row.as_of.is_some(), "{model} {row:?}");
            assert!(row.source.contains(" in "), "{model} {row:?}");
        }
    }
}
