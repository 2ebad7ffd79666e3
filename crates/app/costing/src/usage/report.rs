//! What every device did, in GPU-hours and money.

use std::collections::BTreeMap;

use anyhow::Result;
use dovetail_account::device_time::{DeviceState, DeviceTime, Span, device_intervals};
use dovetail_account::signal::Signal;
use dovetail_account::{Amount, Priced};
use dovetail_console::plain::plain;
use dovetail_console::table::{facts, number, table, whole, wrapped};
use dovetail_metrics::exporter::{ObservedDevice, ObservedTime, RefusedSeries};
use dovetail_units::amount::percent;
use dovetail_units::duration::{duration, duration_of_seconds};
use serde::Serialize;

use super::device_prices::DevicePrices;
use super::grouping::{Grouping, NOBODY, UNKNOWN};

/// Where the samples come from.
#[derive(Debug, Serialize)]
pub struct SampleSource {
    pub server: String,
    #[serde(skip)]
    pub period: Span,
    pub step_ms: u64,
}

/// The answer; keys as in docs/reference/json.md.
#[derive(Debug, Serialize)]
pub struct GpuUsage<'a> {
    method: &'static str,
    source: &'a SampleSource,
    from_ms: u64,
    to_ms: u64,
    nodes: usize,
    devices: usize,
    by: &'static str,
    total: UsageRow,
    rows: Vec<UsageRow>,
    /// GPU-hours of active and idle time by the signal they rest on.
    signals: BTreeMap<&'static str, f64>,
    prices: Vec<Price>,
    series_without_device: u64,
    samples_without_reading: u64,
    contradicting_samples: u64,
}

/// What a GPU-hour of a model costs on some of its nodes; null where nobody knows.
#[derive(Debug, Serialize)]
struct Price {
    gpu_model: String,
    usd_per_gpu_hour: Option<f64>,
    source: Option<String>,
}

impl Price {
    fn of((model, price): (&Option<String>, &Priced)) -> Self {
        let gpu_model = model.as_deref().map_or_else(|| "(unknown)".to_owned(), plain);
        let known = match price {
            Priced::Known(known) => Some(known),
            Priced::Unknown => None,
        };
        Self {
            gpu_model,
            usd_per_gpu_hour: known.map(|known| known.usd_micros_per_gpu_hour as f64 / 1e6),
            source: known.map(|known| known.source.clone()),
        }
    }
}

/// One group of device-time; money is null where no price is known.
#[derive(Debug, Default, Serialize)]
struct UsageRow {
    name: String,
    seen_gpu_hours: f64,
    allocated_gpu_hours: f64,
    active_gpu_hours: f64,
    idle_gpu_hours: f64,
    unknown_gpu_hours: f64,
    free_gpu_hours: f64,
    /// Active of what is known, in percent.
    active_percent: Option<f64>,
    allocated_usd: Option<f64>,
    idle_usd: Option<f64>,
    /// Share of the seen time that has a price, in percent.
    priced_percent: Option<f64>,
}

impl<'a> GpuUsage<'a> {
    /// Adds up a period; the rows are those of one namespace, where one is named.
    pub fn of(
        source: &'a SampleSource,
        (by, only): (Grouping, Option<&str>),
        time: &ObservedTime,
        refused: RefusedSeries,
        prices: &DevicePrices,
    ) -> Result<Self> {
        let mut groups: BTreeMap<(String, bool), DeviceTime<Amount>> = BTreeMap::new();
        let mut signals: BTreeMap<&'static str, i128> = BTreeMap::new();
        for device in &time.devices {
            for (key, account) in accounts(device, source.period, (by, only), time, &mut signals)? {
                let price = prices.of_device(device);
                groups.entry(key).or_default().add(&account.priced(price));
            }
        }
        let mut total = DeviceTime::default();
        groups.values().for_each(|group| total.add(group));
        let shown = groups.iter().filter(|((_, is_shown), _)| *is_shown);
        let mut rows: Vec<UsageRow> =
            shown.map(|((name, _), group)| UsageRow::of(name, group)).collect();
        rows.sort_by(|one, other| other.idle_gpu_hours.total_cmp(&one.idle_gpu_hours));
        let nodes: std::collections::BTreeSet<&str> =
            time.devices.iter().map(|device| device.node.as_str()).collect();
        Ok(Self {
            method: "device-time",
            from_ms: source.period.from_ms,
            to_ms: source.period.to_ms,
            source,
            nodes: nodes.len(),
            devices: time.devices.len(),
            by: by.name(),
            total: UsageRow::of("total", &total),
            rows,
            signals: signals.into_iter().map(|(name, time)| (name, hours(time))).collect(),
            prices: prices.by_model().into_iter().map(Price::of).collect(),
            series_without_device: refused.series_without_device,
            samples_without_reading: refused.samples,
            contradicting_samples: refused.contradictions,
        })
    }

    /// For people.
    pub fn table(&self) -> String {
        if self.devices == 0 {
            let series = [
                Signal::GrEngineActive,
                Signal::GpuUtil,
                Signal::AmdGfxActivity,
                Signal::IntelEngineRatio,
            ];
            let series = series.map(|signal| signal.series()[0].0).join(", ");
            let none = format!(
                "No GPU metrics: the server has no GPU exporter series in this period \
                 ({series} and others). Whether the cluster has GPUs is unknown."
            );
            return wrapped(&none, 0);
        }
        let total = &self.total;
        let seconds = (self.to_ms - self.from_ms) as f64 / 1e3;
        let head = facts(vec![
            (
                "period",
                format!(
                    "{} until now, in steps of {}",
                    duration_of_seconds(seconds),
                    duration(self.source.step_ms)
                ),
            ),
            (
                "measured",
                format!(
                    "{} GPUs on {} nodes, {} GPU-hours",
                    whole(self.devices as u64),
                    whole(self.nodes as u64),
                    number(Some(total.seen_gpu_hours))
                ),
            ),
            ("allocated", format!("{} GPU-hours", number(Some(total.allocated_gpu_hours)))),
            (
                "  active",
                format!(
                    "{} ({} of the measured GPU time)",
                    number(Some(total.active_gpu_hours)),
                    of_known(total.active_percent)
                ),
            ),
            ("  idle", format!("{}{}", number(Some(total.idle_gpu_hours)), usd(total.idle_usd))),
            ("  unknown", number(Some(total.unknown_gpu_hours))),
            ("free", number(Some(total.free_gpu_hours))),
        ]);
        // What nobody held stands above.
        let rows = self.rows.iter().filter(|row| row.name != NOBODY).map(|row| {
            vec![
                row.name.clone(),
                number(Some(row.allocated_gpu_hours)),
                number(row.measured(row.active_gpu_hours)),
                number(row.measured(row.idle_gpu_hours)),
                number(Some(row.unknown_gpu_hours)),
                of_known(row.active_percent),
                row.idle_usd.map_or_else(|| "-".to_owned(), |usd| number(Some(usd))),
            ]
        });
        let header =
            [self.by, "allocated h", "active h", "idle h", "unknown h", "active", "idle $"];
        format!("{head}\n{}\n{}", table(&header, rows.collect()), self.notes())
    }

    /// How the figures were made and what they leave out.
    fn notes(&self) -> String {
        let signals: Vec<String> = self
            .signals
            .iter()
            .map(|(name, hours)| format!("{name} {}", number(Some(*hours))))
            .collect();
        let mut text = wrapped(
            &format!(
                "Active: above 1% according to the best available signal, here (GPU-hours) {}. A GPU counts from \
                 its first sample to its last. Dollars are list prices of whole GPUs times hours, not a bill.",
                signals.join(", ")
            ),
            0,
        );
        for price in &self.prices {
            let Price { gpu_model, usd_per_gpu_hour, source } = price;
            text += &match (usd_per_gpu_hour, source) {
                (Some(usd), Some(source)) => {
                    wrapped(&format!("{gpu_model}: ${usd} per GPU-hour, {source}."), 0)
                }
                _ => wrapped(
                    &format!(
                        "{gpu_model}: no price known; set one with --gpu-price MODEL=USD_PER_HOUR."
                    ),
                    0,
                ),
            };
        }
        for (count, what) in [
            (self.series_without_device, "series without labels that name a GPU were ignored"),
            (
                self.samples_without_reading,
                "samples had an invalid value (blank value of the driver, NaN, or out of range)",
            ),
            (
                self.contradicting_samples,
                "samples contradict those of another server and count as unknown",
            ),
        ] {
            if count > 0 {
                text += &format!("{} {what}.\n", whole(count));
            }
        }
        text
    }
}

impl UsageRow {
    /// Hours in a state, unless nothing is known of what allocated GPUs did.
    fn measured(&self, hours: f64) -> Option<f64> {
        (self.active_percent.is_some() || self.allocated_gpu_hours == 0.0).then_some(hours)
    }

    fn of(name: &str, time: &DeviceTime<Amount>) -> Self {
        let gpu_hours = |amount: Amount| hours(amount.gpu_milli_ms);
        let dollars = |amount: Amount| amount.usd_micros().map(|micros| micros as f64 / 1e6);
        let sum = |has: fn(DeviceState) -> bool| time.of_all(has);
        let (active, idle) = (time.active(), time.of(DeviceState::Idle));
        let known = gpu_hours(active) + gpu_hours(idle);
        let priced = time.installed.priced_gpu_milli_ms;
        let seen = time.installed.gpu_milli_ms;
        Self {
            name: plain(name),
            seen_gpu_hours: gpu_hours(time.installed),
            allocated_gpu_hours: gpu_hours(time.allocated()),
            active_gpu_hours: gpu_hours(active),
            idle_gpu_hours: gpu_hours(idle),
            unknown_gpu_hours: gpu_hours(time.of(DeviceState::Unknown)),
            free_gpu_hours: gpu_hours(sum(|state| matches!(state, DeviceState::Free(_)))),
            active_percent: (known > 0.0).then(|| 100.0 * gpu_hours(active) / known),
            allocated_usd: dollars(time.allocated()),
            idle_usd: dollars(idle)
                .filter(|_| known > 0.0 || time.allocated() == Amount::default()),
            priced_percent: (seen > 0).then(|| 100.0 * priced as f64 / seen as f64),
        }
    }
}

/// The time of one device by group, and whether it is of the namespace whose rows are shown.
fn accounts(
    device: &ObservedDevice,
    period: Span,
    (by, only): (Grouping, Option<&str>),
    time: &ObservedTime,
    signals: &mut BTreeMap<&'static str, i128>,
) -> Result<BTreeMap<(String, bool), DeviceTime<i128>>> {
    let mut groups: BTreeMap<(String, bool), DeviceTime<i128>> = BTreeMap::new();
    for interval in device_intervals(&device.history, period)? {
        let holder = interval.holder.and_then(|number| time.holders.get(number as usize));
        let key = match by.key(device, holder) {
            // Somebody may have had it.
            key if key == NOBODY && interval.state == DeviceState::Unknown => UNKNOWN.to_owned(),
            key => key,
        };
        let is_in = |only| holder.is_some_and(|holder| holder.namespace == only);
        let group = groups.entry((key, only.is_none_or(is_in))).or_default();
        let amount = interval.gpu_milli_ms();
        group.installed += amount;
        *group.by_state.entry(interval.state).or_default() += amount;
        if let Some(signal) = interval.signal {
            *signals.entry(Signal::name(signal)).or_default() += amount;
        }
    }
    Ok(groups)
}

fn hours(gpu_milli_ms: i128) -> f64 {
    gpu_milli_ms as f64 / 3.6e9
}

/// A percentage; a dash for what is not known.
fn of_known(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| percent(value / 100.0))
}

fn usd(usd: Option<f64>) -> String {
    usd.map_or_else(String::new, |usd| format!(", about ${}", number(Some(usd))))
}

#[cfg(test)]
mod tests {
    use dovetail_account::GpuPrice;
    use dovetail_account::signal::{ActivityRule, Scale};
    use dovetail_metrics::exporter::{Observation, PodLabels, SeriesMeasure};
    use dovetail_metrics::prometheus::{Labels, Series, SeriesSample};

    use super::*;

    const HOUR_MS: u64 = 3_600_000;

    fn series(uuid: &str, namespace: Option<&str>, values: [f64; 4]) -> Series {
        let mut labels = Labels::from([
            ("UUID".to_owned(), uuid.to_owned()),
            ("Hostname".to_owned(), "n1".to_owned()),
            ("modelName".to_owned(), "H100".to_owned()),
        ]);
        if let Some(namespace) = namespace {
            labels.insert("pod".into(), "p-0".into());
            labels.insert("namespace".into(), namespace.into());
        }
        let at = |hour: usize| hour as i64 * HOUR_MS as i64;
        let samples =
            (0..4).map(|hour| SeriesSample { at_ms: at(hour), value: values[hour] }).collect();
        Series { labels, samples }
    }

    /// One price for all devices.
    fn all_at(price: Priced) -> DevicePrices {
        let kind = ("n1".to_owned(), Some("H100".to_owned()));
        DevicePrices(BTreeMap::from([(kind, price)]))
    }

    fn report_of(prices: &DevicePrices, show: impl Fn(&GpuUsage<'_>)) {
        let mut observation = Observation::default();
        let all = vec![
            series("a", Some("ml"), [0.9, 0.0, 0.0, 0.0]),
            series("b", Some("bad\u{1b}[2J"), [0.9, 0.9, 0.9, f64::NAN]),
            series("c", None, [0.0; 4]),
        ];
        let busy = SeriesMeasure::Busy(Signal::GrEngineActive);
        observation.take(busy, Scale::Ratio, &PodLabels::default(), all);
        let period = Span { from_ms: 0, to_ms: 4 * HOUR_MS };
        let time = observation.histories(period, HOUR_MS, &ActivityRule::default());
        let source = SampleSource { server: "http://m".into(), period, step_ms: HOUR_MS };
        show(
            &GpuUsage::of(
                &source,
                (Grouping::Namespace, None),
                &time,
                observation.refused(),
                prices,
            )
            .unwrap(),
        );
    }

    #[test]
    fn idle_time_has_its_price_and_every_hour_its_place() {
        let known = GpuPrice {
            usd_micros_per_gpu_hour: 2_000_000,
            source: "a list".into(),
            assumed: false,
        };
        report_of(&all_at(Priced::Known(known)), |report| {
            let total = &report.total;
            // The sample that is no number says who holds the GPU, and not what it does.
            assert_eq!((total.seen_gpu_hours, total.allocated_gpu_hours), (12.0, 8.0));
            assert_eq!(
                (total.active_gpu_hours, total.idle_gpu_hours, total.free_gpu_hours),
                (4.0, 3.0, 4.0)
            );
            assert_eq!((total.idle_usd, total.priced_percent), (Some(6.0), Some(100.0)));
            assert_eq!(report.samples_without_reading, 1);
            let first = &report.rows[0];
            assert_eq!((first.name.as_str(), first.idle_usd), ("ml", Some(6.0)));
            let text = report.table();
            assert!(text.contains("about $6.00") && text.contains("a list"), "{text}");
            assert!(!text.contains('\u{1b}') && !text.contains(NOBODY), "{text}");
        });
    }

    #[test]
    fn an_unknown_price_is_a_dash_and_says_what_to_do() {
        report_of(&all_at(Priced::Unknown), |report| {
            assert_eq!((report.total.idle_usd, report.total.priced_percent), (None, Some(0.0)));
            let text = report.table();
            assert!(text.contains("--gpu-price") && !text.contains("$0"), "{text}");
        });
    }
}
