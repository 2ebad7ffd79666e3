//! Answers: charges added up over a period.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use dovetail_account::cost::Paid;
use dovetail_account::device_time::{ActiveWork, DeviceState};
use dovetail_account::rollup::ByMethod;
use dovetail_account::split::SplitMethod;
use dovetail_model::Money;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

use crate::codes::Codes;
use crate::daily::{BY_PARTY, BY_PARTY_AND_GROUP, BY_WORKLOAD};
use crate::error::{Failure, StoreError};
use crate::keep::hour_in_words;
use crate::names::{KnownNames, NodeGroup, Party, WorkloadNames, bodies};
use crate::period_parts::{Hours, PeriodParts};
use crate::reading::shortened;
use crate::statements::{ColumnValue, number, placeholders, read, text, unsigned};
use crate::store::{LedgerCluster, Store, known_cluster, view};
use crate::used::decoded;
use crate::written_hour::{COSTS, Costs, PRICED, UNPRICED};

/// What is asked of a ledger.
#[derive(Clone, Debug)]
pub struct SumQuery {
    pub cluster: Option<String>,
    /// First hour, counted since 1970.
    pub from_hour: u64,
    /// Hour after the last.
    pub to_hour: u64,
    /// What rows are told apart by.
    pub detail: Detail,
}

/// What rows are told apart by, beside cluster, party and cause. Pods and nodes are known for as
/// long as hours are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    pub workload: bool,
    /// By group of nodes.
    pub group: bool,
    pub pod: bool,
    pub node: bool,
}

/// A row of an answer. What was not asked for is `None`.
#[derive(Clone, Debug)]
pub struct SumRow {
    pub cluster: Arc<str>,
    /// Who pays; `None` is nobody.
    pub party: Option<Arc<Party>>,
    /// What its pods belong to.
    pub workload: Option<Arc<WorkloadNames>>,
    pub pod: Option<Arc<str>>,
    pub node: Option<Arc<str>>,
    pub group: Option<Arc<NodeGroup>>,
    pub paid: Paid,
    /// Device-time in milli-GPU × ms.
    pub gpu_milli_ms: i128,
    /// Charges of nodes and hours that are in it.
    pub charges: u64,
    /// Costs; a row has all of a method or nothing.
    pub costs: ByMethod,
}

/// How busy the GPUs of pods were on average, told apart as the rows of [`Store::sums`] are.
#[derive(Clone, Debug)]
pub struct UsedRow {
    /// Who and where; its time is what was measured, and it has no costs.
    pub of: SumRow,
    /// The part that was used, in milli-GPU × ms.
    pub used_gpu_milli_ms: i128,
}

/// The split method nobody asked for: `residual` where all that has a price has it under `residual`
/// too, else `all-in`.
pub fn default_method<'r>(rows: impl IntoIterator<Item = &'r SumRow>) -> SplitMethod {
    method_of(rows.into_iter().map(|row| row.costs))
}

/// The same of the costs of rows.
pub(crate) fn method_of(costs: impl Iterator<Item = ByMethod>) -> SplitMethod {
    let residual = SplitMethod::ALL.iter().position(|method| *method == SplitMethod::Residual);
    let residual = residual.unwrap_or(0);
    let mut priced = costs.filter(|costs| costs.iter().any(Option::is_some)).peekable();
    match priced.peek().is_some() && priced.all(|costs| costs[residual].is_some()) {
        true => SplitMethod::Residual,
        false => SplitMethod::AllIn,
    }
}

/// Columns that tell rows apart, as they stand in both tables.
pub(crate) const PARTY: usize = 0;
pub(crate) const WORKLOAD: usize = 1;
const HOLDER: usize = 2;
const NODE: usize = 3;
const GROUP: usize = 4;
const PAID: usize = 5;
pub(crate) const PRICING: usize = 6;
const KEYS: [&str; 7] = ["party", "workload", "holder", "node", "node_group", "paid", "pricing"];

pub(crate) type Key = [i64; KEYS.len()];

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    pub(crate) charges: i64,
    pub(crate) gpu_milli_ms: i64,
    pub(crate) costs: Costs,
}

impl Store {
    /// Charges by what a question tells apart, over days where these are enough, with hours at the
    /// edges of the period.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn sums(&mut self, question: &SumQuery) -> Result<Vec<SumRow>, StoreError> {
        let asked = self.asked(question).await?;
        let is_file = self.address.is_file();
        let connection = self.connection.as_mut().expect("connected before");
        match answer(connection, is_file, &self.codes, &asked, question).await {
            Ok(rows) => Ok(rows),
            Err(failure) => Err(self.failed(failure)),
        }
    }

    /// How busy GPUs were in the hours of a question that are still kept one by one, as far as it
    /// was measured for the pods that had them.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn used(&mut self, question: &SumQuery) -> Result<Vec<UsedRow>, StoreError> {
        let asked = self.asked(question).await?;
        let mut rows = Vec::new();
        for name in asked {
            let connection = self.connection.as_mut().expect("connected before");
            let of_cluster =
                used_of_cluster(connection, &mut self.names, &self.codes, &name, question);
            match of_cluster.await {
                Ok(found) => rows.extend(found),
                Err(failure) => return Err(self.failed(failure)),
            }
        }
        Ok(rows)
    }

    /// Names of the clusters that a question is about.
    pub(crate) async fn asked(&mut self, question: &SumQuery) -> Result<Vec<String>, StoreError> {
        let known = self.clusters().await?;
        match &question.cluster {
            None => Ok(known),
            Some(name) if known.contains(name) => Ok(vec![name.clone()]),
            Some(name) => Err(StoreError::UnknownCluster {
                address: self.address(),
                cluster: shortened(name),
                known: match known.as_slice() {
                    [] => "none yet".to_owned(),
                    known => known.join(", "),
                },
            }),
        }
    }
}

async fn answer(
    connection: &mut AnyConnection,
    is_file: bool,
    codes: &Codes,
    asked: &[String],
    question: &SumQuery,
) -> Result<Vec<SumRow>, Failure> {
    let mut view = view(connection, is_file).await?;
    let mut rows = Vec::new();
    for name in asked {
        let Some(cluster) = known_cluster(&mut view, name).await? else { continue };
        let parts = parts(&mut view, &cluster, name, question).await?;
        let sums = sums_of(&mut view, &cluster, &parts, question.detail, None).await?;
        rows.extend(named(&mut view, codes, &cluster, name, sums).await?);
    }
    view.commit().await?;
    Ok(rows)
}

async fn used_of_cluster(
    connection: &mut AnyConnection,
    names: &mut BTreeMap<i64, KnownNames>,
    codes: &Codes,
    name: &str,
    question: &SumQuery,
) -> Result<Vec<UsedRow>, Failure> {
    let Some(cluster) = known_cluster(connection, name).await? else { return Ok(Vec::new()) };
    let hours = [question.from_hour, question.to_hour].map(|hour| ColumnValue::Number(hour as i64));
    let cells =
        || [ColumnValue::Number(cluster.id)].into_iter().chain(hours.clone()).collect::<Vec<_>>();
    let sql = "SELECT node, slots FROM used WHERE cluster = $1 AND hour_number >= $2 \
               AND hour_number < $3";
    let mut times: BTreeMap<(i64, u32), (i64, i64)> = BTreeMap::new();
    for row in read(connection, sql, cells()).await? {
        let node = number(&row, 0)?;
        for ((_, pod), (measured, used)) in decoded(&text(&row, 1)?)? {
            let amounts = times.entry((node, pod)).or_default();
            *amounts = (amounts.0.saturating_add(measured), amounts.1.saturating_add(used));
        }
    }
    let sql = "SELECT node, MAX(node_group) FROM hourly WHERE cluster = $1 AND hour_number >= $2 \
               AND hour_number < $3 GROUP BY node";
    let mut groups: BTreeMap<i64, i64> = BTreeMap::new();
    if question.detail.group {
        for row in read(connection, sql, cells()).await? {
            groups.insert(number(&row, 0)?, number(&row, 1)?);
        }
    }
    let pods: BTreeSet<u32> = times.keys().map(|(_, pod)| *pod).collect();
    let owners = names.entry(cluster.id).or_default();
    let owners = owners.owners(connection, cluster.id, pods.into_iter()).await?;
    let paid = codes.of_paid(Paid::Gpus(DeviceState::Active(ActiveWork::NotSeparable)));
    let mut measured: BTreeMap<Key, Sum> = BTreeMap::new();
    let mut used_of: BTreeMap<Key, i64> = BTreeMap::new();
    for ((node, pod), (time, used)) in times {
        let owner = owners.get(&pod);
        let mut key = Key::default();
        key[PARTY] = owner.map_or(0, |owner| i64::from(owner.party));
        key[PAID] = i64::from(paid);
        key[PRICING] = UNPRICED;
        let told = [
            (WORKLOAD, question.detail.workload, owner.map_or(0, |owner| owner.workload.into())),
            (HOLDER, question.detail.pod, i64::from(pod)),
            (NODE, question.detail.node, node),
            (GROUP, question.detail.group, groups.get(&node).copied().unwrap_or(0)),
        ];
        for (column, _, value) in told.into_iter().filter(|(_, is_asked, _)| *is_asked) {
            key[column] = value;
        }
        let sum = measured.entry(key).or_default();
        sum.gpu_milli_ms = sum.gpu_milli_ms.saturating_add(time);
        let sum = used_of.entry(key).or_default();
        *sum = sum.saturating_add(used);
    }
    let rows = named(connection, codes, &cluster, name, measured).await?;
    let row = |(of, used): (SumRow, i64)| UsedRow { of, used_gpu_milli_ms: used.into() };
    Ok(rows.into_iter().zip(used_of.into_values()).map(row).collect())
}

/// What the period of a question is made of.
///
/// # Errors
/// Hours that are no longer kept.
pub(crate) async fn parts(
    connection: &mut AnyConnection,
    cluster: &LedgerCluster,
    name: &str,
    question: &SumQuery,
) -> Result<PeriodParts, Failure> {
    let SumQuery { from_hour, to_hour, detail, .. } = *question;
    let parts = if detail.pod || detail.node {
        PeriodParts::of_hours(from_hour..to_hour)
    } else {
        let sql = "SELECT COALESCE(MAX(hour_number) + 1, 0) FROM hourly WHERE cluster = $1";
        let end = read(connection, sql, vec![cluster.id.into()]).await?;
        let end = end.first().map(|row| unsigned(row, 0)).transpose()?;
        PeriodParts::of(from_hour..to_hour, end.unwrap_or(0))
    };
    match parts.first_hour() {
        Some(first) if first < cluster.nodes_from_hour => {
            Err(Failure::Told(StoreError::NoLongerKept {
                cluster: shortened(name),
                floor: hour_in_words(cluster.nodes_from_hour),
            }))
        }
        _ => Ok(parts),
    }
}

/// Sums over the parts of a period, of some workloads or of everything.
pub(crate) async fn sums_of(
    connection: &mut AnyConnection,
    cluster: &LedgerCluster,
    parts: &PeriodParts,
    detail: Detail,
    workloads: Option<&[i64]>,
) -> Result<BTreeMap<Key, Sum>, Failure> {
    let columns = columns(detail);
    let listed = listed(&columns);
    let mut sums = BTreeMap::new();
    for rows in rows_of(cluster, parts, detail) {
        let only = workloads.map_or_else(String::new, |workloads| {
            let places = placeholders(rows.cells.len(), workloads.len());
            format!(" AND workload IN ({places})")
        });
        let sql = format!(
            "SELECT {listed}, {}, {} FROM {}{only} GROUP BY {listed}",
            if rows.is_of_days { "CAST(SUM(charges) AS BIGINT)" } else { "COUNT(*)" },
            amounts(),
            rows.of(0),
        );
        let workloads =
            workloads.into_iter().flatten().map(|workload| ColumnValue::Number(*workload));
        let cells = rows.cells.into_iter().chain(workloads).collect();
        let sign = if rows.is_taken_away { -1 } else { 1 };
        add(read(connection, &sql, cells).await?, &columns, sign, &mut sums)?;
    }
    // What was in hours that were taken away, and in no other.
    sums.retain(|_, sum: &mut Sum| sum.charges != 0);
    Ok(sums)
}

/// Rows of one table.
pub(crate) struct Rows {
    pub(crate) is_of_days: bool,
    /// Rows of hours that days have and that are not asked for.
    pub(crate) is_taken_away: bool,
    pub(crate) cells: Vec<ColumnValue>,
}

impl Rows {
    /// As a statement names them, after so many other cells.
    pub(crate) fn of(&self, after: usize) -> String {
        let [one, two, three, four] = [1, 2, 3, 4].map(|place| format!("${}", after + place));
        match self.is_of_days {
            true => format!(
                "daily WHERE cluster = {one} AND grain = {two} AND day_number >= {three} AND day_number < {four}"
            ),
            false => {
                format!(
                    "hourly WHERE cluster = {one} AND hour_number >= {two} AND hour_number < {three}"
                )
            }
        }
    }
}

pub(crate) fn rows_of(cluster: &LedgerCluster, parts: &PeriodParts, detail: Detail) -> Vec<Rows> {
    let numbers = |numbers: &[i64]| numbers.iter().copied().map(ColumnValue::Number).collect();
    let Range { start, end } = parts.days;
    let grain = match detail {
        Detail { workload: true, .. } => BY_WORKLOAD,
        Detail { group: true, .. } => BY_PARTY_AND_GROUP,
        _ => BY_PARTY,
    };
    let days = Rows {
        is_of_days: true,
        is_taken_away: false,
        cells: numbers(&[cluster.id, grain, start as i64, end as i64]),
    };
    let hours = parts.hours.iter().map(|Hours { range, is_taken_away }| Rows {
        is_of_days: false,
        is_taken_away: *is_taken_away,
        cells: numbers(&[cluster.id, range.start as i64, range.end as i64]),
    });
    Some(days).filter(|_| start < end).into_iter().chain(hours).collect()
}

/// Places of the columns that tell rows apart.
fn columns(detail: Detail) -> Vec<usize> {
    let asked = [
        (PARTY, true),
        (WORKLOAD, detail.workload),
        (HOLDER, detail.pod),
        (NODE, detail.node),
        (GROUP, detail.group),
        (PAID, true),
        (PRICING, true),
    ];
    asked.into_iter().filter(|(_, asked)| *asked).map(|(column, _)| column).collect()
}

fn listed(columns: &[usize]) -> String {
    let names: Vec<&str> = columns.iter().map(|column| KEYS[*column]).collect();
    names.join(", ")
}

/// Sums of whole numbers are decimal numbers to PostgreSQL.
fn amounts() -> String {
    let columns = ["gpu_milli_ms"].into_iter().chain(COSTS);
    let sums: Vec<String> = columns.map(|c| format!("CAST(SUM({c}) AS BIGINT)")).collect();
    sums.join(", ")
}

fn add(
    rows: Vec<AnyRow>,
    columns: &[usize],
    sign: i64,
    sums: &mut BTreeMap<Key, Sum>,
) -> Result<(), Failure> {
    for row in rows {
        let mut key = Key::default();
        for (place, column) in columns.iter().enumerate() {
            key[*column] = number(&row, place)?;
        }
        let sum = sums.entry(key).or_default();
        let after = columns.len();
        sum.charges += sign * number(&row, after)?;
        sum.gpu_milli_ms += sign * number(&row, after + 1)?;
        for (cost, place) in sum.costs.iter_mut().zip(after + 2..) {
            *cost += sign * number(&row, place)?;
        }
    }
    Ok(())
}

/// Sums with names instead of numbers.
pub(crate) async fn named(
    connection: &mut AnyConnection,
    codes: &Codes,
    cluster: &LedgerCluster,
    name: &str,
    sums: BTreeMap<Key, Sum>,
) -> Result<Vec<SumRow>, Failure> {
    let ids = |column: usize| -> BTreeSet<i64> {
        sums.keys().map(|key| key[column]).filter(|id| *id != 0).collect()
    };
    let parties = shared(bodies::<Party>(connection, cluster.id, &ids(PARTY)).await?);
    let workloads = shared(bodies::<WorkloadNames>(connection, cluster.id, &ids(WORKLOAD)).await?);
    let groups = shared(bodies::<NodeGroup>(connection, cluster.id, &ids(GROUP)).await?);
    let pods = shared(bodies::<Box<str>>(connection, cluster.id, &ids(HOLDER)).await?);
    let nodes = shared(bodies::<Box<str>>(connection, cluster.id, &ids(NODE)).await?);
    let cluster: Arc<str> = name.into();
    let mut rows = Vec::with_capacity(sums.len());
    for (key, sum) in sums {
        let paid = u8::try_from(key[PAID]).ok().and_then(|code| codes.paid(code));
        let Some(paid) = paid else {
            return Err(Failure::Damaged(format!("{} is not a cause", key[PAID])));
        };
        rows.push(SumRow {
            cluster: Arc::clone(&cluster),
            party: found(&parties, key[PARTY])?,
            workload: found(&workloads, key[WORKLOAD])?,
            pod: found(&pods, key[HOLDER])?.map(|name| Arc::from(&**name)),
            node: found(&nodes, key[NODE])?.map(|name| Arc::from(&**name)),
            group: found(&groups, key[GROUP])?,
            paid,
            gpu_milli_ms: sum.gpu_milli_ms.into(),
            charges: sum.charges.unsigned_abs(),
            costs: known_costs(key[PRICING], sum.costs),
        });
    }
    Ok(rows)
}

fn shared<T>(bodies: BTreeMap<i64, T>) -> BTreeMap<i64, Arc<T>> {
    bodies.into_iter().map(|(id, body)| (id, Arc::new(body))).collect()
}

fn found<T>(bodies: &BTreeMap<i64, Arc<T>>, id: i64) -> Result<Option<Arc<T>>, Failure> {
    match (id, bodies.get(&id)) {
        (0, _) => Ok(None),
        (_, Some(body)) => Ok(Some(Arc::clone(body))),
        (id, None) => Err(Failure::Damaged(format!("ID {id} has no entry in the table of names"))),
    }
}

/// Costs that are known, as the pricing of a row says.
pub(crate) fn known_costs(pricing: i64, costs: Costs) -> ByMethod {
    let mut known = costs.map(|usd_micros| Some(Money::micros(usd_micros)));
    for (cost, method) in known.iter_mut().zip(SplitMethod::ALL) {
        let is_known = match method {
            SplitMethod::Residual => pricing == PRICED,
            _ => pricing != UNPRICED,
        };
        *cost = cost.filter(|_| is_known);
    }
    known
}
