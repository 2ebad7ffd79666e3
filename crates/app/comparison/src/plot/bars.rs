//! Horizontal bars of stacked parts, one per policy.

use std::fmt::Write;

use super::canvas::{Frame, escape, place};

/// Bars under each other over one axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BarPlot {
    /// The vertical axis has no ticks: bars have names.
    pub(crate) frame: Frame,
    pub(crate) bars: Vec<Bar>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bar {
    pub(crate) label: String,
    /// What stands at its end.
    pub(crate) total: String,
    /// Length, class of the style sheet and label, from the left.
    pub(crate) parts: Vec<(f64, String, String)>,
}

/// Room for one bar with its name above it.
pub(crate) const BAR_HEIGHT: f64 = 52.0;

/// Room around all bars.
pub(crate) const AROUND: f64 = 60.0;

impl BarPlot {
    pub(crate) fn height(bars: usize) -> f64 {
        bars as f64 * BAR_HEIGHT + AROUND
    }

    pub(crate) fn svg(&self) -> String {
        let frame = &self.frame;
        frame.svg(|svg| {
            for (row, bar) in self.bars.iter().enumerate() {
                let top = frame.top() + row as f64 * BAR_HEIGHT;
                let _ = writeln!(
                    svg,
                    "<text class=\"bar-name\" x=\"{}\" y=\"{}\">{} <tspan class=\"bar-total\">{}</tspan></text>",
                    frame.left(),
                    top + 14.0,
                    escape(&bar.label),
                    escape(&bar.total),
                );
                let mut at = 0.0;
                for (length, class, label) in &bar.parts {
                    let (left, right) = (frame.x_of(at), frame.x_of(at + length));
                    at += length;
                    let _ = writeln!(
                        svg,
                        "<rect class=\"area {}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"22\"><title>{}</title></rect>",
                        escape(class),
                        place(left),
                        top + 20.0,
                        place(right - left),
                        escape(label),
                    );
                }
            }
        })
    }
}
