//! The jobs that cost most, told apart by the database: names and rows of all others are never
//! read.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::split::SplitMethod;
use sqlx::AnyConnection;

use crate::codes::Codes;
use crate::error::{Failure, StoreError};
use crate::period_parts::PeriodParts;
use crate::statements::{ColumnValue, number, read, text, unsigned};
use crate::store::{LedgerCluster, Store, known_cluster, view};
use crate::sums::{
    Detail, Key, PARTY, PRICING, Sum, SumQuery, SumRow, WORKLOAD, known_costs, method_of, named,
    parts, rows_of, sums_of,
};
use crate::written_hour::COSTS;

/// The jobs that cost most, and all others in one.
#[derive(Clone, Debug, Default)]
pub struct TopJobs {
    /// Their rows, those of jobs with the same name in other clusters and of jobs without a name,
    /// and those of nobody.
    pub rows: Vec<SumRow>,
    /// What all other jobs had, by who pays and for what; no row has a workload.
    pub others: Vec<SumRow>,
    /// How many jobs these are.
    pub other_jobs: u64,
}

/// So many workloads are asked for in one statement.
const MOST_WORKLOADS: usize = 2000;

const BY_JOB: Detail = Detail { workload: true, group: false, pod: false, node: false };

/// A cluster with its name, the parts of the period, and what everybody had.
struct ClusterPeriod<'a> {
    name: &'a str,
    cluster: LedgerCluster,
    parts: PeriodParts,
    all: BTreeMap<Key, Sum>,
}

impl TopJobs {
    /// The jobs that cost most under a method, the one of [`default_method`](crate::default_method)
    /// if none is given; of jobs that cost the same, those with more GPU-time, then by name. A job
    /// of several workloads or parties is one by its name; jobs of several clusters are several.
    /// There are so many jobs in it, those that have a name of theirs in other clusters, and those
    /// without a name. Rows are told apart by workload, whatever the detail of the question; with
    /// the others they sum to what [`Store::sums`] gives, to the ms and the micro-dollar.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn of(
        store: &mut Store,
        question: &SumQuery,
        most: u32,
        method: Option<SplitMethod>,
    ) -> Result<Self, StoreError> {
        let asked = store.asked(question).await?;
        let is_file = store.address.is_file();
        let question = SumQuery { detail: Detail::default(), ..question.clone() };
        let connection = store.connection.as_mut().expect("connected before");
        let found = answer(connection, is_file, &store.codes, &asked, &question, (most, method));
        match found.await {
            Ok(found) => Ok(found),
            Err(failure) => Err(store.failed(failure)),
        }
    }
}

async fn answer(
    connection: &mut AnyConnection,
    is_file: bool,
    codes: &Codes,
    names: &[String],
    question: &SumQuery,
    (most, method): (u32, Option<SplitMethod>),
) -> Result<TopJobs, Failure> {
    let mut view = view(connection, is_file).await?;
    let mut asked = Vec::new();
    for name in names {
        let Some(cluster) = known_cluster(&mut view, name).await? else { continue };
        let parts = parts(&mut view, &cluster, name, question).await?;
        let all = sums_of(&mut view, &cluster, &parts, Detail::default(), None).await?;
        asked.push(ClusterPeriod { name, cluster, parts, all });
    }
    let costs = asked.iter().flat_map(|asked| &asked.all);
    let costs = costs.map(|(key, sum)| known_costs(key[PRICING], sum.costs));
    let method = method.unwrap_or_else(|| method_of(costs));
    let (sql, cells) = ranking(&asked, method, most, is_file);
    let mut found = TopJobs::default();
    let (mut jobs, mut workloads) = (BTreeSet::new(), BTreeMap::<i64, Vec<i64>>::new());
    if !cells.is_empty() {
        for row in read(&mut view, &sql, cells).await? {
            let cluster = number(&row, 0)?;
            workloads.entry(cluster).or_default().push(number(&row, 1)?);
            jobs.insert((cluster, text(&row, 2)?));
            found.other_jobs = unsigned(&row, 3)?;
        }
    }
    found.other_jobs = found.other_jobs.saturating_sub(jobs.len() as u64);
    for ClusterPeriod { name, cluster, parts, all } in asked {
        let mut top = BTreeMap::new();
        for some in workloads.remove(&cluster.id).unwrap_or_default().chunks(MOST_WORKLOADS) {
            top.extend(sums_of(&mut view, &cluster, &parts, BY_JOB, Some(some)).await?);
        }
        let mut others = left(all, &top);
        // Nobody is no job.
        top.extend(others.extract_if(.., |key, _| key[PARTY] == 0));
        found.rows.extend(named(&mut view, codes, &cluster, name, top).await?);
        found.others.extend(named(&mut view, codes, &cluster, name, others).await?);
    }
    view.commit().await?;
    Ok(found)
}

/// What is left of everything without the rows of some workloads.
fn left(mut all: BTreeMap<Key, Sum>, some: &BTreeMap<Key, Sum>) -> BTreeMap<Key, Sum> {
    for (key, sum) in some {
        let mut of_all = *key;
        of_all[WORKLOAD] = 0;
        let rest = all.entry(of_all).or_default();
        rest.charges -= sum.charges;
        rest.gpu_milli_ms -= sum.gpu_milli_ms;
        rest.costs.iter_mut().zip(sum.costs).for_each(|(rest, cost)| *rest -= cost);
    }
    all.retain(|_, rest| rest.charges != 0);
    all
}

/// The statement that ranks jobs, each of one cluster: of the costliest and of those that have
/// their names in other clusters each workload with its cluster, the job as it stands in the name
/// of the workload, and how many jobs there are.
///
/// The name of a workload is JSON that begins with its job (`{"job":"Job a/b","queue":...`). A
/// quotation mark within a text has a backslash before it there, so the first `","queue":` is the
/// end of the job.
fn ranking(
    asked: &[ClusterPeriod<'_>],
    method: SplitMethod,
    most: u32,
    is_file: bool,
) -> (String, Vec<ColumnValue>) {
    let place = SplitMethod::ALL.iter().position(|known| *known == method).unwrap_or(0);
    let (cost, position) = (COSTS[place], if is_file { "instr" } else { "strpos" });
    let (mut selects, mut cells) = (Vec::new(), Vec::new());
    for rows in asked.iter().flat_map(|asked| rows_of(&asked.cluster, &asked.parts, BY_JOB)) {
        let charges = if rows.is_of_days { "charges" } else { "1" };
        let sign = if rows.is_taken_away { "-" } else { "" };
        let of = rows.of(cells.len());
        selects.push(format!(
            "SELECT cluster, workload, {sign}{charges} AS charges, {sign}{cost} AS cost, \
             {sign}gpu_milli_ms AS gpu_milli_ms FROM {of} AND workload <> 0"
        ));
        cells.extend(rows.cells);
    }
    if selects.is_empty() {
        return (String::new(), cells);
    }
    // Jobs without a name are always told, of which a cluster may have one.
    cells.push(ColumnValue::Number(i64::from(most) + asked.len() as i64));
    let sql = format!(
        "WITH amounts AS (SELECT cluster, workload, CAST(SUM(cost) AS BIGINT) AS cost, \
         CAST(SUM(gpu_milli_ms) AS BIGINT) AS gpu_milli_ms FROM ({}) AS parts GROUP BY cluster, workload \
         HAVING SUM(charges) <> 0), \
         named AS (SELECT names.cluster, workload, cost, gpu_milli_ms, \
         SUBSTR(body, 1, {position}(body, '\",\"queue\":')) AS job FROM amounts \
         JOIN names ON names.cluster = amounts.cluster AND names.id = amounts.workload), \
         jobs AS (SELECT cluster, job, SUM(cost) AS cost, SUM(gpu_milli_ms) AS gpu_milli_ms FROM named \
         GROUP BY cluster, job), \
         costliest AS (SELECT job FROM jobs \
         ORDER BY (job = '{{\"job\":\"\"') DESC, cost DESC, gpu_milli_ms DESC, job LIMIT ${}) \
         SELECT cluster, workload, job, (SELECT COUNT(*) FROM jobs) FROM named \
         WHERE job IN (SELECT job FROM costliest)",
        selects.join(" UNION ALL "),
        cells.len()
    );
    (sql, cells)
}
