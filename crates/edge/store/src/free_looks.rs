//! What objects said of free GPUs: by node and hour, as text.
//!
//! ```text
//! 0 300000 14:8000;300000 3600000 13:4000 14:1000
//! ```
//! Each look has its begin and end, in ms of the hour, and milli-GPU by the number of the state
//! that its cause makes (`codes`). A look that found nothing free is kept too.

use std::collections::BTreeMap;

use dovetail_account::device_time::{DeviceState, Span};
use dovetail_account::rollup::{FreeLook, HOUR_MS, looks_over};
use dovetail_model::FreeCause;
use sqlx::AnyConnection;

use crate::codes::Codes;
use crate::error::Failure;
use crate::reading::Reading;
use crate::statements::{ColumnValue, insert, number, read, text};
use crate::written_hour::HourWrite;

/// Looks of an hour by node.
pub(crate) type Looks = BTreeMap<i64, Vec<FreeLook>>;

/// Writes what a reading says of an hour, and answers with all that is known of it. `changed` is
/// told each node of which something else is known than before.
pub(crate) async fn write(
    connection: &mut AnyConnection,
    place: &HourWrite<'_>,
    reading: &Reading,
    mut changed: impl FnMut(i64),
) -> Result<Looks, Failure> {
    let sql = "SELECT node, looks FROM free_look WHERE cluster = $1 AND hour_number = $2";
    let mut known = Looks::new();
    for row in read(connection, sql, place.key()).await? {
        let (node, told) = (number(&row, 0)?, text(&row, 1)?);
        let Some(looks) = decode(place.codes, place.hour_ms(), &told) else {
            let hour = place.hour;
            return Err(Failure::Damaged(format!("causes in hour {hour} of node {node}")));
        };
        known.insert(node, looks);
    }
    let mut later = Looks::new();
    let (begin_ms, end_ms) = (place.hour_ms(), place.hour_ms() + HOUR_MS);
    for free in &reading.free {
        let Span { from_ms, to_ms } = free.look.span;
        let span = Span { from_ms: from_ms.max(begin_ms), to_ms: to_ms.min(end_ms) };
        if span.from_ms < span.to_ms {
            let node = i64::from(place.numbers.nodes[free.node]);
            later.entry(node).or_default().push(FreeLook { span, ..free.look.clone() });
        }
    }
    let mut cells = Vec::new();
    for (node, later) in later {
        let of_node = known.entry(node).or_default();
        let all = looks_over(of_node, &later);
        if all != *of_node {
            changed(node);
            cells.extend(place.key());
            cells.push(node.into());
            cells.push(ColumnValue::Text(encode(place.codes, begin_ms, &all)));
            *of_node = all;
        }
    }
    let head = "INSERT INTO free_look (cluster, hour_number, node, looks)";
    let tail = " ON CONFLICT (cluster, hour_number, node) DO UPDATE SET looks = excluded.looks";
    insert(connection, head, 4, tail, cells).await?;
    Ok(known)
}

fn encode(codes: &Codes, hour_ms: u64, looks: &[FreeLook]) -> String {
    let look = |look: &FreeLook| {
        let Span { from_ms, to_ms } = look.span;
        let mut text = format!("{} {}", from_ms - hour_ms, to_ms - hour_ms);
        for (cause, gpu_milli) in &look.gpu_milli {
            let code = codes.of_state(DeviceState::Free(Some(*cause)));
            text += &format!(" {code}:{gpu_milli}");
        }
        text
    };
    looks.iter().map(look).collect::<Vec<_>>().join(";")
}

/// The way back; `None` for a text that [`encode`] does not write.
fn decode(codes: &Codes, hour_ms: u64, text: &str) -> Option<Vec<FreeLook>> {
    let look = |text: &str| {
        let mut words = text.split(' ');
        let mut time = || words.next()?.parse::<u64>().ok().filter(|ms| *ms <= HOUR_MS);
        let (from_ms, to_ms) = (time()?, time()?);
        let amount = |word: &str| -> Option<(FreeCause, i64)> {
            let (code, gpu_milli) = word.split_once(':')?;
            match codes.state(code.parse().ok()?)? {
                DeviceState::Free(Some(cause)) => Some((cause, gpu_milli.parse().ok()?)),
                _ => None,
            }
        };
        let span = Span { from_ms: hour_ms + from_ms, to_ms: hour_ms + to_ms };
        let gpu_milli = words.map(amount).collect::<Option<_>>()?;
        (from_ms < to_ms).then_some(FreeLook { span, gpu_milli })
    };
    text.split(';').map(look).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_anything_else_is_refused() {
        let codes = Codes::new();
        let hour_ms = 480_000 * HOUR_MS;
        let look = |from_ms, to_ms, gpu_milli| FreeLook {
            span: Span { from_ms: hour_ms + from_ms, to_ms: hour_ms + to_ms },
            gpu_milli,
        };
        let all: Vec<(FreeCause, i64)> = FreeCause::ALL.into_iter().zip(1..).collect();
        let looks = vec![
            look(0, 300_000, vec![(FreeCause::NoDemand, 8_000)]),
            look(300_000, 300_001, vec![]),
            look(400_000, HOUR_MS, all),
        ];
        let text = encode(&codes, hour_ms, &looks);
        assert!(
            text.starts_with("0 300000 14:8000;300000 300001;400000 3600000 2:1 3:2 "),
            "{text}"
        );
        assert_eq!(decode(&codes, hour_ms, &text), Some(looks));
        for text in
            ["", "0", "5 5", "0 3600001", "0 9 14", "0 9 14:x", "0 9 21:5", "0 9 99:5", "0 9;"]
        {
            assert_eq!(decode(&codes, hour_ms, text), None, "{text}");
        }
    }
}
