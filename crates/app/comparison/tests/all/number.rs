//! Figures as people read them.

use dovetail_comparison::number::{change, exact_usd, points, printable, usd};

#[test]
fn figures_read_as_people_write_them() {
    assert_eq!([usd(1.345), usd(-0.5), usd(123_456.7)], ["$1.35", "-$0.50", "$123,457"]);
    assert_eq!(change(Some(90.0), Some(120.0)), "-25.0%");
    assert_eq!(change(Some(90.0), Some(0.0)), "");
    assert_eq!(change(Some(90.0), Some(90.0)), "");
    assert_eq!(points(Some(70.7), Some(65.5)), "+5.20 points");
    assert_eq!(printable("a\u{1b}[2J\u{202e}b"), "a\\u{1b}[2J\\u{202e}b");
}

#[test]
fn a_price_keeps_its_digits() {
    assert_eq!(exact_usd(6_880_000), "$6.88");
    assert_eq!(exact_usd(2_000_001), "$2.000001");
    assert_eq!(exact_usd(900_000), "$0.90");
}
