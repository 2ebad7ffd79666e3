//! Answers: charges added up over a period.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_ledger::cost::Paid;
use dovetail_ledger::rollup::ByMethod;
use dovetail_ledger::split::SplitMethod;
use dovetail_model::Money;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

use crate::codes::Codes;
use crate::daily::{BY_PARTY, BY_WORKLOAD};
use crate::error::{Failure, StoreError};
use crate::hour::{COSTS, Costs, PRICED, UNPRICED};
use crate::keep::hour_in_words;
use crate::names::{NodeGroup, Party, Workload, bodies};
use crate::reading::shortened;
use crate::rows::{Cell, number, read};
use crate::store::{Cluster, Store, known_cluster};

/// What is asked of a ledger.
#[derive(Clone, Debug)]
pub struct Question {
    /// One cluster, or all.
    pub cluster: Option<String>,
    /// First hour, counted since 1970.
    pub from_hour: u64,
    /// Hour after the last.
    pub to_hour: u64,
    /// What rows are told apart by.
    pub detail: Detail,
}

/// What rows are told apart by, beside cluster, party and cause. Pods and nodes are known for as long as hours
/// are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// By workload.
    pub workload: bool,
    /// By group of nodes.
    pub group: bool,
    /// By pod.
    pub pod: bool,
    /// By node.
    pub node: bool,
}

/// A row of an answer. What was not asked for is `None`.
#[derive(Clone, Debug)]
pub struct SumRow {
    /// The cluster.
    pub cluster: Arc<str>,
    /// Who pays; `None` is nobody.
    pub party: Option<Arc<Party>>,
    /// What its pods belong to.
    pub workload: Option<Arc<Workload>>,
    /// The pod.
    pub pod: Option<Arc<str>>,
    /// The node.
    pub node: Option<Arc<str>>,
    /// The group of the node.
    pub group: Option<Arc<NodeGroup>>,
    /// What for.
    pub paid: Paid,
    /// Device-time in milli-GPU × ms.
    pub gpu_milli_ms: i128,
    /// Charges of nodes and hours that are in it.
    pub charges: u64,
    /// Costs; a row has all of a method or nothing.
    pub costs: ByMethod,
}

/// The split method nobody asked for: `residual` where all that has a price has it under `residual` too, else `all-in`.
pub fn default_method<'r>(rows: impl IntoIterator<Item = &'r SumRow>) -> SplitMethod {
    let residual = SplitMethod::ALL.iter().position(|method| *method == SplitMethod::Residual);
    let residual = residual.unwrap_or(0);
    let priced = rows.into_iter().filter(|row| row.costs.iter().any(Option::is_some));
    let mut priced = priced.peekable();
    match priced.peek().is_some() && priced.all(|row| row.costs[residual].is_some()) {
        true => SplitMethod::Residual,
        false => SplitMethod::AllIn,
    }
}

/// Columns that tell rows apart, as they stand in both tables.
const PARTY: usize = 0;
const WORKLOAD: usize = 1;
const HOLDER: usize = 2;
const NODE: usize = 3;
const GROUP: usize = 4;
const PAID: usize = 5;
const PRICING: usize = 6;
const KEYS: [&str; 7] = ["party", "workload", "holder", "node", "node_group", "paid", "pricing"];

type Key = [i64; KEYS.len()];

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    charges: i64,
    gpu_milli_ms: i64,
    costs: Costs,
}

impl Store {
    /// Charges by what a question tells apart, over whole days where these are enough and else over hours.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn sums(&mut self, question: &Question) -> Result<Vec<SumRow>, StoreError> {
        let known = self.clusters().await?;
        let asked: Vec<String> = match &question.cluster {
            None => known,
            Some(name) if known.contains(name) => vec![name.clone()],
            Some(name) => {
                return Err(StoreError::UnknownCluster {
                    address: self.address(),
                    cluster: shortened(name),
                    known: match known.as_slice() {
                        [] => "none yet".to_owned(),
                        known => known.join(", "),
                    },
                });
            }
        };
        let mut rows = Vec::new();
        for name in asked {
            let connection = self.connection.as_mut().expect("connected before");
            match of_cluster(connection, &self.codes, &name, question).await {
                Ok(more) => rows.extend(more),
                Err(failure) => return Err(self.failed(failure)),
            }
        }
        Ok(rows)
    }
}

async fn of_cluster(
    connection: &mut AnyConnection,
    codes: &Codes,
    name: &str,
    question: &Question,
) -> Result<Vec<SumRow>, Failure> {
    let Some(cluster) = known_cluster(connection, name).await? else { return Ok(Vec::new()) };
    let (from, to) = (question.from_hour, question.to_hour.max(question.from_hour));
    let Detail { pod, node, .. } = question.detail;
    let (first_day, last_day) = (from.div_ceil(24), to / 24);
    let has_days = !pod && !node && first_day < last_day;
    let mut sums: BTreeMap<Key, Sum> = BTreeMap::new();
    let mut hours = vec![(from, to)];
    if has_days {
        let days = (first_day as i64, last_day as i64);
        add_days(connection, &cluster, days, question.detail, &mut sums).await?;
        hours = vec![(from, first_day * 24), (last_day * 24, to)];
    }
    for (from, to) in hours.into_iter().filter(|(from, to)| from < to) {
        if from < cluster.nodes_from_hour {
            return Err(Failure::Told(StoreError::NoLongerKept {
                cluster: shortened(name),
                floor: hour_in_words(cluster.nodes_from_hour),
            }));
        }
        let span = (from as i64, to as i64);
        add_hours(connection, &cluster, span, question.detail, &mut sums).await?;
    }
    named(connection, codes, &cluster, name, sums).await
}

async fn add_days(
    connection: &mut AnyConnection,
    cluster: &Cluster,
    (from, to): (i64, i64),
    detail: Detail,
    sums: &mut BTreeMap<Key, Sum>,
) -> Result<(), Failure> {
    let columns = columns(detail);
    let sql = format!(
        "SELECT {}, CAST(SUM(charges) AS BIGINT), {} FROM daily WHERE cluster = $1 AND grain = $2 \
         AND day_number >= $3 AND day_number < $4 GROUP BY {}",
        listed(&columns),
        amounts(),
        listed(&columns)
    );
    let grain = if detail.workload { BY_WORKLOAD } else { BY_PARTY };
    let cells = [cluster.id, grain, from, to].map(Cell::Number);
    add(read(connection, &sql, cells.to_vec()).await?, &columns, sums)
}

async fn add_hours(
    connection: &mut AnyConnection,
    cluster: &Cluster,
    (from, to): (i64, i64),
    detail: Detail,
    sums: &mut BTreeMap<Key, Sum>,
) -> Result<(), Failure> {
    let columns = columns(detail);
    let sql = format!(
        "SELECT {}, COUNT(*), {} FROM hourly WHERE cluster = $1 AND hour_number >= $2 \
         AND hour_number < $3 GROUP BY {}",
        listed(&columns),
        amounts(),
        listed(&columns)
    );
    let cells = [cluster.id, from, to].map(Cell::Number);
    add(read(connection, &sql, cells.to_vec()).await?, &columns, sums)
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

fn add(rows: Vec<AnyRow>, columns: &[usize], sums: &mut BTreeMap<Key, Sum>) -> Result<(), Failure> {
    for row in rows {
        let mut key = Key::default();
        for (place, column) in columns.iter().enumerate() {
            key[*column] = number(&row, place)?;
        }
        let sum = sums.entry(key).or_default();
        let after = columns.len();
        sum.charges += number(&row, after)?;
        sum.gpu_milli_ms += number(&row, after + 1)?;
        for (cost, place) in sum.costs.iter_mut().zip(after + 2..) {
            *cost += number(&row, place)?;
        }
    }
    Ok(())
}

/// Sums with names instead of numbers.
async fn named(
    connection: &mut AnyConnection,
    codes: &Codes,
    cluster: &Cluster,
    name: &str,
    sums: BTreeMap<Key, Sum>,
) -> Result<Vec<SumRow>, Failure> {
    let ids = |column: usize| -> BTreeSet<i64> {
        sums.keys().map(|key| key[column]).filter(|id| *id != 0).collect()
    };
    let parties = shared(bodies::<Party>(connection, cluster.id, &ids(PARTY)).await?);
    let workloads = shared(bodies::<Workload>(connection, cluster.id, &ids(WORKLOAD)).await?);
    let groups = shared(bodies::<NodeGroup>(connection, cluster.id, &ids(GROUP)).await?);
    let pods = shared(bodies::<Box<str>>(connection, cluster.id, &ids(HOLDER)).await?);
    let nodes = shared(bodies::<Box<str>>(connection, cluster.id, &ids(NODE)).await?);
    let cluster: Arc<str> = name.into();
    let mut rows = Vec::with_capacity(sums.len());
    for (key, sum) in sums {
        let paid = u8::try_from(key[PAID]).ok().and_then(|code| codes.paid(code));
        let Some(paid) = paid else {
            return Err(Failure::Damaged(format!("{} is no cause", key[PAID])));
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
        (id, None) => Err(Failure::Damaged(format!("number {id} has no name"))),
    }
}

fn known_costs(pricing: i64, costs: Costs) -> ByMethod {
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
