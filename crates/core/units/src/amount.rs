//! Dollars, percentages, bytes, GPUs and GPU-hours.

use dovetail_model::{Money, grouped};

/// Milli-GPU × ms in a GPU-hour.
const GPU_HOUR: i128 = 3_600_000_000;

/// What is paid: dollars and cents, grouped; a dash where nobody knows.
pub fn usd(usd_micros: Option<i64>) -> String {
    usd_micros.map_or_else(|| "-".to_owned(), |micros| Money::micros(micros).to_string())
}

/// About so many dollars: whole from ten on, half up; with cents below, where there are any.
pub fn about_usd(amount: Money) -> String {
    let micros = amount.usd_micros.unsigned_abs();
    let sign = if amount.usd_micros < 0 { "-" } else { "" };
    if micros >= 10_000_000 {
        return format!("{sign}${}", grouped((micros + 500_000) / 1_000_000));
    }
    let cents = (micros + 5_000) / 10_000;
    match cents % 100 {
        0 => format!("{sign}${}", cents / 100),
        rest => format!("{sign}${}.{rest:02}", cents / 100),
    }
}

/// A share of one as a percentage with one digit behind the point: `35.8 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// A part of a whole as a whole percentage, half up; `None` of nothing.
pub fn whole_percent(part: i128, whole: i128) -> Option<String> {
    (whole > 0).then(|| format!("{} %", (part * 200 + whole) / (2 * whole)))
}

/// Bytes in GiB: one digit behind the point below a hundred, whole from there on.
pub fn gib(bytes: u64) -> String {
    let gib = bytes as f64 / f64::from(1_u32 << 30);
    if gib < 99.95 { format!("{gib:.1} GiB") } else { format!("{gib:.0} GiB") }
}

/// `2 GPUs`, `0.5 GPUs`, of milli-GPU.
pub fn gpus(gpu_milli: i64) -> String {
    let sign = if gpu_milli < 0 { "-" } else { "" };
    match (gpu_milli.unsigned_abs() / 1_000, gpu_milli.unsigned_abs() % 1_000) {
        (1, 0) => format!("{sign}1 GPU"),
        (whole, 0) => format!("{sign}{whole} GPUs"),
        (whole, rest) => {
            let rest = format!("{rest:03}");
            format!("{sign}{whole}.{} GPUs", rest.trim_end_matches('0'))
        }
    }
}

/// GPU-hours of milli-GPU × ms with one digit behind the point, half up; what is negative is
/// nothing.
pub fn gpu_hours(gpu_milli_ms: i128) -> String {
    let tenths = (gpu_milli_ms.max(0) * 10 + GPU_HOUR / 2) / GPU_HOUR;
    let whole = u64::try_from(tenths / 10).unwrap_or(u64::MAX);
    format!("{}.{}", grouped(whole), tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_at_a_glance() {
        assert_eq!([usd(Some(1_234_567_890)), usd(None)], ["$1,234.57", "-"]);
        let about = |micros| about_usd(Money::micros(micros));
        assert_eq!(
            [about(41_300_000), about(4_000_000), about(4_125_000), about(0), about(-999_999)],
            ["$41", "$4", "$4.13", "$0", "-$1"]
        );
        assert_eq!(about(1_234_567_890_000), "$1,234,568");
        assert_eq!([gpus(1_000), gpus(16_000), gpus(500)], ["1 GPU", "16 GPUs", "0.5 GPUs"]);
        assert_eq!(gpus(-250), "-0.25 GPUs");
        assert_eq!(gpu_hours(12_345 * GPU_HOUR), "12,345.0");
        assert_eq!(percent(0.3579), "35.8 %");
        assert_eq!(
            [whole_percent(1, 3).as_deref(), whole_percent(0, 0).as_deref()],
            [Some("33 %"), None]
        );
        assert_eq!(
            [gib(80 << 30), gib(1 << 29), gib(188 << 30)],
            ["80.0 GiB", "0.5 GiB", "188 GiB"]
        );
    }
}
