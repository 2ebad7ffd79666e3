//! Tests of reading dumps, and of objects as facts.

mod device_claims;
mod device_demand;
mod dump;
mod facts;
mod patches;
mod unmade;
