//! Why nothing is confirmed of findings that are fixed where no ledger is asked, and what would
//! confirm it.

use dovetail_audit::equal_periods;

use super::baseline::Baseline;

const DAY_MS: u64 = 24 * 3_600_000;

/// Said of findings that are gone since an audit, in an audit at `now_ms` that asks no ledger.
pub fn why_unconfirmed(baseline: &Baseline, now_ms: u64) -> String {
    let then = baseline.taken_at.parse::<jiff::Timestamp>();
    let then_ms = then.ok().and_then(|then| u64::try_from(then.as_millisecond()).ok());
    let periods = then_ms.and_then(|then_ms| equal_periods(then_ms, now_ms));
    let fallacy = "fixed findings have the amounts of the earlier audit and may have saved nothing";
    let Some((before, _)) = periods else {
        return format!(
            "{fallacy}. A ledger (--store) shows how the waste changed if at least one whole hour lies between the \
             two audits"
        );
    };
    let days = (now_ms - before.from_ms).div_ceil(DAY_MS);
    format!(
        "{fallacy}. A ledger that covers both times shows how the waste changed: --store LEDGER. \
         To fill one from a Prometheus with the series of the last {days} days: dovetail cost \
         --prometheus URL --period {days}d --store LEDGER"
    )
}
