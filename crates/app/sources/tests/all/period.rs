//! Periods as people write them.

use dovetail_account::device_time::Span;
use dovetail_settings::errors::UsageError;
use dovetail_sources::period::PeriodFlag;
use jiff::Timestamp;

fn between(from: &str, to: &str) -> PeriodFlag {
    let at_ms =
        |text: &str| text.parse::<Timestamp>().expect("a time").as_millisecond().cast_unsigned();
    PeriodFlag::Between(Span { from_ms: at_ms(from), to_ms: at_ms(to) })
}

#[test]
fn days_and_months_are_whole_and_moments_are_moments() {
    for (text, from, to) in [
        ("2026-10-14", "2026-10-14T00:00:00Z", "2026-10-15T00:00:00Z"),
        ("2026-12", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("2028-02", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"),
        ("2026-10-01..2026-10-31", "2026-10-01T00:00:00Z", "2026-11-01T00:00:00Z"),
        ("2026-08..2026-10", "2026-08-01T00:00:00Z", "2026-11-01T00:00:00Z"),
        ("2026-10..2026-11-02T06:30:00+01:00", "2026-10-01T00:00:00Z", "2026-11-02T05:30:00Z"),
    ] {
        assert_eq!(text.parse(), Ok(between(from, to)), "{text}");
    }
    assert_eq!("1h30m".parse(), Ok(PeriodFlag::Last { ms: 5_400_000 }));
}

#[test]
fn what_is_no_period_is_refused_in_words() {
    for (text, part) in [
        ("", "is not a period"),
        ("2026-13", "is not a period"),
        ("2026-02-30", "is not a period"),
        ("last month", "is not a period"),
        ("2026-10-01..", "is not a period"),
        ("2026-10-14T00:00:00Z", "is not a period"),
        ("2026-11..2026-10", "ends before it starts"),
        ("2026-10-01T00:00:00Z..2026-10-01T00:00:00Z", "ends before it starts"),
        ("14", "not a duration"),
        ("40000d", "century"),
    ] {
        let problem = text.parse::<PeriodFlag>().expect_err(text);
        assert!(problem.contains(part), "{text}: {problem}");
    }
}

#[test]
fn a_period_is_what_of_it_is_over_in_whole_steps() {
    let at_ms =
        |text: &str| text.parse::<Timestamp>().expect("a time").as_millisecond().cast_unsigned();
    let (now_ms, minute_ms) = (at_ms("2026-11-23T13:34:56Z"), 60_000);
    let of = |text: &str, step_ms| text.parse::<PeriodFlag>().expect(text).span(now_ms, step_ms);
    let span = |from, to| Ok(Span { from_ms: at_ms(from), to_ms: at_ms(to) });
    let is = |found: Result<Span, UsageError>| found.map_err(|error| error.0);
    assert_eq!(is(of("1h", minute_ms)), span("2026-11-23T12:34:00Z", "2026-11-23T13:34:00Z"));
    let month = span("2026-10-01T00:00:00Z", "2026-11-01T00:00:00Z");
    assert_eq!(is(of("2026-10", 5 * minute_ms)), month);
    let running = span("2026-11-01T00:00:00Z", "2026-11-23T13:30:00Z");
    assert_eq!(is(of("2026-11", 5 * minute_ms)), running);
    assert!(is(of("2026-12", minute_ms)).unwrap_err().contains("in the future"));
    let within = "2026-10-01T00:00:30Z..2026-10-02";
    assert!(
        is(of(within, minute_ms)).unwrap_err().contains("is not a multiple of the step of 60 s")
    );
    assert!(of(within, minute_ms / 2).is_ok());
    assert!(is(of("2026-10", 7 * minute_ms)).unwrap_err().contains("the step of 420 s"));
}
