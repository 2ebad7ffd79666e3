//! Plots as SVG text: no script, no outside font, colours from the style sheet of the page.
//!
//! Every plot has a title and a description for readers that do not see it; every text is escaped
//! here.

mod bars;
mod canvas;
mod lines;
mod scale;
mod stack;

pub(crate) use bars::{Bar, BarPlot};
pub(crate) use canvas::Frame;
pub(crate) use lines::{LinePlot, Mark, PlotLine};
pub use scale::Axis;
pub(crate) use stack::{StackLayer, StackPlot};

/// Lines that can be told apart by colour and by dashes.
pub(crate) const LINE_STYLES: usize = 8;
