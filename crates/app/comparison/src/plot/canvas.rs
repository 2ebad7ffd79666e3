//! The drawing surface: size, frame, grid, ticks and escaped text.

use std::fmt::Write;

use super::Axis;

const WIDTH: f64 = 600.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 46.0;

/// What every plot has around it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    /// Unique in the page.
    pub(crate) id: String,
    /// Name for readers that do not see it.
    pub(crate) title: String,
    /// What it shows, for the same.
    pub(crate) description: String,
    pub(crate) height: f64,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
}

impl Frame {
    /// Place of a value from the left.
    pub(crate) fn x_of(&self, value: f64) -> f64 {
        LEFT + self.x.share(value) * (WIDTH - LEFT - RIGHT)
    }

    /// Place of a value from the top.
    pub(crate) fn y_of(&self, value: f64) -> f64 {
        TOP + (1.0 - self.y.share(value)) * (self.height - TOP - BOTTOM)
    }

    pub(crate) fn top(&self) -> f64 {
        TOP
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.height - BOTTOM
    }

    pub(crate) fn left(&self) -> f64 {
        LEFT
    }

    pub(crate) fn right(&self) -> f64 {
        WIDTH - RIGHT
    }

    /// The whole picture around what `draw` adds between grid and axes.
    pub(crate) fn svg(&self, draw: impl FnOnce(&mut String)) -> String {
        let (id, height) = (escape(&self.id), self.height);
        let mut svg = String::new();
        let _ = write!(
            svg,
            "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\n\
             <title id=\"{id}-t\">{}</title>\n<desc id=\"{id}-d\">{}</desc>\n",
            escape(&self.title),
            escape(&self.description),
        );
        self.grid(&mut svg);
        draw(&mut svg);
        self.axes(&mut svg);
        svg.push_str("</svg>");
        svg
    }

    fn grid(&self, svg: &mut String) {
        let (left, right) = (self.left(), self.right());
        for (value, _) in &self.y.ticks {
            let y = place(self.y_of(*value));
            let _ = writeln!(svg, "<path class=\"grid\" d=\"M{left} {y}H{right}\"/>");
        }
    }

    fn axes(&self, svg: &mut String) {
        let (left, right, bottom) = (self.left(), self.right(), self.bottom());
        let _ = writeln!(svg, "<path class=\"axis\" d=\"M{left} {bottom}H{right}\"/>");
        for (value, text) in &self.x.ticks {
            let (x, y) = (place(self.x_of(*value)), bottom + 18.0);
            let _ = writeln!(svg, "<path class=\"axis\" d=\"M{x} {bottom}v4\"/>");
            let _ = writeln!(
                svg,
                "<text class=\"tick mid\" x=\"{x}\" y=\"{y}\">{}</text>",
                escape(text)
            );
        }
        for (value, text) in &self.y.ticks {
            let (x, y) = (left - 8.0, place(self.y_of(*value) + 4.0));
            let _ = writeln!(
                svg,
                "<text class=\"tick end\" x=\"{x}\" y=\"{y}\">{}</text>",
                escape(text)
            );
        }
        let (x, y) = ((left + right) / 2.0, self.height - 8.0);
        let _ = writeln!(
            svg,
            "<text class=\"axis-title mid\" x=\"{x}\" y=\"{y}\">{}</text>",
            escape(&self.x.title)
        );
        if self.y.title.is_empty() {
            return;
        }
        let y = (TOP + bottom) / 2.0;
        let _ = writeln!(
            svg,
            "<text class=\"axis-title mid\" transform=\"translate(14 {y}) rotate(-90)\">{}</text>",
            escape(&self.y.title)
        );
    }
}

/// A place on the canvas, to a tenth.
pub(crate) fn place(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// Text that stays text in HTML and SVG, in content and in quoted attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            letter => safe.push(letter),
        }
    }
    safe
}
