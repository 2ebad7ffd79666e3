//! Tests of reading dumps, of objects as facts, and of trials of patches on these facts.

mod admitted;
mod autoscalers;
mod confined;
mod counted;
mod device_claims;
mod device_demand;
mod dump;
mod evicted;
mod facts;
mod gang_kinds;
mod gpu_parts;
mod harm;
mod lacking;
mod layout_change;
mod mig;
mod patches;
mod pool_removal;
mod repair_marks;
mod to_come;
mod unmade;
