//! Devices inside a node: their states, what a pod needs of them, which one it gets.
//!
//! Every distinct device state is a [`cell::DeviceCell`] with a number; the devices of a node are a
//! multiset of cells with a number of its own ([`table::DeviceTable`]). Whatever depends on the
//! devices alone (fits, how many fit, fragmentation) is computed once per multiset.

pub mod cell;
pub mod choice;
pub mod need;
pub mod slices;
pub mod table;
