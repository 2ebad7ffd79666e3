//! Answers of `dovetail partition`: layouts of GPUs planned from what waits, and how few GPUs a
//! list of instances needs.
//!
//! | module | what |
//! |---|---|
//! | `fleet` | GPUs with names, as a file or a cluster has them |
//! | `world_file` | a world in one file |
//! | `objects`, `cluster`, `eligible` | the nodes and pods of a cluster, as a world |
//! | `profile_names` | under which names the GPUs of a cluster offer their profiles |
//! | `waiting` | pending pods as a plan has them |
//! | `together` | pods that a plan serves on one node fit there together |
//! | `several`, `node_room`, `batches` | pods that ask for several instances get all of them on one node; which nodes could have them; many pods at once |
//! | `between_pods` | pending pods with rules about other pods, which a plan does not check |
//! | `gangs`, `gang_search` | gangs of which a plan serves as many pods as start together, or none; which gangs it serves |
//! | `gang_objects` | the objects that say how many pods of a gang start together |
//! | `quotas` | pending pods that the quotas of their queues do not let start |
//! | `worth` | which of two plans is better |
//! | `policy`, `field_line` | what a `SharingPolicy` in a file allows; on which line of it a field is |
//! | `budgets` | whether PodDisruptionBudgets let a pod be evicted |
//! | `planned` | what is planned for a fleet |
//! | `expected` | layouts that nodes are about to get, with which other policies plan |
//! | `price_facts` | what decides the prices of nodes |
//! | `plan`, `size`, `show` | answers as documents, and as text |
//! | `move_row` | a pod that moves, in answers |
//! | `moves`, `movers`, `rooms` | changes for which pods move: which node, which pods, where they go |
//! | `changes` | a plan as layouts of nodes |
//! | `amd_gpus`, `amd` | how the AMD GPUs of a node are partitioned; nodes whose AMD GPUs are not partitioned as a policy says |
//! | `replicas` | nodes that do not offer their whole GPUs as a policy says |
//! | `whole_gpus` | how many whole GPUs pending pods request, not counting pods that only nodes with parts of GPUs under this name take |
//! | `keep_whole` | whole GPUs that a plan does not cut |
//! | `stays` | why the GPUs of a node stay as they are |
//! | `server` | the requests to the API server that a change takes |
//! | `example` | what the generated cluster lacks for a plan |
//! | `gpu_users` | which GPUs of a node its pods use, by an exporter |
//! | `for_pod` | which change of a layout a pending pod waits for |
//! | `asked`, `workload_room` | workloads that flags name; where their pods could go |
//! | `apply` | policies followed on a cluster, node after node; changes rolled back |
//! | `setup`, `setup_amd` | what lets the GPU operators of NVIDIA and AMD read the layouts |

mod amd;
mod amd_gpus;
pub mod apply;
mod asked;
mod batches;
mod between_pods;
mod budgets;
mod changes;
pub mod cluster;
mod eligible;
mod ends;
mod example;
mod expected;
mod field_line;
pub mod fleet;
pub mod for_pod;
mod gang_objects;
mod gang_search;
mod gangs;
mod gpu_users;
mod keep_whole;
mod layout;
pub mod measured;
mod move_row;
mod movers;
mod moves;
mod node_room;
mod objects;
pub mod plan;
pub mod planned;
pub mod policy;
mod price_facts;
mod profile_names;
mod quotas;
mod replicas;
mod rooms;
mod server;
pub mod setup;
mod setup_amd;
mod several;
pub mod show;
pub mod size;
mod stays;
mod together;
mod waiting;
mod whole_gpus;
mod workload_room;
pub mod world_file;
mod worth;
