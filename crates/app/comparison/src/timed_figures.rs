//! The pictures of a section on jobs in time.

use dovetail_model::FreeCause;
use dovetail_units::amount::{brief, fine_percent};
use dovetail_units::duration::duration;

use crate::money::{cause_label, causes};
use crate::number::printable;
use crate::page::{Legend, PageBlock, PageFigure, PageTable, TableCell, TableRow};
use crate::plot::{
    Axis, Bar, BarPlot, Frame, LINE_STYLES, LinePlot, PlotLine, StackLayer, StackPlot,
};
use dovetail_sim::comparison::{RunAccount, TimedComparison, TimedPolicy};
use dovetail_sim::timeline::{Series, SeriesPoint};

/// Most causes with a layer of their own; the smallest share one.
const OWN_LAYERS: usize = 8;

/// Most rows of a table of a series.
const TABLE_ROWS: usize = 12;

pub(crate) fn blocks(id: &str, comparison: &TimedComparison) -> Vec<PageBlock> {
    if comparison.all_shown().next().is_none() {
        return Vec::new();
    }
    let shown = ShownCauses::of(comparison);
    let stacks = comparison.policies.iter().enumerate();
    let stacks = stacks.filter_map(|(place, policy)| {
        Some(stack(&format!("{id}-{place}"), policy, policy.shown()?, &shown))
    });
    let queues = vec![
        queue(id, comparison, &shown, "jobs", |point| point.waiting_jobs),
        queue(id, comparison, &shown, "GPUs", |point| point.waiting_gpus),
    ];
    vec![
        PageBlock::Figures {
            heading: "GPUs free by cause".to_owned(),
            text: "Each bar is one policy: how many GPUs were free on average, by the first cause \
                   that kept pending jobs from using them. Shorter is better, except for GPUs that \
                   no job needed."
                .to_owned(),
            figures: vec![bars(id, comparison, &shown)],
        },
        PageBlock::Figures {
            heading: "GPUs over time".to_owned(),
            text: "State of the GPUs over time: allocated at the bottom, free by cause above it, \
                   unavailable on top. Each step is the mean over its bin."
                .to_owned(),
            figures: stacks.collect(),
        },
        PageBlock::Figures {
            heading: "Queue over time".to_owned(),
            text: "How much work is submitted and not started: a lower line is a shorter queue. A job counts with the \
                   GPUs of its smallest size."
                .to_owned(),
            figures: queues,
        },
    ]
}

/// What all pictures of a comparison share.
struct ShownCauses {
    /// Causes with a layer of their own, in their order.
    causes: Vec<FreeCause>,
    /// Whether there are more.
    has_rest: bool,
    /// Milliseconds in a unit of time, and its name.
    unit: (f64, &'static str),
    from_ms: u64,
    to_ms: u64,
    most_gpus: f64,
}

impl ShownCauses {
    fn of(comparison: &TimedComparison) -> Self {
        let runs = || comparison.all_shown();
        let weight = |cause: &FreeCause| -> i128 {
            runs()
                .filter_map(|run| run.usage.total.free_by_cause.get(cause))
                .map(|a| a.gpu_milli_ms)
                .sum()
        };
        let mut largest = causes(comparison);
        largest.sort_by_key(|cause| (std::cmp::Reverse(weight(cause)), *cause));
        let has_rest = largest.len() > OWN_LAYERS;
        largest.truncate(if has_rest { OWN_LAYERS - 1 } else { OWN_LAYERS });
        largest.sort();
        let from_ms = runs().map(|run| run.series.from_ms).min().unwrap_or(0);
        let to_ms = runs().map(|run| run.series.to_ms).max().unwrap_or(0);
        let unit = match to_ms.saturating_sub(from_ms) {
            period if period > 3 * 86_400_000 => (86_400_000.0, "days"),
            period if period > 3 * 3_600_000 => (3_600_000.0, "hours"),
            _ => (60_000.0, "minutes"),
        };
        let points = runs().flat_map(|run| &run.series.points);
        let most_gpus = points.map(|point| point.installed_gpus).fold(0.0, f64::max);
        Self { causes: largest, has_rest, unit, from_ms, to_ms, most_gpus }
    }

    fn time(&self, at_ms: u64) -> f64 {
        at_ms.saturating_sub(self.from_ms) as f64 / self.unit.0
    }

    fn time_axis(&self) -> Axis {
        let title = format!("{} since the first submission", self.unit.1);
        Axis::new(&title, 0.0, self.time(self.to_ms), 8)
    }

    /// Free by the causes without a layer of their own.
    fn rest<'p>(&self, all: impl Iterator<Item = (&'p FreeCause, f64)>) -> f64 {
        all.filter(|(cause, _)| !self.causes.contains(cause)).map(|(_, gpus)| gpus).sum()
    }

    fn rest_label(&self) -> &'static str {
        "other causes"
    }
}

fn class_of(cause: FreeCause) -> String {
    format!("c-{}", cause.name())
}

/// Free GPU-time by cause, one bar per policy.
fn bars(id: &str, comparison: &TimedComparison, shown: &ShownCauses) -> PageFigure {
    let bar = |(policy, run): (&TimedPolicy, &RunAccount)| {
        let installed = run.usage.total.installed.gpu_milli_ms.max(1) as f64;
        let share = |milli_ms: i128| milli_ms as f64 / installed * 100.0;
        let of = |cause: &FreeCause| {
            run.usage
                .total
                .free_by_cause
                .get(cause)
                .map_or(0.0, |amount| share(amount.gpu_milli_ms))
        };
        let mut parts: Vec<_> = shown
            .causes
            .iter()
            .map(|cause| {
                let label = format!("{}: {}", cause_label(*cause), fine_percent(of(cause)));
                (of(cause), class_of(*cause), label)
            })
            .collect();
        if shown.has_rest {
            let all = run.usage.total.free_by_cause.iter();
            let rest = shown.rest(all.map(|(cause, amount)| (cause, share(amount.gpu_milli_ms))));
            parts.push((
                rest,
                "c-rest".to_owned(),
                format!("{}: {}", shown.rest_label(), fine_percent(rest)),
            ));
        }
        let total = share(run.usage.total.free.gpu_milli_ms);
        let total = format!("{} of the GPU time free", fine_percent(total));
        Bar { label: printable(&policy.policy), total, parts }
    };
    let policies = comparison.policies.iter();
    let bars: Vec<Bar> =
        policies.filter_map(|policy| Some(bar((policy, policy.shown()?)))).collect();
    let longest = bars.iter().map(|bar| bar.parts.iter().map(|part| part.0).sum::<f64>());
    let title = "Free GPU time by cause";
    let plot = BarPlot {
        frame: Frame {
            id: format!("{id}-bars"),
            title: title.to_owned(),
            description: "One bar per policy; the comparison table has the figures.".to_owned(),
            height: BarPlot::height(bars.len()),
            x: Axis::up_to("% of the installed GPU time", longest.fold(0.0, f64::max), 6),
            y: Axis { title: String::new(), from: 0.0, to: 1.0, ticks: Vec::new() },
        },
        bars,
    };
    PageFigure {
        title: title.to_owned(),
        svg: plot.svg(),
        legend: cause_legend(shown, |_| String::new(), String::new()),
        note: String::new(),
        table: None,
    }
}

fn cause_legend(
    shown: &ShownCauses,
    value: impl Fn(&FreeCause) -> String,
    rest_value: String,
) -> Vec<Legend> {
    let entry = |class: String, label: &str, value: String| Legend {
        class,
        is_line: false,
        label: label.to_owned(),
        value,
    };
    let causes = shown.causes.iter();
    let mut legend: Vec<Legend> =
        causes.map(|cause| entry(class_of(*cause), cause_label(*cause), value(cause))).collect();
    if shown.has_rest {
        legend.push(entry("c-rest".to_owned(), shown.rest_label(), rest_value));
    }
    legend
}

/// All installed GPUs of one policy over time.
fn stack(id: &str, policy: &TimedPolicy, run: &RunAccount, shown: &ShownCauses) -> PageFigure {
    let points = &run.series.points;
    let mut edges: Vec<f64> = points.iter().map(|point| shown.time(point.at_ms)).collect();
    edges.extend(points.last().map(|point| shown.time(point.at_ms + point.length_ms)));
    let layer = |label: &str, class: &str, of: &dyn Fn(&SeriesPoint) -> f64| StackLayer {
        label: label.to_owned(),
        class: class.to_owned(),
        values: points.iter().map(of).collect(),
    };
    let mut layers = vec![layer("allocated", "c-allocated", &|point| point.allocated_gpus)];
    for cause in &shown.causes {
        let of = |point: &SeriesPoint| point.free_gpus_by_cause.get(cause).copied().unwrap_or(0.0);
        layers.push(layer(cause_label(*cause), &class_of(*cause), &of));
    }
    if shown.has_rest {
        let of = |point: &SeriesPoint| {
            shown.rest(point.free_gpus_by_cause.iter().map(|(cause, gpus)| (cause, *gpus)))
        };
        layers.push(layer(shown.rest_label(), "c-rest", &of));
    }
    layers.push(layer("unavailable", "c-unavailable", &|point| point.unavailable_gpus));
    let title = printable(&policy.policy);
    let plot = StackPlot {
        frame: Frame {
            id: format!("{id}-stack"),
            title: format!("GPUs over time under {title}"),
            description: "Stacked areas: allocated, free by cause, unavailable. The table below has the figures."
                .to_owned(),
            height: 330.0,
            x: shown.time_axis(),
            y: Axis::up_to("GPUs", shown.most_gpus, 5),
        },
        edges,
        layers,
    };
    let total = &run.usage.total;
    let installed = total.installed.gpu_milli_ms.max(1) as f64;
    let share = |milli_ms: i128| fine_percent(milli_ms as f64 / installed * 100.0);
    let free =
        |cause: &FreeCause| share(total.free_by_cause.get(cause).map_or(0, |a| a.gpu_milli_ms));
    let rest = total.free_by_cause.iter().filter(|(cause, _)| !shown.causes.contains(cause));
    let rest = share(rest.map(|(_, amount)| amount.gpu_milli_ms).sum());
    let edge = |class: &str, label: &str, milli_ms: i128| Legend {
        class: class.to_owned(),
        is_line: false,
        label: label.to_owned(),
        value: share(milli_ms),
    };
    let mut legend = vec![edge("c-allocated", "allocated", total.allocated.gpu_milli_ms)];
    legend.extend(cause_legend(shown, free, rest));
    legend.push(edge("c-unavailable", "unavailable", total.unavailable.gpu_milli_ms));
    PageFigure {
        title,
        svg: plot.svg(),
        legend,
        note: format!("Mean over bins of {}.", duration(run.series.bin_ms)),
        table: Some(series_table(&run.series, shown)),
    }
}

/// A series in few rows.
fn series_table(series: &Series, shown: &ShownCauses) -> PageTable {
    let per_row = series.points.len().div_ceil(TABLE_ROWS).max(1);
    let row = |points: &[SeriesPoint]| {
        let length: f64 = points.iter().map(|point| point.length_ms as f64).sum();
        let mean = |of: fn(&SeriesPoint) -> f64| {
            let sum: f64 = points.iter().map(|point| of(point) * point.length_ms as f64).sum();
            TableCell::plain(brief(sum / length))
        };
        TableRow {
            head: format!("from {:.1}", shown.time(points[0].at_ms)),
            class: "",
            cells: vec![
                mean(|point| point.allocated_gpus),
                mean(SeriesPoint::free_gpus),
                mean(|point| point.unavailable_gpus),
                mean(|point| point.waiting_jobs),
                mean(|point| point.waiting_gpus),
            ],
        }
    };
    let titles = [
        "GPUs allocated",
        "GPUs free",
        "GPUs unavailable",
        "pending jobs",
        "GPUs that pending jobs request",
    ];
    let header = std::iter::once(shown.unit.1).chain(titles);
    PageTable {
        caption: "Means over parts of the period".to_owned(),
        header: header.map(str::to_owned).collect(),
        rows: series.points.chunks(per_row).map(row).collect(),
    }
}

/// What waits, one line per policy.
fn queue(
    id: &str,
    comparison: &TimedComparison,
    shown: &ShownCauses,
    what: &str,
    of: fn(&SeriesPoint) -> f64,
) -> PageFigure {
    let line = |(style, policy): (usize, &TimedPolicy)| {
        let points = policy.shown()?.series.points.iter();
        let middle = |point: &SeriesPoint| shown.time(point.at_ms + point.length_ms / 2);
        let points = points.map(|point| (middle(point), Some(of(point)))).collect();
        Some(PlotLine { label: printable(&policy.policy), style, points, band: Vec::new() })
    };
    let lines: Vec<PlotLine> = comparison.policies.iter().enumerate().filter_map(line).collect();
    let values = lines.iter().flat_map(|line| &line.points).filter_map(|(_, y)| *y);
    let most = values.fold(0.0, f64::max);
    let title = format!("Waiting {what}");
    let legend = lines.iter().map(|line| Legend {
        class: format!("s{}", line.style % LINE_STYLES),
        is_line: true,
        label: line.label.clone(),
        value: String::new(),
    });
    let legend = legend.collect();
    let plot = LinePlot {
        frame: Frame {
            id: format!("{id}-queue-{}", what.to_lowercase()),
            title: title.clone(),
            description: "One line per policy; the tables of GPUs over time have the figures."
                .to_owned(),
            height: 260.0,
            x: shown.time_axis(),
            y: Axis::up_to(&format!("{what} waiting"), most, 4),
        },
        lines,
        limit: Vec::new(),
        marks: Vec::new(),
    };
    PageFigure { title, svg: plot.svg(), legend, note: String::new(), table: None }
}
