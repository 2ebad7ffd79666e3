//! An hour of a node as charges, under every method at once.

use std::collections::BTreeMap;

use dovetail_model::Money;
use dovetail_model::device::WHOLE_DEVICE_MILLI;

use crate::cost::{HeldTime, NodeBill, Paid, charges};
use crate::device_time::DeviceInterval;
use crate::split::{ListPrices, NodeParts, SplitError, SplitMethod, Unused};

/// An amount of money under each method, in the order of [`SplitMethod::ALL`]; `None` where nobody
/// knows.
pub type ByMethod = [Option<Money>; SplitMethod::ALL.len()];

/// What is known of a node beside its devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeTerms {
    /// Price of the node in micro-USD for each of its GPUs and hour; `None` if nobody knows.
    pub usd_micros_per_gpu_hour: Option<i64>,
    /// Thousandths of a vCPU that it offers; 0 if nobody knows.
    pub cpu_milli: u64,
    /// Bytes of memory that it offers; 0 if nobody knows.
    pub memory_bytes: u64,
    /// Where CPU and memory are sold alone; `None` if nobody knows.
    pub list_prices: Option<ListPrices>,
}

/// What one payer pays for one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RolledUp {
    /// Who pays; `None` is nobody.
    pub holder: Option<u32>,
    pub paid: Paid,
    /// Device-time in milli-GPU × ms.
    pub gpu_milli_ms: i128,
    /// What it costs. Under each method the costs of a node are its price, to the micro-dollar.
    pub costs: ByMethod,
}

/// Adds up what the devices of a node were, one list for each device, and splits the node's price,
/// which is that of the time its devices were there. What nobody has is nobody's. `kept` is CPU and
/// memory × time by holder.
///
/// # Errors
/// See [`SplitError`].
pub fn roll_up<'d>(
    devices: impl IntoIterator<Item = &'d [DeviceInterval]>,
    terms: &NodeTerms,
    kept: &BTreeMap<u32, HeldTime>,
) -> Result<Vec<RolledUp>, SplitError> {
    let mut bill = NodeBill {
        offered: NodeParts {
            cpu_milli: terms.cpu_milli,
            memory_bytes: terms.memory_bytes,
            gpu_milli: 0,
        },
        list_prices: terms.list_prices,
        cpu_memory: kept.clone(),
        ..NodeBill::default()
    };
    for device in devices {
        bill.offered.gpu_milli += WHOLE_DEVICE_MILLI as u64;
        for interval in device {
            let key = (interval.holder, interval.state);
            *bill.gpus.entry(key).or_default() += interval.gpu_milli_ms();
        }
    }
    let time: i128 = bill.gpus.values().sum();
    if time == 0 {
        // Nothing was there, so nothing was billed.
        return Ok(Vec::new());
    }
    // On average over its GPUs: a node is billed while they are there.
    let average_ms = time / i128::from(bill.offered.gpu_milli.max(1));
    bill.billed_ms = u64::try_from(average_ms).unwrap_or(0);
    bill.price = terms.usd_micros_per_gpu_hour.map(|price| Money::of_gpu_time(time, price));
    under_every_method(&bill)
}

fn under_every_method(bill: &NodeBill) -> Result<Vec<RolledUp>, SplitError> {
    let is_known = |method: SplitMethod| {
        bill.price.is_some() && (method != SplitMethod::Residual || bill.list_prices.is_some())
    };
    // A charge that a method does not make costs nothing under it.
    let nothing = SplitMethod::ALL.map(|method| is_known(method).then_some(Money::ZERO));
    let mut rows: BTreeMap<(Option<u32>, Paid), RolledUp> = BTreeMap::new();
    for (place, method) in SplitMethod::ALL.into_iter().enumerate() {
        if bill.price.is_some() && !is_known(method) {
            continue;
        }
        for charge in charges(method, bill, Unused::Shown)? {
            let (holder, paid) = (charge.holder, charge.paid);
            let row = rows.entry((holder, paid)).or_insert(RolledUp {
                holder,
                paid,
                gpu_milli_ms: charge.gpu_milli_ms,
                costs: nothing,
            });
            row.costs[place] = charge.cost;
        }
    }
    Ok(rows.into_values().collect())
}
