//! Which nodes their provider may take back, and where they would cost less: prices know the labels
//! of providers.

use std::collections::BTreeMap;

use dovetail_facts::{CheapestRegion, Node};
use dovetail_inventory::facts::Gathered;
use dovetail_price::{NodePlace, PriceBook, PriceQuery, Purchase, node_place};

/// Marks each node of a known provider as spot capacity or not.
pub fn mark(gathered: &mut Gathered) {
    for node in &mut gathered.facts.nodes {
        let id = gathered.provider_ids.get(&*node.node.name).map_or("", String::as_str);
        let place = node_place(&node.node.labels, id);
        let is_spot = place.purchase == Purchase::Spot;
        // Where nobody knows the provider, a missing label says nothing.
        node.is_prepaid = place.purchase == Purchase::Committed;
        node.is_spot = (is_spot || place.provider.is_some()).then_some(is_spot);
    }
}

/// Notes on each node where its provider asks least for its GPUs.
pub fn mark_cheapest(gathered: &mut Gathered, book: &PriceBook) {
    let mut known = OfKinds::new();
    for node in &mut gathered.facts.nodes {
        let id = gathered.provider_ids.get(&*node.node.name).map_or("", String::as_str);
        let place = node_place(&node.node.labels, id);
        node.cheapest_region = cheapest(node, id, place, (book, &mut known));
    }
}

/// What is known by GPU model and place: large clusters have few kinds of nodes.
type OfKinds = BTreeMap<(String, NodePlace), Option<CheapestRegion>>;

fn cheapest(
    node: &Node,
    provider_id: &str,
    place: NodePlace,
    (book, known): (&PriceBook, &mut OfKinds),
) -> Option<CheapestRegion> {
    let stated = node.gpus.values().find_map(|gpus| gpus.model.as_deref());
    let by_type = || PriceBook::model_of_instance(place.instance_type.as_deref()?);
    let model = stated.or_else(by_type)?;
    let asked = PriceQuery {
        model: Some(model),
        provider: place.provider,
        provider_id,
        labels: Some(&node.node.labels),
        ..PriceQuery::default()
    };
    // What was bought stands where it stands.
    if book.owned_by(&asked).is_some() {
        return None;
    }
    let kind = (model.to_owned(), place);
    known.entry(kind).or_insert_with_key(|(model, place)| cheapest_of(model, place, book)).clone()
}

fn cheapest_of(model: &str, place: &NodePlace, book: &PriceBook) -> Option<CheapestRegion> {
    let region = place.region.as_deref()?;
    let (provider, of_type) = (place.provider?, place.instance_type.as_deref());
    let (here, there) = book.cheapest_region(model, provider, region, of_type, place.purchase)?;
    Some(CheapestRegion {
        here: here.region?,
        here_usd_micros_per_gpu_hour: here.usd_micros_per_gpu_hour,
        there: there.region?,
        there_usd_micros_per_gpu_hour: there.usd_micros_per_gpu_hour,
        as_of: there.as_of,
    })
}
