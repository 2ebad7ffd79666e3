//! Durations as people write them: `90s`, `10m`, `1h30m`.

use std::str::FromStr;

use dovetail_units::duration::parse_duration;

/// A duration from the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurationFlag {
    pub ms: u64,
}

impl FromStr for DurationFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_duration(text).map(|ms| Self { ms })
    }
}
