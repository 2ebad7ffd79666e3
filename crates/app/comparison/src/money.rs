//! Where the money goes, and the prices that this rests on.

use dovetail_model::FreeCause;
use dovetail_units::amount::{brief, fine_percent};

use crate::number::{UNKNOWN, exact_usd, printable, usd};
use crate::page::{PageBlock, PageTable, TableCell, TableRow};
use crate::spread::Spread;
use dovetail_sim::comparison::{TimedComparison, TimedPolicy, TimedRun};
use dovetail_sim::timeline::{AmountReport, ModelReport};

pub(crate) fn cause_label(cause: FreeCause) -> &'static str {
    match cause {
        FreeCause::DrainingOrCordoned => "draining or cordoned",
        FreeCause::Starting => "starting",
        FreeCause::Reserved => "reserved, also for the next pending job",
        FreeCause::Taint => "taint or selector",
        FreeCause::TypeMismatch => "other GPU model requested",
        FreeCause::Topology => "topology",
        FreeCause::StrandedByCpu => "stranded: too little CPU",
        FreeCause::StrandedByMemory => "stranded: too little memory",
        FreeCause::StrandedByOther => "stranded: another limit",
        FreeCause::Fragmented => "fragmented",
        FreeCause::GangShort => "too few for a gang",
        FreeCause::Quota => "quota",
        FreeCause::NoDemand => "no demand",
        FreeCause::LayoutRest => "left over by a MIG layout",
    }
}

/// Causes of which any run has something, in their order.
pub(crate) fn causes(comparison: &TimedComparison) -> Vec<FreeCause> {
    let has = |cause: &FreeCause| {
        let mut runs = comparison.policies.iter().flat_map(|policy| &policy.runs);
        runs.any(|run| {
            let of = run.usage().and_then(|usage| usage.total.free_by_cause.get(cause));
            of.is_some_and(|of| of.gpu_milli_ms > 0)
        })
    };
    FreeCause::ALL.into_iter().filter(has).collect()
}

pub(crate) fn blocks(comparison: &TimedComparison) -> Vec<PageBlock> {
    let Some(shown) = comparison.all_shown().next() else { return Vec::new() };
    let heading = |heading: &str| PageBlock::Heading { heading: heading.to_owned() };
    let mut blocks = vec![
        heading("Money"),
        PageBlock::Table { table: states(comparison) },
        PageBlock::Table { table: prices(&shown.usage.models) },
    ];
    let unknown: Vec<String> =
        shown.usage.unknown_price_models.iter().map(|model| model_name(model.as_deref())).collect();
    if !unknown.is_empty() {
        let note = format!(
            "No price is known for {}. Their GPU time is counted, but their cost is not included in any amount.",
            unknown.join(", ")
        );
        blocks.push(PageBlock::Notes { heading: String::new(), notes: vec![note] });
    }
    blocks
}

/// GPU-hours and dollars a month by state and cause.
fn states(comparison: &TimedComparison) -> PageTable {
    let mut rows: Vec<(&str, &'static str, OfRun)> = vec![
        ("installed", "", Box::new(|run| Some(run.usage()?.total.installed))),
        ("allocated", "", Box::new(|run| Some(run.usage()?.total.allocated))),
        ("unavailable", "", Box::new(|run| Some(run.usage()?.total.unavailable))),
        ("free", "", Box::new(|run| Some(run.usage()?.total.free))),
    ];
    for cause in causes(comparison) {
        let of = move |run: &TimedRun| run.usage()?.total.free_by_cause.get(&cause).copied();
        rows.push((cause_label(cause), "part", Box::new(of)));
    }
    let policies = &comparison.policies;
    let row = |(head, class, of): (&str, &'static str, OfRun)| TableRow {
        head: head.to_owned(),
        class,
        cells: policies.iter().flat_map(|policy| cells(policy, &of)).collect(),
    };
    let header = policies.iter().flat_map(|policy| {
        let name = printable(&policy.policy);
        [format!("{name}: GPU-hours"), format!("{name}: dollars per month")]
    });
    PageTable {
        caption: "GPU-hours of the period and estimated cost per month, by state".to_owned(),
        header: std::iter::once(String::new()).chain(header).collect(),
        rows: rows.into_iter().map(row).collect(),
    }
}

type OfRun = Box<dyn Fn(&TimedRun) -> Option<AmountReport>>;

fn cells(policy: &TimedPolicy, of: &OfRun) -> [TableCell; 2] {
    let amounts = || policy.runs.iter().map(of);
    let hours = Spread::of(amounts().map(|some| some.map(|some| some.gpu_hours)));
    let share = Spread::of(policy.runs.iter().map(|run| {
        let installed = run.usage()?.total.installed.gpu_milli_ms as f64;
        of(run).filter(|_| installed > 0.0).map(|some| some.gpu_milli_ms as f64 / installed * 100.0)
    }));
    let monthly = |some: AmountReport| some.estimated_usd_micros_per_month.map(|m| m as f64 / 1e6);
    let money = Spread::of(amounts().map(|some| some.and_then(monthly)));
    let priced = Spread::of(amounts().map(|some| some.and_then(|some| some.priced_share)));
    [
        TableCell {
            text: Spread::full_text(hours, brief),
            note: share.map_or_else(String::new, |share| fine_percent(share.mean)),
            ..TableCell::default()
        },
        TableCell {
            text: Spread::full_text(money, usd),
            note: priced
                .map_or_else(String::new, |p| format!("{} priced", fine_percent(p.mean * 100.0))),
            ..TableCell::default()
        },
    ]
}

/// The prices of the models of the cluster.
fn prices(models: &[ModelReport]) -> PageTable {
    let header = ["GPU model", "dollars per GPU-hour", "source", "GPU-hours installed"];
    let row = |model: &ModelReport| {
        let price = model.usd_micros_per_gpu_hour;
        let source = model.price_source.as_deref().map_or_else(|| UNKNOWN.to_owned(), printable);
        TableRow {
            head: model_name(model.model.as_deref()),
            class: "",
            cells: vec![
                TableCell {
                    text: price.map_or_else(|| "unknown".to_owned(), exact_usd),
                    note: if model.price_is_assumed { "assumed" } else { "" }.to_owned(),
                    ..TableCell::default()
                },
                TableCell { is_words: true, ..TableCell::plain(source) },
                TableCell::plain(brief(model.states.installed.gpu_hours)),
            ],
        }
    };
    PageTable {
        caption: "Prices used".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        rows: models.iter().map(row).collect(),
    }
}

fn model_name(model: Option<&str>) -> String {
    model.map_or_else(|| "GPUs of unknown model".to_owned(), printable)
}
