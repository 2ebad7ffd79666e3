//! Axes: from data to places, and round figures between.

/// What a plot shows in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    pub title: String,
    pub from: f64,
    pub to: f64,
    /// Values that get a tick, with their text.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// From one value to another, with about so many round ticks between.
    pub fn new(title: &str, from: f64, to: f64, ticks: usize) -> Self {
        let to = if to > from { to } else { from + 1.0 };
        let step = round_step((to - from) / ticks as f64);
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let first = (from / step).ceil() as i64;
        let last = (to / step + 1e-9).floor() as i64;
        let text = |value: f64| match decimals {
            0 => dovetail_units::amount::whole(value),
            _ => format!("{value:.decimals$}"),
        };
        let tick = |place: i64| (place as f64 * step, text(place as f64 * step));
        Self { title: title.to_owned(), from, to, ticks: (first..=last).map(tick).collect() }
    }

    /// From zero to a round figure at or above a value.
    pub fn up_to(title: &str, most: f64, ticks: usize) -> Self {
        let most = if most > 0.0 { most } else { 1.0 };
        let step = round_step(most / ticks as f64);
        Self::new(title, 0.0, (most / step - 1e-9).ceil() * step, ticks)
    }

    /// Share of the way from begin to end.
    pub fn share(&self, value: f64) -> f64 {
        ((value - self.from) / (self.to - self.from)).clamp(0.0, 1.0)
    }
}

/// The next of 1, 2, 5, 10, … at or above.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0].into_iter().find(|step| step * power >= least * (1.0 - 1e-9));
    step.unwrap_or(10.0) * power
}
