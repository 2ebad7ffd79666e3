//! Which labels of a series name the holder of its device.
//!
//! Exporters rename labels between generations, and Prometheus renames those that clash with its
//! own: where it does not honour an exporter's labels, the holder's are `exported_pod` and so on,
//! and `pod` is the exporter itself. On a free device only the exporter's own are left, so one
//! series alone does not say what its `pod` means. All of a scrape job are read by one
//! configuration, and those of another job by another: it is decided job by job.

use std::collections::{BTreeMap, BTreeSet};

use super::origin::DeviceHolder;
use crate::prometheus::Labels;

/// Labels of namespace, pod and container.
type Names = [&'static str; 3];

/// Where Prometheus put its own labels over those of an exporter.
const EXPORTED: Names = ["exported_namespace", "exported_pod", "exported_container"];
/// Of exporters before 2020.
const OLD: Names = ["pod_namespace", "pod_name", "container_name"];
/// As exporters write them; on a free device those of the pod that was scraped.
const PLAIN: Names = ["namespace", "pod", "container"];

/// Pods of exporters are named after what they are.
const EXPORTER: &str = "exporter";

/// Which labels name holders, by scrape job. Of a job that was not seen the plain ones do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodLabels {
    of_jobs: BTreeMap<Job, LabelForms>,
}

/// Cluster and name of a scrape job; the address that was scraped where a series has no job.
type Job = (String, String);

/// What was seen in the series of one job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LabelForms {
    has_exported: bool,
    has_old: bool,
    /// A series has both: then `pod_name` is that of the pod that was scraped.
    has_both: bool,
}

impl PodLabels {
    /// What the labels of all series together say.
    pub fn of<'a>(series: impl IntoIterator<Item = &'a Labels>) -> Self {
        let mut of_jobs: BTreeMap<Job, LabelForms> = BTreeMap::new();
        for labels in series {
            let seen = of_jobs.entry(job(labels)).or_default();
            let is_exported = labels.contains_key(EXPORTED[1]);
            let is_old = labels.contains_key(OLD[1]) && !names_an_exporter(labels, OLD);
            seen.has_exported |= is_exported;
            seen.has_old |= is_old;
            seen.has_both |= is_exported && is_old;
        }
        Self { of_jobs }
    }

    /// Every set of labels that names holders in some job.
    pub(crate) fn names(&self) -> BTreeSet<Names> {
        let names = self.of_jobs.values().flat_map(|seen| {
            let is_plain = !seen.has_exported && !seen.is_old();
            let all = [(EXPORTED, seen.has_exported), (OLD, seen.is_old()), (PLAIN, is_plain)];
            all.into_iter().filter(|(_, is_used)| *is_used).map(|(names, _)| names)
        });
        let names: BTreeSet<Names> = names.collect();
        if names.is_empty() { BTreeSet::from([PLAIN]) } else { names }
    }

    /// Who holds the device of a series; `None` if nobody, or nobody knows. What the series itself
    /// says first is believed first: `exported_pod`, then `pod_name`. Where others of its job have
    /// these, one without is free, and its `pod` is the one that was scraped.
    pub(super) fn holder(&self, labels: &Labels) -> Option<DeviceHolder> {
        let seen = self.of_jobs.get(&job(labels)).copied().unwrap_or_default();
        if let Some(holder) = named(labels, EXPORTED) {
            return Some(holder);
        }
        if seen.is_old()
            && let Some(holder) = named(labels, OLD).filter(|_| !names_an_exporter(labels, OLD))
        {
            return Some(holder);
        }
        if seen.has_exported || seen.is_old() || names_an_exporter(labels, PLAIN) {
            return None;
        }
        named(labels, PLAIN)
    }
}

impl LabelForms {
    fn is_old(self) -> bool {
        self.has_old && !self.has_both
    }
}

fn job(labels: &Labels) -> Job {
    let text = |name: &str| labels.get(name).filter(|value| !value.is_empty()).cloned();
    let cluster = text("cluster").unwrap_or_default();
    (cluster, text("job").or_else(|| text("instance")).unwrap_or_default())
}

fn named(labels: &Labels, names: Names) -> Option<DeviceHolder> {
    let text = |name: &str| labels.get(name).filter(|value| !value.is_empty()).cloned();
    let [namespace, pod, container] = names.map(text);
    Some(DeviceHolder {
        pod: pod?,
        namespace: namespace.unwrap_or_default(),
        container: container.unwrap_or_default(),
        turn: 0,
    })
}

fn names_an_exporter(labels: &Labels, [_, pod, container]: Names) -> bool {
    [pod, container]
        .iter()
        .any(|name| labels.get(*name).is_some_and(|text| text.contains(EXPORTER)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[&[(&str, &str)]]) -> Labels {
        let pairs = pairs.iter().flat_map(|pairs| pairs.iter());
        pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// The holder of each series, in the order of the series.
    fn holders(series: &[Labels]) -> Vec<Option<String>> {
        let pods = PodLabels::of(series);
        let holder = |labels: &Labels| {
            let DeviceHolder { namespace, pod, container, .. } = pods.holder(labels)?;
            Some(format!("{namespace}/{pod}/{container}"))
        };
        series.iter().map(holder).collect()
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    const TARGET: &[(&str, &str)] =
        &[("pod", "telemetry-x7"), ("namespace", "gpu-operator"), ("container", "main")];
    const RENAMED: &[(&str, &str)] =
        &[("exported_pod", "train-0"), ("exported_namespace", "ml"), ("exported_container", "c")];
    const PLAIN_HOLDER: &[(&str, &str)] = &[("pod", "serve-0"), ("namespace", "web")];
    const OLD_HOLDER: &[(&str, &str)] =
        &[("pod_name", "p"), ("pod_namespace", "s"), ("container_name", "c")];

    #[test]
    fn the_pod_that_was_scraped_never_holds_a_device() {
        // Labels are not honoured: `pod` is the target on both, whatever its name.
        assert_eq!(
            holders(&[labels(&[TARGET]), labels(&[TARGET, RENAMED])]),
            [None, some("ml/train-0/c")]
        );
        // Labels are honoured: on a free device the target's remain.
        let exporter: &[(&str, &str)] =
            &[("pod", "dcgm-exporter-x7"), ("namespace", "gpu-operator")];
        assert_eq!(
            holders(&[labels(&[exporter]), labels(&[PLAIN_HOLDER])]),
            [None, some("web/serve-0/")]
        );
        assert_eq!(holders(&[labels(&[OLD_HOLDER])]), [some("s/p/c")]);
        assert_eq!(holders(&[labels(&[OLD_HOLDER]), labels(&[TARGET])]), [some("s/p/c"), None]);
        assert_eq!(holders(&[labels(&[&[("pod", "")]])]), [None]);
    }

    #[test]
    fn what_a_label_means_is_decided_for_each_scrape_job() {
        let dcgm: &[(&str, &str)] = &[("job", "dcgm"), ("instance", "10.0.0.1:9400")];
        let amd: &[(&str, &str)] = &[("job", "amd"), ("instance", "10.0.0.2:5000")];
        let old: &[(&str, &str)] = &[("instance", "10.0.0.3:9400")];
        let exporter: &[(&str, &str)] = &[("pod", "amd-metrics-exporter-1"), ("namespace", "amd")];
        let series = [
            labels(&[dcgm, TARGET, RENAMED]),
            labels(&[dcgm, TARGET]),
            labels(&[amd, PLAIN_HOLDER]),
            labels(&[amd, exporter]),
            labels(&[old, OLD_HOLDER]),
            labels(&[old, TARGET]),
        ];
        let expected =
            [some("ml/train-0/c"), None, some("web/serve-0/"), None, some("s/p/c"), None];
        assert_eq!(holders(&series), expected);
        let pods = PodLabels::of(&series);
        assert_eq!(pods.names(), BTreeSet::from([EXPORTED, OLD, PLAIN]));
        // The same job name in another cluster is another job.
        let west: &[(&str, &str)] = &[("cluster", "west")];
        let east: &[(&str, &str)] = &[("cluster", "east")];
        let series = [labels(&[west, dcgm, TARGET, RENAMED]), labels(&[east, dcgm, PLAIN_HOLDER])];
        assert_eq!(holders(&series), [some("ml/train-0/c"), some("web/serve-0/")]);
    }

    #[test]
    fn what_a_series_says_itself_comes_first() {
        // An exporter that was renewed within the period: both generations in one job.
        let series = [labels(&[TARGET, RENAMED]), labels(&[OLD_HOLDER]), labels(&[TARGET])];
        assert_eq!(holders(&series), [some("ml/train-0/c"), some("s/p/c"), None]);
        // `pod_name` as a label that somebody gave to all targets.
        let given: &[(&str, &str)] = &[("pod_name", "telemetry-x7")];
        let series = [labels(&[TARGET, RENAMED, given]), labels(&[TARGET, given])];
        assert_eq!(holders(&series), [some("ml/train-0/c"), None]);
        let given: &[(&str, &str)] = &[("pod_name", "dcgm-exporter-x7")];
        let series = [labels(&[PLAIN_HOLDER, given])];
        assert_eq!(holders(&series), [some("web/serve-0/")]);
    }
}
