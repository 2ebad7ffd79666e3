//! Dollars, percentages, bytes, GPUs and GPU-hours.

use dovetail_model::{Money, grouped};

/// Milli-GPU × ms in a GPU-hour.
const GPU_HOUR: i128 = 3_600_000_000;

/// What is paid: dollars and cents, grouped; a dash where nobody knows.
pub fn usd(usd_micros: Option<i64>) -> String {
    usd_micros.map_or_else(|| "-".to_owned(), |micros| Money::micros(micros).to_string())
}

/// What one unit costs: four digits behind the point below a dollar, where parts of a cent count.
pub fn unit_usd(usd_micros: i64) -> String {
    match usd_micros.abs() < 1_000_000 {
        true => format!("${:.4}", usd_micros as f64 / 1e6),
        false => usd(Some(usd_micros)),
    }
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

/// An amount for tables and headlines: three significant digits, grouped; cents below $100.
pub fn rounded_usd(usd_micros: i64) -> String {
    let sign = if usd_micros < 0 { "-" } else { "" };
    let micros = usd_micros.unsigned_abs();
    if micros < 99_950_000 {
        // From $10 on the third digit is that of ten cents.
        let step = if micros >= 9_995_000 { 100_000 } else { 10_000 };
        let cents = (micros + step / 2) / step * (step / 10_000);
        return format!("{sign}${}.{:02}", cents / 100, cents % 100);
    }
    format!("{sign}${}", grouped(three_digits(micros, 1_000_000)))
}

/// A number for tables and headlines: three significant digits, grouped; one digit behind the point
/// below 100.
pub fn rounded(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    match value.abs() {
        value if value < 99.95 => format!("{sign}{value:.1}"),
        value => format!("{sign}{}", grouped(three_digits((value * 1e3).round() as u64, 1_000))),
    }
}

/// A number with one digit behind the point, grouped: `6,212.0`.
pub fn tenths(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    let tenths = (value.abs() * 10.0).round() as u64;
    format!("{sign}{}.{}", grouped(tenths / 10), tenths % 10)
}

/// Whole units of a number of parts, rounded once to their first three digits, half up.
fn three_digits(parts: u64, parts_of_one: u64) -> u64 {
    let digits = (parts / parts_of_one).checked_ilog10().map_or(1, |log| log + 1);
    let step = parts_of_one.saturating_mul(10_u64.pow(digits.saturating_sub(3)));
    parts.saturating_add(step / 2) / step * (step / parts_of_one)
}

/// A share of one as a percentage with one digit behind the point: `35.8%`.
pub fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

/// A share of one as a whole percentage: `36%`.
pub fn rounded_percent(share: f64) -> String {
    format!("{:.0}%", 100.0 * share)
}

/// A percentage with two digits behind the point, for figures whose hundredths count: `92.61%`.
pub fn fine_percent(percent: f64) -> String {
    format!("{percent:.2}%")
}

/// A number without decimals, grouped by three: `1,234,568`.
pub fn whole(number: f64) -> String {
    let digits = grouped(number.abs().round() as u64);
    if number < 0.0 && digits != "0" { format!("-{digits}") } else { digits }
}

/// A number of things: `1 node`, `12 nodes`.
pub fn counted(count: u64, thing: &str) -> String {
    plural(count, thing, &format!("{thing}s"))
}

/// A number of things in words of their own: `1 pod was`, `2 pods were`.
pub fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// A number with one digit behind the point below a hundred, whole from there on: `14.8`, `1,235`.
pub fn brief(number: f64) -> String {
    if number.abs() < 99.95 { format!("{number:.1}") } else { whole(number) }
}

/// A number with at least three significant digits: two digits behind the point below ten, one
/// below a thousand, whole from there on.
pub fn figure(number: f64) -> String {
    match number.abs() {
        0.0..10.0 => format!("{number:.2}"),
        10.0..1000.0 => format!("{number:.1}"),
        _ => whole(number),
    }
}

/// A number with two digits behind the point below 1,000, whole from there on.
pub fn hundredths(number: f64) -> String {
    if number.abs() < 999.995 { format!("{number:.2}") } else { whole(number) }
}

/// A change by so many percent, with its sign: `-25.0%`, `±0.0%`.
pub fn change_percent(percent: f64) -> String {
    if percent.abs() < 0.05 { "±0.0%".to_owned() } else { format!("{percent:+.1}%") }
}

/// A part of a whole as a whole percentage, half up; `None` of nothing.
pub fn whole_percent(part: i128, whole: i128) -> Option<String> {
    (whole > 0).then(|| format!("{}%", (part * 200 + whole) / (2 * whole)))
}

/// Bytes in GiB: one digit behind the point below a hundred, whole from there on.
pub fn gib(bytes: u64) -> String {
    let gib = bytes as f64 / f64::from(1_u32 << 30);
    format!("{} GiB", brief(gib))
}

/// `2 GPUs`, `0.5 GPUs`, of milli-GPU.
pub fn gpus(gpu_milli: i64) -> String {
    let unit = if gpu_milli.abs() == 1_000 { "GPU" } else { "GPUs" };
    format!("{} {unit}", gpu_count(gpu_milli))
}

/// `2`, `0.5`, of milli-GPU, where the unit stands elsewhere.
pub fn gpu_count(gpu_milli: i64) -> String {
    let sign = if gpu_milli < 0 { "-" } else { "" };
    let (whole, rest) = (gpu_milli.unsigned_abs() / 1_000, gpu_milli.unsigned_abs() % 1_000);
    let digits = format!("{sign}{}.{rest:03}", grouped(whole));
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
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
        let rounded_of = |micros| rounded_usd(micros);
        assert_eq!(
            [rounded_of(636_889_470_000), rounded_of(99_940_000), rounded_of(99_960_000)],
            ["$637,000", "$99.90", "$100"]
        );
        assert_eq!(
            [rounded_of(41_340_000), rounded_of(9_996_000), rounded_of(4_125_000), rounded_of(0)],
            ["$41.30", "$10.00", "$4.13", "$0.00"]
        );
        assert_eq!(rounded_of(-999_600_000), "-$1,000");
        assert_eq!([tenths(6_212.04), tenths(0.25), tenths(-1.0)], ["6,212.0", "0.3", "-1.0"]);
        assert_eq!([rounded(21_349.6), rounded(31.54), rounded(0.0)], ["21,300", "31.5", "0.0"]);
        assert_eq!([gpus(-250), gpus(-1_000)], ["-0.25 GPUs", "-1 GPU"]);
        assert_eq!([gpu_count(1_234_000), gpu_count(10)], ["1,234", "0.01"]);
        assert_eq!([unit_usd(3_100), unit_usd(2_500_000)], ["$0.0031", "$2.50"]);
        assert_eq!([figure(2.5), figure(31.54), figure(12_345.6)], ["2.50", "31.5", "12,346"]);
        assert_eq!(gpu_hours(12_345 * GPU_HOUR), "12,345.0");
        assert_eq!([percent(0.3579), fine_percent(92.614)], ["35.8%", "92.61%"]);
        assert_eq!(
            [whole(1_234_567.5), whole(-0.2), whole(-1_000.0)],
            ["1,234,568", "0", "-1,000"]
        );
        assert_eq!([counted(0, "job"), counted(1, "job")], ["0 jobs", "1 job"]);
        assert_eq!(plural(1_200, "pod was", "pods were"), "1,200 pods were");
        assert_eq!([brief(14.84), brief(99.96), brief(1_234.5)], ["14.8", "100", "1,235"]);
        assert_eq!([hundredths(999.994), hundredths(999.996)], ["999.99", "1,000"]);
        assert_eq!(
            [whole_percent(1, 3).as_deref(), whole_percent(0, 0).as_deref()],
            [Some("33%"), None]
        );
        assert_eq!(
            [gib(80 << 30), gib(1 << 29), gib(188 << 30)],
            ["80.0 GiB", "0.5 GiB", "188 GiB"]
        );
    }
}
