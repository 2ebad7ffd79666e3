//! Vocabulary of dovetail: quantities, nodes, devices, jobs, queues, events and snapshots.
