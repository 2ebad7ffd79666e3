//! What a section on arriving pods says.

use dovetail_units::amount::{counted, fine_percent, whole};

use crate::number::{UNKNOWN, learning, printable};
use crate::page::{Legend, PageBlock, PageFigure, PageTable, Section, TableCell, TableRow};
use crate::plot::{Axis, Frame, LINE_STYLES, LinePlot, Mark, PlotLine};
use crate::spread::Spread;
use dovetail_sim::comparison::{ArrivalComparison, ArrivalPolicy, ArrivalRun};

/// Last arrived percent of the curves.
const LAST: usize = 130;

/// Where the second look at the allocation begins.
const CLOSE_UP_FROM: f64 = 80.0;

/// A figure of one policy, by name.
pub(crate) struct ArrivalMeasure {
    pub(crate) name: &'static str,
    /// As the terminal has room for it, with the unit.
    pub(crate) short: &'static str,
    pub(crate) of: fn(&ArrivalComparison, &ArrivalRun) -> Option<f64>,
    pub(crate) unit: fn(f64) -> String,
}

/// What is compared, the most important first.
pub(crate) const MEASURES: [ArrivalMeasure; 7] = [
    ArrivalMeasure {
        name: "allocated at 130% requested",
        short: "% alloc at 130",
        of: |_, run| *run.allocation_percent.get(LAST)?,
        unit: fine_percent,
    },
    ArrivalMeasure {
        name: "allocated at 100% requested",
        short: "at 100",
        of: |_, run| *run.allocation_percent.get(100)?,
        unit: fine_percent,
    },
    ArrivalMeasure {
        name: "GPUs requested at the first rejection",
        short: "% first reject",
        of: |_, run| run.first_rejection_percent,
        unit: fine_percent,
    },
    ArrivalMeasure {
        name: "below the limit at the first rejection",
        short: "% below limit",
        of: |comparison, run| {
            let mut limits = comparison.limits.iter();
            let limit = limits.find(|limit| limit.seed == run.seed)?;
            Some(limit.percent() - run.held_percent)
        },
        unit: fine_percent,
    },
    ArrivalMeasure {
        name: "fragmented at 130% requested",
        short: "% fragm",
        of: |_, run| *run.fragmentation_percent.get(LAST)?,
        unit: fine_percent,
    },
    ArrivalMeasure {
        name: "pods rejected",
        short: "rejected",
        of: |_, run| Some(run.failed_pods as f64),
        unit: whole,
    },
    ArrivalMeasure {
        name: "decisions per second",
        short: "decisions/s",
        of: |_, run| run.decisions_per_second,
        unit: whole,
    },
];

impl ArrivalMeasure {
    /// Over the runs of a policy.
    pub(crate) fn spread(
        &self,
        comparison: &ArrivalComparison,
        policy: &ArrivalPolicy,
    ) -> Option<Spread> {
        Spread::of(policy.runs.iter().map(|run| (self.of)(comparison, run)))
    }

    /// The same as a cell.
    fn cell(&self, comparison: &ArrivalComparison, policy: &ArrivalPolicy) -> TableCell {
        let spread = self.spread(comparison, policy);
        TableCell {
            text: Spread::text(spread, self.unit),
            note: Spread::deviation_text(spread, self.unit).replace('%', ""),
            ..TableCell::default()
        }
    }
}

pub(crate) fn section(place: usize, comparison: &ArrivalComparison) -> Section {
    let id = format!("arrivals-{place}");
    let figures = vec![
        allocation(&id, comparison, false),
        allocation(&id, comparison, true),
        fragmentation(&id, comparison),
    ];
    Section {
        title: format!("Arriving pods: {}", printable(&comparison.trace)),
        intro: format!(
            "{} with {}. Pods arrive one by one and stay; a pod that fits nowhere is rejected \
             and dropped. The better the packing, the more of what was requested is allocated.",
            counted(comparison.nodes, "node"),
            counted(comparison.gpus, "GPU")
        ),
        blocks: vec![
            PageBlock::Table { table: table(comparison) },
            PageBlock::Figures { heading: String::new(), text: String::new(), figures },
            PageBlock::Notes {
                heading: "Method and uncertainty".to_owned(),
                notes: notes(comparison),
            },
        ],
        id,
    }
}

fn table(comparison: &ArrivalComparison) -> PageTable {
    let header = MEASURES.iter().map(|measure| measure.name.to_owned());
    let row = |policy: &ArrivalPolicy| TableRow {
        head: printable(&policy.policy),
        class: "",
        cells: MEASURES.iter().map(|measure| measure.cell(comparison, policy)).collect(),
    };
    PageTable {
        caption: "Policies on the same arrivals".to_owned(),
        header: std::iter::once("policy".to_owned()).chain(header).collect(),
        rows: comparison.policies.iter().map(row).collect(),
    }
}

fn notes(comparison: &ArrivalComparison) -> Vec<String> {
    let runs = &comparison.policies[0].runs;
    let seeds: Vec<String> = runs.iter().map(|run| run.seed.to_string()).collect();
    let spread = match runs.len() {
        1 => format!("One run with seed {}: how much arrival orders differ is unknown.", seeds[0]),
        n => format!(
            "Figures are the mean over {n} orders of arrival (seeds {}), ± the standard deviation of the \
             sample; bands in the plots go from the lowest to the highest run. All policies saw the same orders.",
            seeds.join(", ")
        ),
    };
    let limit = match comparison.limits.is_empty() {
        true => "No limit was computed.".to_owned(),
        false => "The limit is the longest prefix of the arrivals that fits at all, for any policy, even one \
                  that knows the future: the smaller of a cutting-stock bound over devices and a linear program. \
                  It is never too small, but it may not be reachable."
            .to_owned(),
    };
    let mut notes = vec![
        "Allocation is the GPU share of placed pods; fragmentation is the share of the cluster's \
         GPUs that is free but unusable, on average over the pod mix of the whole trace. Both are \
         sampled after every arrival and averaged per percent requested."
            .to_owned(),
        spread,
        limit,
        "Decisions per second were measured on one core and depend on the machine; all other figures do not."
            .to_owned(),
    ];
    notes.extend(comparison.policies.iter().filter_map(|policy| {
        Some(learning(&policy.policy, policy.learning_started_from.as_deref()?))
    }));
    notes
}

/// Mean, lowest and highest value over the runs.
type Reach = (f64, f64, f64);

/// A curve over the runs, by arrived percent, where any run has it.
fn curve(
    policy: &ArrivalPolicy,
    of: fn(&ArrivalRun) -> &Vec<Option<f64>>,
) -> Vec<(f64, Option<Reach>)> {
    let point = |at: usize| {
        let figures = policy.runs.iter().filter_map(|run| of(run).get(at).copied().flatten());
        let figures: Vec<f64> = figures.collect();
        let mean = Spread::of(figures.iter().map(|figure| Some(*figure)))?.mean;
        let low = figures.iter().copied().fold(f64::INFINITY, f64::min);
        let high = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some((mean, low, high))
    };
    (0..=LAST).map(|at| (at as f64, point(at))).collect()
}

fn lines(
    comparison: &ArrivalComparison,
    of: fn(&ArrivalRun) -> &Vec<Option<f64>>,
) -> Vec<PlotLine> {
    let line = |(style, policy): (usize, &ArrivalPolicy)| {
        let curve = curve(policy, of);
        let band =
            curve.iter().filter_map(|(x, point)| point.map(|(_, low, high)| (*x, low, high)));
        PlotLine {
            label: printable(&policy.policy),
            style,
            band: if policy.runs.len() > 1 { band.collect() } else { Vec::new() },
            points: curve.iter().map(|(x, point)| (*x, point.map(|(mean, ..)| mean))).collect(),
        }
    };
    comparison.policies.iter().enumerate().map(line).collect()
}

fn allocation(id: &str, comparison: &ArrivalComparison, close_up: bool) -> PageFigure {
    let lines = lines(comparison, |run| &run.allocation_percent);
    let (x, y, title, name) = match close_up {
        false => {
            let x = Axis::new("GPUs requested so far, % of the cluster", 0.0, LAST as f64, 7);
            (
                x,
                Axis::new("allocated, %", 0.0, 100.0, 5),
                "Allocation against arrivals",
                "allocation",
            )
        }
        true => {
            let shown = lines.iter().flat_map(|line| &line.points);
            let shown = shown.filter(|(x, _)| *x >= CLOSE_UP_FROM).filter_map(|(_, y)| *y);
            let lowest = shown.fold(CLOSE_UP_FROM, f64::min);
            let from = (lowest / 5.0).floor() * 5.0;
            let x = Axis::new("GPUs requested so far, %", CLOSE_UP_FROM, LAST as f64, 5);
            let title = "Allocation near the limit, enlarged (axes do not start at 0)";
            (x, Axis::new("allocated, %", from, 100.0, 5), title, "close-up")
        }
    };
    let limit = Spread::of(comparison.limits.iter().map(|limit| Some(limit.percent())));
    let mark = limit.map(|limit| Mark {
        x: limit.mean,
        text: format!("no policy gets past {} without a rejection", fine_percent(limit.mean)),
    });
    let plot = LinePlot {
        frame: Frame {
            id: format!("{id}-{name}"),
            title: title.to_owned(),
            description: format!(
                "One line per policy, {} to {LAST} percent requested; the table below has the figures.",
                x.from
            ),
            height: 330.0,
            x,
            y,
        },
        limit: vec![
            (0.0, 0.0),
            (CLOSE_UP_FROM, CLOSE_UP_FROM),
            (100.0, 100.0),
            (LAST as f64, 100.0),
        ],
        marks: mark.into_iter().collect(),
        lines,
    };
    let mut legend = legend(comparison);
    let value = String::new();
    let label = "limit: everything that was requested, at most the whole cluster".to_owned();
    legend.push(Legend { class: "limit".to_owned(), is_line: true, label, value });
    let table =
        (!close_up).then(|| curve_table(comparison, "Allocated, %", |run| &run.allocation_percent));
    PageFigure {
        title: title.to_owned(),
        svg: plot.svg(),
        legend,
        note: "Share of the cluster that is allocated as pods arrive and none finishes: the policy whose line \
               stays on the diagonal longest rejects pods last."
            .to_owned(),
        table,
    }
}

fn fragmentation(id: &str, comparison: &ArrivalComparison) -> PageFigure {
    let lines = lines(comparison, |run| &run.fragmentation_percent);
    let values = lines.iter().flat_map(|line| &line.points).filter_map(|(_, y)| *y);
    let highs = lines.iter().flat_map(|line| &line.band).map(|(_, _, high)| *high);
    let most = values.chain(highs).fold(0.0, f64::max);
    let title = "Fragmentation against arrivals";
    let plot = LinePlot {
        frame: Frame {
            id: format!("{id}-fragmentation"),
            title: title.to_owned(),
            description: format!(
                "One line per policy, 0 to {LAST} percent requested; the table below has the figures."
            ),
            height: 330.0,
            x: Axis::new("GPUs requested so far, % of the cluster", 0.0, LAST as f64, 7),
            y: Axis::up_to("fragmented, %", most, 5),
        },
        limit: Vec::new(),
        marks: Vec::new(),
        lines,
    };
    let table = curve_table(comparison, "Fragmented, %", |run| &run.fragmentation_percent);
    PageFigure {
        title: title.to_owned(),
        svg: plot.svg(),
        legend: legend(comparison),
        note: "Share of the cluster's GPUs that is free but unusable, on average over the pod mix \
               of the whole trace."
            .to_owned(),
        table: Some(table),
    }
}

fn legend(comparison: &ArrivalComparison) -> Vec<Legend> {
    let entry = |(style, policy): (usize, &ArrivalPolicy)| Legend {
        class: format!("s{}", style % LINE_STYLES),
        is_line: true,
        label: printable(&policy.policy),
        value: String::new(),
    };
    comparison.policies.iter().enumerate().map(entry).collect()
}

/// Every tenth percent of a curve.
fn curve_table(
    comparison: &ArrivalComparison,
    caption: &str,
    of: fn(&ArrivalRun) -> &Vec<Option<f64>>,
) -> PageTable {
    let curves: Vec<_> = comparison.policies.iter().map(|policy| curve(policy, of)).collect();
    let cell = |point: Option<Reach>| match point {
        Some((mean, ..)) => TableCell::plain(format!("{mean:.2}")),
        None => TableCell::plain(UNKNOWN),
    };
    let row = |at: usize| TableRow {
        head: format!("{at}%"),
        class: "",
        cells: curves.iter().map(|curve| cell(curve[at].1)).collect(),
    };
    let names = comparison.policies.iter().map(|policy| printable(&policy.policy));
    PageTable {
        caption: caption.to_owned(),
        header: std::iter::once("requested".to_owned()).chain(names).collect(),
        rows: (0..=LAST).step_by(10).map(row).collect(),
    }
}
