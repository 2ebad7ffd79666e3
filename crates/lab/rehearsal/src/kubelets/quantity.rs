//! Kubernetes quantities such as `500m`, `1.5Gi` and `2e3`, as whole numbers of a unit.
//!
//! Own code: what these kubelets count must not share a mistake with the scheduler they judge.

/// Thousandths of a unit, rounded up; processors are counted so. `None` for text that is no
/// quantity.
pub(crate) fn milli(text: &str) -> Option<i64> {
    scaled(text, 1000)
}

/// Whole units, rounded up; everything else is counted so. `None` for text that is no quantity.
pub(crate) fn whole(text: &str) -> Option<i64> {
    scaled(text, 1)
}

fn scaled(text: &str, scale: i128) -> Option<i64> {
    let end = text.find(|letter: char| !"+-.0123456789".contains(letter)).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (negative, digits) = match number.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    };
    let (before, after) = digits.split_once('.').unwrap_or((digits, ""));
    let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if before.len() + after.len() == 0 || !plain(before) || !plain(after) || after.len() > 18 {
        return None;
    }
    let mantissa: i128 = format!("{before}{after}").parse().ok()?;
    let (times, over) = factor(suffix)?;
    let numerator = mantissa.checked_mul(times)?.checked_mul(scale)?;
    let denominator = over.checked_mul(10_i128.checked_pow(after.len() as u32)?)?;
    // Away from zero, as Kubernetes rounds.
    let value = numerator.checked_add(denominator - 1)? / denominator;
    i64::try_from(if negative { -value } else { value }).ok()
}

/// A suffix as a fraction: what to multiply with, and what to divide by.
fn factor(suffix: &str) -> Option<(i128, i128)> {
    let power = |base: i128, exponent: u32| base.checked_pow(exponent);
    Some(match suffix {
        "" => (1, 1),
        "n" => (1, power(1000, 3)?),
        "u" => (1, power(1000, 2)?),
        "m" => (1, 1000),
        "k" => (1000, 1),
        "M" => (power(1000, 2)?, 1),
        "G" => (power(1000, 3)?, 1),
        "T" => (power(1000, 4)?, 1),
        "P" => (power(1000, 5)?, 1),
        "E" => (power(1000, 6)?, 1),
        "Ki" => (1024, 1),
        "Mi" => (power(1024, 2)?, 1),
        "Gi" => (power(1024, 3)?, 1),
        "Ti" => (power(1024, 4)?, 1),
        "Pi" => (power(1024, 5)?, 1),
        "Ei" => (power(1024, 6)?, 1),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            let power = power(10, exponent.unsigned_abs())?;
            if exponent < 0 { (1, power) } else { (power, 1) }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_kubernetes_writes_them() {
        let cases = [
            ("500m", 500, 1),
            ("2", 2000, 2),
            ("1.5", 1500, 2),
            (".5", 500, 1),
            ("100u", 1, 1),
            ("1e3", 1_000_000, 1000),
            ("12E-1", 1200, 2),
            ("1Ki", 1_024_000, 1024),
            ("1.5Gi", 1_610_612_736_000, 1_610_612_736),
            ("2E", i64::MAX, 2_000_000_000_000_000_000),
            ("-3", -3000, -3),
            ("0", 0, 0),
        ];
        for (text, in_milli, in_whole) in cases {
            // Two exa-units in thousandths are more than 64 bits hold.
            let expected = (text != "2E").then_some(in_milli);
            assert_eq!(milli(text), expected, "{text}");
            assert_eq!(whole(text), Some(in_whole), "{text}");
        }
        for bad in ["", "m", "1.2.3", "1 Gi", "0x10", "1ki", "--1", "1e", "99999999999999999999"] {
            assert_eq!(whole(bad), None, "{bad}");
        }
    }
}
