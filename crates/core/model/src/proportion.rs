//! Splitting a whole number in proportion without losing or making a unit.

/// Splits `total` (≥ 0) in proportion to `weights` (≥ 0) by largest remainders; ties go to the
/// earlier part.
///
/// The parts sum to `total`, and each is less than one unit away from its exact share. If all
/// weights are zero the first part gets everything; without weights there are no parts.
pub fn in_proportion(total: i128, weights: &[i128]) -> Vec<i128> {
    let sum: i128 = weights.iter().sum();
    if sum == 0 {
        let first = (0..weights.len()).map(|index| if index == 0 { total } else { 0 });
        return first.collect();
    }
    // total × weight may pass 128 bits, (total mod sum) × weight does not for any sum of real
    // amounts.
    let (each, over) = (total / sum, total % sum);
    let mut parts: Vec<i128> = weights.iter().map(|w| each * w + over * w / sum).collect();
    let rest = total - parts.iter().sum::<i128>();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|index| (std::cmp::Reverse(over * weights[*index] % sum), *index));
    for index in order.into_iter().take(rest as usize) {
        parts[index] += 1;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_cases::cases;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn nothing_is_lost_and_nobody_is_off_by_a_unit(
            total in 0i128..1_000_000_000_000_000_000_000_000,
            weights in prop::collection::vec(0i128..1_000_000_000, 1..20),
        ) {
            let parts = in_proportion(total, &weights);
            prop_assert_eq!(parts.iter().sum::<i128>(), total);
            let sum: i128 = weights.iter().sum();
            if sum > 0 {
                for (part, weight) in parts.iter().zip(&weights) {
                    // |part − total·weight/sum| < 1, in parts that stay within 128 bits.
                    let off = (part - total / sum * weight) * sum - total % sum * weight;
                    prop_assert!(off.abs() < sum);
                }
            }
        }
    }
}
