//! A bill as a FOCUS dataset.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use dovetail_account::cost::{Charge, NodeBill, Paid, charges};
use dovetail_account::device_time::Span;
use dovetail_account::split::{SplitMethod, Unused};
use dovetail_bill::focus::{FocusVersion, OriginShare, Pricing, SplitCharge, write};
use dovetail_bill::import::Commitment;
use dovetail_console::plain::plain;
use dovetail_model::Money;
use dovetail_price::Purchase;

use super::account::{Account, Basis, Billed, CostNode, CostPod};
use super::dimension::UNKNOWN;

/// The dataset, and how many node-periods have no price and so are not in it.
pub fn dataset(
    account: &Account,
    method: SplitMethod,
    unused: Unused,
    version: FocusVersion,
) -> Result<(String, usize)> {
    let mut origins = Vec::new();
    let mut without_price = 0;
    for stretch in &account.stretches {
        for (place, bill) in &stretch.bills {
            let Some(effective) = bill.price else {
                without_price += 1;
                continue;
            };
            let node = &account.nodes[*place];
            let found =
                charges(method, bill, unused).with_context(|| format!("node {}", node.name))?;
            let parts = found.iter().filter_map(|charge| part(account, charge)).collect();
            let seen = stretch.seen.get(place).copied().unwrap_or(stretch.span);
            let of_bill = stretch.billed.get(place);
            let origin = origin(account, seen, node, method, bill.billed_ms, parts);
            origins.push(with_costs(origin, node, bill, (effective, of_bill)));
        }
    }
    let mut bytes = Vec::new();
    write(version, &origins, &mut bytes).context("cannot make a FOCUS dataset")?;
    Ok((String::from_utf8(bytes).context("the CSV rows are not valid UTF-8")?, without_price))
}

/// The four costs of the specification, and the commitment behind them.
///
/// What a bill says stands as it does. Where it does not say a list cost, that is list price ×
/// hours, of a committed node on demand; where it does not say a contracted one, nobody knows of
/// negotiated prices, and it is the list cost. Without a bill all but the list cost are the price.
fn with_costs(
    mut origin: SplitCharge,
    node: &CostNode,
    bill: &NodeBill,
    (effective, of_bill): (Money, Option<&Billed>),
) -> SplitCharge {
    // What a committed hour would have cost on demand.
    let on_demand = node
        .list_usd_micros_per_gpu_hour
        .map(|usd_micros| Money::of_gpu_time(bill.gpus.values().sum(), usd_micros));
    let said = of_bill.and_then(|billed| billed.list);
    let replaced = of_bill.and_then(|billed| billed.replaced);
    let list = said.or(on_demand).or(replaced).unwrap_or(effective);
    origin.effective = effective;
    origin.list = list;
    origin.billed = of_bill.map_or(effective, |billed| billed.invoiced);
    origin.contracted = of_bill.map_or(effective, |billed| billed.contracted.unwrap_or(list));
    if let Some(billed) = of_bill {
        origin.pricing = billed.bought.unwrap_or(origin.pricing);
        origin.commitment = billed.commitment.as_ref().map(|named| Commitment {
            id: plain(&named.id),
            category: named.category.clone(),
            kind: plain(&named.kind),
        });
    }
    origin
}

/// An origin without its costs.
fn origin(
    account: &Account,
    seen: Span,
    node: &CostNode,
    method: SplitMethod,
    billed_ms: u64,
    parts: Vec<OriginShare>,
) -> SplitCharge {
    let cluster = if account.cluster.is_empty() { UNKNOWN } else { &account.cluster };
    let kind = node.place.instance_type.as_deref().unwrap_or("a machine");
    let basis = match account.basis {
        Basis::RunRate => "run rate of one snapshot",
        Basis::Sampled { .. } | Basis::Ledger => "node-hours",
    };
    SplitCharge {
        account: plain(cluster),
        currency: "USD".to_owned(),
        description: plain(&format!("{basis} of {kind}, split by dovetail")),
        // Whole seconds, as the specification writes times.
        from_ms: seen.from_ms / 1000 * 1000,
        to_ms: seen.to_ms.next_multiple_of(1000),
        effective: Money::ZERO,
        billed: Money::ZERO,
        list: Money::ZERO,
        contracted: Money::ZERO,
        commitment: None,
        billed_ms,
        pricing: match node.place.purchase {
            Purchase::OnDemand => Pricing::Standard,
            Purchase::Spot => Pricing::Dynamic,
            Purchase::Committed => Pricing::Committed,
        },
        provider: provider(node).to_owned(),
        region: node.place.region.as_deref().map(plain),
        node_id: plain(node.id_of_provider()),
        node: plain(&node.name),
        gpu_model: Some(plain(&node.gpu_type)).filter(|model| !model.is_empty()),
        method: method.id(),
        parts,
    }
}

/// The name under which a provider bills.
fn provider(node: &CostNode) -> &'static str {
    match node.place.provider {
        Some("aws") => "Amazon Web Services",
        Some("gcp") => "Google Cloud",
        Some("azure") => "Microsoft Azure",
        _ => "Self-hosted",
    }
}

fn part(account: &Account, charge: &Charge) -> Option<OriginShare> {
    let pod = charge.holder.map(|number| &account.pods[number as usize]);
    let time = charge.gpu_milli_ms;
    let state = match charge.paid {
        Paid::Gpus(state) => Some(state),
        Paid::HeldCpuMemory | Paid::UnusedCpuMemory | Paid::UnusedShare { .. } => None,
    };
    let is_held = state.is_some_and(|state| state.is_allocated());
    let is_active = matches!(state, Some(dovetail_account::device_time::DeviceState::Active(_)));
    let when = |is: bool| if is { time } else { 0 };
    Some(OriginShare {
        cost: charge.cost?,
        cause: charge.paid.name(),
        is_waste: state.is_some_and(|state| state.is_waste()),
        gpu_milli_ms: [time, when(is_held), when(is_active)],
        pod: pod.map(|pod| (plain(&pod.namespace), plain(&pod.name))),
        tags: pod.map(tags).unwrap_or_default(),
    })
}

fn tags(pod: &CostPod) -> BTreeMap<String, String> {
    let known = [
        ("namespace", Some(&pod.namespace)),
        ("team", pod.team.as_ref()),
        ("queue", pod.queue.as_ref()),
        ("job", Some(&pod.job)),
        ("model", pod.model.as_ref()),
    ];
    let known = known.into_iter().filter_map(|(key, value)| Some((key.to_owned(), plain(value?))));
    known.collect()
}
