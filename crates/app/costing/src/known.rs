//! What somebody knows of a sum: time that nobody measured and waste without a price are not zero.

use dovetail_account::cost::CostSum;
use dovetail_model::Money;

/// Cost of the wasted GPU-time; `None` if of none of the time anybody knows whether it is waste, or
/// none of the waste has a price.
pub fn waste(sum: &CostSum) -> Option<Money> {
    known(sum, (sum.waste, sum.waste_gpu_milli_ms), sum.gpu_milli_ms)
}

/// Cost of the idle GPU-time; `None` if of none of the allocated time anybody knows what GPUs did,
/// or none of the idle time has a price.
pub fn idle(sum: &CostSum) -> Option<Money> {
    known(sum, (sum.idle, sum.idle_gpu_milli_ms), sum.allocated_gpu_milli_ms)
}

/// Whether anybody knows of some of the allocated time what GPUs did.
pub fn is_any_measured(sum: &CostSum) -> bool {
    sum.blind_gpu_milli_ms < sum.allocated_gpu_milli_ms || sum.allocated_gpu_milli_ms == 0
}

fn known(sum: &CostSum, (cost, time): (Money, i128), of_time: i128) -> Option<Money> {
    let is_none = time == 0 && cost == Money::ZERO;
    let is_blind = is_none && of_time > 0 && sum.blind_gpu_milli_ms >= of_time;
    let is_unpriced = time > 0 && cost == Money::ZERO && sum.has_unpriced();
    if is_blind || is_unpriced { None } else { sum.known(cost) }
}

#[cfg(test)]
mod tests {
    use dovetail_account::cost::{Charge, Paid};
    use dovetail_account::device_time::DeviceState;

    use super::*;

    #[test]
    fn what_nobody_measured_or_priced_is_not_zero() {
        let sum = |states: &[(DeviceState, Option<i64>)]| {
            let mut sum = CostSum::default();
            for (state, usd) in states {
                let cost = usd.map(|usd| Money::micros(usd * 1_000_000));
                let paid = Paid::Gpus(*state);
                sum.add(&Charge { holder: Some(0), paid, gpu_milli_ms: 1_000, cost });
            }
            (waste(&sum).map(|of| of.usd_micros), idle(&sum).map(|of| of.usd_micros))
        };
        let (idle, active) = (
            DeviceState::Idle,
            DeviceState::Active(dovetail_account::device_time::ActiveWork::NotSeparable),
        );
        assert_eq!(sum(&[(idle, Some(2))]), (Some(2_000_000), Some(2_000_000)));
        assert_eq!(sum(&[(active, Some(2))]), (Some(0), Some(0)));
        assert_eq!(sum(&[(DeviceState::Unknown, Some(2))]), (None, None));
        // One part is measured, and not the one that has a price.
        assert_eq!(sum(&[(idle, None), (DeviceState::Unknown, Some(2))]), (None, None));
        assert_eq!(sum(&[(idle, Some(0)), (active, Some(1))]), (Some(0), Some(0)));
        assert_eq!(sum(&[]), (Some(0), Some(0)));
    }
}
