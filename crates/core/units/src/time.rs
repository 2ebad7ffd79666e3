//! Moments: `2026-10-14T08:00:00Z`, always in UTC.

const DAY_MS: u64 = 86_400_000;

/// The first moment that four digits of a year cannot write.
const YEAR_10000_MS: u64 = 253_402_300_800_000;

/// A moment in ms since 1970, in UTC, to the second that has begun; `an unknown time` beyond the
/// year 9999.
pub fn time(ms: u64) -> String {
    exact_time(ms / 1_000 * 1_000)
}

/// A moment in UTC with as many digits behind the second as it has.
pub fn exact_time(ms: u64) -> String {
    if ms >= YEAR_10000_MS {
        return "an unknown time".to_owned();
    }
    let (year, month, day) = civil_date(ms / DAY_MS);
    let (of_day, rest) = (ms % DAY_MS / 1_000, ms % 1_000);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    let fraction = match rest {
        0 => String::new(),
        rest => format!(".{rest:03}").trim_end_matches('0').to_owned(),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// Year, month and day of a number of days since 1970, by cycles of 400 years that begin in March,
/// so that the day of a leap year comes last (Hinnant, “chrono-compatible low-level date
/// algorithms”).
fn civil_date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (cycle, of_cycle) = (days / 146_097, days % 146_097);
    let year = (of_cycle - of_cycle / 1_460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (cycle * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use dovetail_cases::cases;
    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_moment_is_written_in_utc() {
        assert_eq!(time(1_791_964_800_999), "2026-10-14T08:00:00Z");
        assert_eq!(exact_time(1_791_964_800_250), "2026-10-14T08:00:00.25Z");
        assert_eq!(time(0), "1970-01-01T00:00:00Z");
        assert_eq!(time(951_782_400_000), "2000-02-29T00:00:00Z");
        assert_eq!(time(YEAR_10000_MS - 1), "9999-12-31T23:59:59Z");
        assert_eq!(time(u64::MAX), "an unknown time");
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn any_moment_is_the_one_that_another_calendar_writes(ms in 0..YEAR_10000_MS - 2 * DAY_MS) {
            let other = Timestamp::from_millisecond(ms.cast_signed()).expect("before the year 10000");
            prop_assert_eq!(exact_time(ms), other.to_string());
            prop_assert_eq!(time(ms), format!("{other:.0}"));
        }
    }
}
