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
    /// A workload that was measured for less shows too little.
    least_measured_hours = 12, 1 to 720, &["REQ-04", "REQ-05", "REQ-06", "GOV-03"];
    /// Work fits a slice if 95 of 100 samples keep it busy to this part at most.
    slice_busy_percent = 80, 1 to 100, &["REQ-06"];
    /// A request beyond this part of what is needed at most is waste, not care.
    over_request_percent = 200, 100 to 10_000, &["REQ-07"];
    /// The patch asks for so much more than is needed nearly always.
    request_headroom_percent = 20, 0 to 1_000, &["REQ-07"];
    /// A GPU that computes for less of the time waits, where its container wants more CPU than it
    /// may use.
    starved_active_percent = 30, 1 to 100, &["REQ-09"];
    /// Kills for memory in seven days that are normal.
    tolerated_memory_kills = 2, 0 to 1_000, &["REQ-10"];
    /// The patch gives so much more memory than there was.
    memory_raise_percent = 10, 1 to 1_000, &["REQ-10"];
    /// Training with so much at `/dev/shm` or less has little; container runtimes give 64.
    small_shared_memory_mib = 64, 64 to 1_048_576, &["REQ-12"];
    /// From so much memory on a GPU is too large for one notebook.
    large_gpu_mib = 40_000, 1 to 10_000_000, &["SHR-02"];
    /// Pods that share a GPU and use more of its memory leave no room for a burst.
    full_memory_percent = 85, 1 to 100, &["SHR-05"];
    /// A notebook that has not computed for longer is idle.
    idle_notebook_minutes = 60, 5 to 43_200, &["IDL-01"];
    /// A server none of whose replicas has computed for longer has no requests.
    idle_server_minutes = 60, 5 to 43_200, &["IDL-02"];
    /// As long as a large image and its weights may take.
    starting_minutes = 10, 1 to 43_200, &["IDL-05"];
    /// A deleted pod that is there for longer after its grace period is stuck.
    overdue_minutes = 5, 1 to 43_200, &["IDL-06"];
    /// A collective that waits for so long hangs; shorter waits are not told from slow members.
    hung_minutes = 10, 10 to 43_200, &["IDL-08"];
    /// More of what the pods of a team hold is idle: it could be lent. The dollars are of what is
    /// beyond.
    lent_idle_percent = 10, 0 to 99, &["GOV-03"];
    /// A node of whose GPUs less is requested is half empty.
    half_empty_percent = 50, 1 to 100, &["AUT-01"];
    /// A node without a GPU pod for longer should be gone; as long as an autoscaler takes.
    empty_node_minutes = 10, 1 to 43_200, &["AUT-03"];
    /// A node that is cordoned for longer was forgotten; as long as a repair or an upgrade takes.
    cordoned_minutes = 240, 1 to 43_200, &["AUT-06"];
    /// Training that runs on spot capacity for longer, and saves nothing, has something to lose.
    spot_unsaved_minutes = 60, 0 to 43_200, &["SPT-01"];
    /// A region that is cheaper by less is not worth a move.
    cheaper_region_percent = 10, 1 to 99, &["SPT-04"];
    /// In so many days a move should pay back.
    transfer_payback_days = 30, 1 to 3_650, &["SPT-04"];
    /// What moving data to another region is assumed to cost, in US cents per GB.
    transfer_cents_per_gb = 10, 1 to 10_000, &["SPT-04"];
    /// Signals that contradict each other, or where pods are, for longer do not do so by accident.
    contradicted_minutes = 10, 1 to 43_200, &["VIS-02", "VIS-05"];
    /// More requests than these are worth an experiment with fewer bits.
    many_requests_per_day = 100_000, 0 to 1_000_000_000_000, &["MOD-01"];
    /// A model whose weights fill this part of the memory of its GPUs or less is small for them.
    small_model_percent = 25, 1 to 100, &["MOD-02"];
    /// GPUs that compute for this part of the time or more are needed for their speed.
    busy_model_percent = 50, 1 to 101, &["MOD-02"];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::check;

    #[test]
    fn every_threshold_says_its_unit_and_belongs_to_checks() {
        let units = ["minutes", "hours", "days", "percent", "mib", "kills", "per_day", "per_gb"];
        for threshold in THRESHOLDS {
            let Threshold { name, default, .. } = *threshold;
            assert!(units.iter().any(|unit| name.ends_with(unit)), "{name}");
            assert!(threshold.takes(default) && !threshold.checks.is_empty(), "{name}");
            assert!(threshold.checks.iter().all(|id| check(id).is_some()), "{name}");
            let mut all = Thresholds::default();
            assert_eq!(threshold.of(&all), default, "{name}");
            threshold.set(&mut all, threshold.most);
            assert_eq!(threshold.of(&all), threshold.most, "{name}");
            let others = THRESHOLDS.iter().filter(|other| other.name != name);
            assert!(others.into_iter().all(|other| other.of(&all) == other.default), "{name}");
        }
    }
}
