//! Amounts as people read them.

use dovetail_model::{Money, grouped};

/// `6 h`, `25 min`, `3 days`: one unit, rounded down.
pub(super) fn duration(ms: u64) -> String {
    const MINUTE: u64 = 60_000;
    match ms {
        ms if ms >= 2 * 24 * 60 * MINUTE => format!("{} days", ms / (24 * 60 * MINUTE)),
        ms if ms >= 60 * MINUTE => format!("{} h", ms / (60 * MINUTE)),
        ms => format!("{} min", ms / MINUTE),
    }
}

/// Whole dollars, half up; cents below ten.
pub(super) fn dollars(amount: Money) -> String {
    let micros = amount.usd_micros;
    let sign = if micros < 0 { "-" } else { "" };
    let micros = micros.unsigned_abs();
    match micros {
        micros if micros >= 10_000_000 => {
            format!("{sign}${}", grouped((micros + 500_000) / 1_000_000))
        }
        micros if micros % 1_000_000 == 0 => format!("{sign}${}", micros / 1_000_000),
        micros => {
            let cents = (micros + 5_000) / 10_000;
            format!("{sign}${}.{:02}", cents / 100, cents % 100)
        }
    }
}

/// `2 GPUs`, `0.5 GPUs`.
pub(super) fn gpus(gpu_milli: i64) -> String {
    match (gpu_milli / 1000, gpu_milli % 1000) {
        (1, 0) => "1 GPU".to_owned(),
        (whole, 0) => format!("{whole} GPUs"),
        (whole, rest) => {
            let rest = format!("{:03}", rest.abs());
            format!("{whole}.{} GPUs", rest.trim_end_matches('0'))
        }
    }
}

/// GPU-hours with one decimal, half up.
pub(super) fn gpu_hours(gpu_milli_ms: i128) -> String {
    let tenths = (gpu_milli_ms.max(0) * 10 + 1_800_000_000) / 3_600_000_000;
    let whole = u64::try_from(tenths / 10).unwrap_or(u64::MAX);
    format!("{}.{}", grouped(whole), tenths % 10)
}

/// A part of a whole in percent, half up; `None` of nothing.
pub(super) fn percent(part: i128, whole: i128) -> Option<String> {
    (whole > 0).then(|| format!("{} %", (part * 200 + whole) / (2 * whole)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_at_a_glance() {
        let usd = |micros| dollars(Money::micros(micros));
        assert_eq!(
            [usd(41_300_000), usd(4_000_000), usd(4_125_000), usd(0), usd(1_234_567_890_000)],
            ["$41", "$4", "$4.13", "$0", "$1,234,568"]
        );
        assert_eq!([gpus(1000), gpus(16_000), gpus(500)], ["1 GPU", "16 GPUs", "0.5 GPUs"]);
        assert_eq!([duration(89 * 60_000), duration(1_500_000)], ["1 h", "25 min"]);
        assert_eq!(duration(3 * 86_400_000), "3 days");
        assert_eq!(gpu_hours(1000 * 3_600_000 * 12_345), "12,345.0");
        assert_eq!(percent(1, 3).as_deref(), Some("33 %"));
        assert_eq!(percent(0, 0), None);
    }
}
