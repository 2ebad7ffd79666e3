//! Tests of reading objects.

mod field_path;
mod fields;
mod gpu_labels;
mod harmless;
mod images;
mod json_text;
mod label_selector;
mod label_set;
mod objects;
mod owner_kind;
mod readiness;
mod shortened;
mod vgpus;
mod workload;
