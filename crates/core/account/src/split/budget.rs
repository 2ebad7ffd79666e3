//! A node's price cut into one budget for each resource.

use dovetail_model::Money;
use dovetail_model::money::split;

use super::method::SplitMethod;
use super::node::{ByResource, ListPrices, NodeCost, SplitError};

const MILLI: i128 = 1000;
const BYTES_PER_GIB: i128 = 1 << 30;

/// A century; no bill is longer.
const LONGEST_MS: u64 = 3_200_000_000_000;

/// What each resource of the node carries; the three sum to the price.
pub(crate) fn budgets(
    method: SplitMethod,
    node: &NodeCost,
) -> Result<ByResource<Money>, SplitError> {
    let (offered, price) = (node.offered.capped(), node.price);
    if price < Money::ZERO {
        return Err(SplitError::NegativePrice { price });
    }
    let has_gpus = offered.gpu_milli > 0;
    let per_unit = |cpu, memory, gpu| ByResource {
        cpu: i128::from(offered.cpu_milli) * BYTES_PER_GIB * cpu,
        memory: i128::from(offered.memory_bytes) * MILLI * memory,
        gpu: i128::from(offered.gpu_milli) * BYTES_PER_GIB * gpu,
    };
    let shares = |cpu: i128, memory: i128, gpu: i128| ByResource {
        cpu: if offered.cpu_milli > 0 { cpu } else { 0 },
        memory: if offered.memory_bytes > 0 { memory } else { 0 },
        gpu: if has_gpus { gpu } else { 0 },
    };
    let open_cost = per_unit(31_611, 4_237, 950_000);
    let weights = match method {
        SplitMethod::AllIn if has_gpus => ByResource { cpu: 0, memory: 0, gpu: 1 },
        SplitMethod::AllIn | SplitMethod::OpenCost => open_cost,
        // Nothing to go by: a price of zero, or list prices of zero on a node without GPUs.
        SplitMethod::Residual => match residual(node)? {
            money if money.as_list() == [0; 3] => open_cost,
            money => money,
        },
        SplitMethod::AwsSplit => per_unit(9, 1, 90),
        SplitMethod::Datadog if has_gpus => shares(3, 2, 95),
        SplitMethod::Datadog => shares(60, 40, 0),
    };
    if weights.as_list().iter().sum::<i128>() == 0 {
        return Err(SplitError::NothingOffered);
    }
    let parts = split_money(price, &weights.as_list());
    Ok(ByResource { cpu: parts[0], memory: parts[1], gpu: parts[2] })
}

/// Money as weights: CPU and memory at list prices, GPUs the rest. A node that costs no more than
/// that, or that has no GPU, is CPU and memory in proportion of their list prices.
fn residual(node: &NodeCost) -> Result<ByResource<i128>, SplitError> {
    let prices = node.list_prices.ok_or(SplitError::UnknownListPrices)?;
    let ListPrices { usd_micros_per_vcpu_hour, usd_micros_per_gib_hour } = prices;
    let offered = node.offered.capped();
    // Amount × micro-dollars an hour × ms, over the units of the amount in an hour.
    let of_period = |amount: u64, usd_micros: u32, units: i128| {
        let product = i128::from(amount)
            * i128::from(usd_micros)
            * i128::from(node.period_ms.min(LONGEST_MS));
        let divisor = units * 3_600_000;
        (product + divisor / 2) / divisor
    };
    let cpu = of_period(offered.cpu_milli, usd_micros_per_vcpu_hour, MILLI);
    let memory = of_period(offered.memory_bytes, usd_micros_per_gib_hour, BYTES_PER_GIB);
    let rest = i128::from(node.price.usd_micros) - cpu - memory;
    Ok(ByResource { cpu, memory, gpu: if offered.gpu_milli > 0 { rest.max(0) } else { 0 } })
}

/// A budget by what each has of a resource, and what is left of it because nobody has it. Where
/// more is had than offered, all of it is paid; where nobody has anything and nothing is offered,
/// all is left.
pub(crate) fn share_out(budget: Money, has: &[i128], offered: i128) -> (Vec<Money>, Money) {
    let taken: i128 = has.iter().sum();
    let mut weights = has.to_vec();
    weights.push((offered - taken).max(0));
    if weights.iter().all(|weight| *weight == 0) {
        return (vec![Money::ZERO; has.len()], budget);
    }
    let mut parts = split_money(budget, &weights);
    let left = parts.pop().unwrap_or(Money::ZERO);
    (parts, left)
}

/// Splits money by weights of any size: those beyond what can be multiplied exactly are cut alike,
/// far below a micro-dollar.
pub fn split_money(total: Money, weights: &[i128]) -> Vec<Money> {
    const BITS: u32 = 126;
    let bits = |number: u128| u128::BITS - number.leading_zeros();
    let sum = weights.iter().fold(0_u128, |sum, weight| sum.saturating_add(weight.unsigned_abs()));
    let needed = bits(sum) + bits(u128::from(total.usd_micros.unsigned_abs()));
    match needed.saturating_sub(BITS) {
        0 => split(total, weights),
        excess => {
            let cut: Vec<i128> = weights.iter().map(|weight| weight >> excess).collect();
            split(total, &cut)
        }
    }
}
