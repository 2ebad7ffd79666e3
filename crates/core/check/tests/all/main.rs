//! Tests of the judges.

mod device_time;
mod faults;
