//! Money: every total equals capacity × time × price, and its parts add up to it.

use std::collections::BTreeMap;

use dovetail_ledger::{Amount, GpuPrice, Priced, PricedUsage, States, Usage, UsageIntegral, price};
use dovetail_model::FreeCause::*;
use dovetail_model::{FreeCause, Money};
use proptest::prelude::*;

use crate::properties::{Reader, happen, random_world};
use crate::world::{cluster, gang, node, submit, whole};

fn known(usd_micros_per_gpu_hour: i64, assumed: bool) -> Priced {
    Priced::Known(GpuPrice { usd_micros_per_gpu_hour, source: "test".to_owned(), assumed })
}

fn micros(amount: Amount) -> i128 {
    i128::from(amount.usd_micros().unwrap_or(0))
}

/// Every amount of a split, with its GPU-time by another way.
fn pairs<'s>(
    money: &'s States<Amount>,
    time: &'s States<i128>,
) -> impl Iterator<Item = (Amount, i128)> + 's {
    let causes =
        FreeCause::ALL.into_iter().map(|cause| (money.free_by(cause), time.free_by(cause)));
    let queues = money.allocated_by_queue.iter().map(|(q, m)| (*m, time.allocated_by_queue[q]));
    let rest = [
        (money.unavailable, time.unavailable),
        (money.allocated_by_others, time.allocated_by_others),
    ];
    causes.chain(queues).chain(rest)
}

fn check(priced: &PricedUsage, usage: &Usage, micros_a: i64) -> Result<(), TestCaseError> {
    let mut sum = Money::ZERO;
    for (model, bill) in &priced.models {
        let time = &usage.models_gpu_milli_ms[model];
        prop_assert_eq!(bill.amounts.check(micros), Ok(()));
        prop_assert_eq!(bill.amounts.check(|amount| amount.gpu_milli_ms), Ok(()));
        if model != "a" {
            prop_assert_eq!(&bill.price, &Priced::Unknown);
            let unknown = |(amount, _): (Amount, i128)| match amount.gpu_milli_ms {
                0 => true,
                _ => amount.usd_micros().is_none(),
            };
            prop_assert!(pairs(&bill.amounts, time).all(unknown));
            continue;
        }
        let total = Money::of_gpu_time(time.installed, micros_a);
        prop_assert_eq!(bill.amounts.installed.usd_micros(), Some(total.usd_micros));
        sum += total;
        for (amount, gpu_milli_ms) in pairs(&bill.amounts, time) {
            prop_assert_eq!(amount.gpu_milli_ms, gpu_milli_ms);
            let off = micros(amount) * 3_600_000_000 - gpu_milli_ms * i128::from(micros_a);
            prop_assert!(off.abs() < 2 * 3_600_000_000, "a part is off by two micro-dollars");
        }
    }
    prop_assert_eq!(priced.total.check(micros), Ok(()));
    prop_assert_eq!(micros(priced.total.installed), i128::from(sum.usd_micros));
    prop_assert_eq!(priced.total.installed.gpu_milli_ms, usage.total_gpu_milli_ms.installed);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn totals_are_capacity_times_time_times_price(
        draw in prop::collection::vec(any::<u32>(), 60..400),
        micros_a in 0i64..20_000_000,
    ) {
        let mut draw = Reader(draw.iter());
        let mut engine = random_world(&mut draw);
        let mut account = UsageIntegral::new(&engine, 0, 0).expect("in order");
        let (mut next_job, mut now_ms) = (0, 0);
        for _ in 0..8 {
            now_ms += u64::from(draw.below(10_000_000));
            account.advance(&mut engine, now_ms).expect("in order");
            happen(&mut engine, &mut draw, &mut next_job, now_ms);
        }
        let usage = account.usage();
        let prices = BTreeMap::from([(Some("a".to_owned()), known(micros_a, false))]);
        check(&price(&usage, &prices), &usage, micros_a)?;
    }
}

fn an_hour_of_three_models() -> Usage {
    let mut nodes = vec![node("a", 2), node("b", 1), node("unnamed", 1)];
    nodes[1].devices[0].model = "b".to_owned();
    nodes[2].devices[0].model = String::new();
    let mut engine = cluster(nodes);
    submit(&mut engine, gang(1, whole(1), 1));
    let mut account = UsageIntegral::new(&engine, 0, 0).expect("in order");
    account.advance(&mut engine, 3_600_000).expect("in order");
    account.usage()
}

#[test]
fn an_unknown_price_is_unknown_and_an_assumed_one_is_named() {
    let usage = an_hour_of_three_models();
    let prices = BTreeMap::from([
        (Some("a".to_owned()), known(2_000_001, false)),
        (None, known(500_000, true)),
    ]);
    let priced = price(&usage, &prices);
    assert_eq!(priced.unknown_models, ["b"]);
    assert_eq!(priced.assumed_prices.len(), 1);
    assert_eq!(priced.assumed_prices[0].model, "");
    assert_eq!(priced.models["b"].amounts.installed.usd_micros(), None);
    // 2 × $2.000001 + $0.50; the unknown model adds GPU-time and no money.
    assert_eq!(priced.total.installed.usd_micros(), Some(4_500_002));
    assert_eq!(priced.total.installed.priced_share(), Some(0.75));
    assert_eq!(priced.total.allocated.usd_micros(), Some(2_000_001));
    assert_eq!(priced.total.free_by(NoDemand).usd_micros(), Some(2_500_001));
    assert_eq!(priced.total.free_by(Quota).usd_micros(), Some(0));
    assert_eq!(priced.total.free_by(Quota).priced_share(), None);
}

#[test]
fn json_keys_carry_units_and_unknown_is_null() {
    let priced = price(&an_hour_of_three_models(), &BTreeMap::new());
    let json = serde_json::to_value(&priced).expect("plain data");
    let free = &json["total"]["free_by_cause"]["no_demand"];
    assert_eq!(free["gpu_hours"], 3.0);
    assert_eq!(free["usd_micros"], serde_json::Value::Null);
    assert_eq!(free["priced_share"], 0.0);
    assert_eq!(json["models"]["a"]["price"], "unknown");
}
