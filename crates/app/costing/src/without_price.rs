//! What is in no amount since it has no price, and what would give it one.

use std::collections::BTreeMap;

use dovetail_console::plain::plain;
use dovetail_console::table::counted;
use dovetail_sources::node_prices::tells_missing_price;
use dovetail_store::SumRow;
use dovetail_units::amount::tenths;

use super::account::Account;
use super::document::hours;

/// Nodes without a price, and what would give them one; of models, those that no note of the
/// account names already.
pub fn unpriced(account: &Account) -> Vec<String> {
    let mut notes = Vec::new();
    let mut models: BTreeMap<&str, i64> = BTreeMap::new();
    let mut plain_nodes = 0;
    let priced = |place: usize| {
        let mut bills = account.stretches.iter().flat_map(|stretch| &stretch.bills);
        bills.any(|(node, bill)| *node == place && bill.price.is_some())
    };
    for (place, node) in account.nodes.iter().enumerate() {
        match node.gpus {
            0 if !priced(place) => plain_nodes += 1,
            0 => {}
            gpus if node.price.usd_micros_per_gpu_hour.is_none() => {
                *models.entry(node.gpu_type.as_str()).or_default() += gpus;
            }
            _ => {}
        }
    }
    let is_told =
        |model: &str| account.notes.iter().any(|note| tells_missing_price(note, &plain(model)));
    for (model, gpus) in models.into_iter().filter(|(model, _)| !is_told(model)) {
        let gpus = counted(usize::try_from(gpus).unwrap_or(0), "GPU");
        notes.push(of_model(&gpus, model, ""));
    }
    if plain_nodes > 0 {
        notes.push(format!(
            "{} without GPUs: no price, so not included in any amount; pass list prices of CPU and \
             memory with --vcpu-price and \
             --gib-price",
            counted(plain_nodes, "node")
        ));
    }
    notes
}

/// The same of rows out of a ledger, which tell groups of nodes apart: its time without a price.
pub(crate) fn unpriced_rows(rows: &[SumRow]) -> Vec<String> {
    const WHEN: &str =
        " to the command that fills the ledger; hours recorded from then on have a price";
    let mut models: BTreeMap<&str, i128> = BTreeMap::new();
    let mut has_plain_nodes = false;
    for row in rows.iter().filter(|row| is_unpriced(row)) {
        let model = row.group.as_deref().map_or("", |group| group.gpu_type.as_str());
        match row.gpu_milli_ms {
            0 => has_plain_nodes |= model.is_empty(),
            gpu_milli_ms => *models.entry(model).or_default() += gpu_milli_ms,
        }
    }
    let of_model = |(model, gpu_milli_ms): (&str, i128)| {
        of_model(&format!("{} GPU-hours", tenths(hours(gpu_milli_ms))), model, WHEN)
    };
    let mut notes: Vec<String> = models.into_iter().map(of_model).collect();
    if has_plain_nodes {
        notes.push(format!(
            "nodes without GPUs: no price, so not included in any amount; pass list prices of CPU \
             and memory with --vcpu-price and \
             --gib-price{WHEN}"
        ));
    }
    notes
}

/// Whether nothing of a row has a price.
pub(crate) fn is_unpriced(row: &SumRow) -> bool {
    row.charges > 0 && row.costs.iter().all(Option::is_none)
}

fn of_model(amount: &str, model: &str, when: &str) -> String {
    let (of_model, flag) = match model.is_empty() {
        true => ("of unknown model".to_owned(), "*".to_owned()),
        false => (format!("of model {}", plain(model)), plain(model)),
    };
    format!(
        "{amount} {of_model}: no price, so not included in any amount; pass one with --gpu-price \
         {flag}=USD_PER_HOUR{when}"
    )
}
