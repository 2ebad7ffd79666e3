//! Exporters asked directly, where no server keeps their series: look after look, each a page of
//! what is now.
//!
//! Only the series that say something about devices are kept, and only as gauges: counters need a
//! server that remembers. A page's own times are left, so that all devices of one look have one
//! moment.

mod exposition;

use std::collections::BTreeMap;

use thiserror::Error;

pub use exposition::LineProblem;

use crate::exporter::{Observation, PodLabels, measures};
use crate::prometheus::{Labels, Series, SeriesSample};

/// The label of a series that says where it was read.
const INSTANCE: &str = "instance";

/// What several looks at exporters brought. Memory grows with the number of samples.
#[derive(Clone, Debug, Default)]
pub struct Scrapes {
    /// Samples by series: the place of its measure, and its labels.
    series: BTreeMap<(usize, Labels), Vec<SeriesSample>>,
    refused: Option<RefusedLines>,
}

/// Lines that say nothing, of all pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedLines {
    pub count: u64,
    /// Where the first one was read.
    pub source: String,
    /// Its number on that page.
    pub line: u64,
    pub problem: LineProblem,
}

/// A page that is none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PageError {
    #[error("the response is not text (byte {byte})")]
    NoText {
        /// The first byte that is none.
        byte: usize,
    },
    /// Not one line of it says something about a device.
    #[error("the response contains no series of a known GPU exporter")]
    NoDevices,
}

impl Scrapes {
    /// Takes a page. `source` names who was asked, by its node where that is known: it stands for
    /// the node where no label does.
    ///
    /// # Errors
    /// See [`PageError`]. A line that cannot be read is left out, and counted in [`Self::refused`].
    pub fn take(&mut self, source: &str, page: &[u8], at_ms: i64) -> Result<(), PageError> {
        let text = std::str::from_utf8(page)
            .map_err(|error| PageError::NoText { byte: error.valid_up_to() })?;
        let mut is_of_devices = false;
        for (line, number) in text.lines().zip(1..) {
            let name = exposition::name_of(line);
            let measure = measures().position(|(series, ..)| Some(series) == name);
            let Some(measure) = measure else { continue };
            match exposition::read_line(line) {
                Ok(found) => {
                    is_of_devices = true;
                    let mut labels = found.labels;
                    labels.entry(INSTANCE.to_owned()).or_insert_with(|| source.to_owned());
                    let samples = self.series.entry((measure, labels)).or_default();
                    samples.push(SeriesSample { at_ms, value: found.value });
                }
                Err(problem) => self.refuse(source, number, problem),
            }
        }
        match is_of_devices {
            true => Ok(()),
            false => Err(PageError::NoDevices),
        }
    }

    /// All that was read, device by device, and which labels name holders.
    pub fn observation(self) -> (Observation, PodLabels) {
        let pods = PodLabels::of(self.series.keys().map(|(_, labels)| labels));
        let kinds: Vec<_> = measures().collect();
        let mut observation = Observation::default();
        for ((measure, labels), samples) in self.series {
            let (_, measure, scale) = kinds[measure];
            observation.take(measure, scale, &pods, vec![Series { labels, samples }]);
        }
        (observation, pods)
    }

    /// Adds what another look brought, which was later.
    pub fn append(&mut self, later: Self) {
        for (series, samples) in later.series {
            self.series.entry(series).or_default().extend(samples);
        }
        if let Some(more) = later.refused {
            let count = self.refused.as_ref().map_or(0, |refused| refused.count);
            self.refused.get_or_insert(more.clone()).count = count + more.count;
        }
    }

    /// How many samples are held.
    pub fn samples(&self) -> usize {
        self.series.values().map(Vec::len).sum()
    }

    /// Drops what was seen before a moment.
    pub fn forget_before(&mut self, at_ms: i64) {
        self.series.retain(|_, samples| {
            samples.retain(|sample| sample.at_ms >= at_ms);
            !samples.is_empty()
        });
    }

    /// Lines that were left out; none if there is none.
    pub fn refused(&self) -> Option<&RefusedLines> {
        self.refused.as_ref()
    }

    fn refuse(&mut self, source: &str, line: u64, problem: LineProblem) {
        let first = || RefusedLines { count: 0, source: source.to_owned(), line, problem };
        self.refused.get_or_insert_with(first).count += 1;
    }
}

#[cfg(test)]
mod tests {
    use dovetail_account::device_time::{DeviceState, DeviceTime, Span, device_intervals};
    use dovetail_account::signal::ActivityRule;

    use super::*;

    const PAGE: &str = "# HELP DCGM_FI_PROF_GR_ENGINE_ACTIVE Ratio of time.\n\
        # TYPE DCGM_FI_PROF_GR_ENGINE_ACTIVE gauge\n\
        DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu=\"0\",UUID=\"GPU-a\",namespace=\"ml\",pod=\"train-0\"} 0.9\n\
        DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu=\"1\",UUID=\"GPU-b\",namespace=\"ml\",pod=\"idle-0\"} 0\n\
        DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu=\"2\",UUID=\"GPU-c\"} 0\n\
        go_goroutines{broken=1} x\n";

    /// Two looks, 15 s apart, are 30 s of three GPUs: one works, one is held idle, one is free.
    #[test]
    fn looks_become_time_of_devices() {
        let mut scrapes = Scrapes::default();
        scrapes.take("n1", PAGE.as_bytes(), 0).unwrap();
        scrapes.take("n1", PAGE.as_bytes(), 15_000).unwrap();
        assert_eq!(scrapes.refused(), None);
        let (observation, _) = scrapes.observation();
        let period = Span { from_ms: 0, to_ms: 30_000 };
        let time = observation.histories(period, 15_000, &ActivityRule::default());
        let mut sum = DeviceTime::default();
        for device in &time.devices {
            assert_eq!(device.node, "n1");
            let intervals = device_intervals(&device.history, period).unwrap();
            sum.add(&DeviceTime::of_device(&device.history, period, &intervals));
        }
        let seconds = |time: i128| time / 1_000_000;
        assert_eq!(seconds(sum.installed), 90);
        assert_eq!(seconds(sum.active()), 30);
        assert_eq!(seconds(sum.of(DeviceState::Idle)), 30);
        let holders: Vec<&str> = time.holders.iter().map(|holder| &*holder.pod).collect();
        assert_eq!(holders, ["train-0", "idle-0"]);
    }

    #[test]
    fn what_is_forgotten_is_not_seen_any_more() {
        let (mut scrapes, mut later) = (Scrapes::default(), Scrapes::default());
        let without_last: String = PAGE
            .lines()
            .filter(|line| !line.contains("GPU-c"))
            .fold(String::new(), |page, line| page + line + "\n");
        scrapes.take("n1", PAGE.as_bytes(), 0).unwrap();
        later.take("n1", without_last.as_bytes(), 15_000).unwrap();
        scrapes.append(later);
        assert_eq!(scrapes.samples(), 5);
        scrapes.forget_before(15_000);
        assert_eq!(scrapes.samples(), 2);
        assert_eq!(scrapes.observation().0.devices(), 2);
    }

    #[test]
    fn a_bad_line_is_counted_and_the_others_hold() {
        let mut scrapes = Scrapes::default();
        let page =
            format!("{PAGE}DCGM_FI_DEV_GPU_UTIL{{gpu=0}} 1\nDCGM_FI_DEV_GPU_UTIL{{}} much\n");
        scrapes.take("n1", page.as_bytes(), 0).unwrap();
        let refused = scrapes.refused().unwrap();
        let told = (refused.count, &*refused.source, refused.line, refused.problem);
        assert_eq!(told, (2, "n1", 7, LineProblem::Labels));
        assert_eq!(scrapes.observation().0.devices(), 3);
    }

    #[test]
    fn what_is_no_page_of_a_gpu_exporter_is_said() {
        let mut scrapes = Scrapes::default();
        for (page, told) in [
            (&b"<html>not found</html>"[..], "the response contains no series"),
            (b"node_load1 3\n", "the response contains no series"),
            (b"", "the response contains no series"),
            (b"ab\xff", "the response is not text (byte 2)"),
        ] {
            let error = scrapes.take("n1", page, 0).unwrap_err().to_string();
            assert!(error.starts_with(told), "{error}");
        }
    }
}
