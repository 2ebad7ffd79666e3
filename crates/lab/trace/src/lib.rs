//! Reads, writes, describes and generates cluster traces.
