//! What a scheduler counts, for Prometheus.
//!
//! Where kube-scheduler counts the same thing, the name is kube-scheduler's.

use std::fmt::Write as _;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry};

use dovetail_control::announce::WriteOutcome;
use dovetail_control::bind::{BindOutcome, BindReport, Cause};
use dovetail_control::control::{self, LogEntry};
use dovetail_control::schedule::{ForecastEnd, GpuTime, News, PodCounts};
use dovetail_model::PreemptReason;

/// All metrics of one process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    described: Vec<Described>,
    attempts: Family<AttemptLabels, Counter>,
    waited_s: Histogram,
    pending: Family<QueueLabels, Gauge>,
    binds: Family<BindEnd, Counter>,
    bind_s: Histogram,
    in_flight: Gauge,
    to_send: Gauge,
    cycle_s: Histogram,
    leading: Gauge,
    epoch: Gauge<u64, AtomicU64>,
    announcements: Family<Announced, Counter>,
    events_owed: Gauge,
    interruptions: Family<OfKind, Counter>,
    objects: Family<OfReport, Counter>,
    given_up: Counter,
    preemption_attempts: Counter,
    preemption_victims: Histogram,
    preempted: Family<OfReason, Counter>,
    lost_gpu_s: Family<OfReason, Counter<f64, AtomicU64>>,
    reserved_unused: Family<Reserved, Gauge<f64, AtomicU64>>,
    reserved_unused_gpu_s: Family<Reserved, Counter<f64, AtomicU64>>,
    reclaimed_gpu_s: Family<OfQueue, Counter<f64, AtomicU64>>,
    forecast_starts: Family<ForecastLabels, Counter>,
    expected_start_s: Family<Quantile, Histogram, NewHistogram>,
    forecast_error_s: Family<Quantile, Histogram, NewHistogram>,
    actual_start_s: Histogram,
    budget_violations: Counter,
    evictions_refused: Counter,
    inconsistencies: Counter,
    differences: Counter,
    recording_broken: Gauge,
}

/// A metric as people read about it.
#[derive(Debug)]
struct Described {
    name: String,
    kind: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct AttemptLabels {
    result: AttemptResult,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, EncodeLabelValue)]
#[allow(non_camel_case_types, reason = "as kube-scheduler writes them")]
enum AttemptResult {
    scheduled,
    unschedulable,
    error,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct QueueLabels {
    queue: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct BindEnd {
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Announced {
    what: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfKind {
    kind: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfReason {
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Reserved {
    of: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ForecastLabels {
    quantile: &'static str,
    start: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Quantile {
    quantile: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfQueue {
    queue: String,
}

type NewHistogram = fn() -> Histogram;

/// Times from a minute to eleven days.
fn waits() -> Histogram {
    Histogram::new(exponential_buckets(60.0, 2.0, 14))
}

/// For what GPUs are reserved, in the order of [`PodCounts::reserved_unused_gpu_milli`].
const RESERVED_FOR: [&str; 2] = ["next_job", "reservation"];

/// The reason of a preemption, as a label says it.
pub(super) fn word(reason: PreemptReason) -> &'static str {
    match reason {
        PreemptReason::Priority => "priority",
        PreemptReason::Order => "order",
        PreemptReason::Reclaim => "reclaim",
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfReport {
    problem: &'static str,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            described: Vec::new(),
            attempts: Family::default(),
            waited_s: Histogram::new(exponential_buckets(0.001, 2.0, 20)),
            pending: Family::default(),
            binds: Family::default(),
            bind_s: Histogram::new(exponential_buckets(0.001, 2.0, 13)),
            in_flight: Gauge::default(),
            to_send: Gauge::default(),
            cycle_s: Histogram::new(exponential_buckets(0.000_01, 4.0, 10)),
            leading: Gauge::default(),
            epoch: Gauge::default(),
            announcements: Family::default(),
            events_owed: Gauge::default(),
            interruptions: Family::default(),
            objects: Family::default(),
            given_up: Counter::default(),
            preemption_attempts: Counter::default(),
            preemption_victims: Histogram::new(exponential_buckets(1.0, 2.0, 7)),
            preempted: Family::default(),
            lost_gpu_s: Family::default(),
            reserved_unused: Family::default(),
            reserved_unused_gpu_s: Family::default(),
            reclaimed_gpu_s: Family::default(),
            forecast_starts: Family::default(),
            expected_start_s: Family::new_with_constructor(waits),
            forecast_error_s: Family::new_with_constructor(waits),
            actual_start_s: waits(),
            budget_violations: Counter::default(),
            evictions_refused: Counter::default(),
            inconsistencies: Counter::default(),
            differences: Counter::default(),
            recording_broken: Gauge::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        self.register_decisions();
        self.register_binds();
        let help = "Writes of pod conditions and events, of queue, Reservation and PodGroup \
                    statuses, and of preemption records, by `what` and `outcome`";
        self.add("dovetail_announcements", &["what", "outcome"], help, self.announcements.clone());
        let help = "Events in the write queue";
        self.add("dovetail_events_to_write", &[], help, self.events_owed.clone());
        let help = "1 if this process is the leader";
        self.add("dovetail_leading", &[], help, self.leading.clone());
        let help = "Leader epoch, as in the annotation `dovetail.dev/epoch`";
        self.add("dovetail_leader_epoch", &[], help, self.epoch.clone());
        let help = "Interrupted watches, by `kind`";
        self.add("dovetail_watch_interruptions", &["kind"], help, self.interruptions.clone());
        let help = "Objects with invalid or unsupported content, by `problem`";
        self.add("dovetail_object_problems", &["problem"], help, self.objects.clone());
        let help = "Gangs whose pods dovetail deleted because the gang stayed below its minimum \
                    size";
        self.add("dovetail_gangs_given_up", &[], help, self.given_up.clone());
        let help = "Restarts of the engine because of a bug; report the bug";
        self.add("dovetail_inconsistencies", &[], help, self.inconsistencies.clone());
        let help = "Differences between the engine and the objects, which dovetail compares every \
                    ten minutes; each difference is a bug: report it";
        self.add("dovetail_engine_differences", &[], help, self.differences.clone());
        let help = "1 if a decision could not be written to the `--record` file";
        self.add("dovetail_recording_broken", &[], help, self.recording_broken.clone());
    }

    fn register_decisions(&mut self) {
        let help = "Scheduling attempts by `result`: scheduled, unschedulable (counted once until \
                    the reason changes), error";
        self.add("scheduler_schedule_attempts", &["result"], help, self.attempts.clone());
        let help = "Time in seconds from the first observation of a pod to its bind, \
                    including waits between attempts";
        self.add("scheduler_pod_scheduling_sli_duration_seconds", &[], help, self.waited_s.clone());
        let help = "Pending pods by `queue`: active, unschedulable (no current node fits), backoff \
                    (the bind failed)";
        self.add("scheduler_pending_pods", &["queue"], help, self.pending.clone());
        let help = "Searches for pods to preempt for a pending pod of a higher priority";
        self.add("scheduler_preemption_attempts", &[], help, self.preemption_attempts.clone());
        let help = "Pods preempted for a pod or gang of a higher priority";
        self.add("scheduler_preemption_victims", &[], help, self.preemption_victims.clone());
        let help = "Pods preempted by `reason`: priority, reclaim (a queue gets its quota back), \
                    order (a job that is expected to finish much sooner can start)";
        self.add("dovetail_preempted_pods", &["reason"], help, self.preempted.clone());
        let help = "GPU-seconds that preempted pods lost since their last checkpoint, or since \
                    their start if none is known, by `reason`; estimated at the time of the \
                    decision";
        self.add(
            "dovetail_preemption_lost_gpu_seconds",
            &["reason"],
            help,
            self.lost_gpu_s.clone(),
        );
        let help = "GPUs that are reserved and that no pod uses, by `of`: next_job (the first \
                    pending job of a queue), reservation (a Reservation object)";
        self.add("dovetail_reserved_unused_gpus", &["of"], help, self.reserved_unused.clone());
        self.register_gpu_time();
        self.register_forecasts();
        let help = "Pods preempted beyond what PodDisruptionBudgets allow";
        self.add(
            "dovetail_preemption_budget_violations",
            &[],
            help,
            self.budget_violations.clone(),
        );
        let help = "Evictions that the API server refused or did not answer";
        self.add("dovetail_stops_refused", &[], help, self.evictions_refused.clone());
        let help = "Duration of a scheduling cycle, in seconds";
        self.add("dovetail_cycle_duration_seconds", &[], help, self.cycle_s.clone());
    }

    fn register_gpu_time(&mut self) {
        let help = "GPU-seconds for which GPUs were reserved and no pod used them, by `of`, as in \
                    `dovetail_reserved_unused_gpus`";
        let name = "dovetail_reserved_unused_gpu_seconds";
        self.add(name, &["of"], help, self.reserved_unused_gpu_s.clone());
        let help = "GPU-seconds that jobs ran on GPUs that their `queue` reclaimed from other \
                    queues by preemption";
        let name = "dovetail_reclaimed_gpu_seconds";
        self.add(name, &["queue"], help, self.reclaimed_gpu_s.clone());
    }

    fn register_forecasts(&mut self) {
        let help = "Jobs that started after a forecast of their start, by `quantile` of the \
                    forecast and by `start`: by_then, later, unknown (the forecast contained no \
                    start, because run times were unknown or the forecast did not reach that far). \
                    If forecasts are accurate, half of the jobs start by the forecast for quantile \
                    0.5, and nine in ten by the forecast for 0.9. Every ten minutes, dovetail \
                    makes a forecast for pending jobs that have none";
        let labels = &["quantile", "start"];
        self.add("dovetail_forecast_starts", labels, help, self.forecast_starts.clone());
        let help = "Expected wait in seconds, from the forecast to the expected start, for jobs \
                    that have started, by `quantile`";
        let name = "dovetail_forecast_expected_wait_seconds";
        self.add(name, &["quantile"], help, self.expected_start_s.clone());
        let help = "Actual wait in seconds of the same jobs, from the forecast to the start";
        self.add("dovetail_forecast_actual_wait_seconds", &[], help, self.actual_start_s.clone());
        let help = "Absolute difference in seconds between the expected and the actual start, by \
                    `quantile`";
        let name = "dovetail_forecast_error_seconds";
        self.add(name, &["quantile"], help, self.forecast_error_s.clone());
    }

    fn register_binds(&mut self) {
        self.add("dovetail_binds", &["outcome"], "Binds by `outcome`", self.binds.clone());
        let help = "Time from sending a bind request to its response, in seconds";
        self.add("dovetail_bind_duration_seconds", &[], help, self.bind_s.clone());
        let help = "Bind requests without a response yet";
        self.add("dovetail_binds_in_flight", &[], help, self.in_flight.clone());
        let help = "Bind requests in the send queue";
        self.add("dovetail_binds_to_send", &[], help, self.to_send.clone());
    }

    fn add(
        &mut self,
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
        metric: impl Metric,
    ) {
        let (kind, ending) = match metric.metric_type() {
            MetricType::Counter => ("counter", "_total"),
            MetricType::Gauge => ("gauge", ""),
            MetricType::Histogram => ("histogram", ""),
            _ => ("other", ""),
        };
        self.described.push(Described { name: format!("{name}{ending}"), kind, labels, help });
        self.registry.register(name, help, metric);
    }

    /// All metrics as a table of Markdown.
    pub fn reference(&self) -> String {
        let mut text = String::from("| metric | type | labels | meaning |\n|---|---|---|---|\n");
        for Described { name, kind, labels, help } in &self.described {
            // Writing to a string does not fail.
            _ = writeln!(text, "| `{name}` | {kind} | {} | {help} |", labels.join(", "));
        }
        text
    }

    /// Everything, in the text of OpenMetrics.
    pub fn open_metrics(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        _ = encode(&mut text, &self.registry);
        text
    }

    /// Counts what happened.
    fn count(&self, news: &News) {
        match news {
            News::Bound { report, waited_ms } => {
                self.attempt(AttemptResult::scheduled);
                self.waited_s.observe(seconds(*waited_ms));
                self.count_bind(report);
            }
            News::NotBound(report) => {
                self.attempt(AttemptResult::error);
                self.count_bind(report);
            }
            News::WouldBind { waited_ms, .. } => {
                self.attempt(AttemptResult::scheduled);
                self.waited_s.observe(seconds(*waited_ms));
            }
            // What would be done counts as done where nothing is.
            News::Preempts(preempts) if preempts.is_dry_run => {
                self.preempted(preempts.victims.len() as u64, preempts.cost.budget_violations);
            }
            News::Preempted { evicted, budget_violations, reason, lost_gpu_milli_ms } => {
                self.preempted(*evicted, *budget_violations);
                let of = OfReason { reason: word(*reason) };
                self.preempted.get_or_create(&of).inc_by(*evicted);
                let lost_s = *lost_gpu_milli_ms as f64 / 1e6;
                self.lost_gpu_s.get_or_create(&of).inc_by(lost_s);
            }
            // Counted when it is known what became of all of them.
            News::Preempts(_) | News::Evicted(_) => {}
            News::Receipt { .. }
            | News::NoReceipt { .. }
            | News::IntervalFarOff { .. }
            | News::PreemptionBlocked { .. }
            | News::JobTurned { .. } => {}
            // Counted as a gang.
            News::GangGivenUp { .. } => {}
            News::EvictionRefused(_) => {
                self.evictions_refused.inc();
            }
            News::ChoosesBy { .. } | News::ForecastMade(_) => {}
            News::Pending { .. } => self.attempt(AttemptResult::unschedulable),
            News::Object(report) => {
                if let Some(problem) = problem(report) {
                    self.objects.get_or_create(&OfReport { problem }).inc();
                }
            }
            News::Inconsistent(_) => {
                self.inconsistencies.inc();
            }
            News::ForecastEnded(forecast) => self.count_forecast(forecast),
            News::Differs(differences) => {
                self.differences.inc_by(differences.len() as u64);
            }
        }
    }

    /// A job has started for which there was a forecast.
    fn count_forecast(&self, forecast: &ForecastEnd) {
        let ForecastEnd { p50_ms, p90_ms, actual_ms } = *forecast;
        for (quantile, expected_ms) in [("0.5", p50_ms), ("0.9", p90_ms)] {
            let start = match expected_ms {
                None => "unknown",
                Some(expected_ms) if actual_ms <= expected_ms => "by_then",
                Some(_) => "later",
            };
            self.forecast_starts.get_or_create(&ForecastLabels { quantile, start }).inc();
            let Some(expected_ms) = expected_ms else { continue };
            let of = Quantile { quantile };
            self.expected_start_s.get_or_create(&of).observe(seconds(expected_ms));
            let error_ms = expected_ms.abs_diff(actual_ms);
            self.forecast_error_s.get_or_create(&of).observe(seconds(error_ms));
        }
        if p50_ms.is_some() {
            self.actual_start_s.observe(seconds(actual_ms));
        }
    }

    /// Adds what GPUs were reserved and reclaimed for since the last time.
    pub(super) fn passed(&self, gpu_time: &GpuTime) {
        let gpu_s = |gpu_milli_ms: u64| gpu_milli_ms as f64 / 1e6;
        for (of, sum) in RESERVED_FOR.into_iter().zip(gpu_time.reserved_unused) {
            self.reserved_unused_gpu_s.get_or_create(&Reserved { of }).inc_by(gpu_s(sum));
        }
        for (queue, sum) in &gpu_time.reclaimed {
            let of = OfQueue { queue: queue.clone() };
            self.reclaimed_gpu_s.get_or_create(&of).inc_by(gpu_s(*sum));
        }
    }

    pub(super) fn show(&self, counts: PodCounts, in_flight: usize) {
        let PodCounts { unschedulable, active, paused, to_send, reserved_unused_gpu_milli } =
            counts;
        for (of, gpu_milli) in RESERVED_FOR.into_iter().zip(reserved_unused_gpu_milli) {
            self.reserved_unused.get_or_create(&Reserved { of }).set(gpu_milli as f64 / 1e3);
        }
        for (queue, pods) in
            [("active", active), ("backoff", paused), ("unschedulable", unschedulable)]
        {
            self.pending.get_or_create(&QueueLabels { queue }).set(whole(pods));
        }
        self.to_send.set(whole(to_send));
        self.in_flight.set(whole(in_flight));
    }

    /// Shows whether this process decides, and in which epoch.
    pub(super) fn lead(&self, epoch: Option<u64>) {
        self.leading.set(i64::from(epoch.is_some()));
        if let Some(epoch) = epoch {
            self.epoch.set(epoch);
        }
    }

    /// One decision over all that changed.
    pub(super) fn cycle(&self, took: std::time::Duration) {
        self.cycle_s.observe(took.as_secs_f64());
    }

    /// Counts what a step tells.
    pub(super) fn told(&self, told: &LogEntry) {
        match told {
            LogEntry::News { news, .. } => self.count(news),
            LogEntry::GivenUp { .. } => _ = self.given_up.inc(),
            LogEntry::Announced { what, written, .. } => self.announced(*what, written),
            LogEntry::Step(_) | LogEntry::Learned { .. } | LogEntry::WouldBePending { .. } => {}
        }
    }

    /// A condition, an event or a status was to be written.
    fn announced(&self, what: control::Announced, written: &WriteOutcome) {
        let what = match what {
            control::Announced::Event => "event",
            control::Announced::Condition => "condition",
            control::Announced::QueueStatus => "queue_status",
            control::Announced::ReservationStatus => "reservation_status",
            control::Announced::GroupStatus => "group_status",
            control::Announced::Receipt => "receipt",
        };
        let outcome = match written {
            WriteOutcome::Done => "written",
            WriteOutcome::Changed => "changed",
            WriteOutcome::Refused { .. } => "refused",
            WriteOutcome::Troubled { .. } => "server_trouble",
            WriteOutcome::NotLeading => "not_leading",
        };
        self.announcements.get_or_create(&Announced { what, outcome }).inc();
    }

    /// Events that wait to be written, and those given up since the last call.
    pub(super) fn owed(&self, events: usize, given_up: u64) {
        self.events_owed.set(whole(events));
        if given_up > 0 {
            let of = Announced { what: "event", outcome: "given_up" };
            self.announcements.get_or_create(&of).inc_by(given_up);
        }
    }

    /// So many searches for pods to stop.
    pub(super) fn searched(&self, searches: u64) {
        self.preemption_attempts.inc_by(searches);
    }

    /// Whether a recording lacks something.
    pub(super) fn recording_broken(&self, is_broken: bool) {
        self.recording_broken.set(i64::from(is_broken));
    }

    /// A watch broke.
    pub(super) fn interrupted(&self, kind: &'static str) {
        self.interruptions.get_or_create(&OfKind { kind }).inc();
    }

    fn preempted(&self, stopped: u64, budget_violations: u64) {
        self.preemption_victims.observe(stopped as f64);
        self.budget_violations.inc_by(budget_violations);
    }

    fn attempt(&self, result: AttemptResult) {
        self.attempts.get_or_create(&AttemptLabels { result }).inc();
    }

    fn count_bind(&self, report: &BindReport) {
        self.binds.get_or_create(&BindEnd { outcome: outcome(&report.outcome) }).inc();
        if let Some(answered_in_ms) = report.answered_in_ms {
            self.bind_s.observe(seconds(answered_in_ms));
        }
    }
}

fn outcome(outcome: &BindOutcome) -> &'static str {
    match outcome {
        BindOutcome::Bound => "bound",
        BindOutcome::BoundByOther { .. } => "bound_by_other",
        BindOutcome::Gone => "gone",
        BindOutcome::Terminating => "terminating",
        BindOutcome::Gated => "gated",
        BindOutcome::Unknown => "unknown",
        BindOutcome::NotBound(Cause::Busy { .. }) => "busy",
        BindOutcome::NotBound(Cause::Conflict) => "conflict",
        BindOutcome::NotBound(Cause::Refused { .. }) => "refused",
        BindOutcome::NotBound(Cause::ServerFailed { .. }) => "server_failed",
        BindOutcome::NotBound(Cause::NoAnswer { .. }) => "no_answer",
        BindOutcome::NotBound(Cause::NotLeading) => "not_leading",
        BindOutcome::NotBound(Cause::Stopped) => "stopped",
    }
}

/// What is wrong with an object; `None` for reports of what goes as it should.
fn problem(report: &dovetail_cluster::world::ObjectReport) -> Option<&'static str> {
    use dovetail_cluster::world::ObjectReport;
    Some(match report {
        ObjectReport::Strange(_) => "unreadable",
        ObjectReport::TwiceOffered { .. } => "twice_offered",
        ObjectReport::SharedByOthers { .. } => "shared_by_others",
        ObjectReport::TooManyDevices { .. } => "too_many_devices",
        ObjectReport::NoNodeSelected { .. } => "no_node_selected",
        ObjectReport::UnknownHolder { .. } => "unknown_holder",
        ObjectReport::QueueMissing(_) => "queue_missing",
        ObjectReport::RunTimeUnreadable { .. } => "run_time_unreadable",
        // Nothing is wrong with what is suspended, or waits for its turn.
        ObjectReport::Refused { reason, .. }
            if reason.is_held_back() || reason.is_for_its_turn() =>
        {
            return None;
        }
        ObjectReport::Refused { reason, .. } if reason.is_tried_again() => "not_started",
        ObjectReport::WaitsForMembers { .. }
        | ObjectReport::WaitsForDevices { .. }
        | ObjectReport::WaitsForVolumes { .. }
        | ObjectReport::WaitsForVolumesOfOthers { .. }
        | ObjectReport::GroupWaitsForVolumes { .. }
        | ObjectReport::GroupWaits { .. }
        | ObjectReport::GroupHasItsSize { .. } => return None,
        ObjectReport::Contradiction { .. } => "contradiction",
        ObjectReport::Refused { .. } => "left_untouched",
    })
}

fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1_000.0
}

fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use dovetail_exposition::ExpositionFormat;

    use super::*;

    #[test]
    fn starts_and_errors_are_counted_for_each_quantile() {
        let metrics = Metrics::default();
        let ended = |p50_ms, p90_ms, actual_ms| ForecastEnd { p50_ms, p90_ms, actual_ms };
        for forecast in [
            ended(Some(60_000), Some(600_000), 90_000),
            ended(Some(60_000), None, 60_000),
            ended(None, None, 1),
        ] {
            metrics.count(&News::ForecastEnded(forecast));
        }
        let text = metrics.open_metrics();
        for line in [
            "dovetail_forecast_starts_total{quantile=\"0.5\",start=\"later\"} 1\n",
            "dovetail_forecast_starts_total{quantile=\"0.5\",start=\"by_then\"} 1\n",
            "dovetail_forecast_starts_total{quantile=\"0.5\",start=\"unknown\"} 1\n",
            "dovetail_forecast_starts_total{quantile=\"0.9\",start=\"by_then\"} 1\n",
            "dovetail_forecast_starts_total{quantile=\"0.9\",start=\"unknown\"} 2\n",
            "dovetail_forecast_error_seconds_sum{quantile=\"0.5\"} 30.0\n",
            "dovetail_forecast_error_seconds_sum{quantile=\"0.9\"} 510.0\n",
            "dovetail_forecast_expected_wait_seconds_sum{quantile=\"0.5\"} 120.0\n",
            "dovetail_forecast_actual_wait_seconds_sum 150.0\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }

    #[test]
    fn gpu_time_is_counted_by_what_it_was_for() {
        let metrics = Metrics::default();
        let reclaimed = [("vision".to_owned(), 16_000 * 1_000)].into();
        let passed = GpuTime { reserved_unused: [0, 4_000 * 500], reclaimed };
        (0..2).for_each(|_| metrics.passed(&passed));
        let text = metrics.open_metrics();
        for line in [
            "dovetail_reserved_unused_gpu_seconds_total{of=\"next_job\"} 0.0\n",
            "dovetail_reserved_unused_gpu_seconds_total{of=\"reservation\"} 4.0\n",
            "dovetail_reclaimed_gpu_seconds_total{queue=\"vision\"} 32.0\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }

    #[test]
    fn the_reference_names_what_is_served() {
        let metrics = Metrics::default();
        metrics.show(PodCounts::default(), 0);
        let (text, reference) = (metrics.open_metrics(), metrics.reference());
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let names = samples.filter_map(|line| line.split(['{', ' ']).next());
        let plain = |name: &str| {
            let endings = ["_bucket", "_sum", "_count"];
            endings.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name).to_owned()
        };
        let missing: Vec<String> =
            names.map(plain).filter(|name| !reference.contains(&format!("| `{name}` |"))).collect();
        assert!(missing.is_empty() && reference.lines().count() > 15, "{missing:?}\n{reference}");
    }

    /// Reads the text as its format says: what is described stands before its samples, once, and
    /// every sample is described under its very name, or without the ending of a histogram. Which
    /// names, with their types.
    fn read(text: &str) -> BTreeMap<String, String> {
        let mut types = BTreeMap::new();
        let (mut helped, mut current) = (BTreeSet::new(), String::new());
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                current = rest.split(' ').next().unwrap().to_owned();
                assert!(helped.insert(current.clone()), "{line}: described twice");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert_eq!(name, current, "{line}: behind another description");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                types.insert(name.to_owned(), kind.to_owned());
            } else {
                let (name, rest) = line.split_at(line.find(['{', ' ']).unwrap());
                let value = rest.rsplit(' ').next().unwrap();
                assert!(value.parse::<f64>().is_ok(), "{line}");
                let endings: &[&str] = match types[&current].as_str() {
                    "histogram" => &["_bucket", "_sum", "_count"],
                    _ => &[""],
                };
                let is_its = |end: &&str| name.strip_suffix(*end) == Some(&*current);
                assert!(endings.iter().any(is_its), "{line}: described as {current}");
            }
        }
        types
    }

    #[test]
    fn in_the_older_format_each_sample_is_described_under_its_own_name() {
        let metrics = Metrics::default();
        metrics.show(PodCounts::default(), 0);
        metrics.attempt(AttemptResult::scheduled);
        metrics.interrupted("Pod");
        metrics.cycle(std::time::Duration::from_millis(3));
        let types = read(&ExpositionFormat::Plain.write(metrics.open_metrics()));
        let described = metrics.described.iter();
        let described: BTreeMap<String, String> =
            described.map(|one| (one.name.clone(), one.kind.to_owned())).collect();
        // What was never counted has no samples and is not described.
        assert!(types.len() > 12, "{types:?}");
        assert!(types.iter().all(|one| described.get(one.0) == Some(one.1)), "{types:?}");
        assert_eq!(types["scheduler_schedule_attempts_total"], "counter");
        let open = metrics.open_metrics();
        assert!(
            open.contains("# TYPE scheduler_schedule_attempts counter\n")
                && open.ends_with("# EOF\n")
        );
    }
}
