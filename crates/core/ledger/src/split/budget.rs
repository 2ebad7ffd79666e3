//! A node's price cut into one budget for each resource.

use dovetail_model::Money;
use dovetail_model::money::split;

use super::method::SplitMethod;
use super::node::{ByResource, ListPrices, NodeCost, SplitError};

const MILLI: i128 = 1000;
const BYTES_PER_GIB: i128 = 1 << 30;

/// What each resource of the node carries; the three sum to the price.
pub(crate) fn budgets(
    method: SplitMethod,
    node: &NodeCost,
) -> Result<ByResource<Money>, SplitError> {
    let (offered, price) = (node.offered, node.price);
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
    let parts = split(price, &weights.as_list());
    Ok(ByResource { cpu: parts[0], memory: parts[1], gpu: parts[2] })
}

/// Money as weights: CPU and memory at list prices, GPUs the rest. A node that costs no more than that, or
/// that has no GPU, is CPU and memory in proportion of their list prices.
fn residual(node: &NodeCost) -> Result<ByResource<i128>, SplitError> {
    let prices = node.list_prices.ok_or(SplitError::UnknownListPrices)?;
    let ListPrices { usd_micros_per_vcpu_hour, usd_micros_per_gib_hour } = prices;
    let offered = node.offered;
    let vcpu = i128::from(offered.cpu_milli) * BYTES_PER_GIB * i128::from(usd_micros_per_vcpu_hour);
    let gib = i128::from(offered.memory_bytes) * MILLI * i128::from(usd_micros_per_gib_hour);
    // Micro-dollars an hour × 1000 × 2^30, over the period in hours.
    let scale = MILLI * BYTES_PER_GIB;
    let of_period = |amount: i128| {
        let divisor = scale * 3_600_000;
        (amount * i128::from(node.period_ms) + divisor / 2) / divisor
    };
    let (cpu, memory) = (of_period(vcpu), of_period(gib));
    let rest = i128::from(node.price.usd_micros) - cpu - memory;
    Ok(ByResource { cpu, memory, gpu: if offered.gpu_milli > 0 { rest.max(0) } else { 0 } })
}
