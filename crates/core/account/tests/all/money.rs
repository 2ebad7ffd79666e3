//! Money: every total equals capacity × time × price, and its parts add up to it.

use std::collections::BTreeMap;

use dovetail_account::{Amount, GpuPrice, Priced, PricedUsage, price};
use dovetail_capacity::{States, Usage};
use dovetail_cases::cases;
use dovetail_model::FreeCause::*;
use dovetail_model::{FreeCause, Money};
use proptest::prelude::*;

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

/// A period of one model: what was unavailable, held by others, held by two queues, free by each
/// cause.
fn states(parts: &[i128]) -> States<i128> {
    let mut states = States::zero();
    states.unavailable = parts[0];
    states.add_allocated(None, parts[1]);
    states.add_allocated(Some(""), parts[2]);
    states.add_allocated(Some("team"), parts[3]);
    for (cause, amount) in FreeCause::ALL.into_iter().zip(&parts[4..]) {
        states.add_free(cause, *amount);
    }
    states.installed = states.unavailable + states.allocated + states.free;
    states
}

fn usage(models: impl IntoIterator<Item = (&'static str, States<i128>)>) -> Usage {
    let mut usage = Usage {
        from_ms: 0,
        to_ms: 3_600_000,
        cause_period_ms: 0,
        cause_samples: 1,
        total_gpu_milli_ms: States::zero(),
        models_gpu_milli_ms: BTreeMap::new(),
    };
    for (model, states) in models {
        usage.total_gpu_milli_ms.add(&states);
        usage.models_gpu_milli_ms.insert(model.to_owned(), states);
    }
    usage.check().expect("the parts are the whole");
    usage
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..cases(300) })]

    #[test]
    fn totals_are_capacity_times_time_times_price(
        parts in prop::collection::vec(
            prop::collection::vec(
                prop_oneof![Just(0), 0i128..10, 0i128..1_000_000_000_000],
                4 + FreeCause::ALL.len(),
            ),
            1..4,
        ),
        micros_a in 0i64..20_000_000,
    ) {
        let usage = usage(["a", "b", ""].into_iter().zip(parts.iter().map(|parts| states(parts))));
        let prices = BTreeMap::from([(Some("a".to_owned()), known(micros_a, false))]);
        check(&price(&usage, &prices), &usage, micros_a)?;
    }
}

fn an_hour_of_three_models() -> Usage {
    const GPU_HOUR: i128 = 3_600_000_000;
    let gpus = |held: i128, free: i128| {
        let mut states = States::zero();
        states.installed = (held + free) * GPU_HOUR;
        states.add_allocated(Some(""), held * GPU_HOUR);
        states.add_free(NoDemand, free * GPU_HOUR);
        states
    };
    usage([("a", gpus(1, 1)), ("b", gpus(0, 1)), ("", gpus(0, 1))])
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
