//! Bills over periods, by hand.

use std::collections::BTreeMap;

use dovetail_account::cost::NodeBill;
use dovetail_account::device_time::{DeviceState, Span};

use super::super::account::{Basis, CostNode, Stretch};
use super::*;

const HOUR_MS: u64 = 3_600_000;
/// 2026-11-20T00:00:00Z.
const DAY_MS: u64 = 1_795_132_800_000;

/// Three nodes of one GPU over two days, at $2 an hour where `lists` has a list price.
fn account(lists: bool) -> Account {
    let node = |name: &str| CostNode {
        name: name.to_owned(),
        provider_id: format!("aws:///us-east-1a/i-{name}"),
        gpus: 1,
        ..CostNode::default()
    };
    let stretch = |day: u64| {
        let span =
            Span { from_ms: DAY_MS + 24 * day * HOUR_MS, to_ms: DAY_MS + 24 * (day + 1) * HOUR_MS };
        let bill = NodeBill {
            price: lists.then_some(Money::micros(48_000_000)),
            billed_ms: 24 * HOUR_MS,
            gpus: BTreeMap::from([((None, DeviceState::Unknown), 24_000 * i128::from(HOUR_MS))]),
            ..NodeBill::default()
        };
        let bills = (0..3).map(|node| (node, bill.clone())).collect();
        Stretch { span, bills, billed: BTreeMap::new(), seen: BTreeMap::new() }
    };
    Account {
        nodes: ["whole", "part", "none"].map(node).into(),
        stretches: vec![stretch(0), stretch(1)],
        basis: Basis::Sampled { step_ms: 60_000, holder_changes: 0, active_within_gpu_milli_ms: 0 },
        ..Account::default()
    }
}

/// `whole` is billed by one line for both days and more; `part` for six hours of the first day; a
/// machine of others for two hours.
const BILL: &str = "\
ResourceId,ChargePeriodStart,ChargePeriodEnd,BilledCost,EffectiveCost,ListCost,ChargeCategory,PricingCategory,CommitmentDiscountId
i-whole,2026-11-20T00:00:00Z,2026-11-22T00:00:00Z,10,50.000001,100,Usage,Committed,sp-1
i-part,2026-11-20T00:00:00Z,2026-11-20T06:00:00Z,6,6,9,Usage,Standard,
i-other,2026-11-20T00:00:00Z,2026-11-20T02:00:00Z,1,1,2,Usage,Standard,
";

fn put(account: &mut Account) -> BillOut {
    apply_lines(account, BILL.as_bytes(), "bill.csv", &Exchange::default()).unwrap()
}

fn prices(account: &Account, node: usize) -> Vec<Option<i64>> {
    let stretches = account.stretches.iter();
    stretches.map(|stretch| stretch.bills[node].1.price.map(|price| price.usd_micros)).collect()
}

/// By hand: $50.000001 over two days are $25.0000005 each, told as $25.000001 and $25.000000, which
/// is the bill's amount. `part` costs $6 for six hours and $2 an hour for the other 18 of its first
/// day; its second day, and both of `none`, are not in the bill: $48.
#[test]
fn time_that_a_bill_does_not_have_costs_the_list_price_and_is_told() {
    let mut account = account(true);
    let out = put(&mut account);
    let all: i64 = prices(&account, 0).into_iter().flatten().sum();
    assert_eq!(all, 50_000_001);
    assert_eq!(prices(&account, 1), [Some(42_000_000), Some(48_000_000)]);
    assert_eq!(prices(&account, 2), [Some(48_000_000), Some(48_000_000)]);
    // What was billed is held against the list price of the same time: 48 + 6 hours at $2.
    assert_eq!((out.billed_usd_micros, out.list_usd_micros), (56_000_001, 108_000_000));
    let part = &out.in_part[0];
    assert_eq!((out.nodes_in_part, &*part.node), (1, "part"));
    assert_eq!([out.hours_not_billed, part.hours, part.hours_not_billed], [42.0, 48.0, 42.0]);
    let told = |text: &str| account.notes.iter().any(|note| note.contains(text));
    assert!(
        told("1 node billed for a part of the period: 42.0 of 48.0 node-hours are not in the bill"),
        "{:?}",
        account.notes
    );
    assert!(told("1 node with GPUs missing from bill.csv"), "{:?}", account.notes);
    assert!(told("1 machine outside this cluster, $1.00 in total, 2.0 hours (first: i-other)"));
    // Beside the cost: the invoice, and list prices as the bill has them; of the rest the price.
    let billed = |day: usize, node: usize| {
        let billed = &account.stretches[day].billed[&node];
        (billed.invoiced.usd_micros, billed.list.map(|list| list.usd_micros))
    };
    assert_eq!(billed(0, 1), (42_000_000, Some(45_000_000)));
    let both = [billed(0, 0), billed(1, 0)];
    assert_eq!(both, [(5_000_000, Some(50_000_000)); 2]);
    let named = account.stretches[1].billed[&0].commitment.as_ref().map(|named| named.id.as_str());
    assert_eq!(named, Some("sp-1"));
}

/// Without a list price nobody knows what the rest of the time cost: the bill is all there is of a
/// node.
#[test]
fn without_list_prices_a_part_is_what_was_billed() {
    let mut account = account(false);
    let out = put(&mut account);
    assert_eq!(prices(&account, 1), [Some(6_000_000), None]);
    assert_eq!(prices(&account, 2), [None, None]);
    assert_eq!((out.nodes_in_part, out.discount_share), (1, None));
    let told =
        "1 node with GPUs missing from bill.csv: without a price because no list price is known";
    assert!(account.notes.iter().any(|note| note == told), "{:?}", account.notes);
    // Of two one has a list price.
    let mut account = self::account(true);
    account.stretches.iter_mut().for_each(|stretch| stretch.bills[1].1.price = None);
    let bill: String = BILL.lines().take(2).map(|line| format!("{line}\n")).collect();
    apply_lines(&mut account, bill.as_bytes(), "bill.csv", &Exchange::default()).unwrap();
    let told = "2 nodes with GPUs missing from bill.csv: at list prices, except 1 without a list \
                price";
    assert!(account.notes.iter().any(|note| note == told), "{:?}", account.notes);
}

/// By hand: of $720 over the 30 days of November two days have $48; with the $24 of the first day
/// $72 are taken off `whole`. `part` has more credits than costs: it counts at list prices, and
/// none of them is in a cost. Of one moment the node costs what it does on average of its two days,
/// which has the same $72 in it.
#[test]
fn the_note_on_credits_has_those_that_are_in_the_costs() {
    let bill = "\
ResourceId,ChargePeriodStart,ChargePeriodEnd,EffectiveCost,ChargeCategory
i-whole,2026-11-20T00:00:00Z,2026-11-22T00:00:00Z,480,Usage
i-whole,2026-11-01T00:00:00Z,2026-12-01T00:00:00Z,-720,Credit
i-whole,2026-11-20T00:00:00Z,2026-11-21T00:00:00Z,-24,Credit
i-part,2026-11-20T00:00:00Z,2026-11-20T06:00:00Z,6,Usage
i-part,2026-11-20T00:00:00Z,2026-11-20T06:00:00Z,-100,Credit
i-none,2026-11-20T00:00:00Z,2026-11-20T06:00:00Z,-7,Credit
";
    for basis in [account(true).basis, Basis::RunRate] {
        let mut account = Account { basis, ..account(true) };
        if basis == Basis::RunRate {
            account.stretches.truncate(1);
        }
        apply_lines(&mut account, bill.as_bytes(), "bill.csv", &Exchange::default()).unwrap();
        let told = "bill.csv: the costs of nodes include 2 credits or discounts, -$72.00 in total";
        assert!(account.notes.iter().any(|note| note == told), "{basis:?}: {:?}", account.notes);
        let whole: i64 = prices(&account, 0).into_iter().flatten().sum();
        let expected = if basis == Basis::RunRate { (480 - 72) / 2 } else { 480 - 72 };
        assert_eq!(whole, expected * 1_000_000);
    }
    let one: String = bill.lines().take(3).map(|line| format!("{line}\n")).collect();
    let mut account = account(true);
    apply_lines(&mut account, one.as_bytes(), "bill.csv", &Exchange::default()).unwrap();
    let told = "bill.csv: the cost of a node includes a credit or discount of -$48.00";
    assert!(account.notes.iter().any(|note| note == told), "{:?}", account.notes);
}

/// Sums of money hold nine trillion dollars: what may come to more is refused and named.
#[test]
fn a_bill_that_no_sum_can_hold_is_refused() {
    let refused = |resource: &str, dollars: &str| {
        let line =
            format!("{resource},2026-11-20T00:00:00Z,2026-11-20T01:00:00Z,{dollars},Usage\n");
        let head = "ResourceId,ChargePeriodStart,ChargePeriodEnd,EffectiveCost,ChargeCategory\n";
        let bill = format!("{head}{}", line.repeat(3));
        let mut account = Account { basis: Basis::RunRate, ..account(true) };
        apply_lines(&mut account, bill.as_bytes(), "bill.csv", &Exchange::default())
            .map_err(|error| error.to_string())
    };
    assert!(
        refused("i-whole", "1e12").unwrap_err().starts_with("bill.csv:2: column `EffectiveCost`")
    );
    assert!(
        refused("i-whole", "1e9").unwrap_err().starts_with("bill.csv: its lines add up to more")
    );
    assert!(refused("i-whole", "1e8").is_ok());
}

/// By hand: `whole` is billed $10 an hour for two days and was seen from 05:00 of the first to
/// 11:00 of the second: 19 + 11 hours are $300, held against $2 × 30 at list prices; the other 18
/// hours and $180 are in no amount.
#[test]
fn what_is_billed_before_and_after_a_node_was_seen_is_nobodys() {
    let bill = "\
ResourceId,ChargePeriodStart,ChargePeriodEnd,EffectiveCost,ChargeCategory
i-whole,2026-11-20T00:00:00Z,2026-11-22T00:00:00Z,480,Usage
";
    let mut account = account(true);
    account.span = Span { from_ms: DAY_MS, to_ms: DAY_MS + 48 * HOUR_MS };
    for (stretch, (from, to)) in account.stretches.iter_mut().zip([(5, 24), (24, 35)]) {
        let seen = Span { from_ms: DAY_MS + from * HOUR_MS, to_ms: DAY_MS + to * HOUR_MS };
        stretch.seen.insert(0, seen);
        let of_node = &mut stretch.bills[0].1;
        of_node.billed_ms = seen.to_ms - seen.from_ms;
        of_node.price = Some(Money::micros(2_000_000 * (to - from) as i64));
    }
    let out = apply_lines(&mut account, bill.as_bytes(), "bill.csv", &Exchange::default()).unwrap();
    assert_eq!(prices(&account, 0), [Some(190_000_000), Some(110_000_000)]);
    assert_eq!((out.billed_usd_micros, out.list_usd_micros), (300_000_000, 60_000_000));
    assert_eq!((out.hours_not_seen, out.not_seen_usd_micros), (18.0, 180_000_000));
    let told = "bill.csv: 18.0 node-hours of 1 node, $180.00, are in parts of the period without \
                data for these nodes (first: whole) and are not included in any amount";
    assert!(account.notes.iter().any(|note| note == told), "{:?}", account.notes);
    assert_eq!(out.hours_not_billed, 0.0);
}
