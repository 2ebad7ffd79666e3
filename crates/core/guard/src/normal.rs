//! Quantiles of the normal distribution and of Student's t.

/// Density of the standard normal distribution.
pub(crate) fn density(z: f64) -> f64 {
    libm::exp(-0.5 * z * z) / libm::sqrt(2.0 * std::f64::consts::PI)
}

/// The standard normal quantile of a probability strictly between 0 and 1: the rational
/// approximation 26.2.23 of Abramowitz and Stegun, made exact by Newton's steps on `erfc`.
pub(crate) fn quantile(probability: f64) -> f64 {
    let is_low = probability < 0.5;
    let tail = if is_low { probability } else { 1.0 - probability };
    let t = libm::sqrt(-2.0 * libm::log(tail));
    let numerator = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let denominator = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    // The quantile of the upper tail.
    let mut z = t - numerator / denominator;
    for _ in 0..4 {
        let above = 0.5 * libm::erfc(z / std::f64::consts::SQRT_2);
        z += (above - tail) / density(z);
    }
    if is_low { -z } else { z }
}

/// The quantile of Student's t with at least 5 degrees of freedom: the expansion 26.7.5 of
/// Abramowitz and Stegun.
pub(crate) fn student_quantile(probability: f64, freedom: f64) -> f64 {
    let z = quantile(probability);
    let square = z * z;
    let first = (square + 1.0) * z / 4.0;
    let second = (3.0 + square * (16.0 + square * 5.0)) * z / 96.0;
    let third = (-15.0 + square * (17.0 + square * (19.0 + square * 3.0))) * z / 384.0;
    let fourth =
        -945.0 + square * (-1_920.0 + square * (1_482.0 + square * (776.0 + square * 79.0)));
    let fourth = fourth * z / 92_160.0;
    z + (first + (second + (third + fourth / freedom) / freedom) / freedom) / freedom
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (probability, z) in
            [(0.5, 0.0), (0.975, 1.959_964), (0.99, 2.326_348), (1e-5, -4.264_891)]
        {
            assert!((quantile(probability) - z).abs() < 1e-6, "{probability}");
        }
        for (probability, freedom, t) in
            [(0.99, 5.0, 3.364_93), (0.99, 23.0, 2.499_87), (0.995, 11.0, 3.105_81)]
        {
            assert!((student_quantile(probability, freedom) - t).abs() < 0.01, "{freedom}");
        }
    }
}
