//! Tests of where objects and periods come from.

mod kubeconfig;
mod period;
