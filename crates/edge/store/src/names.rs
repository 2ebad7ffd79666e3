//! Names as numbers: a row has numbers alone, and a name that changes in any way is another name.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use sqlx::AnyConnection;

use crate::error::Failure;
use crate::node_facts::NodeFacts;
use crate::reading::{ReadPod, Reading};
use crate::statements::{ColumnValue, insert, number, placeholders, read, text};

/// Nodes that cost and count alike in long views.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeGroup {
    /// Model of their GPUs; empty where nobody knows.
    pub gpu_type: String,
    /// Their pool; empty where nobody knows.
    pub pool: String,
}

/// Who can be made to pay: what a team is told by, as it was read. The mapping to teams is the
/// reader's, so a new one restates the past.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Party {
    pub namespace: String,
    /// Its labels that may name a team.
    pub namespace_labels: BTreeMap<String, String>,
    /// Those of the pods.
    pub labels: BTreeMap<String, String>,
}

/// What pods belong to.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WorkloadNames {
    /// Their top owner.
    pub job: String,
    pub queue: Option<String>,
    /// The model that they serve or train.
    pub model: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum NameKind {
    Node = 1,
    Device = 2,
    Group = 3,
    Party = 4,
    Workload = 5,
    Pod = 6,
    NodeFacts = 7,
}

/// First half of the SHA-256 of kind, the parent's digest and body: the same in every ledger,
/// whatever numbers are.
type Digest = [u8; 16];

/// Digest of the parent of what has none.
const TOP: Digest = [0; 16];

/// Names of one cluster that were met before. What a transaction adds counts when it is committed.
#[derive(Debug, Default)]
pub(crate) struct KnownNames {
    known: HashMap<Digest, u32>,
    fresh: HashMap<Digest, u32>,
    /// By number of the pod.
    owners: HashMap<u32, PodOwner>,
}

/// What a pod belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PodOwner {
    pub(crate) workload: u32,
    pub(crate) party: u32,
    /// Of the pod: an order that does not depend on which pod was met first.
    pub(crate) digest: Digest,
}

/// No more names than this stay in memory.
const MOST_KNOWN: usize = 2_000_000;

/// The numbers of all that is in a reading, by place.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    pub(crate) nodes: Vec<u32>,
    /// By place of the node.
    pub(crate) groups: Vec<u32>,
    /// By place of the node.
    pub(crate) facts: Vec<u32>,
    pub(crate) devices: Vec<u32>,
    pub(crate) pods: Vec<u32>,
}

struct StoredName {
    kind: NameKind,
    parent: Numbered,
    body: String,
}

/// A name that has its number.
#[derive(Clone, Copy, Debug)]
struct Numbered {
    id: u32,
    digest: Digest,
}

fn ids(numbered: &[Numbered]) -> Vec<u32> {
    numbered.iter().map(|numbered| numbered.id).collect()
}

impl KnownNames {
    /// What was added is there for good.
    pub(crate) fn committed(&mut self) {
        if self.known.len() + self.fresh.len() > MOST_KNOWN {
            self.known.clear();
            self.owners.clear();
        }
        self.known.extend(self.fresh.drain());
    }

    /// The numbers of everything in a reading.
    pub(crate) async fn numbers(
        &mut self,
        connection: &mut AnyConnection,
        cluster: i64,
        reading: &Reading,
    ) -> Result<Numbers, Failure> {
        let parent = Numbered { id: 0, digest: TOP };
        let top = |kind, body| StoredName { kind, parent, body };
        let nodes = reading.nodes.iter().map(|node| top(NameKind::Node, json(&node.name)));
        let groups = reading.nodes.iter().map(|node| {
            let group = NodeGroup { gpu_type: node.gpu_type.clone(), pool: node.pool.clone() };
            top(NameKind::Group, json(&group))
        });
        let parties = reading.pods.iter().map(|pod| top(NameKind::Party, json(&party(pod))));
        let first: Vec<StoredName> = nodes.chain(groups).chain(parties).collect();
        let mut nodes = self.number_all(connection, cluster, first).await?;
        let mut groups = nodes.split_off(reading.nodes.len());
        let parties = groups.split_off(reading.nodes.len());
        let facts = reading.nodes.iter().zip(&nodes).map(|(node, number)| StoredName {
            kind: NameKind::NodeFacts,
            parent: *number,
            body: json(&NodeFacts::of(node)),
        });
        let facts = self.number_all(connection, cluster, facts.collect()).await?;
        let devices = reading.devices.iter().map(|device| StoredName {
            kind: NameKind::Device,
            parent: nodes[device.node],
            body: json(&device.name),
        });
        let workloads = reading.pods.iter().zip(&parties).map(|(pod, party)| StoredName {
            kind: NameKind::Workload,
            parent: *party,
            body: json(&workload(pod)),
        });
        let second: Vec<StoredName> = devices.chain(workloads).collect();
        let mut devices = self.number_all(connection, cluster, second).await?;
        let workloads = devices.split_off(reading.devices.len());
        let third = reading.pods.iter().zip(&workloads);
        let third = third.map(|(pod, workload)| StoredName {
            kind: NameKind::Pod,
            parent: *workload,
            body: json(&pod.name),
        });
        let pods = self.number_all(connection, cluster, third.collect()).await?;
        for ((pod, workload), party) in pods.iter().zip(workloads).zip(parties) {
            let (workload, party) = (workload.id, party.id);
            self.owners.insert(pod.id, PodOwner { workload, party, digest: pod.digest });
        }
        let (nodes, groups) = (ids(&nodes), ids(&groups));
        let (devices, facts) = (ids(&devices), ids(&facts));
        Ok(Numbers { nodes, groups, facts, devices, pods: ids(&pods) })
    }

    /// What pods belong to.
    pub(crate) async fn owners(
        &mut self,
        connection: &mut AnyConnection,
        cluster: i64,
        pods: impl Iterator<Item = u32>,
    ) -> Result<BTreeMap<u32, PodOwner>, Failure> {
        let pods: BTreeSet<u32> = pods.collect();
        let unknown: Vec<u32> =
            pods.iter().copied().filter(|pod| !self.owners.contains_key(pod)).collect();
        let workloads = parents(connection, cluster, &unknown).await?;
        let above: Vec<u32> = workloads.values().map(|(workload, _)| *workload).collect();
        let parties = parents(connection, cluster, &above).await?;
        for (pod, (workload, digest)) in &workloads {
            let party = parties.get(workload).map_or(0, |(party, _)| *party);
            self.owners.insert(*pod, PodOwner { workload: *workload, party, digest: *digest });
        }
        let owner = |pod: u32| match self.owners.get(&pod) {
            Some(owner) => Ok((pod, *owner)),
            None => Err(Failure::Damaged(format!("pod number {pod} has no name"))),
        };
        pods.into_iter().map(owner).collect()
    }

    /// The number of each name, in their order; new ones are entered.
    async fn number_all(
        &mut self,
        connection: &mut AnyConnection,
        cluster: i64,
        names: Vec<StoredName>,
    ) -> Result<Vec<Numbered>, Failure> {
        let digests: Vec<Digest> = names.iter().map(StoredName::digest).collect();
        let mut unknown: BTreeMap<Digest, &StoredName> = BTreeMap::new();
        for (digest, name) in digests.iter().zip(&names) {
            if self.find(digest).is_none() {
                unknown.insert(*digest, name);
            }
        }
        self.look_up(connection, cluster, &mut unknown).await?;
        if !unknown.is_empty() {
            let sql = "SELECT COALESCE(MAX(id), 0) FROM names WHERE cluster = $1";
            let last = read(connection, sql, vec![cluster.into()]).await?;
            let mut last = last.first().map(|row| number(row, 0)).transpose()?.unwrap_or(0);
            let mut cells = Vec::with_capacity(6 * unknown.len());
            for (digest, name) in unknown {
                last += 1;
                let id = u32::try_from(last);
                let id = id.map_err(|_| Failure::Damaged("no number is left".to_owned()))?;
                self.fresh.insert(digest, id);
                let StoredName { kind, parent, body } = name;
                cells.extend([cluster.into(), last.into(), ColumnValue::Number(*kind as i64)]);
                cells.extend([i64::from(parent.id).into(), ColumnValue::Text(hex(&digest))]);
                cells.push(body.as_str().into());
            }
            let head = "INSERT INTO names (cluster, id, kind, parent, digest, body)";
            insert(connection, head, 6, "", cells).await?;
        }
        let found = digests.iter().map(|digest| {
            let id = self.find(digest)?;
            Some(Numbered { id, digest: *digest })
        });
        let found: Option<Vec<Numbered>> = found.collect();
        found.ok_or_else(|| Failure::Damaged("a stored name is missing".to_owned()))
    }

    fn find(&self, digest: &Digest) -> Option<u32> {
        self.known.get(digest).or_else(|| self.fresh.get(digest)).copied()
    }

    /// Takes out of `unknown` what the ledger knows.
    async fn look_up(
        &mut self,
        connection: &mut AnyConnection,
        cluster: i64,
        unknown: &mut BTreeMap<Digest, &StoredName>,
    ) -> Result<(), Failure> {
        let asked: Vec<String> = unknown.keys().map(hex).collect();
        for part in asked.chunks(2000) {
            let sql = format!(
                "SELECT id, digest FROM names WHERE cluster = $1 AND digest IN ({})",
                placeholders(1, part.len())
            );
            let mut cells = vec![ColumnValue::Number(cluster)];
            cells.extend(part.iter().map(|digest| ColumnValue::Text(digest.clone())));
            for row in read(connection, &sql, cells).await? {
                let (id, digest) = (number(&row, 0)?, text(&row, 1)?);
                let known = u32::try_from(id).ok().zip(of_hex(&digest));
                let Some((id, digest)) = known else {
                    return Err(Failure::Damaged(format!(
                        "name {id} has the invalid digest `{digest}`"
                    )));
                };
                unknown.remove(&digest);
                self.fresh.insert(digest, id);
            }
        }
        Ok(())
    }
}

/// Devices, by node and name, by their numbers; those that nobody has entered are left out.
pub(crate) async fn known_devices<'k>(
    connection: &mut AnyConnection,
    cluster: i64,
    devices: &BTreeSet<&'k (String, String)>,
) -> Result<BTreeMap<u32, &'k (String, String)>, Failure> {
    let of = |kind, digest, body: &str| {
        StoredName { kind, parent: Numbered { id: 0, digest }, body: json(&body) }.digest()
    };
    let digest = |device: &(String, String)| {
        of(NameKind::Device, of(NameKind::Node, TOP, &device.0), &device.1)
    };
    let by_digest: BTreeMap<String, &'k (String, String)> =
        devices.iter().map(|device| (hex(&digest(device)), *device)).collect();
    let asked: Vec<&String> = by_digest.keys().collect();
    let mut known = BTreeMap::new();
    for part in asked.chunks(2000) {
        let sql = format!(
            "SELECT id, digest FROM names WHERE cluster = $1 AND digest IN ({})",
            placeholders(1, part.len())
        );
        let mut cells = vec![ColumnValue::Number(cluster)];
        cells.extend(part.iter().map(|digest| ColumnValue::Text((*digest).clone())));
        for row in read(connection, &sql, cells).await? {
            let id = u32::try_from(number(&row, 0)?).ok();
            known.extend(id.zip(by_digest.get(&text(&row, 1)?).copied()));
        }
    }
    Ok(known)
}

/// Parents and digests of names by their numbers.
pub(crate) async fn parents(
    connection: &mut AnyConnection,
    cluster: i64,
    ids: &[u32],
) -> Result<BTreeMap<u32, (u32, Digest)>, Failure> {
    let mut parents = BTreeMap::new();
    for part in ids.chunks(2000) {
        let sql = format!(
            "SELECT id, parent, digest FROM names WHERE cluster = $1 AND id IN ({})",
            placeholders(1, part.len())
        );
        let mut cells = vec![ColumnValue::Number(cluster)];
        cells.extend(part.iter().map(|id| ColumnValue::Number(i64::from(*id))));
        for row in read(connection, &sql, cells).await? {
            let id = u32::try_from(number(&row, 0)?).ok();
            let parent = u32::try_from(number(&row, 1)?).ok();
            parents.extend(id.zip(parent.zip(of_hex(&text(&row, 2)?))));
        }
    }
    Ok(parents)
}

/// What stands under numbers.
pub(crate) async fn bodies<T: for<'d> Deserialize<'d>>(
    connection: &mut AnyConnection,
    cluster: i64,
    ids: &BTreeSet<i64>,
) -> Result<BTreeMap<i64, T>, Failure> {
    let ids: Vec<i64> = ids.iter().copied().collect();
    let mut bodies = BTreeMap::new();
    for part in ids.chunks(2000) {
        let sql = format!(
            "SELECT id, body FROM names WHERE cluster = $1 AND id IN ({})",
            placeholders(1, part.len())
        );
        let mut cells = vec![ColumnValue::Number(cluster)];
        cells.extend(part.iter().map(|id| ColumnValue::Number(*id)));
        for row in read(connection, &sql, cells).await? {
            let (id, body) = (number(&row, 0)?, text(&row, 1)?);
            let body = serde_json::from_str(&body)
                .map_err(|error| Failure::Damaged(format!("name {id}: {error}")))?;
            bodies.insert(id, body);
        }
    }
    Ok(bodies)
}

impl StoredName {
    fn digest(&self) -> Digest {
        let mut hash = Sha256::new();
        hash.update([self.kind as u8]);
        hash.update(self.parent.digest);
        hash.update(self.body.as_bytes());
        let mut digest = Digest::default();
        digest.copy_from_slice(&hash.finalize()[..16]);
        digest
    }
}

fn party(pod: &ReadPod) -> Party {
    Party {
        namespace: pod.namespace.clone(),
        namespace_labels: pod.namespace_labels.clone(),
        labels: pod.labels.clone(),
    }
}

fn workload(pod: &ReadPod) -> WorkloadNames {
    WorkloadNames { job: pod.job.clone(), queue: pod.queue.clone(), model: pod.model.clone() }
}

/// JSON has a form for every text, also for those that a database refuses.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("names are texts")
}

/// A number of a name as it is stored.
pub(crate) fn small(number: i64) -> Result<u32, Failure> {
    u32::try_from(number)
        .map_err(|_| Failure::Damaged(format!("{number} is not the number of a name")))
}

fn hex(digest: &Digest) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn of_hex(text: &str) -> Option<Digest> {
    let mut digest = Digest::default();
    if text.len() != 2 * digest.len() || !text.is_ascii() {
        return None;
    }
    for (place, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(digest)
}
