//! The one clock of the program: everything else is told the time.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// The time.
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// The time, in milliseconds since 1970.
pub fn now_ms() -> u64 {
    now().as_millisecond().max(0).cast_unsigned()
}

/// The day, in UTC.
pub fn today() -> Date {
    now().to_zoned(TimeZone::UTC).date()
}
