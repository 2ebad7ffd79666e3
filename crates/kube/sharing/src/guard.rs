//! Never two masters: nodes whose GPUs another system cuts or gives away, and nodes that must rest
//! after a change.

use std::collections::BTreeMap;

use dovetail_model::labels::NVIDIA_MIG_STATE;
use dovetail_objects::labels::{HAMI_REGISTER, VOLCANO_REGISTER};

use crate::component::Component;
use crate::names::NOS;
use crate::record::{Record, Step};

/// A node that has changed does not change again for so long.
pub const DWELL_MS: u64 = 30 * 60_000;

const DAY_MS: u64 = 24 * 3_600_000;

/// The system that already decides about the GPUs of a node, in words; `None` if there is none.
pub fn other_master<'l>(
    annotations: &BTreeMap<String, String>,
    label: impl Fn(&str) -> Option<&'l str>,
    record: Option<&Record>,
) -> Option<String> {
    let is_set = |key: &str| annotations.get(key).is_some_and(|text| !text.is_empty());
    if is_set(HAMI_REGISTER) {
        return Some(format!("HAMi shares the GPUs of the node ({HAMI_REGISTER})"));
    }
    if is_set(VOLCANO_REGISTER) {
        return Some(format!("Volcano shares the GPUs of the node ({VOLCANO_REGISTER})"));
    }
    if label(NOS).is_some() {
        return Some(format!("nos shares the GPUs of the node ({NOS})"));
    }
    let record = record?;
    let key = record.by.label();
    let now = label(key);
    let told = |name: &str| format!("another client changed {key} to `{name}`");
    if !record.step.is_over() {
        return (now != record.asked.as_deref()).then(|| told(now.unwrap_or("nothing")));
    }
    // It is theirs until they remove the label or write what it was, or until mig-manager, which
    // says itself that it has begun, reports that the node has their layout. Who wrote it while a
    // change was under way would write it again: two clients would undo each other's changes.
    let foreign = foreign_name(&label, record)?;
    let is_made = record.by == Component::MigManager
        && record.step != Step::Abandoned
        && label(NVIDIA_MIG_STATE) == Some("success");
    (!is_made).then(|| told(foreign) + ": to let dovetail manage the node again, remove the label")
}

/// The layout that another client has asked for since a change was over; `None` if the label is
/// gone, or names a layout of the change.
pub fn foreign_name<'l>(
    label: impl Fn(&str) -> Option<&'l str>,
    record: &Record,
) -> Option<&'l str> {
    label(record.by.label()).filter(|name| record.step.is_over() && !record.knows(name))
}

/// The taint by which another client partitions the GPUs of a node, in words; `None` if there is
/// none. `keys`: those of its taints.
pub fn foreign_taint<'t>(
    keys: impl Iterator<Item = &'t str>,
    record: Option<&Record>,
) -> Option<String> {
    let owns = |by: Component| record.is_some_and(|one| one.by == by && one.evicts);
    let known: Vec<_> = Component::ALL.into_iter().filter(|by| !owns(*by)).collect();
    let known: Vec<_> = known.into_iter().filter_map(Component::clearing_taint).collect();
    let taint = keys.flat_map(|key| known.iter().filter(move |one| one.key == key)).next()?;
    Some(format!("another client tainted the node with {}={}", taint.key, taint.value))
}

/// Why a node must not change now although no other system decides about it.
pub fn rests<'l>(
    label: impl Fn(&str) -> Option<&'l str>,
    record: Option<&Record>,
    now_ms: u64,
) -> Option<String> {
    if let Some(record) = record {
        if record.step == Step::Stuck {
            return Some("its last change failed: see `dovetail partition show`".to_owned());
        }
        if !record.step.is_over() {
            return Some("its layout is changing".to_owned());
        }
        let is_foreign = foreign_name(&label, record).is_some();
        if dwells(record, now_ms) || is_foreign && now_ms < record.since_ms + DWELL_MS {
            let what = if record.was_given_up() { "change was given up" } else { "layout changed" };
            return Some(format!("its {what} less than 30 minutes ago"));
        }
    }
    let reported = |by: Component| {
        let key = by.state_label()?;
        let state = label(key).filter(|state| *state != "success")?;
        // A failure to make a layout that nobody asks for any more.
        let is_past = state == by.failure()
            && label(by.label()).is_none()
            && record.is_some_and(|record| record.by == by);
        (!is_past).then(|| format!("{} reports `{state}` ({key})", by.words()))
    };
    Component::ALL.into_iter().find_map(reported)
}

/// Whether a node has changed a short time ago, or pods were to move for that.
pub(crate) fn dwells(record: &Record, now_ms: u64) -> bool {
    (record.has_changed() || record.has_moves()) && now_ms < record.since_ms + DWELL_MS
}

/// How many more of so many nodes may change today. A change that is not over counts however long
/// ago it began, until it has waited for pods for too long.
pub fn left_today<'r>(
    nodes: usize,
    percent_per_day: u32,
    records: impl Iterator<Item = &'r Record>,
    now_ms: u64,
) -> usize {
    let a_day = (nodes * percent_per_day as usize / 100).max(1);
    let today = |record: &&Record| {
        record.takes_budget() && (!record.step.is_over() || now_ms < record.since_ms + DAY_MS)
    };
    a_day.saturating_sub(records.filter(today).count())
}

#[cfg(test)]
mod tests {
    use dovetail_model::labels::NVIDIA_MIG_CONFIG;

    use super::*;
    use crate::layout::NodeLayout;
    use crate::record::PodWait;
    use crate::side::Side;

    fn record(step: Step, since_ms: u64) -> Record {
        let side =
            |config: &str| Side { config: config.to_owned(), ..Side::of(NodeLayout::default()) };
        let (from, to) = (side("all-disabled"), side("dovetail-1"));
        let asked = Some("dovetail-1".to_owned());
        let begun = Record::begun(Component::MigManager, from, to, 0);
        Record { step, since_ms, asked, attempt: 1, ..begun }
    }

    #[test]
    fn another_master_is_seen_and_a_changed_node_rests() {
        let none = BTreeMap::new();
        let of = |key: &str| BTreeMap::from([(key.to_owned(), "x".to_owned())]);
        let label = |wanted: &'static str, value: &'static str| {
            move |key: &str| (key == wanted).then_some(value)
        };
        assert_eq!(other_master(&none, |_| None, None), None);
        for key in [HAMI_REGISTER, VOLCANO_REGISTER] {
            assert!(other_master(&of(key), |_| None, None).is_some_and(|why| why.contains(key)));
        }
        assert!(other_master(&none, label(NOS, "mig"), None).is_some());
        let done = record(Step::Done, 1_000);
        let ours = label(NVIDIA_MIG_CONFIG, "dovetail-1");
        assert_eq!(other_master(&none, ours, Some(&done)), None);
        // Each component has its own label.
        let plugin = Record { by: Component::DevicePlugin, ..done.clone() };
        let of_plugin = label(Component::DevicePlugin.label(), "x");
        assert!(other_master(&none, of_plugin, Some(&plugin)).is_some());
        assert_eq!(other_master(&none, of_plugin, Some(&done)), None);
        let foreign = other_master(&none, label(NVIDIA_MIG_CONFIG, "all-1g.5gb"), Some(&done));
        assert!(foreign.is_some_and(|why| why.contains("all-1g.5gb")));
        // After that it is theirs until they give it back.
        let left = record(Step::Abandoned, 1_000);
        let theirs = other_master(&none, label(NVIDIA_MIG_CONFIG, "x"), Some(&left));
        assert!(theirs.is_some_and(|why| why.contains("changed nvidia.com/mig.config to `x`")));
        for name in ["dovetail-1", "all-disabled"] {
            assert_eq!(other_master(&none, label(NVIDIA_MIG_CONFIG, name), Some(&left)), None);
        }
        assert_eq!(other_master(&none, |_| None, Some(&left)), None);
        // While a change is under way, only its own label is right.
        let under_way = record(Step::Applying, 1_000);
        assert!(other_master(&none, |_| None, Some(&under_way)).is_some());

        assert!(rests(|_| None, Some(&done), 1_000 + DWELL_MS - 1).is_some());
        assert_eq!(rests(|_| None, Some(&done), 1_000 + DWELL_MS), None);
        // What was given up before anything was asked for counts, too.
        let given_up = Record { attempt: 0, then: Some(Step::Applying), ..record(Step::Undone, 0) };
        let why = rests(|_| None, Some(&given_up), DWELL_MS - 1);
        assert_eq!(why.as_deref(), Some("its change was given up less than 30 minutes ago"));
        assert_eq!(left_today(10, 10, [&given_up].into_iter(), 1), 0);
        let not_begun = Record { then: None, ..given_up };
        assert_eq!(rests(|_| None, Some(&not_begun), 1), None);
        assert!(rests(|_| None, Some(&record(Step::Stuck, 0)), u64::MAX).is_some());
        assert!(rests(|_| None, Some(&record(Step::Tainted, 0)), u64::MAX).is_some());
        assert!(rests(label(NVIDIA_MIG_STATE, "failed"), None, 0).is_some());
        assert_eq!(rests(label(NVIDIA_MIG_STATE, "success"), None, 0), None);
        let failed = label("dcm.amd.com/gpu-config-profile-state", "failure");
        assert!(rests(failed, None, 0).is_some_and(|why| why.contains("Device Config Manager")));
    }

    /// Nobody has to remove the annotation of a node that was labelled by hand.
    #[test]
    fn a_node_that_was_labelled_since_changes_again_after_a_rest() {
        let none = BTreeMap::new();
        let by_hand = |state: Option<&'static str>| {
            move |key: &str| match key {
                NVIDIA_MIG_CONFIG => Some("all-1g.10gb"),
                NVIDIA_MIG_STATE => state,
                _ => None,
            }
        };
        for step in [Step::Done, Step::Undone, Step::Abandoned] {
            let over = record(step, 1_000);
            let master = |state| other_master(&none, by_hand(state), Some(&over));
            for state in [None, Some("pending"), Some("failed")] {
                let why = master(state).expect("it is theirs");
                assert!(why.ends_with("remove the label"), "{why}");
            }
            // Who intervened in a change would intervene in the next one.
            assert_eq!(master(Some("success")).is_some(), step == Step::Abandoned);
            assert_eq!(other_master(&none, |_| None, Some(&over)), None);
            let why = rests(by_hand(Some("success")), Some(&over), DWELL_MS + 999);
            assert_eq!(why.as_deref(), Some("its layout changed less than 30 minutes ago"));
            assert_eq!(rests(by_hand(Some("success")), Some(&over), DWELL_MS + 1_000), None);
        }
        // Nothing was asked for yet when they came.
        let left = Record { attempt: 0, ..record(Step::Abandoned, 1_000) };
        assert!(rests(by_hand(Some("success")), Some(&left), 2_000).is_some());
        assert_eq!(rests(|_| None, Some(&left), 2_000), None);
        // mig-manager keeps reporting what failed after its label is gone.
        let undone = record(Step::Undone, 0);
        let failed = |key: &str| (key == NVIDIA_MIG_STATE).then_some("failed");
        assert_eq!(rests(failed, Some(&undone), DWELL_MS), None);
        assert!(rests(by_hand(Some("failed")), Some(&undone), DWELL_MS).is_some());
        let works = |key: &str| (key == NVIDIA_MIG_STATE).then_some("pending");
        assert!(rests(works, Some(&undone), DWELL_MS).is_some());
    }

    #[test]
    fn the_taint_of_device_config_manager_is_dovetails_only_where_the_record_says_so() {
        let by = Component::DeviceConfigManager;
        let taint = |record: Option<&Record>| foreign_taint(["a", "amd-dcm"].into_iter(), record);
        assert!(taint(None).is_some_and(|why| why.contains("amd-dcm=up")));
        let lifted = Record { by, ..record(Step::Applying, 0) };
        assert!(taint(Some(&lifted)).is_some());
        assert_eq!(taint(Some(&Record { evicts: true, ..lifted.clone() })), None);
        let of_another = Record { evicts: true, ..record(Step::Applying, 0) };
        assert!(taint(Some(&of_another)).is_some());
        assert_eq!(foreign_taint(["a"].into_iter(), None), None);
    }

    #[test]
    fn a_tenth_of_the_nodes_changes_in_a_day() {
        let done = [record(Step::Done, 1_000), record(Step::Undone, 1_000)];
        assert_eq!(left_today(30, 10, [].iter(), 2_000), 3);
        assert_eq!(left_today(30, 10, done.iter(), 2_000), 1);
        assert_eq!(left_today(30, 10, done.iter(), 1_000 + DAY_MS), 3);
        assert_eq!(left_today(1, 10, [].iter(), 0), 1);
        // One that waits for pods after a layout was asked for.
        let waits = [record(Step::Applying, 1_000)];
        assert_eq!(left_today(30, 10, waits.iter(), 1_000 + 2 * DAY_MS), 2);
        // Others do not wait for it for ever.
        let pod_wait = Some(PodWait { since_ms: 1_000, is_over: true });
        let overdue = waits.map(|record| Record { pod_wait, ..record });
        assert_eq!(left_today(30, 10, overdue.iter(), 1_000 + 2 * DAY_MS), 3);
        let tainted = [Record { attempt: 0, ..record(Step::Tainted, 1_000) }];
        assert_eq!(left_today(30, 10, tainted.iter(), 2_000), 3);
    }
}
