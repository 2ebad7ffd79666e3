//! Tests of reading, translating and indexing objects, of binding, leading and scheduling.

mod agree;
mod announce;
mod bind;
mod blocked;
mod claim_events;
mod cohorts;
mod device_claims;
mod device_driver;
mod device_speed;
mod devices_on_server;
mod differential;
mod evictions;
mod exempt;
mod extended_resources;
mod forecasts;
mod freeze;
mod gang_claims;
mod gang_definitions;
mod gang_kinds;
mod gang_run;
mod gangs;
mod gpu_time;
mod held;
mod history;
mod kept_surveys;
mod late;
mod lead;
mod learned;
mod levels;
mod lists;
mod look;
mod lost;
mod messages;
mod native_topology;
mod policies;
mod preempt;
mod preempt_orders;
mod promises;
mod queue_objects;
mod queues;
mod receipts;
mod reclaim;
mod refused;
mod replaced;
mod reservation_objects;
mod rights;
mod schedule;
mod sender;
mod server;
mod server_faults;
mod shared_gpus;
mod succession;
mod suspension;
mod usage;
mod vgpus;
mod volumes;
mod waiting;
mod watch;
mod world;

use mimalloc::MiMalloc;

/// As the program does: objects are millions of small pieces.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;
