//! `dovetail usage gpus`.

use anyhow::Result;
use clap::Args;
use dovetail_console::app::App;
use dovetail_costing::usage::device_prices::DevicePrices;
use dovetail_costing::usage::grouping::Grouping;
use dovetail_costing::usage::report::{GpuUsage, SampleSource};
use dovetail_settings::form::Output;
use dovetail_sources::namespace::NamespaceFlags;
use dovetail_sources::prices::PriceFlags;
use dovetail_sources::prometheus::{ObservedPeriod, ServerFlags};

/// Flags as written.
#[derive(Debug, Args)]
pub(crate) struct GpusFlags {
    /// URL of Prometheus, Thanos, Mimir or VictoriaMetrics, without /api/v1
    #[arg(long, value_name = "URL")]
    prometheus: String,
    #[command(flatten)]
    server: ServerFlags,
    /// Key to group rows by
    #[arg(long, value_enum, value_name = "KEY", default_value = "namespace")]
    by: Grouping,
    #[command(flatten)]
    prices: PriceFlags,
    #[command(flatten)]
    namespace: NamespaceFlags,
}

/// Reads a period and prints what every device did.
pub(crate) fn run(app: &App, flags: &GpusFlags) -> Result<()> {
    let output = app.output("usage gpus")?;
    let mut asker = flags.server.asker(&flags.prometheus)?;
    let ObservedPeriod { observation, time, .. } = asker.observe()?;
    let prices = DevicePrices::of(&mut asker, &time, &flags.prices, &app.settings)?;
    asker.tell_warnings(app);
    let (period, step_ms) = (asker.period, asker.step_ms);
    let source = SampleSource { server: asker.client.server().to_owned(), period, step_ms };
    let report = GpuUsage::of(
        &source,
        (flags.by, flags.namespace.only()),
        &time,
        observation.refused(),
        &prices,
    )?;
    match output {
        Output::Json => app.print_json(&report),
        _ => app.print(&report.table()),
    }
}
