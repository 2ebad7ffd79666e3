//! What would confirm that fixed findings have saved something.

use dovetail_auditing::baseline::Baseline;
use dovetail_auditing::unconfirmed::why_unconfirmed;

#[test]
fn the_period_that_a_ledger_needs_begins_before_the_earlier_audit() {
    let day = |text: &str| {
        let at: jiff::Timestamp = text.parse().expect("a time");
        u64::try_from(at.as_millisecond()).expect("after 1970")
    };
    let since = |taken_at: &str, now: &str| {
        let baseline = Baseline { taken_at: taken_at.to_owned(), findings: Default::default() };
        why_unconfirmed(&baseline, day(now))
    };
    // A whole week since, and a week before the first of the month: from October the 25th on,
    // 15 and a half days.
    let told = since("2026-11-01T12:00:00Z", "2026-11-09T12:00:00Z");
    assert!(told.contains("--period 16d --store LEDGER"), "{told}");
    let told = since("2026-11-01T12:00:00Z", "2026-11-01T12:30:00Z");
    assert!(told.contains("one whole hour lies between") && !told.contains("--period"), "{told}");
    assert!(!since("nobody knows", "2026-11-09T12:00:00Z").contains("--period"));
}
