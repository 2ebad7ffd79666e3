//! What inference servers counted, from whatever answers Prometheus' query API.

use dovetail_metrics::serving::{SERVER_SERIES, Served};

use crate::input::prometheus::Asker;

/// Asks for every counter over the asker's period; what could not be read is a note.
pub(crate) fn read(asker: &mut Asker, notes: &mut Vec<String>) -> Served {
    let mut served = Served::default();
    let window_ms = asker.period.to_ms - asker.period.from_ms;
    for asked in SERVER_SERIES {
        match asker.instant(&asked.query(window_ms), asker.period.to_ms.saturating_sub(1)) {
            Ok(series) => served.take(asked, series),
            Err(error) => notes.push(format!("{} could not be read: {error}", asked.series)),
        }
    }
    served
}
