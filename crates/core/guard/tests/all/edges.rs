//! Windows whose latency is known exactly.

use dovetail_guard::{LatencyVerdict, Load, TimeBlock, Unknown, Window, WindowError, judge};

use crate::history::VLLM_BOUNDS;

/// 24 blocks of log-normal latency without any noise.
fn window(bounds: &[f64], median: f64, spread: f64, requests: f64) -> Window {
    let share = |bound: &f64| {
        let z = libm::log(bound / median) / spread;
        0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
    };
    let total = requests / 24.0;
    let below: Vec<f64> = bounds.iter().map(|bound| total * share(bound)).collect();
    let blocks = vec![Some(TimeBlock { below, total }); 24];
    Window::new(bounds.to_vec(), blocks).expect("a window")
}

fn verdict(before: &Window, after: &Window) -> LatencyVerdict {
    judge(before, after, Load::of(before, after)).verdict
}

#[test]
fn a_change_of_less_than_five_percent_is_none_however_sure_it_is() {
    let of = |median: f64| window(&VLLM_BOUNDS, median, 0.8, 1e6);
    let before = of(6.0);
    for (slower, wanted) in [
        (1.04, LatencyVerdict::Same),
        (1.06, LatencyVerdict::Worse),
        (0.96, LatencyVerdict::Same),
        (0.94, LatencyVerdict::Better),
    ] {
        assert_eq!(verdict(&before, &of(6.0 * slower)), wanted, "{slower}");
    }
    // The estimate is exact, although the median stays in its bucket from 5 to 10 s.
    let slower = of(6.6);
    let judged = judge(&before, &slower, Load::of(&before, &slower));
    for quantile in &judged.quantiles {
        let change = quantile.change.as_ref().expect("a change");
        assert!((change.estimate - 0.1).abs() < 1e-6, "{quantile:?}");
        assert!(change.low < change.estimate && change.estimate < change.high, "{quantile:?}");
    }
}

/// Load grew by a fifth, within what may be compared: latency that grew by less is not blamed on
/// the change of the node, and more is.
#[test]
fn what_more_load_may_explain_is_not_blamed_on_the_change() {
    let of = |median: f64, requests: f64| window(&VLLM_BOUNDS, median, 0.8, requests);
    let before = of(6.0, 1e6);
    let grew = verdict(&before, &of(6.0 * 1.15, 1.2e6));
    assert!(
        matches!(grew, LatencyVerdict::Unknown(Unknown::LoadGrew { load }) if load > 0.19),
        "{grew:?}"
    );
    assert_eq!(verdict(&before, &of(6.0 * 1.3, 1.2e6)), LatencyVerdict::Worse);
    assert_eq!(verdict(&before, &of(6.0 * 1.15, 1.04e6)), LatencyVerdict::Worse);
    assert_eq!(verdict(&before, &of(6.0, 1.2e6)), LatencyVerdict::Same);
}

#[test]
fn what_cannot_be_measured_is_unknown() {
    let fine = |requests: f64| window(&VLLM_BOUNDS, 6.0, 0.8, requests);
    let unknown = |before: &Window, after: &Window| match verdict(before, after) {
        LatencyVerdict::Unknown(unknown) => unknown,
        known => panic!("{known:?}"),
    };
    let few = unknown(&fine(999.0), &fine(999.0));
    assert!(matches!(few, Unknown::TooFewRequests { requests } if requests < 1_000.0), "{few:?}");
    // Enough for p50 and p95, not for p99.
    let few = unknown(&fine(1_500.0), &fine(1_500.0));
    assert!(matches!(few, Unknown::TooUncertain { .. } | Unknown::TooCoarse), "{few:?}");
    // All requests are in one bucket, or in the first.
    for median in [7.0, 0.1] {
        let narrow = window(&VLLM_BOUNDS, median, 0.02, 1e5);
        assert_eq!(unknown(&narrow, &narrow), Unknown::TooCoarse, "{median}");
    }
    let other = window(&[1.0, 5.0, 25.0], 6.0, 0.8, 1e5);
    assert_eq!(unknown(&fine(1e5), &other), Unknown::OtherBuckets);
    let none = Window::new(Vec::new(), vec![None; 24]).expect("a window");
    assert_eq!(unknown(&none, &none), Unknown::NoSeries);
    // Half of the time was not measured after the change.
    let whole = fine(1e5);
    let mut blocks = whole.blocks().to_vec();
    blocks[..13].iter_mut().for_each(|block| *block = None);
    let half = Window::new(VLLM_BOUNDS.to_vec(), blocks).expect("a window");
    assert_eq!(unknown(&whole, &half), Unknown::TooFewBlocks { blocks: 11 });
}

#[test]
fn a_window_of_bad_numbers_is_refused() {
    let of = |bounds: &[f64], below: &[f64], total: f64| {
        let block = TimeBlock { below: below.to_vec(), total };
        Window::new(bounds.to_vec(), vec![Some(block)])
    };
    for bounds in [&[1.0, 1.0][..], &[2.0, 1.0], &[0.0, 1.0], &[1.0, f64::NAN]] {
        assert_eq!(of(bounds, &[1.0, 1.0], 1.0), Err(WindowError::Bounds), "{bounds:?}");
    }
    for (below, total) in [(&[1.0][..], 1.0), (&[-1.0, 1.0], 1.0), (&[1.0, 1.0], f64::INFINITY)] {
        let counts = of(&[1.0, 2.0], below, total);
        assert_eq!(counts, Err(WindowError::Counts { block: 0 }), "{below:?}");
    }
    // Extrapolated counts may fall a little from one bound to the next.
    let mended = of(&[1.0, 2.0], &[5.0, 4.9], 4.8).expect("a window");
    assert_eq!(mended.blocks()[0], Some(TimeBlock { below: vec![5.0, 5.0], total: 5.0 }));
}
