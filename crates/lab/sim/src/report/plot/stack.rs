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
    pub(crate) layers: Vec<Layer>,
}

/// One area.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layer {
    pub(crate) label: String,
    /// Class of the style sheet.
    pub(crate) class: String,
    /// Height in each bin.
    pub(crate) values: Vec<f64>,
}

impl StackPlot {
    /// The picture.
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

    /// Along the top to the right and back along the bottom.
    fn area(&self, bottom: &[f64], top: &[f64]) -> String {
        let Some(first) = self.edges.first() else { return String::new() };
        let frame = &self.frame;
        let mut d = format!("M{} {}", place(frame.x_of(*first)), place(frame.y_of(0.0)));
        let mut at = place(frame.y_of(0.0));
        let mut go = |d: &mut String, y: f64, x: f64| {
            let y = place(frame.y_of(y));
            if y != at {
                let _ = write!(d, "V{y}");
                at = y;
            }
            let _ = write!(d, "H{}", place(frame.x_of(x)));
        };
        for (bin, y) in top.iter().enumerate() {
            go(&mut d, *y, self.edges[bin + 1]);
        }
        for (bin, y) in bottom.iter().enumerate().rev() {
            go(&mut d, *y, self.edges[bin]);
        }
        d.push('Z');
        d
    }
}
