//! What is made of the metrics elsewhere: rules and alerts for Prometheus, a dashboard for Grafana.
//! The files in `deploy/monitoring` are written from here.

mod dashboard;
mod rules;

pub use dashboard::dashboard;
pub use rules::rules;
