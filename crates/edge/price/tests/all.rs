//! The price book as its users see it.

use std::collections::BTreeMap;

use dovetail_cases::cases;
use dovetail_price::{
    Exchange, KnownPrice, LabelPairs, MAX_USD_MICROS_PER_GPU_HOUR, OwnedMachine, OwnedNodes, Price,
    PriceBook, PriceOrigin, PriceQuery, Purchase, format_usd_micros, parse_usd_micros,
};
use proptest::prelude::*;

fn known(price: Price) -> KnownPrice {
    match price {
        Price::Known(known) => known,
        Price::Unknown => panic!("no price"),
    }
}

fn default_price(book: &PriceBook, model: &str) -> Price {
    book.lookup(Some(model), None, None, Purchase::OnDemand)
}

fn overrides(csv: &str) -> Result<PriceBook, String> {
    PriceBook::built_in()
        .with_overrides_csv(csv.as_bytes(), "mine.csv")
        .map_err(|error| error.to_string())
}

#[test]
fn list_prices_are_found_at_the_default_place_and_say_so() {
    let book = PriceBook::built_in();
    let cases = [
        ("H100", 6_880_000, "aws", "us-east-1"),
        ("NVIDIA-A100-SXM4-80GB", 3_430_888, "aws", "us-east-1"),
        ("Tesla-T4", 526_000, "aws", "us-east-1"),
        ("V100M16", 3_060_000, "aws", "us-east-1"),
        ("V100M32", 3_060_000, "aws", "us-east-1"),
        ("RTXPRO6000", 4_499_925, "gcp", "us-central1"),
        ("A10", 3_200_000, "azure", "eastus"),
    ];
    for (model, usd_micros, provider, region) in cases {
        let price = known(default_price(&book, model));
        assert_eq!(price.usd_micros_per_gpu_hour, usd_micros, "{model}");
        assert_eq!(price.provider.as_deref(), Some(provider), "{model}");
        assert_eq!(price.region.as_deref(), Some(region), "{model}");
        assert_eq!(price.origin, PriceOrigin::BuiltIn);
        assert!(price.as_of.is_some_and(|day| day.starts_with("2026-")));
    }
}

#[test]
fn a_model_without_a_default_place_takes_its_cheapest_region() {
    let book = PriceBook::built_in();
    let cheapest = known(default_price(&book, "MI300X"));
    assert_eq!(cheapest.provider.as_deref(), Some("azure"));
    let regions = include_str!("../data/price_book.csv")
        .lines()
        .filter(|row| row.starts_with("MI300X,") && row.contains(",on_demand,"));
    let listed = regions.map(|row| parse_usd_micros(row.split(',').nth(4).unwrap()).unwrap());
    assert_eq!(Some(cheapest.usd_micros_per_gpu_hour), listed.min());
}

#[test]
fn what_nobody_priced_is_unknown() {
    let book = PriceBook::built_in();
    assert_eq!(default_price(&book, "G2"), Price::Unknown);
    assert_eq!(book.lookup(None, None, None, Purchase::OnDemand), Price::Unknown);
    assert_eq!(book.lookup(Some(""), None, None, Purchase::OnDemand), Price::Unknown);
    let aws_spot = book.lookup(Some("H100"), Some("aws"), None, Purchase::Spot);
    assert_eq!(aws_spot, Price::Unknown);
    let elsewhere = book.lookup(Some("H100"), Some("aws"), Some("mars-1"), Purchase::OnDemand);
    assert_eq!(elsewhere, Price::Unknown);
    assert_eq!(default_price(&book, "G2").usd_micros_per_gpu_hour(), None);
}

#[test]
fn the_most_specific_override_wins() {
    let book = overrides(
        "gpu_model,provider,region,purchase,usd_per_gpu_hour,source,as_of\n\
         H100,,,,2.5,contract,2026-02-28\n\
         H100,aws,,,3,,\n\
         H100,aws,us-east-1,spot,1.25,,\n\
         *,,,,0.75,,\n",
    )
    .unwrap();
    let price = |provider, region, purchase| {
        known(book.lookup(Some("H100"), provider, region, purchase)).usd_micros_per_gpu_hour
    };
    assert_eq!(price(None, None, Purchase::OnDemand), 2_500_000);
    assert_eq!(price(Some("gcp"), Some("us-central1"), Purchase::Spot), 2_500_000);
    assert_eq!(price(Some("aws"), None, Purchase::Committed), 3_000_000);
    assert_eq!(price(Some("aws"), Some("eu-west-1"), Purchase::Spot), 3_000_000);
    assert_eq!(price(Some("aws"), Some("us-east-1"), Purchase::Spot), 1_250_000);
    assert_eq!(price(Some("aws"), Some("us-east-1"), Purchase::OnDemand), 3_000_000);

    let everywhere = known(default_price(&book, "H100"));
    assert_eq!(everywhere.origin, PriceOrigin::Override);
    assert_eq!((everywhere.source.as_str(), everywhere.provider), ("contract", None));
    let unsourced = known(book.lookup(None, None, None, Purchase::OnDemand));
    assert_eq!(
        (unsourced.source.as_str(), unsourced.usd_micros_per_gpu_hour),
        ("mine.csv:5", 750_000)
    );
    assert_eq!(known(default_price(&book, "T4")).origin, PriceOrigin::BuiltIn);
}

/// Asks as a node of a cloud does.
fn of_type(book: &PriceBook, model: &str, instance_type: &str) -> KnownPrice {
    known(book.price_of(&PriceQuery {
        model: Some(model),
        provider: Some("aws"),
        region: Some("us-east-1"),
        instance_type: Some(instance_type),
        ..PriceQuery::default()
    }))
}

/// A machine with one GPU of a model costs another amount per GPU than one with eight: by hand, a
/// one-GPU A100 at $4.10 and an eight-GPU one at $32.77 an hour, $4.09625 a GPU.
#[test]
fn each_instance_type_has_its_own_row_and_the_most_specific_row_wins() {
    let book = overrides(
        "gpu_model,provider,region,purchase,instance_type,usd_per_gpu_hour,source\n\
         A100-80GB,aws,us-east-1,,one.xlarge,4.1,\n\
         A100-80GB,aws,us-east-1,,eight.24xlarge,4.09625,\n\
         A100-80GB,,,,eight.24xlarge,9,\n\
         A100-80GB,,,,nine.24xlarge,7,contract\n\
         A100-80GB,aws,us-east-1,spot,,1,\n\
         L4,aws,us-east-1,,g6.xlarge,0.5,\n",
    )
    .unwrap();
    let price = |of| of_type(&book, "A100-80GB", of);
    assert_eq!(price("one.xlarge").usd_micros_per_gpu_hour, 4_100_000);
    let eight = price("EIGHT.24xlarge");
    assert_eq!(eight.usd_micros_per_gpu_hour, 4_096_250);
    assert_eq!(eight.instance_type.as_deref(), Some("eight.24xlarge"));
    // The type is nearer than the place: a row of another place's contract beats none of its own.
    let nine = price("nine.24xlarge");
    assert_eq!(
        (nine.usd_micros_per_gpu_hour, &*nine.source),
        (7_000_000, "nine.24xlarge, contract")
    );
    // A type that no row of the file has is one of the built-in book: p4de.24xlarge, $27.4471 by
    // eight.
    let other = price("p4de.24xlarge");
    assert_eq!((other.usd_micros_per_gpu_hour, other.origin), (3_430_888, PriceOrigin::BuiltIn));
    // Who names no type has the cheapest of them, which the answer names.
    let any =
        known(book.lookup(Some("A100-80GB"), Some("aws"), Some("us-east-1"), Purchase::OnDemand));
    assert_eq!(
        (any.usd_micros_per_gpu_hour, any.instance_type.as_deref()),
        (4_096_250, Some("eight.24xlarge"))
    );
    let twice = overrides(
        "gpu_model,instance_type,usd_per_gpu_hour\nT4,g4dn.metal,1\nL4,,1\nTesla-T4,G4DN.metal,2\n",
    );
    let told = "mine.csv:4: column `gpu_model`: T4 as G4DN.metal has the same place and purchase option at \
                mine.csv:2: keep one row";
    assert_eq!(twice.unwrap_err(), told);
}

/// Amazon's list: an L4 is $0.8048 in a g6.xlarge, $4.6016 by four in a g6.12xlarge.
#[test]
fn the_built_in_book_has_types_and_names_the_one_that_stands_in() {
    let book = PriceBook::built_in();
    assert_eq!(of_type(&book, "L4", "g6.xlarge").usd_micros_per_gpu_hour, 804_800);
    assert_eq!(of_type(&book, "L4", "g6.12xlarge").usd_micros_per_gpu_hour, 1_150_400);
    let unknown = of_type(&book, "L4", "g6.nano");
    assert_eq!(unknown.usd_micros_per_gpu_hour, 804_800);
    assert_eq!(unknown.instance_type.as_deref(), Some("g6.xlarge"));
    assert_eq!(PriceBook::model_of_instance("g6.12xlarge"), Some("L4"));
}

/// $280,000 over 4 years is $7.990868 an hour; 10.2 kW at a PUE of 1.4 and $0.12 per kWh are
/// $1.7136: together $9.704468, for eight GPUs $1.213058 each. What is rented costs its rent.
#[test]
fn machines_of_ones_own_are_those_that_their_settings_name() {
    let machine = OwnedMachine {
        capex_usd_micros: 280_000_000_000,
        gpus: 8,
        years: 4,
        watts: 10_200,
        pue_millionths: 1_400_000,
        usd_micros_per_kwh: 120_000,
    };
    let dear = OwnedMachine { gpus: 4, ..machine };
    let labels = |text: &str| vec![LabelPairs::read(text).unwrap()];
    let racks = OwnedNodes { provider: None, labels: labels("room=*, tier=gold") };
    let metal = OwnedNodes { provider: Some("metal3".into()), labels: Vec::new() };
    let book = PriceBook::built_in()
        .with_owned("H100", machine, OwnedNodes::default(), "number 1")
        .and_then(|book| book.with_owned("H100", dear, racks, "number 2"))
        .and_then(|book| book.with_owned("L4", machine, metal, "number 3"))
        .unwrap();
    let node = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let (plain, gold) = (node(&[]), node(&[("room", "7"), ("tier", "gold")]));
    let ask = |model, provider: Option<&str>, provider_id, labels| {
        let region = Some("us-east-1").filter(|_| provider == Some("aws"));
        let asked = PriceQuery {
            model: Some(model),
            provider,
            region,
            provider_id,
            labels: Some(labels),
            ..PriceQuery::default()
        };
        let price = known(book.price_of(&asked));
        let is_formula = price.source.contains("$280000.00 / (4 years");
        assert_eq!(is_formula, price.origin == PriceOrigin::Owned, "{}", price.source);
        price.usd_micros_per_gpu_hour
    };
    // No selector: nodes of no known cloud. With one: whatever it names, before those without.
    assert_eq!(ask("H100", None, "kind://a", &plain), 1_213_058);
    assert_eq!(ask("H100", Some("aws"), "aws:///i-1", &plain), 6_880_000);
    assert_eq!(ask("H100", Some("aws"), "aws:///i-1", &gold), 2_426_117);
    assert_eq!(ask("H100", None, "", &gold), 2_426_117);
    assert_eq!(ask("L4", None, "metal3://a/b", &plain), 1_213_058);
    assert_eq!(ask("L4", Some("aws"), "aws:///i-1", &plain), 804_800);
    let told = |machine, nodes| {
        book.clone().with_owned("H100", machine, nodes, "number 4").unwrap_err().to_string()
    };
    assert_eq!(
        told(machine, OwnedNodes::default()),
        "number 4: `H100`: number 1 is for the same nodes: keep one"
    );
    let thin = told(OwnedMachine { pue_millionths: 999_999, ..machine }, OwnedNodes::default());
    assert!(thin.starts_with("number 4: `H100`: pue: 0.999999 is below 1: "), "{thin}");
    assert!(LabelPairs::read("room").is_none() && LabelPairs::read("=x").is_none());
}

/// Worked by hand: of two providers and two ways of buying, each with its cheapest region.
#[test]
fn the_cheapest_region_is_one_of_the_same_provider_bought_the_same_way() {
    let book = overrides(
        "gpu_model,provider,region,purchase,usd_per_gpu_hour\n\
         X1,one,east,on_demand,5\nX1,one,west,on_demand,4\nX1,one,west,spot,9\nX1,one,east,spot,8\n\
         X1,two,east,on_demand,1\nX1,one,,on_demand,0.5\n",
    )
    .unwrap();
    let of = |region: &str, purchase| {
        let (here, there) = book.cheapest_region("X1", "one", region, None, purchase)?;
        let price = |price: KnownPrice| {
            (price.region.unwrap_or_default(), price.usd_micros_per_gpu_hour / 1_000_000)
        };
        Some((price(here), price(there)))
    };
    let at = |region: &str, usd| (region.to_owned(), usd);
    assert_eq!(of("east", Purchase::OnDemand), Some((at("east", 5), at("west", 4))));
    assert_eq!(of("west", Purchase::OnDemand), Some((at("west", 4), at("west", 4))));
    assert_eq!(of("west", Purchase::Spot), Some((at("west", 9), at("east", 8))));
    // A region without a price of its own, and a price that holds anywhere.
    assert_eq!(of("south", Purchase::OnDemand), None);
    let assumed = PriceBook::built_in().with_assumed("H100", "2").unwrap();
    assert!(
        assumed.cheapest_region("H100", "aws", "us-east-1", None, Purchase::OnDemand).is_none()
    );
}

/// `AWS` is `aws`, as a row and as a question; `gce` is a name of nobody in the book.
#[test]
fn places_are_compared_without_case_and_unknown_providers_are_named() {
    let book = overrides(
        "gpu_model,provider,region,usd_per_gpu_hour\n\
         H100,AWS,US-East-1,2\nH100,gce,us-central1,9\nT4,Azure,,3\n",
    )
    .unwrap();
    let here = known(book.lookup(Some("H100"), Some("aws"), Some("us-east-1"), Purchase::OnDemand));
    assert_eq!((here.usd_micros_per_gpu_hour, here.origin), (2_000_000, PriceOrigin::Override));
    let unknown: Vec<_> = book.unknown_providers().into_iter().collect();
    assert_eq!(unknown, [("gce", "mine.csv:3")]);
    let twice = overrides(
        "gpu_model,provider,region,usd_per_gpu_hour\nH100,aws,us-east-1,2\nH100,AWS,us-EAST-1,3\n",
    );
    assert!(twice.unwrap_err().contains("the same place and purchase option at mine.csv:2"));
}

/// Who sells a node nobody knows is no seller of the list: a row that names none is its price,
/// whatever type it says less. Only where each row names one does one of these stand in.
#[test]
fn a_node_of_an_unknown_provider_takes_the_row_that_names_none() {
    let book = overrides(
        "gpu_model,provider,region,instance_type,usd_per_gpu_hour\n\
         H100,aws,,big,9\nH100,gcp,,,7\nH100,,,,5\nT4,azure,,big,4\nT4,azure,,,3\n",
    )
    .unwrap();
    let of = |model, provider, instance_type| {
        let asked =
            PriceQuery { model: Some(model), provider, instance_type, ..PriceQuery::default() };
        known(book.price_of(&asked)).usd_micros_per_gpu_hour / 1_000_000
    };
    assert_eq!([of("H100", None, Some("big")), of("H100", None, None)], [5, 5]);
    assert_eq!(
        [of("H100", Some("aws"), Some("big")), of("H100", Some("gcp"), Some("big"))],
        [9, 7]
    );
    assert_eq!([of("T4", None, Some("big")), of("T4", None, Some("small"))], [4, 3]);
}

/// A node without a region is in no region: a row for everywhere is its price, of whatever provider
/// or type it says less. Only where no row is for everywhere does one of some region stand in.
#[test]
fn a_missing_region_takes_the_row_for_everywhere() {
    let book = overrides(
        "gpu_model,provider,region,instance_type,usd_per_gpu_hour\n\
         H100,aws,eu-west-1,big,9\nH100,aws,eu-west-1,,8\nH100,,,,5\nT4,aws,eu-west-1,,3\n",
    )
    .unwrap();
    let of = |model, region, instance_type| {
        let provider = Some("aws");
        let asked = PriceQuery {
            model: Some(model),
            provider,
            region,
            instance_type,
            ..PriceQuery::default()
        };
        known(book.price_of(&asked)).usd_micros_per_gpu_hour / 1_000_000
    };
    assert_eq!([of("H100", None, Some("big")), of("H100", None, None)], [5, 5]);
    assert_eq!(of("H100", Some("eu-west-1"), Some("big")), 9);
    assert_eq!(of("H100", Some("eu-west-1"), None), 8);
    assert_eq!((of("H100", Some("us-east-1"), None), of("T4", None, None)), (5, 3));
}

/// A rate agreed for a term is the user's to say; where nobody does, the list price stands in and
/// is told as such.
#[test]
fn a_committed_gpu_has_its_rate_or_the_list_price_which_says_so() {
    let of = |book: &PriceBook, provider| {
        let price = known(book.lookup(
            Some("H100"),
            Some(provider),
            Some("us-east-1"),
            Purchase::Committed,
        ));
        (price.usd_micros_per_gpu_hour, price.purchase, price.origin)
    };
    let on_demand = (6_880_000, Purchase::OnDemand, PriceOrigin::BuiltIn);
    assert_eq!(of(&PriceBook::built_in(), "aws"), on_demand);
    for word in ["committed", "reserved"] {
        let rates = format!(
            "gpu_model,usd_per_gpu_hour,provider,purchase\nH100,3.1,aws,{word}\nH100,5,own,on_demand\n"
        );
        let book = overrides(&rates).unwrap();
        assert_eq!(
            of(&book, "aws"),
            (3_100_000, Purchase::Committed, PriceOrigin::Override),
            "{word}"
        );
        // One's own list price is nearer than the one that is built in.
        assert_eq!(of(&book, "own"), (5_000_000, Purchase::OnDemand, PriceOrigin::Override));
        let spot = book.lookup(Some("H100"), Some("aws"), Some("us-east-1"), Purchase::Spot);
        assert_eq!(spot, Price::Unknown, "no other price stands in for spot");
    }
}

/// €2.50 at 1.08 is $2.70; a rate of a day is told with it.
#[test]
fn rows_in_another_currency_are_converted_at_the_users_rate() {
    let rates = Exchange::default().with("EUR", "1.08", Some("2026-11-01"), "--exchange").unwrap();
    let read = |csv: &str| {
        let book = PriceBook::built_in().with_exchange(rates.clone());
        book.with_overrides_csv(csv.as_bytes(), "mine.csv").map_err(|error| error.to_string())
    };
    let csv = "gpu_model,price_per_gpu_hour,currency,source\nH100,2.5,EUR,contract\nT4,0.4,USD,\n";
    let book = read(csv).unwrap();
    let price = known(default_price(&book, "H100"));
    assert_eq!(price.usd_micros_per_gpu_hour, 2_700_000);
    assert_eq!(price.source, "contract, 2.5 EUR at 1 EUR = 1.08 USD, of 2026-11-01 (--exchange)");
    assert_eq!(known(default_price(&book, "T4")).source, "mine.csv:3");
    let cases = [
        (
            "gpu_model,price_per_gpu_hour,currency\nT4,1,GBP\n",
            "mine.csv:2: column `currency`: `GBP` has no exchange rate: pass --exchange GBP=RATE",
        ),
        (
            "gpu_model,price_per_gpu_hour,currency\nT4,1,\n",
            "mine.csv:2: column `currency`: empty: name",
        ),
        ("gpu_model,price_per_gpu_hour\nT4,1\n", "mine.csv:1: column `currency` is missing"),
        (
            "gpu_model,usd_per_gpu_hour,currency\nT4,1,EUR\n",
            "`usd_per_gpu_hour` is in USD: write amounts of EUR",
        ),
        (
            "gpu_model,usd_per_gpu_hour,price_per_gpu_hour,currency\nT4,1,1,EUR\n",
            "also sets the price: keep one",
        ),
        (
            "gpu_model,price_per_gpu_hour,currency\nT4,\"1,5\",EUR\n",
            "`1,5` is not an amount of EUR",
        ),
        ("gpu_model,price_per_gpu_hour,currency\nT4,1000000,EUR\n", "above 1000000 USD"),
    ];
    for (csv, part) in cases {
        let error = read(csv).unwrap_err();
        assert!(error.contains(part), "{csv:?} says {error:?}, not {part:?}");
    }
}

#[test]
fn a_row_of_settings_is_read_as_one_of_a_file() {
    let cells = |of: &'static [(&str, &str)]| {
        move |name: &'static str| of.iter().find(|(column, _)| *column == name).map(|(_, v)| *v)
    };
    let rate =
        cells(&[("gpu_model", "H100"), ("usd_per_gpu_hour", "3.1"), ("purchase", "committed")]);
    let book = PriceBook::built_in().with_row(&rate, "x.toml").unwrap();
    let price = known(book.lookup(Some("H100"), Some("aws"), None, Purchase::Committed));
    assert_eq!((price.usd_micros_per_gpu_hour, &*price.source), (3_100_000, "x.toml"));
    let again = book.with_row(&rate, "y.toml").unwrap_err().to_string();
    assert_eq!(
        again,
        "y.toml: gpu_model: H100 has the same place and purchase option at x.toml: keep one row"
    );
    let bad = cells(&[("gpu_model", "H100"), ("usd_per_gpu_hour", "3,1")]);
    let bad = PriceBook::built_in().with_row(&bad, "x.toml").unwrap_err().to_string();
    assert!(bad.starts_with("x.toml: usd_per_gpu_hour: `3,1` is not an amount"), "{bad}");
}

#[test]
fn errors_of_a_price_file_name_file_line_and_column() {
    let cases = [
        ("gpu_model,usd_per_gpu_hour\nH100,2\nT4,two\n", "mine.csv:3: column `usd_per_gpu_hour`"),
        ("gpu_model,usd_per_gpu_hour\nH100,\n", "mine.csv:2: column `usd_per_gpu_hour`"),
        ("gpu_model,usd_per_gpu_hour\nH100,-1\n", "expected a number such as 6.88"),
        ("gpu_model,usd_per_gpu_hour\nH100,0.0000001\n", "six decimal places"),
        ("gpu_model,usd_per_gpu_hour\n,2\n", "mine.csv:2: column `gpu_model`: empty"),
        (
            "gpu_model,usd_per_gpu_hour\nV100M16,2\nV100M32,2\n",
            "mine.csv:3: column `gpu_model`: V100 has the same place and purchase option at mine.csv:2",
        ),
        ("gpu_model,usd_per_gpu_hour,purchase\nT4,1,cheap\n", "on_demand, spot, committed"),
        ("gpu_model,usd_per_gpu_hour,region\nT4,1,eastus\n", "column `region`: a region needs"),
        ("gpu_model,usd_per_gpu_hour,as_of\nT4,1,2026-02-29\n", "column `as_of`: `2026-02-29`"),
        ("gpu_model,price\nT4,1\n", "mine.csv:1: unknown column `price`"),
        ("gpu_model\nT4\n", "mine.csv:1: column `usd_per_gpu_hour` is missing"),
        ("gpu_model,gpu_model,usd_per_gpu_hour\nT4,T4,1\n", "column `gpu_model`: duplicate"),
        ("gpu_model,usd_per_gpu_hour\nT4,1,2\n", "mine.csv:2: "),
        ("", "mine.csv:1: column `gpu_model` is missing"),
    ];
    for (csv, part) in cases {
        let error = overrides(csv).unwrap_err();
        assert!(error.contains(part), "{csv:?} says {error:?}, not {part:?}");
    }
    let not_text = PriceBook::built_in()
        .with_overrides_csv(&b"gpu_model,usd_per_gpu_hour\n\xff\xfe,1\n"[..], "mine.csv");
    assert!(not_text.unwrap_err().to_string().starts_with("mine.csv:2: "));
}

/// Every extreme in every column is taken or refused with its line.
#[test]
fn extremes_in_a_price_file_never_panic() {
    const COLUMNS: &str = "gpu_model,price_per_gpu_hour,currency,provider,region,purchase,\
                           instance_type,source,as_of";
    const EXTREMES: [&str; 23] = [
        "+1",
        "-0",
        " 1",
        ".5",
        "1e-400",
        "",
        "0",
        "-1",
        "1e3",
        "1e-7",
        "1e400",
        "1000000",
        "1000000.000001",
        "9223372036854775807",
        "18446744073709551616",
        "340282366920938463463374607431768211456",
        "0.0000001",
        "NaN",
        "inf",
        "9999-12-31",
        "0000-00-00",
        "10000-01-01",
        "*",
    ];
    let good =
        ["H100", "2.5", "USD", "aws", "us-east-1", "spot", "p5.48xlarge", "mine", "2026-01-02"];
    for column in 0..good.len() {
        for extreme in EXTREMES {
            let mut cells = good;
            cells[column] = extreme;
            let text = format!("{COLUMNS}\n{}\n", cells.join(","));
            match overrides(&text) {
                Ok(book) => drop(book.lookup(Some("H100"), None, None, Purchase::OnDemand)),
                Err(error) => assert!(error.starts_with("mine.csv:2: "), "{text}: {error}"),
            }
        }
    }
}

#[test]
fn an_assumed_price_beats_the_others_and_is_called_assumed() {
    let book = overrides("gpu_model,usd_per_gpu_hour\nH100,2.5\n").unwrap();
    let book = book.with_assumed("nvidia-h100-80gb", "4").unwrap();
    let book = book.with_assumed("*", "1.5").unwrap();
    let price = known(book.lookup(Some("H100"), Some("aws"), None, Purchase::Spot));
    assert_eq!((price.usd_micros_per_gpu_hour, price.origin), (4_000_000, PriceOrigin::Assumed));
    assert_eq!(
        known(book.lookup(None, None, None, Purchase::OnDemand)).origin,
        PriceOrigin::Assumed
    );
    assert_eq!(default_price(&book, "G2"), Price::Unknown, "* is not for models without a price");

    let again = book.clone().with_assumed("H100", "5").unwrap_err().to_string();
    assert!(again.contains("`nvidia-h100-80gb` already sets the price of H100"), "{again}");
    assert!(book.clone().with_assumed("", "5").unwrap_err().to_string().contains("name a GPU"));
    assert!(
        book.with_assumed("G2", "5 USD")
            .unwrap_err()
            .to_string()
            .contains("expected a number such as 6.88")
    );
}

fn usd_micros() -> impl Strategy<Value = i64> {
    prop_oneof![0..=20_000_000_i64, 0..=MAX_USD_MICROS_PER_GPU_HOUR]
}

/// Every place a question or a row can name, in a small world where clashes are common.
fn place() -> impl Strategy<Value = (Option<&'static str>, Option<&'static str>)> {
    let region = prop::sample::select(vec![None, Some("us-east-1"), Some("eu-west-1")]);
    (prop::sample::select(vec![None, Some("aws"), Some("own")]), region)
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn amounts_survive_printing_and_reading(usd_micros in usd_micros()) {
        prop_assert_eq!(parse_usd_micros(&format_usd_micros(usd_micros)), Ok(usd_micros));
    }

    #[test]
    fn no_text_makes_a_price_panic_or_change(text in "[0-9.]{0,12}|\\PC{0,8}") {
        if let Ok(usd_micros) = parse_usd_micros(&text) {
            let exact: f64 = text.parse().unwrap();
            let read = usd_micros as f64 / 1e6;
            prop_assert!((exact - read).abs() <= 1e-9 * exact.max(1.0), "{text} became {read}");
        }
    }

    /// The oracle: of all rows that agree with the question, none may agree in more fields than
    /// the answer, and where nothing agrees the built-in book answers as if the file were empty.
    #[test]
    fn a_written_override_wins_wherever_it_agrees(
        rows in prop::collection::btree_map(place(), usd_micros(), 0..6),
        (provider, region) in place(),
    ) {
        let rows: Vec<_> = rows
            .into_iter()
            .filter(|((provider, region), _)| region.is_none() || provider.is_some())
            .collect();
        let mut csv = "gpu_model,provider,region,usd_per_gpu_hour\n".to_owned();
        for ((provider, region), usd_micros) in &rows {
            let (provider, region) = (provider.unwrap_or(""), region.unwrap_or(""));
            csv += &format!("H100,{provider},{region},{}\n", format_usd_micros(*usd_micros));
        }
        let book = overrides(&csv).unwrap();
        let price = book.lookup(Some("H100"), provider, region, Purchase::OnDemand);

        let agree = |row: &Option<&str>, asked: &Option<&str>| {
            row.is_none() || asked.is_none() || row == asked
        };
        let agreeing: Vec<_> = rows
            .iter()
            .filter(|((p, r), _)| agree(p, &provider) && agree(r, &region))
            .collect();
        if agreeing.is_empty() {
            let built_in =
                PriceBook::built_in().lookup(Some("H100"), provider, region, Purchase::OnDemand);
            prop_assert_eq!(price, built_in);
        } else {
            let price = known(price);
            prop_assert_eq!(price.origin, PriceOrigin::Override);
            let exact = agreeing.iter().find(|((p, r), _)| *p == provider && *r == region);
            let candidates: Vec<i64> = match exact {
                Some((_, usd_micros)) => vec![*usd_micros],
                None => agreeing.iter().map(|(_, usd_micros)| *usd_micros).collect(),
            };
            prop_assert!(candidates.contains(&price.usd_micros_per_gpu_hour));
        }
    }
}
