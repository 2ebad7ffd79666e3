//! GPUs that are reserved and not in use: for what, where, and what they cost.

use anyhow::Result;
use dovetail_console::app::App;
use dovetail_console::style::OutputStream;
use dovetail_console::table::{narrow_table, wrapped};
use dovetail_control::ask::{ReservedLine, ReservedNode};
use dovetail_objects::harmless;
use dovetail_sources::node_prices::NodeToPrice;
use dovetail_sources::own_prices::OwnPriceFlags;
use dovetail_units::amount::{gpu_count, usd};
use serde::Serialize;

/// A line with its cost.
#[derive(Debug, Serialize)]
pub(crate) struct PricedLine<'l> {
    #[serde(flatten)]
    line: &'l ReservedLine,
    gpu_milli: i64,
    /// Cost of an hour; null if the price of a node is unknown.
    usd_micros_per_hour: Option<i64>,
}

/// Lines with what they cost by the prices of their nodes, and notes about these prices.
pub(crate) fn priced<'l>(
    app: &App,
    prices: &OwnPriceFlags,
    lines: &'l [ReservedLine],
) -> Result<Vec<PricedLine<'l>>> {
    let nodes = || lines.iter().flat_map(|line| &line.nodes);
    let to_price = |node: &'l ReservedNode| NodeToPrice {
        gpus: node.gpu_milli.div_euclid(1_000),
        of_machine: None,
        model: node.gpu_model.as_deref(),
        labels: &node.labels,
        provider_id: &node.provider_id,
        resources: &[],
    };
    let to_price: Vec<NodeToPrice<'_>> = nodes().map(to_price).collect();
    let prices = prices.of(&to_price, &app.settings)?;
    let mut of_nodes = prices.of_nodes.iter().map(|price| price.usd_micros_per_gpu_hour);
    let cost = |node: &ReservedNode, price: Option<i64>| -> Option<i64> {
        let micros = i128::from(price?) * i128::from(node.gpu_milli) / 1_000;
        i64::try_from(micros).ok()
    };
    let priced = lines.iter().map(|line| {
        // Every price is taken, also behind one that is not known.
        let costs: Vec<Option<i64>> =
            line.nodes.iter().map(|node| cost(node, of_nodes.next().flatten())).collect();
        PricedLine {
            line,
            gpu_milli: line.nodes.iter().map(|node| node.gpu_milli).sum(),
            usd_micros_per_hour: costs.into_iter().sum(),
        }
    });
    Ok(priced.collect())
}

/// A table; empty without any line.
pub(crate) fn text(app: &App, lines: &[PricedLine<'_>]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let row = |priced: &PricedLine<'_>| {
        let ReservedLine { job, reservation, nodes, .. } = priced.line;
        let reserved_for = match (job, reservation) {
            (Some(job), _) => format!("job {job}"),
            (None, Some(reservation)) => format!("reservation {reservation}"),
            (None, None) => "a job that is no longer pending".to_owned(),
        };
        let nodes: Vec<&str> = nodes.iter().map(|node| &*node.node).collect();
        let nodes = match nodes.as_slice() {
            [first, second, third, more @ ..] if !more.is_empty() => {
                format!("{first}, {second}, {third} and {} more", more.len())
            }
            few => few.join(", "),
        };
        let cost = priced.usd_micros_per_hour;
        let cost = cost.map_or_else(|| "unknown".to_owned(), |cost| usd(Some(cost)));
        vec![
            harmless(&reserved_for).into_owned(),
            gpu_count(priced.gpu_milli),
            harmless(&nodes).into_owned(),
            cost,
        ]
    };
    let header = ["reserved for", "GPUs", "nodes", "cost per hour"];
    let table = narrow_table(&header, lines.iter().map(row).collect());
    let title = app.style(OutputStream::Result).strong("GPUs reserved and not in use");
    let is_unknown = lines.iter().any(|line| line.usd_micros_per_hour.is_none());
    let hint = "no price is known for some of these GPUs; set one with --gpu-price MODEL=USD";
    let hint = if is_unknown { wrapped(hint, 0) } else { String::new() };
    format!("\n{title}\n\n{table}\n{hint}")
}
