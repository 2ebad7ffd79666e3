//! Stacked areas of means over bins: steps, because a mean holds for its whole bin.

use std::fmt::Write;

use super::canvas::{Frame, escape, place};

/// Areas on top of each other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StackPlot {
    pub(crate) frame: Frame,
    /// Edges of the bins: one more than there are values.
    pub(crate) edges: Vec<f64>,
    /// From the bottom up.
    pub(crate) layers: Vec<StackLayer>,
}

/// One area.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StackLayer {
    pub(crate) label: String,
    /// Class of the style sheet.
    pub(crate) class: String,
    /// Height in each bin.
    pub(crate) values: Vec<f64>,
}

impl StackPlot {
    pub(crate) fn svg(&self) -> String {
        self.frame.svg(|svg| {
            let mut base = vec![0.0; self.edges.len().saturating_sub(1)];
            for layer in &self.layers {
                let top: Vec<f64> = base.iter().zip(&layer.values).map(|(b, v)| b + v).collect();
                let d = self.area(&base, &top);
                let (class, label) = (escape(&layer.class), escape(&layer.label));
                let _ = writeln!(
                    svg,
                    "<path class=\"area {class}\" d=\"{d}\"><title>{label}</title></path>"
                );
                base = top;
            }
        })
    }

    /// Along the top to the right and back along the bottom; equal steps are drawn as one.
    fn area(&self, bottom: &[f64], top: &[f64]) -> String {
        let (Some(first), Some(base)) = (self.edges.first(), bottom.first()) else {
            return String::new();
        };
        let frame = &self.frame;
        let step = |(bin, height): (usize, &f64), edge: usize| {
            (place(frame.y_of(*height)), place(frame.x_of(self.edges[bin + edge])))
        };
        let there = top.iter().enumerate().map(|bin| step(bin, 1));
        let back = bottom.iter().enumerate().rev().map(|bin| step(bin, 0));
        let mut steps: Vec<(String, String)> = Vec::new();
        for (y, x) in there {
            add_step(&mut steps, 0, y, x);
        }
        let turn = steps.len();
        for (y, x) in back {
            add_step(&mut steps, turn, y, x);
        }
        let mut d = format!("M{} {}", place(frame.x_of(*first)), place(frame.y_of(*base)));
        for (y, x) in steps {
            let _ = write!(d, "V{y}H{x}");
        }
        d.push('Z');
        d
    }
}

/// Adds a step, or makes the last one longer if it is as high and lies behind the turn.
fn add_step(steps: &mut Vec<(String, String)>, turn: usize, y: String, x: String) {
    let is_before = steps.len() > turn;
    match steps.last_mut() {
        Some(last) if is_before && last.0 == y => last.1 = x,
        _ => steps.push((y, x)),
    }
}
