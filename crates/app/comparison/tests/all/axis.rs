//! Axes with round figures.

use dovetail_comparison::plot::Axis;

fn texts(axis: &Axis) -> Vec<&str> {
    axis.ticks.iter().map(|(_, text)| text.as_str()).collect()
}

#[test]
fn ticks_are_round_and_within_the_axis() {
    assert_eq!(texts(&Axis::new("", 0.0, 130.0, 7)), ["0", "20", "40", "60", "80", "100", "120"]);
    assert_eq!(texts(&Axis::new("", 80.0, 100.0, 4)), ["80", "85", "90", "95", "100"]);
    let up = Axis::up_to("", 6_212.0, 5);
    assert_eq!((up.to, texts(&up)), (8_000.0, vec!["0", "2,000", "4,000", "6,000", "8,000"]));
    assert_eq!(texts(&Axis::up_to("", 0.7, 4)), ["0.0", "0.2", "0.4", "0.6", "0.8"]);
    assert_eq!(Axis::up_to("", 0.0, 4).to, 1.0);
    assert_eq!(Axis::new("", 3.0, 3.0, 4).share(3.0), 0.0);
}
