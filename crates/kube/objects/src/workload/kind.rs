//! Which kinds of workloads are watched, and where the server keeps them.

/// A kind of object whose controller makes pods that start together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkloadKind {
    /// `batch/v1` Job.
    Job,
    /// `jobset.x-k8s.io/v1alpha2` JobSet.
    JobSet,
    /// `leaderworkerset.x-k8s.io/v1` LeaderWorkerSet.
    LeaderWorkerSet,
    /// `kubeflow.org/v1` PyTorchJob (training operator).
    PyTorchJob,
    /// `kubeflow.org/v1` TFJob (training operator).
    TfJob,
    /// `kubeflow.org/v1` MPIJob (training operator).
    TrainingMpiJob,
    /// `kubeflow.org/v2beta1` MPIJob (MPI operator).
    MpiJob,
    /// `kubeflow.org/v1` XGBoostJob (training operator).
    XgBoostJob,
    /// `kubeflow.org/v1` PaddleJob (training operator).
    PaddleJob,
    /// `kubeflow.org/v1` JAXJob (training operator).
    JaxJob,
    /// `ray.io/v1` RayCluster.
    RayCluster,
}

impl WorkloadKind {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Job,
        Self::JobSet,
        Self::LeaderWorkerSet,
        Self::PyTorchJob,
        Self::TfJob,
        Self::TrainingMpiJob,
        Self::MpiJob,
        Self::XgBoostJob,
        Self::PaddleJob,
        Self::JaxJob,
        Self::RayCluster,
    ];

    /// The name as manifests write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Job => "Job",
            Self::JobSet => "JobSet",
            Self::LeaderWorkerSet => "LeaderWorkerSet",
            Self::PyTorchJob => "PyTorchJob",
            Self::TfJob => "TFJob",
            Self::TrainingMpiJob | Self::MpiJob => "MPIJob",
            Self::XgBoostJob => "XGBoostJob",
            Self::PaddleJob => "PaddleJob",
            Self::JaxJob => "JAXJob",
            Self::RayCluster => "RayCluster",
        }
    }

    /// The API group.
    pub fn group(self) -> &'static str {
        match self {
            Self::Job => "batch",
            Self::JobSet => "jobset.x-k8s.io",
            Self::LeaderWorkerSet => "leaderworkerset.x-k8s.io",
            Self::RayCluster => "ray.io",
            _ => "kubeflow.org",
        }
    }

    /// The version of the API group.
    pub fn version(self) -> &'static str {
        match self {
            Self::JobSet => "v1alpha2",
            Self::MpiJob => "v2beta1",
            _ => "v1",
        }
    }

    /// The name of the collection in paths.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Job => "jobs",
            Self::JobSet => "jobsets",
            Self::LeaderWorkerSet => "leaderworkersets",
            Self::PyTorchJob => "pytorchjobs",
            Self::TfJob => "tfjobs",
            Self::TrainingMpiJob | Self::MpiJob => "mpijobs",
            Self::XgBoostJob => "xgboostjobs",
            Self::PaddleJob => "paddlejobs",
            Self::JaxJob => "jaxjobs",
            Self::RayCluster => "rayclusters",
        }
    }

    /// What people call one of them.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::JobSet => "jobset",
            Self::LeaderWorkerSet => "leaderworkerset",
            Self::PyTorchJob => "pytorchjob",
            Self::TfJob => "tfjob",
            Self::TrainingMpiJob | Self::MpiJob => "mpijob",
            Self::XgBoostJob => "xgboostjob",
            Self::PaddleJob => "paddlejob",
            Self::JaxJob => "jaxjob",
            Self::RayCluster => "raycluster",
        }
    }
}
