//! Ledgers by hand, and laws that hold for all.

use dovetail_account::device_time::DeviceState;
use dovetail_cases::cases;
use dovetail_model::FreeCause;
use proptest::prelude::*;

use super::*;

const HOUR_MS: u64 = 3_600_000;
/// Half a month: rates are twice the amounts.
const READ_MS: u64 = MONTH_MS / 2;
const NO_DEMAND: DeviceState = DeviceState::Free(Some(FreeCause::NoDemand));
const DRAINING: DeviceState = DeviceState::Free(Some(FreeCause::DrainingOrCordoned));
const ACTIVE: DeviceState =
    DeviceState::Active(dovetail_account::device_time::ActiveWork::NotSeparable);

fn serve() -> ObjectRef {
    ObjectRef::new("Deployment", "prod", "serve")
}

fn train() -> ObjectRef {
    ObjectRef::new("Job", "research", "train")
}

fn pool() -> ObjectRef {
    ObjectRef::new("NodePool", "", "h100")
}

fn fixed(id: &str, object: ObjectRef) -> FixedFinding {
    FixedFinding { id: id.into(), object }
}

/// GPU-hours in a state at $2 each.
fn row(holder: Option<ObjectRef>, state: DeviceState, gpu_hours: i128) -> LedgerRow {
    LedgerRow {
        holder,
        pool: pool(),
        node: "g1".into(),
        state,
        gpu_milli_ms: gpu_hours * 1000 * i128::from(HOUR_MS),
        usd_micros: Some(gpu_hours as i64 * 2_000_000),
    }
}

fn period(rows: Vec<LedgerRow>) -> LedgerPeriod {
    LedgerPeriod { read_ms: READ_MS, rows }
}

fn hours(rate: Rate) -> i128 {
    rate.gpu_milli_ms / 1000 / i128::from(HOUR_MS)
}

/// Verdict, GPU-hours a month before and after, and confirmed dollars.
fn told(found: &Confirmed) -> (FixVerdict, Option<i128>, Option<i128>, Option<i64>) {
    let usd = found.confirmed.usd_micros.map(|micros| micros / 1_000_000);
    (found.verdict, found.before.map(hours), found.after.map(hours), usd)
}

#[test]
fn what_stopped_is_confirmed_and_what_moved_is_not() {
    let idle = DeviceState::Idle;
    let finding = [fixed("IDL-02", serve())];
    let before = period(vec![row(Some(serve()), idle, 100), row(Some(train()), idle, 20)]);
    // The GPU computes for somebody else.
    let after = period(vec![
        row(Some(serve()), idle, 10),
        row(Some(train()), idle, 20),
        row(Some(train()), ACTIVE, 90),
    ]);
    let confirmation = confirm(&finding, &before, &after);
    let found = told(&confirmation.findings[0]);
    assert_eq!(found, (FixVerdict::Confirmed, Some(200), Some(20), Some(360)));
    assert_eq!((hours(confirmation.waste_before), hours(confirmation.waste_after)), (240, 60));
    assert_eq!(hours(confirmation.confirmed), 180);
    // It idles for somebody else, or stands free.
    for state in [(Some(train()), idle), (None, NO_DEMAND)] {
        let after = period(vec![row(Some(train()), idle, 20), row(state.0, state.1, 100)]);
        let confirmation = confirm(&finding, &before, &after);
        let found = told(&confirmation.findings[0]);
        assert_eq!(found, (FixVerdict::Moved, Some(200), Some(0), Some(0)));
        assert_eq!(confirmation.confirmed.gpu_milli_ms, 0);
    }
    // A tenth less is confirmed, anything below is chance.
    let less = |gpu_hours| {
        let after = period(vec![row(Some(serve()), idle, gpu_hours)]);
        confirm(&finding, &period(vec![row(Some(serve()), idle, 100)]), &after).findings[0].verdict
    };
    assert_eq!([less(90), less(91)], [FixVerdict::Confirmed, FixVerdict::Unchanged]);
}

#[test]
fn what_nobody_measures_any_more_or_never_did_is_unknown() {
    let (idle, unknown) = (DeviceState::Idle, DeviceState::Unknown);
    let finding = [fixed("IDL-02", serve()), fixed("IDL-03", pool())];
    let before = period(vec![row(Some(serve()), idle, 100)]);
    let verdict = |before: &LedgerPeriod, after: Vec<LedgerRow>| {
        let found = confirm(&finding, before, &period(after)).findings;
        // Of an autoscaler a ledger knows nothing.
        assert_eq!(told(&found[1]), (FixVerdict::NotInLedger, None, None, Some(0)));
        found[0].verdict
    };
    assert_eq!(verdict(&before, vec![row(Some(serve()), unknown, 95)]), FixVerdict::Blind);
    assert_eq!(verdict(&before, vec![row(Some(train()), unknown, 95)]), FixVerdict::Moved);
    assert_eq!(verdict(&before, vec![row(Some(serve()), unknown, 30)]), FixVerdict::Confirmed);
    let blind = period(vec![row(Some(serve()), unknown, 100)]);
    assert_eq!(verdict(&blind, Vec::new()), FixVerdict::Blind);
    let busy = period(vec![row(Some(serve()), ACTIVE, 100)]);
    assert_eq!(verdict(&busy, Vec::new()), FixVerdict::NoneBefore);
    // Causes that are not kept any more.
    let drained = [fixed("AUT-06", pool())];
    let before = period(vec![row(None, DRAINING, 50)]);
    let after = |state| period(vec![row(None, state, 50)]);
    let verdict = |state| confirm(&drained, &before, &after(state)).findings[0].verdict;
    assert_eq!(verdict(DeviceState::Free(None)), FixVerdict::Blind);
    assert_eq!(verdict(NO_DEMAND), FixVerdict::Moved);
    assert_eq!(verdict(DRAINING), FixVerdict::Unchanged);
    assert_eq!(verdict(ACTIVE), FixVerdict::Confirmed);
    let risk = confirm(&[fixed("GOV-01", serve())], &before, &before);
    assert_eq!(risk.findings[0].verdict, FixVerdict::OfRisk);
}

#[test]
fn a_second_is_of_one_finding_and_dollars_need_a_price() {
    let idle = DeviceState::Idle;
    let namespace = ObjectRef::new("Namespace", "", "prod");
    let other = ObjectRef::new("Deployment", "prod", "other");
    let findings = [
        fixed("GOV-03", namespace),
        fixed("IDL-02", serve()),
        fixed("REQ-05", serve()),
        fixed("IDL-05", serve()),
    ];
    let mut unpriced = row(Some(other), idle, 7);
    unpriced.usd_micros = None;
    let before = period(vec![
        row(Some(serve()), idle, 100),
        row(Some(serve()), DeviceState::Provisioning, 30),
        unpriced,
    ]);
    let found = confirm(&findings, &before, &period(Vec::new())).findings;
    let found: Vec<_> = found.iter().map(told).collect();
    let expected = [
        // What its owner has is not the namespace's too.
        (FixVerdict::Confirmed, Some(14), Some(0), None),
        (FixVerdict::CountedWith(2), None, None, Some(0)),
        // Right-sizing is served before scaling to zero.
        (FixVerdict::Confirmed, Some(200), Some(0), Some(400)),
        (FixVerdict::Confirmed, Some(60), Some(0), Some(120)),
    ];
    assert_eq!(found, expected);
}

fn some_row() -> impl Strategy<Value = LedgerRow> {
    let holder = prop_oneof![
        Just(None),
        Just(Some(serve())),
        Just(Some(train())),
        Just(Some(ObjectRef::new("", "research", "train"))),
    ];
    let states = [
        DeviceState::Idle,
        DeviceState::Provisioning,
        DeviceState::Unknown,
        ACTIVE,
        DRAINING,
        NO_DEMAND,
        DeviceState::Free(None),
        DeviceState::Unavailable,
    ];
    (holder, 0..states.len(), 0i128..50, any::<bool>()).prop_map(
        move |(holder, state, gpu_hours, is_priced)| {
            let row = row(holder, states[state], gpu_hours);
            LedgerRow { usd_micros: row.usd_micros.filter(|_| is_priced), ..row }
        },
    )
}

fn some_finding() -> impl Strategy<Value = FixedFinding> {
    let ids = ["REQ-05", "IDL-02", "IDL-05", "AUT-06", "AUT-03", "CAP-02", "GOV-03", "SCH-04"];
    let objects = [serve(), train(), pool(), ObjectRef::new("Namespace", "", "research")];
    (0..ids.len(), 0..objects.len())
        .prop_map(move |(id, object)| fixed(ids[id], objects[object].clone()))
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn together_they_confirm_no_more_than_the_ledger_fell_by(
        findings in prop::collection::vec(some_finding(), 0..8),
        before in prop::collection::vec(some_row(), 0..12),
        after in prop::collection::vec(some_row(), 0..12),
        read_ms in 1..2 * MONTH_MS,
    ) {
        let (before, after) = (period(before), LedgerPeriod { read_ms, rows: after });
        let found = confirm(&findings, &before, &after);
        // Row by row, without the findings.
        let waste = |period: &LedgerPeriod| -> (i128, i128) {
            let rows = period.rows.iter().filter(|row| row.state.is_waste());
            let time = rows.clone().map(|row| row.gpu_milli_ms).sum::<i128>();
            let usd: i128 = rows.filter_map(|row| row.usd_micros).map(i128::from).sum();
            let month = |amount: i128| amount * i128::from(MONTH_MS) / i128::from(period.read_ms);
            (month(time), month(usd))
        };
        let (was, is) = (waste(&before), waste(&after));
        prop_assert_eq!((found.waste_before.gpu_milli_ms, found.waste_after.gpu_milli_ms), (was.0, is.0));
        let of_time: i128 = found.findings.iter().map(|of| of.confirmed.gpu_milli_ms).sum();
        prop_assert!(of_time <= (was.0 - is.0).max(0));
        let usd = found.findings.iter().filter_map(|of| of.confirmed.usd_micros);
        prop_assert!(usd.map(i128::from).sum::<i128>() <= (was.1 - is.1).max(0));
        // No second before belongs to two, and nothing is confirmed that was not there.
        let own = found.findings.iter().filter_map(|of| of.before);
        prop_assert!(own.map(|rate| rate.gpu_milli_ms).sum::<i128>() <= was.0);
        for of in &found.findings {
            let before = of.before.map_or(0, |rate| rate.gpu_milli_ms);
            prop_assert!(of.confirmed.gpu_milli_ms <= before);
            prop_assert!(of.verdict == FixVerdict::Confirmed || of.confirmed.gpu_milli_ms == 0);
        }
        // What is listed twice is not confirmed twice.
        let twice: Vec<FixedFinding> = findings.iter().chain(&findings).cloned().collect();
        prop_assert_eq!(confirm(&twice, &before, &after).confirmed, found.confirmed);
    }
}
