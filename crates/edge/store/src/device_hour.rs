//! What a device was in one hour, as bytes.
//!
//! ```text
//! 1, unit, intervals                      form 1; times are multiples of `unit` ms
//! state × 8 + signal, from, length, missing, holder       for each interval, ascending
//! ```
//! `from` counts from the interval before, the first from the begin of the hour; `missing` is what
//! the interval is short of a whole device, in milli-GPU; `holder` is 0 for nobody. The first byte
//! of an interval is plain, all other numbers are LEB128. A GPU that one pod holds for an hour is
//! about ten bytes.

use dovetail_account::device_time::{DeviceInterval, Span};
use dovetail_account::rollup::HOUR_MS;
use dovetail_model::device::WHOLE_DEVICE_MILLI;

use crate::codes::Codes;

const FORM: u64 = 1;

/// As bytes; `hour_ms` is the begin of the hour in which all intervals lie.
pub(crate) fn encode(codes: &Codes, hour_ms: u64, intervals: &[DeviceInterval]) -> Vec<u8> {
    let times = intervals.iter().flat_map(|i| [i.span.from_ms, i.span.to_ms]);
    let is_whole_seconds = times.clone().all(|at_ms| (at_ms - hour_ms).is_multiple_of(1000));
    let unit_ms = if is_whole_seconds { 1000 } else { 1 };
    let mut bytes = Vec::with_capacity(4 + 8 * intervals.len());
    for number in [FORM, unit_ms, intervals.len() as u64] {
        push(&mut bytes, number);
    }
    let mut before_ms = hour_ms;
    for interval in intervals {
        let Span { from_ms, to_ms } = interval.span;
        bytes.push(codes.of_state(interval.state) * 8 + codes.of_signal(interval.signal));
        push(&mut bytes, (from_ms - before_ms) / unit_ms);
        push(&mut bytes, (to_ms - from_ms) / unit_ms);
        push(&mut bytes, (WHOLE_DEVICE_MILLI - interval.gpu_milli).unsigned_abs());
        push(&mut bytes, interval.holder.map_or(0, |holder| u64::from(holder) + 1));
        before_ms = from_ms;
    }
    bytes
}

/// The way back; `None` for bytes that [`encode`] does not write.
pub(crate) fn decode(codes: &Codes, hour_ms: u64, bytes: &[u8]) -> Option<Vec<DeviceInterval>> {
    let mut rest = bytes;
    let (form, unit_ms, count) = (pull(&mut rest)?, pull(&mut rest)?, pull(&mut rest)?);
    if form != FORM || !matches!(unit_ms, 1 | 1000) {
        return None;
    }
    let mut intervals = Vec::with_capacity(usize::try_from(count).ok()?.min(bytes.len()));
    let mut from_ms = hour_ms;
    for _ in 0..count {
        let (first, after) = rest.split_first()?;
        rest = after;
        from_ms = from_ms.checked_add(pull(&mut rest)?.checked_mul(unit_ms)?)?;
        let to_ms = from_ms.checked_add(pull(&mut rest)?.checked_mul(unit_ms)?)?;
        let gpu_milli = WHOLE_DEVICE_MILLI.checked_sub(i64::try_from(pull(&mut rest)?).ok()?)?;
        let holder = match pull(&mut rest)? {
            0 => None,
            number => Some(u32::try_from(number - 1).ok()?),
        };
        let is_in_hour = from_ms < to_ms && to_ms <= hour_ms + HOUR_MS;
        if !is_in_hour || gpu_milli < 1 {
            return None;
        }
        intervals.push(DeviceInterval {
            span: Span { from_ms, to_ms },
            gpu_milli,
            state: codes.state(first / 8)?,
            holder,
            signal: codes.signal(first % 8)?,
        });
    }
    rest.is_empty().then_some(intervals)
}

fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn pull(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for place in 0..10 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        if place == 9 && part > 1 {
            return None;
        }
        number |= part << (7 * place);
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use dovetail_account::device_time::{ActiveWork, DeviceState};
    use dovetail_account::signal::Signal;
    use dovetail_cases::cases;
    use dovetail_model::FreeCause;
    use proptest::prelude::*;

    use super::*;

    const HOUR: u64 = 470_000 * HOUR_MS;

    fn some_interval() -> impl Strategy<Value = DeviceInterval> {
        let state = prop_oneof![
            Just(DeviceState::Unavailable),
            Just(DeviceState::Free(None)),
            Just(DeviceState::Free(Some(FreeCause::NoDemand))),
            Just(DeviceState::Active(ActiveWork::Useful)),
            Just(DeviceState::Idle),
            Just(DeviceState::Unknown),
        ];
        let signal = prop::option::of((0..Signal::ALL.len()).prop_map(|place| Signal::ALL[place]));
        let times = (0..HOUR_MS, 1..HOUR_MS, prop::sample::select(vec![1u64, 1000]));
        let holder = prop::option::of(any::<u32>());
        (times, 1..=1000i64, state, holder, signal).prop_map(
            |((from, length, unit), gpu_milli, state, holder, signal)| {
                let from_ms = from / unit * unit;
                let to_ms = (from_ms + length.div_ceil(unit) * unit).min(HOUR_MS);
                let span = Span { from_ms: HOUR + from_ms, to_ms: HOUR + to_ms };
                DeviceInterval { span, gpu_milli, state, holder, signal }
            },
        )
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn what_is_written_is_read_and_what_is_cut_is_refused(
            mut intervals in prop::collection::vec(some_interval(), 0..8),
            cut in any::<prop::sample::Index>(),
            flip in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            intervals.sort_by_key(|interval| interval.span.from_ms);
            let codes = Codes::new();
            let mut bytes = encode(&codes, HOUR, &intervals);
            prop_assert_eq!(decode(&codes, HOUR, &bytes), Some(intervals));
            let end = cut.index(bytes.len());
            prop_assert_eq!(decode(&codes, HOUR, &bytes[..end]), None);
            // Whatever stands there: no panic, and nothing outside of the hour.
            let place = flip.index(bytes.len());
            bytes[place] = byte;
            for interval in decode(&codes, HOUR, &bytes).into_iter().flatten() {
                prop_assert!(interval.span.from_ms >= HOUR);
                prop_assert!(interval.span.to_ms <= HOUR + HOUR_MS);
            }
        }
    }

    #[test]
    fn the_form_is_the_one_of_ledgers_that_are_there() {
        let span = |from_ms, to_ms| Span { from_ms: HOUR + from_ms, to_ms: HOUR + to_ms };
        let (idle, free) = (DeviceState::Idle, DeviceState::Free(None));
        let signal = Some(Signal::GpuUtil);
        let held = DeviceInterval {
            span: span(0, 3_000_000),
            gpu_milli: 1000,
            state: idle,
            holder: Some(299),
            signal,
        };
        let left = DeviceInterval {
            span: span(3_000_000, HOUR_MS),
            state: free,
            holder: None,
            signal: None,
            ..held
        };
        let bytes = encode(&Codes::new(), HOUR, &[held, left]);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "01e80702ae00b81700ac0208b817d8040000");
    }
}
