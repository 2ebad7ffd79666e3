//! Kinds of owners of pods, and what their pods do, as far as a kind tells: the one table of kinds
//! that train, form gangs, end or can be suspended.

/// What is known of the pods of a kind of owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerKind {
    /// The name as manifests write it.
    pub name: &'static str,
    pub trains: bool,
    /// They start together.
    pub gangs: bool,
    /// They end by themselves.
    pub ends: bool,
    /// Their number stands by role in the fields of a training operator.
    pub has_replica_roles: bool,
    /// The fields that lead to the one by which an object is suspended: while it is `true`, the
    /// controller deletes the pods and makes none. Empty for a kind that has none.
    pub suspend: &'static [&'static str],
}

/// Where most kinds have it.
const IN_SPEC: &[&str] = &["spec", "suspend"];

const NONE: OwnerKind = OwnerKind {
    name: "",
    trains: false,
    gangs: false,
    ends: false,
    has_replica_roles: false,
    suspend: &[],
};

/// A kind whose pods start together, train and end.
const fn training(name: &'static str) -> OwnerKind {
    OwnerKind { name, trains: true, gangs: true, ends: true, suspend: IN_SPEC, ..NONE }
}

/// A kind of the training operator.
const fn operator(name: &'static str) -> OwnerKind {
    let suspend: &[&str] = &["spec", "runPolicy", "suspend"];
    OwnerKind { has_replica_roles: true, suspend, ..training(name) }
}

/// All that are known, by name.
const KINDS: [OwnerKind; 16] = [
    operator("JAXJob"),
    // The pods of a Job need not start together, and nobody knows what they do.
    OwnerKind { name: "Job", ends: true, suspend: IN_SPEC, ..NONE },
    training("JobSet"),
    OwnerKind { name: "LeaderWorkerSet", gangs: true, ..NONE },
    operator("MPIJob"),
    OwnerKind { name: "MXJob", trains: true, ..NONE },
    operator("PaddleJob"),
    operator("PyTorchJob"),
    OwnerKind { name: "RayCluster", gangs: true, suspend: IN_SPEC, ..NONE },
    training("RayJob"),
    operator("TFJob"),
    training("TrainJob"),
    OwnerKind { name: "TrainingJob", trains: true, ..NONE },
    OwnerKind { name: "VolcanoJob", trains: true, ..NONE },
    // A Workflow that is suspended starts no further step, and its pods go on.
    OwnerKind { name: "Workflow", ends: true, ..NONE },
    operator("XGBoostJob"),
];

/// What is known of a kind; nothing of one that is not in the table.
pub fn owner_kind(name: &str) -> OwnerKind {
    KINDS.into_iter().find(|kind| kind.name == name).unwrap_or(NONE)
}
