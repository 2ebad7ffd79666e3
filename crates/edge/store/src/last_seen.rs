//! How devices were left: who had them when they were last seen before some moment.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::device_time::DeviceInterval;
use dovetail_account::rollup::HOUR_MS;
use sqlx::AnyConnection;

use crate::codes::Codes;
use crate::device_hour::decode;
use crate::error::{Failure, StoreError};
use crate::names::known_devices;
use crate::statements::{ColumnValue, bytes, number, placeholders, read};
use crate::store::{Store, known_cluster};

/// Node and name of a device.
pub type DeviceKey = (String, String);

/// A device as it was when it was last seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastSeen {
    pub until_ms: u64,
    /// What it was then: its intervals that end at that moment. Holders are numbers of pods.
    pub intervals: Vec<DeviceInterval>,
}

impl LastSeen {
    /// How each of some devices was left before a moment of its own, looking back to an hour at
    /// most. Devices that the ledger does not know, or that were not there since that hour, are not
    /// in the answer.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn of(
        store: &mut Store,
        cluster: &str,
        devices: &BTreeMap<DeviceKey, u64>,
        from_hour: u64,
    ) -> Result<BTreeMap<DeviceKey, Self>, StoreError> {
        if devices.is_empty() {
            return Ok(BTreeMap::new());
        }
        store.connect().await?;
        let connection = store.connection.as_mut().expect("connected before");
        let found = last_seen_of(connection, &store.codes, cluster, devices, from_hour).await;
        found.map_err(|failure| store.failed(failure))
    }
}

async fn last_seen_of(
    connection: &mut AnyConnection,
    codes: &Codes,
    name: &str,
    devices: &BTreeMap<DeviceKey, u64>,
    from_hour: u64,
) -> Result<BTreeMap<DeviceKey, LastSeen>, Failure> {
    let mut found = BTreeMap::new();
    let Some(cluster) = known_cluster(connection, name).await? else { return Ok(found) };
    let keys: BTreeSet<&DeviceKey> = devices.keys().collect();
    let mut wanted = known_devices(connection, cluster.id, &keys).await?;
    let last_hour = devices.values().max().map_or(0, |before_ms| before_ms / HOUR_MS);
    for hour in (from_hour.max(cluster.devices_from_hour)..=last_hour).rev() {
        let ids: Vec<u32> = wanted.keys().copied().collect();
        for part in ids.chunks(2000) {
            let sql = format!(
                "SELECT device, states FROM device_hour WHERE cluster = $1 AND hour_number = $2 \
                 AND device IN ({})",
                placeholders(2, part.len())
            );
            let mut cells = vec![ColumnValue::Number(cluster.id), ColumnValue::Number(hour as i64)];
            cells.extend(part.iter().map(|id| ColumnValue::Number(i64::from(*id))));
            for row in read(connection, &sql, cells).await? {
                let device = number(&row, 0)?;
                let states = decode(codes, hour * HOUR_MS, &bytes(&row, 1)?);
                let Some(intervals) = states else {
                    return Err(Failure::Damaged(format!("hour {hour} of device {device}")));
                };
                let id = u32::try_from(device).unwrap_or(0);
                let key = wanted.get(&id);
                let seen = key.and_then(|key| LastSeen::before(intervals, devices[*key]));
                if let Some(seen) = seen
                    && let Some(key) = wanted.remove(&id)
                {
                    found.insert(key.clone(), seen);
                }
            }
        }
        if wanted.is_empty() {
            break;
        }
    }
    Ok(found)
}

impl LastSeen {
    /// Of the intervals of an hour; `None` if none begins before the moment.
    fn before(intervals: Vec<DeviceInterval>, before_ms: u64) -> Option<Self> {
        let earlier = || intervals.iter().filter(|interval| interval.span.from_ms < before_ms);
        let until = |interval: &DeviceInterval| interval.span.to_ms.min(before_ms);
        let until_ms = earlier().map(until).max()?;
        let last = earlier().filter(|interval| until(interval) == until_ms).copied();
        Some(Self { until_ms, intervals: last.collect() })
    }
}
