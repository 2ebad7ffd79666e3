//! Price book of GPU-hours with sources and user overrides.
