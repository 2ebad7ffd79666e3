//! The report of `dovetail scheduler --dry-run --of SCHEDULER`.

use std::collections::BTreeMap;

use anyhow::Result;
use dovetail_account::Priced;
use dovetail_console::app::App;
use dovetail_console::style::OutputStream;
use dovetail_console::table::{facts, table, whole, wrapped};
use dovetail_control::schedule::{Compared, IdleNode};
use dovetail_settings::form::Output;
use dovetail_sources::node_prices::NodeToPrice;
use dovetail_sources::prices::PriceFlags;
use dovetail_units::amount::{unit_usd, usd};
use dovetail_units::duration::duration;
use serde::Serialize;

const HOUR_MS: u128 = 3_600_000;

#[derive(Debug, Serialize)]
struct ComparisonReport {
    /// The other scheduler.
    scheduler: String,
    span_ms: u64,
    pods_on_same_node: u64,
    pods_on_other_node: u64,
    pods_placed_before: u64,
    pods_gone: u64,
    pods_open: u64,
    longest_ms: u64,
    idle: Vec<Idle>,
    /// Sum of what has a price; null if nothing has.
    idle_usd_micros: Option<u128>,
    /// GPU-time whose price is not known.
    unpriced_gpu_ms: u128,
}

/// GPU-time of one model at one price that stood free while a pod waited for it.
#[derive(Debug, Serialize)]
struct Idle {
    /// Null if the nodes do not say.
    gpu_model: Option<String>,
    gpu_ms: u128,
    /// Null if unknown.
    usd_micros_per_gpu_hour: Option<i64>,
    usd_micros: Option<u128>,
    price_source: Option<String>,
}

/// Prints the report.
///
/// # Errors
/// Prices that cannot be read, and output that cannot be written.
pub fn print(
    app: &App,
    output: Output,
    scheduler: &str,
    compared: &Compared,
    prices: &PriceFlags,
) -> Result<()> {
    let nodes: Vec<NodeToPrice<'_>> = compared.idle_gpu_ms.keys().map(to_price).collect();
    let prices = prices.of_nodes(&nodes, &app.settings)?;
    let report = report(scheduler, compared, &prices);
    match output {
        Output::Json => app.print_json(&report),
        _ => app.print(&text(app, &report)),
    }
}

fn to_price(node: &IdleNode) -> NodeToPrice<'_> {
    NodeToPrice {
        // It is the GPU-time that counts.
        gpus: 0,
        of_machine: None,
        model: model_of(node),
        labels: &node.labels,
        provider_id: &node.provider_id,
        resources: &[],
    }
}

fn model_of(node: &IdleNode) -> Option<&str> {
    Some(node.gpu_model.as_str()).filter(|model| !model.is_empty())
}

/// `prices`: those of the nodes with idle GPUs, in their order.
fn report(scheduler: &str, compared: &Compared, prices: &[Priced]) -> ComparisonReport {
    let mut times: BTreeMap<(Option<&str>, &Priced), u128> = BTreeMap::new();
    for ((node, gpu_ms), price) in compared.idle_gpu_ms.iter().zip(prices) {
        *times.entry((model_of(node), price)).or_default() += gpu_ms;
    }
    let idle: Vec<Idle> =
        times.into_iter().map(|((model, price), gpu_ms)| idle(model, price, gpu_ms)).collect();
    let priced: Vec<u128> = idle.iter().filter_map(|one| one.usd_micros).collect();
    let unpriced = idle.iter().filter(|one| one.usd_micros.is_none());
    ComparisonReport {
        scheduler: scheduler.to_owned(),
        span_ms: compared.span_ms,
        pods_on_same_node: compared.same_node,
        pods_on_other_node: compared.other_node,
        pods_placed_before: compared.before,
        pods_gone: compared.gone,
        pods_open: compared.open,
        longest_ms: compared.longest_ms,
        idle_usd_micros: (!priced.is_empty()).then(|| priced.iter().sum()),
        unpriced_gpu_ms: unpriced.map(|one| one.gpu_ms).sum(),
        idle,
    }
}

fn idle(model: Option<&str>, price: &Priced, gpu_ms: u128) -> Idle {
    let price = match price {
        Priced::Known(price) => Some(price),
        Priced::Unknown => None,
    };
    // Prices are below 10^12 and the sum is of one cluster's milliseconds. Half a micro-dollar is
    // rounded up.
    let cost =
        |usd_micros: i64| (gpu_ms * u128::from(usd_micros.unsigned_abs()) + HOUR_MS / 2) / HOUR_MS;
    Idle {
        gpu_model: model.map(str::to_owned),
        gpu_ms,
        usd_micros_per_gpu_hour: price.map(|price| price.usd_micros_per_gpu_hour),
        usd_micros: price.map(|price| cost(price.usd_micros_per_gpu_hour)),
        price_source: price.map(|price| match price.assumed {
            true => format!("assumed: {}", price.source),
            false => price.source.clone(),
        }),
    }
}

fn text(app: &App, report: &ComparisonReport) -> String {
    let title = format!("{} compared with dovetail (dry run)", report.scheduler);
    let mut text = format!("{}\n\n", app.style(OutputStream::Result).strong(&title));
    text += &facts(vec![
        ("compared for", duration(report.span_ms)),
        ("pods on the node that dovetail had chosen", whole(report.pods_on_same_node)),
        ("pods on another node", whole(report.pods_on_other_node)),
        ("pods placed before dovetail decided", whole(report.pods_placed_before)),
        ("pods deleted while pending, though one fit", whole(report.pods_gone)),
        ("pods still pending, though a node fits", whole(report.pods_open)),
        ("longest wait while a node fit", duration(report.longest_ms)),
    ]);
    text.push('\n');
    if report.idle.is_empty() {
        return text + "no GPU was free on which dovetail would already have placed a pod\n";
    }
    text += "GPUs that were free although dovetail would already have placed a pod on them\n\n";
    let usd = |micros: Option<u128>| usd(micros.and_then(|micros| i64::try_from(micros).ok()));
    let gpu_time = |ms: u128| duration(u64::try_from(ms).unwrap_or(u64::MAX));
    let row = |one: &Idle| {
        vec![
            one.gpu_model.clone().unwrap_or_else(|| "unknown model".to_owned()),
            gpu_time(one.gpu_ms),
            one.usd_micros_per_gpu_hour.map_or_else(|| "-".to_owned(), unit_usd),
            usd(one.usd_micros),
        ]
    };
    let header = ["model", "GPU time", "price per GPU-hour", "cost"];
    text += &table(&header, report.idle.iter().map(row).collect());
    text.push('\n');
    if report.unpriced_gpu_ms > 0 {
        let unpriced = gpu_time(report.unpriced_gpu_ms);
        text += &wrapped(&format!("no price for {unpriced}: set one with --gpu-price"), 0);
    }
    if report.idle_usd_micros.is_some() {
        text += &wrapped(&format!("{} in total", usd(report.idle_usd_micros)), 0);
    }
    for source in report.idle.iter().filter_map(|one| one.price_source.as_ref()) {
        text += &wrapped(&format!("price: {source}"), 2);
    }
    text
}

#[cfg(test)]
mod tests {
    use dovetail_account::GpuPrice;

    use super::*;

    fn known(usd_micros_per_gpu_hour: i64) -> Priced {
        let source = "a list".to_owned();
        Priced::Known(GpuPrice { usd_micros_per_gpu_hour, source, assumed: false })
    }

    /// A node of a model, bought on demand or as spot.
    fn node(gpu_model: &str, bought: &str) -> IdleNode {
        let labels = [("karpenter.sh/capacity-type".to_owned(), bought.to_owned())].into();
        IdleNode { gpu_model: gpu_model.to_owned(), labels, ..IdleNode::default() }
    }

    #[test]
    fn money_is_gpu_time_by_price_and_what_has_no_price_is_told_apart() {
        let idle = [
            (node("", "on-demand"), HOUR_MS),
            (node("H100", "on-demand"), 2 * HOUR_MS),
            (node("H100", "spot"), HOUR_MS),
        ];
        let compared = Compared { idle_gpu_ms: idle.into(), ..Compared::default() };
        let prices = [Priced::Unknown, known(6_880_000), known(2_690_000)];
        let found = report("other", &compared, &prices);
        assert_eq!(found.idle_usd_micros, Some(16_450_000));
        assert_eq!(found.unpriced_gpu_ms, HOUR_MS);
        let rows = found.idle.iter().map(|one| (one.gpu_model.as_deref(), one.usd_micros));
        let h100 = Some("H100");
        let expected = [(None, None), (h100, Some(2_690_000)), (h100, Some(13_760_000))];
        assert_eq!(rows.collect::<Vec<_>>(), expected);
        // Nodes with one price are one row.
        let alike = report("other", &compared, &[Priced::Unknown, known(7), known(7)]);
        assert_eq!((alike.idle.len(), alike.idle[1].gpu_ms), (2, 3 * HOUR_MS));
    }
}
