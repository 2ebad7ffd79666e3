//! Bounds and exact optima that no policy can exceed.
