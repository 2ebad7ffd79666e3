//! From where on something is a finding. Whoever runs an audit may set each of these.
//!
//! Defaults are the FinOps targets that the catalogue of checks was made from: idle GPU-hours below
//! a tenth, hours of notebooks counted in single ones, a fifth more than is needed as headroom.
//! They stand once, here; settings, `--explain` and the documentation are written from
//! [`THRESHOLDS`].

/// One of them, for settings and for people.
#[derive(Clone, Copy, Debug)]
pub struct Threshold {
    /// Its name, which ends in its unit.
    pub name: &'static str,
    /// The same behind the name of the section of settings.
    pub setting: &'static str,
    /// The values where no source sets any.
    pub default: u64,
    /// The least that makes sense.
    pub least: u64,
    /// The most that makes sense.
    pub most: u64,
    /// Checks that use it, by id.
    pub checks: &'static [&'static str],
    /// What it decides, in words that begin and end with a blank or not.
    what: &'static str,
    field: fn(&mut Thresholds) -> &mut u64,
}

impl Threshold {
    /// What it decides.
    pub fn what(&self) -> &'static str {
        self.what.trim()
    }

    /// Whether a value can be.
    pub fn takes(&self, value: u64) -> bool {
        (self.least..=self.most).contains(&value)
    }

    /// Its value among all.
    pub fn of(&self, all: &Thresholds) -> u64 {
        *(self.field)(&mut all.clone())
    }

    /// Sets it.
    pub fn set(&self, all: &mut Thresholds, value: u64) {
        *(self.field)(all) = value;
    }
}

/// The threshold with a name.
pub fn threshold(name: &str) -> Option<&'static Threshold> {
    THRESHOLDS.iter().find(|threshold| threshold.name == name)
}

/// Thresholds that a check uses.
pub fn thresholds_of(id: &str) -> impl Iterator<Item = &'static Threshold> {
    THRESHOLDS.iter().filter(move |threshold| threshold.checks.contains(&id))
}

/// Writes the fields, their defaults and their list from one text each: name, default, range,
/// checks.
macro_rules! thresholds {
    ($($(#[doc = $what:literal])+ $name:ident = $default:literal, $least:literal to $most:literal, $checks:expr;)+) => {
        /// All thresholds.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Thresholds { $($(#[doc = $what])+ pub $name: u64,)+ }

        impl Default for Thresholds {
            fn default() -> Self {
                Self { $($name: $default),+ }
            }
        }

        /// Every threshold, in the order of the checks.
        pub const THRESHOLDS: &[Threshold] = &[$(Threshold {
            name: stringify!($name),
            setting: concat!("audit.", stringify!($name)),
            default: $default,
            least: $least,
            most: $most,
            checks: $checks,
            what: concat!($($what),+),
            field: |all| &mut all.$name,
        }),+];
    };
}

thresholds! {
    /// The checks ignore a workload that was measured for less time than this.
    least_measured_hours = 12, 1 to 720, &["REQ-04", "REQ-05", "REQ-06", "GOV-03"];
    /// Work fits a MIG instance if it keeps the instance at most this busy in 95 of 100 samples.
    slice_busy_percent = 80, 1 to 100, &["REQ-06"];
    /// A request above this percentage of peak use is waste rather than headroom.
    over_request_percent = 200, 100 to 10_000, &["REQ-07"];
    /// Headroom that the patch adds to nearly the highest use.
    request_headroom_percent = 20, 0 to 1_000, &["REQ-07"];
    /// A GPU that computes for a smaller share of the time waits for CPU if its container is
    /// throttled.
    starved_active_percent = 30, 1 to 100, &["REQ-09"];
    /// Out-of-memory kills in seven days that are still normal.
    tolerated_memory_kills = 2, 0 to 1_000, &["REQ-10"];
    /// Memory that the patch adds to the current limit.
    memory_raise_percent = 10, 1 to 1_000, &["REQ-10"];
    /// Training with at most this much memory at `/dev/shm` has too little; the default of
    /// container runtimes is 64.
    small_shared_memory_mib = 64, 64 to 1_048_576, &["REQ-12"];
    /// Time that an autoscaler may take to add a node that is large enough for a pending pod.
    oversized_minutes = 10, 1 to 43_200, &["REQ-03"];
    /// A GPU with at least this much memory is too large for one notebook.
    large_gpu_mib = 40_000, 1 to 10_000_000, &["SHR-02"];
    /// Pods that share a GPU and together use more than this percentage of its memory leave no room
    /// for a peak.
    full_memory_percent = 85, 1 to 100, &["SHR-05"];
    /// MIG instances that no pod has used for this time can become instances of another profile.
    unused_profile_hours = 168, 1 to 8_760, &["SHR-11"];
    /// A notebook without GPU activity for longer than this time is idle.
    idle_notebook_minutes = 60, 5 to 43_200, &["IDL-01"];
    /// A server without GPU activity on any replica for longer than this time gets no requests.
    idle_server_minutes = 60, 5 to 43_200, &["IDL-02"];
    /// Time that a large image and its weights may take to load.
    starting_minutes = 10, 1 to 43_200, &["IDL-05"];
    /// A deleted pod that still exists this long after its grace period is stuck.
    overdue_minutes = 5, 1 to 43_200, &["IDL-06"];
    /// A collective operation that waits this long hangs; shorter waits may be due to slow members.
    hung_minutes = 10, 10 to 43_200, &["IDL-08"];
    /// A team whose idle share is larger than this could lend GPUs; the amount covers only what
    /// exceeds this share.
    lent_idle_percent = 10, 0 to 99, &["GOV-03"];
    /// A node is half empty if a smaller share of its GPUs is requested.
    half_empty_percent = 50, 1 to 100, &["AUT-01"];
    /// An autoscaler removes a node without GPU pods within this time.
    empty_node_minutes = 10, 1 to 43_200, &["AUT-03"];
    /// Time that a repair or an upgrade takes; after that a cordoned node was probably forgotten.
    cordoned_minutes = 240, 1 to 43_200, &["AUT-06"];
    /// Training on spot capacity that runs for longer than this time without checkpoints has work
    /// to lose.
    spot_unsaved_minutes = 60, 0 to 43_200, &["SPT-01"];
    /// A region that is cheaper by less than this percentage is not worth moving to.
    cheaper_region_percent = 10, 1 to 99, &["SPT-04"];
    /// Number of days within which a move must pay for itself.
    transfer_payback_days = 30, 1 to 3_650, &["SPT-04"];
    /// Assumed cost of moving data to another region, in US cents per GB.
    transfer_cents_per_gb = 10, 1 to 10_000, &["SPT-04"];
    /// Signals that contradict each other, or the nodes of pods, for longer than this time are
    /// wrong rather than late.
    contradicted_minutes = 10, 1 to 43_200, &["VIS-02", "VIS-05"];
    /// If a model gets more requests than this number, serving it with fewer bits is worth a test.
    many_requests_per_day = 100_000, 0 to 1_000_000_000_000, &["MOD-01"];
    /// A model whose weights fill at most this share of GPU memory is small for its GPUs.
    small_model_percent = 25, 1 to 100, &["MOD-02"];
    /// GPUs that compute for at least this share of the time are needed for their speed.
    busy_model_percent = 50, 1 to 101, &["MOD-02"];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_threshold_says_its_unit_and_belongs_to_checks() {
        let units = ["minutes", "hours", "days", "percent", "mib", "kills", "per_day", "per_gb"];
        for threshold in THRESHOLDS {
            let Threshold { name, default, .. } = *threshold;
            assert!(units.iter().any(|unit| name.ends_with(unit)), "{name}");
            assert!(threshold.takes(default) && !threshold.checks.is_empty(), "{name}");
            let mut all = Thresholds::default();
            assert_eq!(threshold.of(&all), default, "{name}");
            threshold.set(&mut all, threshold.most);
            assert_eq!(threshold.of(&all), threshold.most, "{name}");
            let others = THRESHOLDS.iter().filter(|other| other.name != name);
            assert!(others.into_iter().all(|other| other.of(&all) == other.default), "{name}");
        }
    }
}
