//! The laws of device-time, kept and broken.

use dovetail_check::{DeviceLife, DevicePiece, DeviceTimeViolation, judge_device_time};

const LIFE: DeviceLife = DeviceLife { device: 3, from_ms: 10, to_ms: 90 };

fn piece(from_ms: u64, to_ms: u64, gpu_milli: i64) -> DevicePiece {
    DevicePiece { device: 3, from_ms, to_ms, gpu_milli, is_unavailable: false }
}

#[test]
fn pieces_that_are_the_device_pass() {
    let pieces = [
        piece(20, 50, 400),
        piece(20, 50, 600),
        DevicePiece { is_unavailable: true, ..piece(50, 90, 1000) },
    ];
    assert_eq!(judge_device_time(&[LIFE], (20, 200), &pieces), []);
    assert_eq!(judge_device_time(&[LIFE], (90, 200), &[]), []);
}

#[test]
fn every_law_can_be_broken() {
    let judge = |pieces: &[DevicePiece]| judge_device_time(&[LIFE], (0, 50), pieces);
    let sum = |at_ms, sum_milli, there_milli| DeviceTimeViolation::Sum {
        device: 3,
        at_ms,
        sum_milli,
        there_milli,
    };
    // A gap, an overlap, time before the device was there, time after the period.
    assert_eq!(judge(&[piece(10, 40, 1000)]), [sum(40, 0, 1000)]);
    assert_eq!(judge(&[piece(10, 31, 1000), piece(30, 50, 1000)]), [sum(30, 2000, 1000)]);
    assert_eq!(judge(&[piece(9, 50, 1000)]), [sum(9, 1000, 0)]);
    assert_eq!(judge(&[piece(10, 51, 1000)]), [sum(50, 1000, 0)]);
    assert_eq!(judge(&[piece(10, 50, 999)]), [sum(10, 999, 1000)]);
    let half = DevicePiece { is_unavailable: true, ..piece(10, 50, 500) };
    assert_eq!(
        judge(&[half, piece(10, 50, 500)]),
        [DeviceTimeViolation::HalfUnavailable { device: 3, at_ms: 10, gpu_milli: 500 }]
    );
    let empty = [piece(10, 50, 1000), piece(20, 20, 1), piece(20, 30, 0)];
    assert_eq!(judge(&empty).len(), 2);
    let stranger = DevicePiece { device: 4, ..piece(10, 50, 1000) };
    assert_eq!(judge(&[piece(10, 50, 1000), stranger]).len(), 1);
}
