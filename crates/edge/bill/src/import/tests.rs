use dovetail_model::Money;

use super::*;

const HOUR_MS: u64 = 3_600_000;
/// 2026-11-20T10:00:00Z.
const TEN_MS: u64 = 1_795_168_800_000;

fn machines() -> BilledMachines {
    BilledMachines::new([("aws:///us-east-1a/i-1", 0), ("aws:///us-east-1a/i-2", 1)])
}

fn bill(text: &str) -> Bill {
    super::read(text.as_bytes(), "bill.csv", &machines()).unwrap()
}

const FOCUS: &str = "\
ResourceId,ChargePeriodStart,ChargePeriodEnd,BilledCost,EffectiveCost,ChargeCategory,BillingCurrency,AllocatedResourceId
i-1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,0,33.024,Usage,USD,
i-1,2026-11-20T11:00:00Z,2026-11-20T12:00:00Z,0,33.0240000001,Usage,USD,
arn:aws:ec2:us-east-1:1:instance/i-2,2026-11-20T00:00:00Z,2026-11-21T00:00:00Z,9,24,Usage,USD,
i-2,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,1,1,Usage,USD,pod-a
i-3,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,5,5,Usage,USD,
,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,7,7,Tax,USD,
";

#[test]
fn lines_are_matched_by_machine_and_what_is_not_is_listed() {
    let bill = bill(FOCUS);
    assert_eq!(bill.cost(0, TEN_MS, TEN_MS + 2 * HOUR_MS), Some(Money::micros(66_048_000)));
    // Half an hour of the first line; a quarter of a day at $24.
    assert_eq!(
        bill.cost(0, TEN_MS + HOUR_MS / 2, TEN_MS + HOUR_MS),
        Some(Money::micros(16_512_000))
    );
    // With what is allocated to a pod of it: that is in no other line.
    assert_eq!(bill.cost(1, TEN_MS, TEN_MS + 6 * HOUR_MS), Some(Money::micros(7_000_000)));
    assert_eq!(bill.cost(1, TEN_MS + 48 * HOUR_MS, TEN_MS + 49 * HOUR_MS), None);
    assert_eq!(bill.rate(Cost::Effective, 0, HOUR_MS), Some(Money::micros(33_024_000)));
    assert_eq!(bill.rate(Cost::Effective, 1, 24 * HOUR_MS), Some(Money::micros(25_000_000)));
    assert_eq!((bill.lines, bill.split_lines, bill.other_lines), (6, 0, 1));
    let unmatched =
        Unmatched { resource: "i-3", lines: 1, billed_ms: HOUR_MS, cost: Money::micros(5_000_000) };
    assert_eq!(bill.unmatched(), [unmatched]);
    assert_eq!(bill.currency.as_deref(), Some("USD"));
}

/// A report of AWS: bought on demand, from a reservation and under a savings plan, with rows of
/// pods.
#[test]
fn aws_reports_of_both_generations_are_amortised_and_their_pods_left_out() {
    let old = "\
lineItem/LineItemType,lineItem/ResourceId,lineItem/UsageStartDate,lineItem/UsageEndDate,lineItem/UnblendedCost,lineItem/CurrencyCode,reservation/EffectiveCost,savingsPlan/SavingsPlanEffectiveCost,splitLineItem/ParentResourceId,splitLineItem/SplitCost
Usage,i-1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,55.04,USD,,,,
DiscountedUsage,i-1,2026-11-20T11:00:00Z,2026-11-20T12:00:00Z,0,USD,30.5,,,
SavingsPlanCoveredUsage,i-1,2026-11-20T12:00:00Z,2026-11-20T13:00:00Z,55.04,USD,,2.75E1,,
Usage,arn:aws:eks:us-east-1:1:pod/c/ns/p/u,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,,USD,,,i-1,12.5
SavingsPlanNegation,i-1,2026-11-20T12:00:00Z,2026-11-20T13:00:00Z,-55.04,USD,,,,
";
    let header = old.lines().next().unwrap();
    let names: Vec<String> = header
        .split(',')
        .map(|name| {
            let spaced: String = name
                .replace('/', "_")
                .chars()
                .flat_map(|c| {
                    if c.is_uppercase() { vec!['_', c.to_ascii_lowercase()] } else { vec![c] }
                })
                .collect();
            spaced.replace("__", "_")
        })
        .collect();
    let new = old.replace(header, &names.join(",")).replace("T10:00:00Z", " 10:00:00.000");
    assert!(new.starts_with("line_item_line_item_type,line_item_resource_id,"), "{new}");
    for text in [old, &new] {
        let bill = bill(text);
        let hours = [0, 1, 2].map(|hour| TEN_MS + hour * HOUR_MS);
        let costs = hours.map(|from| bill.cost(0, from, from + HOUR_MS).unwrap().usd_micros);
        assert_eq!(costs, [55_040_000, 30_500_000, 27_500_000]);
        assert_eq!((bill.split_lines, bill.other_lines), (1, 1));
        assert!(bill.unmatched().is_empty());
    }
}

/// A report without amortised columns has 0 for time that a reservation covers and the price on
/// demand for time under a savings plan. Neither is what it cost.
#[test]
fn what_a_commitment_covers_is_not_free_where_its_cost_is_not_in_the_file() {
    let cur = "\
lineItem/LineItemType,lineItem/ResourceId,lineItem/UsageStartDate,lineItem/UsageEndDate,lineItem/UnblendedCost
DiscountedUsage,i-1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,0
Usage,i-1,2026-11-20T11:00:00Z,2026-11-20T12:00:00Z,55.04
SavingsPlanCoveredUsage,i-2,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,27.45
DiscountedUsage,i-9,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,0
";
    let found = bill(cur);
    let hour = |machine: usize, hour: u64| {
        found.cost(machine, TEN_MS + hour * HOUR_MS, TEN_MS + (hour + 1) * HOUR_MS)
    };
    assert_eq!([hour(0, 0), hour(0, 1), hour(1, 0)], [None, Some(Money::micros(55_040_000)), None]);
    // Nor is the rest of its time what it costs on average.
    assert_eq!(
        (found.rate(Cost::Effective, 0, HOUR_MS), found.rate(Cost::Effective, 1, HOUR_MS)),
        (None, None)
    );
    let unsaid = &found.unsaid;
    assert_eq!((unsaid.count, &*unsaid.lines, &*unsaid.kind), (2, &[2, 4][..], "DiscountedUsage"));
    assert_eq!(unsaid.elsewhere, 1);
    // The same of an invoice as FOCUS writes it; and a line that says nothing is not one of zero.
    let focus = "\
ResourceId,ChargePeriodStart,ChargePeriodEnd,BilledCost,ChargeCategory,PricingCategory,CommitmentDiscountId
i-1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,0,Usage,Committed,
i-2,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,,Usage,Standard,
i-2,2026-11-20T11:00:00Z,2026-11-20T12:00:00Z,0,Usage,Standard,
";
    let found = bill(focus);
    let costs = [(0, 0), (1, 0), (1, 1)].map(|(machine, hour)| {
        found.cost(machine, TEN_MS + hour * HOUR_MS, TEN_MS + (hour + 1) * HOUR_MS)
    });
    assert_eq!(costs, [None, None, Some(Money::ZERO)]);
    let amortised = bill(&focus.replace("BilledCost", "EffectiveCost"));
    assert_eq!(amortised.cost(0, TEN_MS, TEN_MS + HOUR_MS), Some(Money::ZERO));
}

#[test]
fn a_bill_says_how_machines_are_bought_and_is_turned_into_dollars() {
    use crate::focus::Pricing::{Committed, Dynamic, Standard};
    let focus = "\
ResourceId,ChargePeriodStart,ChargePeriodEnd,EffectiveCost,ChargeCategory,PricingCategory,CommitmentDiscountId,BillingCurrency
i-1,2026-11-20T10:00:00Z,2026-11-20T12:00:00Z,10,Usage,Standard,,EUR
i-1,2026-11-20T12:00:00Z,2026-11-20T15:00:00Z,10,Usage,Standard,sp-1,EUR
i-2,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,-2.5,Usage,Dynamic,,EUR
i-3,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,1,Usage,,,EUR
";
    let found = bill(focus);
    assert_eq!((found.bought(0), found.bought(1)), (Some(Committed), Some(Dynamic)));
    // Of two hours each, the committed; where only one kind is told, that one; where none is,
    // nothing.
    let even = bill(&focus.replace("T15:", "T14:"));
    assert_eq!(even.bought(0), Some(Committed));
    assert_eq!(bill(&focus.replace("sp-1", "")).bought(0), Some(Standard));
    assert_eq!(bill(&focus.replace("Dynamic", "Other")).bought(1), None);
    let cur = "\
lineItem/LineItemType,lineItem/ResourceId,lineItem/UsageStartDate,lineItem/UsageEndDate,lineItem/UnblendedCost,reservation/EffectiveCost
DiscountedUsage,i-1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,0,30.5
";
    assert_eq!(bill(cur).bought(0), Some(Committed));
    // Spot is in the usage type alone, whatever the term says.
    let spot = "\
lineItem/LineItemType,lineItem/ResourceId,lineItem/UsageStartDate,lineItem/UsageEndDate,lineItem/UnblendedCost,lineItem/UsageType,pricing/term
Usage,i-1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,18,USE1-SpotUsage:p5.48xlarge,OnDemand
Usage,i-2,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,55,BoxUsage:p5.48xlarge,OnDemand
";
    assert_eq!([bill(spot).bought(0), bill(spot).bought(1)], [Some(Dynamic), Some(Standard)]);
    // €20 at 1.08 are $21.60, and −€2.50 are −$2.70.
    let usd = found.clone().in_usd(1_080_000_000_000).unwrap();
    let day = (TEN_MS, TEN_MS + 24 * HOUR_MS);
    assert_eq!(usd.cost(0, day.0, day.1), Some(Money::micros(21_600_000)));
    assert_eq!(usd.cost(1, day.0, day.1), Some(Money::micros(-2_700_000)));
    assert_eq!(usd.unmatched()[0].cost, Money::micros(1_080_000));
    let most = bill(&focus.replace(",-2.5,", ",1e9,"));
    assert!(most.clone().in_usd(1_000_000_000_000_000).is_ok());
    assert!(most.in_usd(1_080_000_000_000_000).unwrap_err().contains("check the rate"));
}

/// Traffic stands under the machine's own name, on demand whatever the machine is, several lines an
/// hour: it does not say how the machine is bought, by the usage type where the file has it, else
/// by what it costs.
#[test]
fn traffic_of_a_machine_does_not_say_how_it_is_bought() {
    use crate::focus::Pricing::{Committed, Dynamic, Standard};
    let hour = "2026-11-20T10:00:00Z,2026-11-20T11:00:00Z";
    let traffic = |machine: &str| {
        let line =
            format!("Usage,{machine},{hour},0.01,0.01,USE1-DataTransfer-Out-Bytes,OnDemand,\n");
        line.repeat(3)
    };
    let cur = [
        "lineItem/LineItemType,lineItem/ResourceId,lineItem/UsageStartDate,lineItem/UsageEndDate,lineItem/UnblendedCost,\
         pricing/publicOnDemandCost,lineItem/UsageType,pricing/term,reservation/EffectiveCost\n",
        &traffic("i-1"),
        &format!("DiscountedUsage,i-1,{hour},0,55.04,BoxUsage:p5.48xlarge,Reserved,22\n"),
        &format!("Usage,i-2,{hour},20,55.04,USE1-SpotUsage:p5.48xlarge,,\n"),
        &traffic("i-2"),
    ]
    .concat();
    let found = bill(&cur);
    assert_eq!([found.bought(0), found.bought(1)], [Some(Committed), Some(Dynamic)]);
    // A report without amortised costs and list prices has $0 for what is reserved: its kind says
    // what it is.
    let bare = cur.replace(",55.04,BoxUsage", ",,BoxUsage").replace("Reserved,22", "Reserved,");
    assert_eq!(bill(&bare).bought(0), Some(Committed));
    // Without usage types nobody says that time is spot: what most is spent on says nothing, and
    // traffic is not asked.
    let without = cur.replace("lineItem/UsageType", "other");
    assert_eq!([bill(&without).bought(0), bill(&without).bought(1)], [Some(Committed), None]);
    // More spent on traffic than on the machine: by its usage type alone, and by the family of the
    // product.
    let dear = cur.replace("0.01,0.01,", "99,99,");
    assert_eq!(bill(&dear).bought(1), Some(Dynamic));
    let family = dear
        .replace("lineItem/UsageType", "product/productFamily")
        .replace("USE1-SpotUsage:p5.48xlarge,,", "Compute Instance,Spot,");
    assert_eq!(bill(&family).bought(1), Some(Dynamic));
    // FOCUS: by cost in each hour, and of the hours by their number, not by their cost.
    let focus = "\
ResourceId,ChargePeriodStart,ChargePeriodEnd,EffectiveCost,ListCost,ChargeCategory,PricingCategory
i-1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,1,55,Usage,Committed
i-1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,3,3,Usage,Standard
i-1,2026-11-20T11:00:00Z,2026-11-20T13:00:00Z,18,110,Usage,Dynamic
i-1,2026-11-20T10:00:00Z,2026-11-20T14:00:00Z,400,400,Usage,
i-2,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,99,99,Usage,Standard
i-2,2026-11-20T11:00:00Z,2026-11-20T13:00:00Z,20,20,Usage,Dynamic
i-2,2026-11-20T10:00:00Z,2026-11-20T14:00:00Z,4,4,Usage,Standard
";
    let found = bill(focus);
    assert_eq!([found.bought(0), found.bought(1)], [None, Some(Dynamic)]);
    let found = bill(&focus.replace(",400,400,", ",4,4,"));
    assert_eq!(found.bought(0), Some(Dynamic));
    let hours = [0, 1, 3].map(|hour| TEN_MS + hour * HOUR_MS);
    let of = |hour: usize| found.bought_in(0, hours[hour], hours[hour] + HOUR_MS);
    assert_eq!([of(0), of(1), of(2)], [Some(Committed), Some(Dynamic), None]);
    assert_eq!(found.bought_in(1, hours[0], hours[1]), Some(Standard));
}

/// $10 over three days is $3.333333 twice and $3.333334 once: the bill's $10, however it is cut. A
/// reservation covers i-2: nothing of it is on the invoice, and its negotiated price is the list
/// price where no other is told.
#[test]
fn each_cost_of_the_bill_is_kept_and_spans_in_a_row_have_all_of_it() {
    let focus = "\
ResourceId,ChargePeriodStart,ChargePeriodEnd,BilledCost,EffectiveCost,ListCost,ContractedCost,ChargeCategory,PricingCategory,CommitmentDiscountId,CommitmentDiscountType,CommitmentDiscountCategory
i-1,2026-11-20T00:00:00Z,2026-11-23T00:00:00Z,10,10,20.000001,16,Usage,Standard,,,
i-2,2026-11-20T00:00:00Z,2026-11-20T06:00:00Z,0,7,14,,Usage,Committed,ri-1,Reserved,Usage
i-2,2026-11-20T06:00:00Z,2026-11-20T10:00:00Z,0,7,14,,Usage,Committed,ri-2,Reserved,Usage
i-2,2026-11-20T10:00:00Z,2026-11-20T12:00:00Z,3,3,,,Usage,Standard,,,
";
    let found = bill(focus);
    let day = TEN_MS - 10 * HOUR_MS;
    let at = |hour: u64| day + hour * HOUR_MS;
    let days = [0, 24, 48, 72].map(at);
    let of =
        |cost| [0, 1, 2].map(|d| found.amount(cost, 0, days[d], days[d + 1]).unwrap().usd_micros);
    assert_eq!(of(Cost::Effective), [3_333_333, 3_333_334, 3_333_333]);
    assert_eq!(of(Cost::List).iter().sum::<i64>(), 20_000_001);
    assert_eq!(of(Cost::Contracted).iter().sum::<i64>(), 16_000_000);
    let two = |cost, to| found.amount(cost, 1, day, at(to)).map(|cost| cost.usd_micros);
    assert_eq!([two(Cost::Billed, 10), two(Cost::Effective, 10)], [Some(0), Some(14_000_000)]);
    assert_eq!([two(Cost::List, 10), two(Cost::Contracted, 10)], [Some(28_000_000); 2]);
    // Of the last two hours nobody says a list price; the negotiated one of time on demand is what
    // was paid.
    assert_eq!([two(Cost::List, 12), two(Cost::Contracted, 12)], [None, Some(31_000_000)]);
    assert_eq!(found.bought_in(1, day, at(10)), Some(crate::focus::Pricing::Committed));
    assert_eq!(found.bought_in(1, at(10), at(12)), Some(crate::focus::Pricing::Standard));
    let named = |from, to| found.commitment_in(1, at(from), at(to)).map(|(c, many)| (&*c.id, many));
    assert_eq!(
        [named(0, 12), named(5, 12), named(10, 12)],
        [Some(("ri-1", 2)), Some(("ri-2", 2)), None]
    );
    assert_eq!(
        (found.billed_ms(1, day, at(48)), found.billed_ms(1, at(11), at(13))),
        (12 * HOUR_MS, HOUR_MS)
    );
}

/// The same of a report of AWS, whose negations and fees are left out: time under a plan is not on
/// the invoice by itself.
#[test]
fn aws_reports_have_the_costs_of_focus_and_name_commitments() {
    use crate::focus::Pricing::Committed;
    let cur = "\
lineItem/LineItemType,lineItem/ResourceId,lineItem/UsageStartDate,lineItem/UsageEndDate,lineItem/UnblendedCost,pricing/publicOnDemandCost,reservation/EffectiveCost,reservation/ReservationARN,savingsPlan/SavingsPlanEffectiveCost,savingsPlan/SavingsPlanARN
Usage,i-1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,50,55.04,,,,
DiscountedUsage,i-1,2026-11-20T11:00:00Z,2026-11-20T12:00:00Z,0,55.04,30.5,arn:ri,,
SavingsPlanCoveredUsage,i-1,2026-11-20T12:00:00Z,2026-11-20T13:00:00Z,52,55.04,,,27.5,arn:sp
";
    let found = bill(cur);
    let of = |cost| {
        [0, 1, 2].map(|hour| {
            let from = TEN_MS + hour * HOUR_MS;
            found.amount(cost, 0, from, from + HOUR_MS).unwrap().usd_micros / 10_000
        })
    };
    assert_eq!(of(Cost::Effective), [5_000, 3_050, 2_750]);
    assert_eq!(of(Cost::Billed), [5_000, 0, 0]);
    assert_eq!(of(Cost::List), [5_504; 3]);
    assert_eq!(of(Cost::Contracted), [5_000, 5_504, 5_200]);
    let hour =
        |hour| found.commitment_in(0, TEN_MS + hour * HOUR_MS, TEN_MS + (hour + 1) * HOUR_MS);
    let said = |c: &Commitment| [c.id.clone(), c.category.clone(), c.kind.clone()].join(" ");
    assert_eq!(hour(0), None);
    assert_eq!(hour(1).map(|(c, _)| said(c)).unwrap(), "arn:ri Usage Reserved");
    assert_eq!(hour(2).map(|(c, _)| said(c)).unwrap(), "arn:sp Spend SavingsPlan");
    assert_eq!(found.bought(0), Some(Committed));
}

/// By hand: $80 of two hours less a discount of $8 in the first are $72; a credit of $30 over both
/// hours is $15 an hour. What is negotiated changes the negotiated price, a credit does not;
/// neither changes the list price, nor for how long the machine was billed.
#[test]
fn discounts_and_credits_of_a_machine_are_taken_off_its_costs() {
    let cur = "\
lineItem/LineItemType,lineItem/ResourceId,lineItem/UsageStartDate,lineItem/UsageEndDate,lineItem/UnblendedCost,pricing/publicOnDemandCost
Credit,i-1,2026-11-20T10:00:00Z,2026-11-20T12:00:00Z,-30,
Usage,i-1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,40,55
Usage,i-1,2026-11-20T11:00:00Z,2026-11-20T12:00:00Z,40,55
EdpDiscount,i-1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,-8,
BundledDiscount,i-2,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,-4,
Credit,,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,-500,
Usage,i-9,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,5,5
Credit,i-9,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,-2,
";
    let found = bill(cur);
    let dollars = |cost, hours: std::ops::Range<u64>| {
        let [from, to] = [hours.start, hours.end].map(|hour| TEN_MS + hour * HOUR_MS);
        found.amount(cost, 0, from, to).map(|amount| amount.usd_micros / 1_000_000)
    };
    let both = [Cost::Effective, Cost::Billed, Cost::List, Cost::Contracted]
        .map(|cost| dollars(cost, 0..2).unwrap());
    assert_eq!(both, [42, 42, 110, 72]);
    assert_eq!([dollars(Cost::Billed, 0..1), dollars(Cost::Billed, 1..2)], [Some(17), Some(25)]);
    assert_eq!(found.rate(Cost::Effective, 0, HOUR_MS), Some(Money::micros(21_000_000)));
    // A discount alone is no price, and does not say that the machine was billed.
    assert_eq!((found.rate(Cost::Effective, 1, HOUR_MS), found.bounds(1)), (None, None));
    assert_eq!(found.unmatched()[0].cost, Money::micros(3_000_000));
    // Both of the first machine: $8 and $30, of which the second hour has $15.
    let off = |from| {
        let (lines, off) = found.discounts(0, from, u64::MAX);
        (lines.len(), off.usd_micros / 1_000_000)
    };
    assert_eq!([off(0), off(TEN_MS + HOUR_MS)], [(2, -38), (1, -15)]);
    assert_eq!(found.discounts(1, 0, u64::MAX), (Vec::new(), Money::ZERO));
    assert_eq!(found.other_lines, 1);
    let euros = found.in_usd(2_000_000_000_000).unwrap();
    assert_eq!(euros.rate(Cost::Effective, 0, HOUR_MS), Some(Money::micros(42_000_000)));
    // FOCUS says in each column what a credit takes off.
    let focus = "\
ResourceId,ChargePeriodStart,ChargePeriodEnd,BilledCost,EffectiveCost,ListCost,ContractedCost,ChargeCategory
i-1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,10,9,55,20,Usage
i-1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,-2,-1,0,-3,Credit
";
    let found = bill(focus);
    let of = |cost| found.rate(cost, 0, HOUR_MS).unwrap().usd_micros / 1_000_000;
    let costs = [Cost::Effective, Cost::Billed, Cost::List, Cost::Contracted].map(of);
    assert_eq!(costs, [8, 8, 55, 17]);
}

/// By hand: $960 of one day are $40 an hour; of a credit of $720 over the 30 days of November one
/// day has $24, or $1 an hour. In a month of which one day is billed, the same $24 are taken off,
/// and nothing is of days that are not billed.
#[test]
fn of_a_credit_over_a_month_a_day_has_its_day() {
    let found = bill(
        "\
lineItem/LineItemType,lineItem/ResourceId,lineItem/UsageStartDate,lineItem/UsageEndDate,lineItem/UnblendedCost
Usage,i-1,2026-11-20T00:00:00Z,2026-11-21T00:00:00Z,960
Credit,i-1,2026-11-01T00:00:00Z,2026-12-01T00:00:00Z,-720
Usage,i-2,2026-11-20T12:00:00Z,2026-11-20T13:00:00Z,40
Credit,i-2,2026-11-01T00:00:00Z,2026-12-01T00:00:00Z,-720
",
    );
    assert_eq!(found.rate(Cost::Effective, 0, HOUR_MS), Some(Money::micros(39_000_000)));
    assert_eq!(found.rate(Cost::Effective, 1, HOUR_MS), Some(Money::micros(39_000_000)));
    let day = TEN_MS - 10 * HOUR_MS;
    let cost = |from_day: u64, to_day: u64| {
        let at = |days: u64| day - 19 * 24 * HOUR_MS + days * 24 * HOUR_MS;
        found.cost(0, at(from_day), at(to_day)).map(|cost| cost.usd_micros / 1_000_000)
    };
    assert_eq!([cost(0, 30), cost(19, 20), cost(18, 21)], [Some(936); 3]);
    assert_eq!(cost(20, 30), None);
}

/// By hand, of $40 at list price: what is negotiated (−8, −2, −1) is off the negotiated price, all
/// else (−3, −4, −1) only off what was paid.
#[test]
fn only_negotiated_discounts_are_in_the_negotiated_price() {
    let mut cur = "\
lineItem/LineItemType,lineItem/ResourceId,lineItem/UsageStartDate,lineItem/UsageEndDate,lineItem/UnblendedCost,pricing/publicOnDemandCost
Usage,i-1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,40,40
"
    .to_owned();
    for (kind, dollars) in [
        ("EdpDiscount", -8),
        ("PrivateRateDiscount", -2),
        ("SppDiscount", -1),
        ("BundledDiscount", -3),
        ("RiVolumeDiscount", -4),
        ("Discount", -1),
    ] {
        cur += &format!("{kind},i-1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,{dollars},\n");
    }
    let found = bill(&cur);
    let of = |cost| found.rate(cost, 0, HOUR_MS).unwrap().usd_micros / 1_000_000;
    let costs = [Cost::Effective, Cost::Billed, Cost::List, Cost::Contracted].map(of);
    assert_eq!(costs, [21, 21, 40, 29]);
}

/// A report with columns after discounts: $40 that are $32, and $30 of a savings plan that are $27.
/// Where the discounts stand in lines too, they are the same ones; a credit is a line in either.
#[test]
fn discounts_in_columns_count_and_count_once() {
    let cur = |more: &str| {
        bill(&format!(
            "line_item_line_item_type,line_item_resource_id,line_item_usage_start_date,line_item_usage_end_date,\
             line_item_unblended_cost,line_item_net_unblended_cost,savings_plan_savings_plan_effective_cost,\
             savings_plan_net_savings_plan_effective_cost\n\
             Usage,i-1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,40,32,,\n\
             SavingsPlanCoveredUsage,i-1,2026-11-20T11:00:00Z,2026-11-20T12:00:00Z,40,36,30,27\n\
             Credit,i-1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,-2,-2,,\n{more}"
        ))
    };
    let of = |found: &Bill| {
        [Cost::Effective, Cost::Billed, Cost::Contracted].map(|cost| {
            let amount = found.amount(cost, 0, TEN_MS, TEN_MS + 2 * HOUR_MS).unwrap();
            amount.usd_micros / 1_000_000
        })
    };
    assert_eq!(of(&cur("")), [32 - 2 + 27, 30, 32 + 40]);
    let lines = "EdpDiscount,i-1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,-8,-8,,\n\
                 EdpDiscount,i-1,2026-11-20T11:00:00Z,2026-11-20T12:00:00Z,-3,-3,,\n";
    assert_eq!(of(&cur(lines)), [32 - 2 + 27, 30 - 3, 32 + 40 - 3]);
    // Lines of other machines, of none and of nothing say nothing of the columns of this one.
    for other in
        ["EdpDiscount,,_,-6,0,,", "BundledDiscount,d-cdn,_,-6,0,,", "Discount,i-2,_,-6,0,,"]
    {
        let line = other.replace('_', "2026-11-20T10:00:00Z,2026-11-20T11:00:00Z");
        assert_eq!(of(&cur(&(line + "\n"))), [32 - 2 + 27, 30, 32 + 40], "{other}");
    }
    let nothing = "EdpDiscount,i-1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,0,0,,\n";
    assert_eq!(of(&cur(nothing)), [32 - 2 + 27, 30, 32 + 40]);
}

#[test]
fn what_cannot_be_read_is_told_with_its_place() {
    for (from, to, told) in [
        ("ResourceId,", "Resource,", "bill.csv:1: column `ResourceId` of FOCUS is missing"),
        ("ChargePeriodStart", "Start", "bill.csv:1: neither a FOCUS file"),
        ("33.024,", "33 USD,", "bill.csv:2: column `EffectiveCost`: `33 USD` is not an amount"),
        ("33.024,", "1e400,", "bill.csv:2: column `EffectiveCost`"),
        (
            "2026-11-20T12:00:00Z",
            "noon",
            "bill.csv:3: column `ChargePeriodEnd`: `noon` is not a time",
        ),
        (
            "2026-11-20T11:00:00Z,0",
            "2026-11-20T09:00:00Z,0",
            "bill.csv:2: column `ChargePeriodEnd`: it ends",
        ),
        (
            "Usage,USD,\narn",
            "Usage,EUR,\narn",
            "column `BillingCurrency`: the file mixes USD and EUR",
        ),
        (
            "i-2,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,1,1,Usage,USD,pod-a",
            "i-2,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,1,1,Usage,,",
            "bill.csv:5: column `BillingCurrency`",
        ),
        ("i-3,", "i-3,,", "bill.csv:6: "),
    ] {
        let bad = FOCUS.replacen(from, to, 1);
        assert_ne!(bad, FOCUS, "{from}");
        let error = super::read(bad.as_bytes(), "bill.csv", &machines()).unwrap_err().to_string();
        assert!(error.contains(told), "{from}: {error}");
    }
    let not_text = [FOCUS.as_bytes(), b"\xff,,,,,,,\n"].concat();
    let error = super::read(&not_text[..], "bill.csv", &machines()).unwrap_err().to_string();
    assert!(error.starts_with("bill.csv:8: "), "{error}");
}

/// A billion an hour is read, in either direction and of two hours two; a unit more is not, and
/// neither is it as a credit of one moment.
#[test]
fn amounts_that_no_machine_costs_are_refused_at_their_place() {
    let read = |line: &str| {
        let cur = format!(
            "lineItem/UsageStartDate,lineItem/UsageEndDate,lineItem/ResourceId,lineItem/LineItemType,\
             lineItem/UnblendedCost\n2026-11-20T10:00:00Z,{line}\n"
        );
        super::read(cur.as_bytes(), "bill.csv", &machines())
    };
    for taken in [
        "2026-11-20T11:00:00Z,i-1,Usage,1e9",
        "2026-11-20T12:00:00Z,i-1,Usage,-2e9",
        "2026-11-20T10:00:00Z,i-1,Credit,-1e9",
        "2026-11-20T10:00:01Z,i-9,Usage,720",
    ] {
        assert!(read(taken).is_ok(), "{taken}");
    }
    for refused in [
        "2026-11-20T11:00:00Z,i-1,Usage,1e12",
        "2026-11-20T11:00:00Z,i-1,Usage,1000000001",
        "2026-11-20T12:00:00Z,i-9,Usage,-2000000001",
        "2026-11-20T10:00:00Z,i-1,Credit,-1000000001",
    ] {
        let error = read(refused).unwrap_err().to_string();
        let place = "bill.csv:2: column `lineItem/UnblendedCost`: `";
        assert!(error.starts_with(place) && error.contains("a billion per hour"), "{error}");
    }
}

/// By hand: $1e9 an hour of one machine is taken, of two it is $2e9 an hour; $300,000 in one second
/// is $1.08e9 an hour; a thousand hours of $1e9 are the trillion that a bill may come to, and one
/// more of a machine elsewhere is above it.
#[test]
fn a_bill_that_no_sum_can_hold_is_told() {
    let told = |lines: &[&str]| {
        let head = "ResourceId,ChargePeriodStart,ChargePeriodEnd,EffectiveCost,ChargeCategory\n";
        bill(&format!("{head}{}\n", lines.join("\n"))).is_too_much().is_some()
    };
    let one = "i-1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,1e9,Usage";
    let thousand = "i-1,2026-11-20T00:00:00Z,2026-12-31T16:00:00Z,1e12,Usage";
    let back = one.replace("1e9,Usage", "-1e9,Credit");
    assert_eq!([told(&[one]), told(&[one, &one.replace("i-1", "i-2")])], [false, true]);
    assert_eq!([told(&[one, &back]), told(&[&one.replace("1e9", "-1e9")])], [true, false]);
    assert!(told(&["i-1,2026-11-20T10:00:00Z,2026-11-20T10:00:01Z,300000,Usage"]));
    assert_eq!([told(&[thousand]), told(&[thousand, &one.replace("i-1", "i-9")])], [false, true]);
}

#[test]
fn a_credit_that_states_no_amortised_amount_is_what_the_invoice_says() {
    let focus = "\
ResourceId,ChargePeriodStart,ChargePeriodEnd,BilledCost,EffectiveCost,ChargeCategory
i-1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,10,10,Usage
i-1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,-4,,Credit
i-2,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,,,Credit
";
    let bill = bill(focus);
    assert_eq!(bill.cost(0, TEN_MS, TEN_MS + HOUR_MS), Some(Money::micros(6_000_000)));
    assert_eq!(bill.other_lines, 1);
    assert_eq!(bill.discounts_of_no_time(), (0, Money::ZERO));
}

#[test]
fn credits_of_a_machine_without_time_are_told() {
    let focus = "\
ResourceId,ChargePeriodStart,ChargePeriodEnd,EffectiveCost,ChargeCategory
i-1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,10,Usage
i-1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,-4,Credit
i-2,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,-3,Credit
i-2,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,-2,Credit
";
    assert_eq!(bill(focus).discounts_of_no_time(), (1, Money::micros(-5_000_000)));
}

#[test]
fn a_column_that_is_read_stands_once() {
    let read = |header: &str| super::read(header.as_bytes(), "bill.csv", &machines());
    let aws = "lineItem/ResourceId,lineItem/UsageStartDate,lineItem/UsageEndDate,lineItem/LineItemType,\
               lineItem/UnblendedCost";
    let error = read(&format!("{aws},lineItem/ResourceId\n")).unwrap_err().to_string();
    assert!(error.contains("column `lineItem/ResourceId`: duplicate"), "{error}");
    assert!(error.contains("number 6"), "{error}");
    // Older and newer reports write it in two ways.
    let error = read(&format!("{aws},line_item_unblended_cost\n")).unwrap_err().to_string();
    let both = "columns `lineItem/UnblendedCost` and `line_item_unblended_cost` are the same";
    assert!(error.contains(both), "{error}");
    // Tags that are nobody's concern here may differ in their case alone, and then some tools write
    // them alike.
    assert!(read(&format!("{aws},resourceTags/user:Name,resourceTags/user:Name\n")).is_ok());
}

#[test]
fn the_dearest_and_longest_line_is_divided_too() {
    let text = FOCUS.replace(
        "i-1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,0,33.024,",
        "i-1,1970-01-01T00:00:00Z,9999-12-30T00:00:00Z,0,1e12,",
    );
    assert_ne!(text, FOCUS);
    let whole_ms = 253_402_128_000_000;
    let half = bill(&text).cost(0, 0, whole_ms / 2).unwrap();
    assert_eq!(half, Money::micros(500_000_000_000_000_000 + 66_048_000 - 33_024_000));
}
