//! When what was measured under the name of a pod is of the pod that has it at the moment that is
//! asked about: since it was made, and until that moment.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::device_time::Span;
use dovetail_console::plain::plain;
use dovetail_console::table::counted;
use dovetail_inventory::facts::Gathered;
use dovetail_metrics::exporter::{DeviceHolder, ObservedTime};
use dovetail_metrics::file::UsageSeries;
use jiff::Timestamp;

/// Clocks of machines differ by no more.
const CLOCK_SKEW_MS: u64 = 300_000;

/// The own time of every pod.
pub struct OwnTime<'g> {
    /// When pods that hold GPUs were made, by namespace and name.
    made_ms: &'g BTreeMap<(String, String), u64>,
    now_ms: u64,
    until_ms: u64,
}

/// What was left out because it is of another time.
#[derive(Debug, Default)]
struct LeftOut {
    /// Pods by namespace and name.
    pods: BTreeSet<(String, String)>,
    samples: u64,
}

impl<'g> OwnTime<'g> {
    /// Of the pods of objects. Who looked for a while since they were read looked at them, too.
    pub fn of(gathered: &'g Gathered, looked_ms: u64) -> Self {
        let now_ms = gathered.facts.now_ms;
        let until_ms = now_ms.saturating_add(CLOCK_SKEW_MS).saturating_add(looked_ms);
        Self { made_ms: &gathered.made_ms, now_ms, until_ms }
    }

    /// Leaves samples of other times out; answers with what that is, in words.
    pub(crate) fn keep_samples(&self, all: &mut Vec<UsageSeries>, source: &str) -> Vec<String> {
        let (mut before, mut later) = (LeftOut::default(), LeftOut::default());
        for series in all.iter_mut() {
            let key = (series.namespace.clone().unwrap_or_default(), series.pod.clone());
            let made_ms = self.made_ms.get(&key).copied().unwrap_or(0);
            let end = series.activity.partition_point(|sample| sample.at_ms <= self.until_ms);
            later.add(&key, series.activity.len() - end);
            series.activity.truncate(end);
            series.memory_bytes.truncate(end);
            let begin = series.activity.partition_point(|sample| sample.at_ms < made_ms);
            before.add(&key, begin);
            series.activity.drain(..begin);
            series.memory_bytes.drain(..begin);
        }
        all.retain(|series| !series.activity.is_empty());
        let what = |left: &LeftOut| counted(usize::try_from(left.samples).unwrap_or(0), "sample");
        self.in_words(source, (&before, what(&before)), (&later, what(&later)))
    }

    /// Takes what exporters or a server said of other times off the pods; answers with what that
    /// is, in words.
    pub(crate) fn keep_time(&self, time: &mut ObservedTime, source: &str) -> Vec<String> {
        let own = |holder: &DeviceHolder| {
            let key = (holder.namespace.clone(), holder.pod.clone());
            let from_ms = self.made_ms.get(&key).copied().unwrap_or(0);
            Span { from_ms, to_ms: self.until_ms.max(from_ms) }
        };
        let (mut before, mut later) = (LeftOut::default(), LeftOut::default());
        for (DeviceHolder { namespace, pod, .. }, span) in time.keep_own(own) {
            let left = if span.to_ms > self.until_ms { &mut later } else { &mut before };
            left.add(&(namespace, pod), 1);
        }
        let what = "measurements".to_owned();
        self.in_words(source, (&before, what.clone()), (&later, what))
    }

    fn in_words(
        &self,
        source: &str,
        (before, what_before): (&LeftOut, String),
        (later, what_later): (&LeftOut, String),
    ) -> Vec<String> {
        let before = before.pods_in_words().map(|pods| {
            format!(
                "{source}: ignored {what_before} of {pods}, from before the pod was created: \
                 another pod had the name then"
            )
        });
        let later = later.pods_in_words().map(|pods| {
            format!(
                "{source}: ignored {what_later} of {pods}, from more than 5 minutes after {}, the \
                 time of the objects: read the objects again, or pass the time of a dump with --at",
                at_second(self.now_ms)
            )
        });
        before.into_iter().chain(later).map(|text| plain(&text)).collect()
    }
}

impl LeftOut {
    fn add(&mut self, pod: &(String, String), samples: usize) {
        if samples > 0 {
            self.pods.insert(pod.clone());
            self.samples += samples as u64;
        }
    }

    fn pods_in_words(&self) -> Option<String> {
        let (namespace, name) = self.pods.first()?;
        let slash = if namespace.is_empty() { "" } else { "/" };
        Some(match self.pods.len() {
            1 => format!("pod {namespace}{slash}{name}"),
            several => format!("{} such as {namespace}{slash}{name}", counted(several, "pod")),
        })
    }
}

/// A moment for people, to the second.
fn at_second(at_ms: u64) -> String {
    let at = i64::try_from(at_ms / 1_000).ok().and_then(|at_s| Timestamp::from_second(at_s).ok());
    at.map_or_else(|| "an unknown time".to_owned(), |at| at.to_string())
}
