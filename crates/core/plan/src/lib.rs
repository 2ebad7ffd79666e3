//! The decision engine: order, place, score, explain.
