//! Lines with an optional band around them, vertical marks, and a limit.

use std::fmt::Write;

use super::LINE_STYLES;
use super::canvas::{Frame, escape, place};

/// Lines over the same axes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LinePlot {
    pub(crate) frame: Frame,
    pub(crate) lines: Vec<PlotLine>,
    /// What no line can be above.
    pub(crate) limit: Vec<(f64, f64)>,
    pub(crate) marks: Vec<Mark>,
}

/// One line. Values outside of the axes are left out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlotLine {
    pub(crate) label: String,
    /// Which colour and dashes.
    pub(crate) style: usize,
    /// Gaps where nothing is known.
    pub(crate) points: Vec<(f64, Option<f64>)>,
    /// Lowest and highest value over runs.
    pub(crate) band: Vec<(f64, f64, f64)>,
}

/// A vertical line with a text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mark {
    pub(crate) x: f64,
    pub(crate) text: String,
}

impl LinePlot {
    pub(crate) fn svg(&self) -> String {
        self.frame.svg(|svg| {
            self.draw_limit(svg);
            for line in &self.lines {
                self.draw_band(svg, line);
            }
            for line in &self.lines {
                let (style, d) = (line.style % LINE_STYLES, self.path(&line.points));
                let label = escape(&line.label);
                let _ = writeln!(
                    svg,
                    "<path class=\"line s{style}\" d=\"{d}\"><title>{label}</title></path>"
                );
            }
            for mark in &self.marks {
                self.draw_mark(svg, mark);
            }
        })
    }

    fn path(&self, points: &[(f64, Option<f64>)]) -> String {
        let frame = &self.frame;
        let (mut d, mut pen_down) = (String::new(), false);
        for (x, y) in points {
            let outside = *x < frame.x.from || *x > frame.x.to;
            let Some(y) = y.filter(|y| !outside && *y >= frame.y.from && *y <= frame.y.to) else {
                pen_down = false;
                continue;
            };
            let letter = if pen_down { 'L' } else { 'M' };
            let _ = write!(d, "{letter}{} {}", place(frame.x_of(*x)), place(frame.y_of(y)));
            pen_down = true;
        }
        d
    }

    fn draw_limit(&self, svg: &mut String) {
        if self.limit.is_empty() {
            return;
        }
        let points: Vec<_> = self.limit.iter().map(|(x, y)| (*x, Some(*y))).collect();
        let _ = writeln!(
            svg,
            "<path class=\"limit\" d=\"{}\"><title>limit</title></path>",
            self.path(&points)
        );
    }

    fn draw_band(&self, svg: &mut String, line: &PlotLine) {
        let frame = &self.frame;
        let inside = |x: &f64| *x >= frame.x.from && *x <= frame.x.to;
        let band: Vec<_> = line.band.iter().filter(|(x, ..)| inside(x)).collect();
        if band.len() < 2 {
            return;
        }
        let point =
            |(x, y): (f64, f64)| format!("{} {}", place(frame.x_of(x)), place(frame.y_of(y)));
        let low = band.iter().map(|(x, low, _)| point((*x, *low)));
        let high = band.iter().rev().map(|(x, _, high)| point((*x, *high)));
        let points: Vec<String> = low.chain(high).collect();
        let (style, points) = (line.style % LINE_STYLES, points.join("L"));
        let _ = writeln!(svg, "<path class=\"band s{style}\" d=\"M{points}Z\"/>");
    }

    fn draw_mark(&self, svg: &mut String, mark: &Mark) {
        let frame = &self.frame;
        if mark.x < frame.x.from || mark.x > frame.x.to {
            return;
        }
        let (x, top, bottom) = (frame.x_of(mark.x), frame.top(), frame.bottom());
        let _ = writeln!(svg, "<path class=\"mark\" d=\"M{} {top}V{bottom}\"/>", place(x));
        let is_right = x > (frame.left() + frame.right()) / 2.0;
        let (anchor, shift) = if is_right { ("end", -6.0) } else { ("start", 6.0) };
        let (x, y) = (place(x + shift), bottom - 8.0);
        let text = escape(&mark.text);
        let _ =
            writeln!(svg, "<text class=\"mark-text {anchor}\" x=\"{x}\" y=\"{y}\">{text}</text>");
    }
}
