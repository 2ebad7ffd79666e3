//! The allocator on made-up worlds.

mod brute;
mod hard;
mod random;
