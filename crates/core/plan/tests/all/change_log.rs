//! What a reader of the change log must look at again.

use dovetail_model::NodeId;
use dovetail_state::log::{ChangeLog, Cursor};

/// Entries that the log keeps at least.
const KEPT: usize = 1 << 16;

fn touched(log: &ChangeLog, cursor: Cursor) -> Option<Vec<u32>> {
    log.touched_since(cursor).map(|nodes| nodes.map(|node| node.0).collect())
}

#[test]
fn what_was_undone_is_passed_over_by_those_who_have_not_seen_it() {
    let mut log = ChangeLog::default();
    log.touch(NodeId(1));
    let before = log.end();
    log.touch(NodeId(2));
    log.touch(NodeId(3));
    let outer = log.end();
    log.touch(NodeId(2));
    let inside = log.end();
    log.touch(NodeId(4));
    log.undo_from(inside);
    log.touch(NodeId(2));
    log.undo_from(outer);
    assert_eq!(touched(&log, before), Some(vec![2, 3]));
    assert_eq!(touched(&log, outer), Some(vec![]));
    assert_eq!(touched(&log, inside), Some(vec![4, 2]));
    log.touch(NodeId(3));
    assert_eq!(touched(&log, before), Some(vec![2, 3]));
    assert_eq!(touched(&log, outer), Some(vec![3]));
    let lasting = log.end();
    log.touch_lasting(NodeId(5));
    log.undo_from(lasting);
    assert_eq!(touched(&log, lasting), Some(vec![5]));
}

#[test]
fn what_was_undone_pushes_nothing_else_out() {
    let mut log = ChangeLog::default();
    log.touch(NodeId(7));
    let before = log.end();
    log.touch(NodeId(8));
    let mut inside = before;
    for _ in 0..5 {
        let mark = log.end();
        (0..KEPT).for_each(|_| log.touch(NodeId(9)));
        inside = log.end();
        log.touch(NodeId(9));
        log.undo_from(mark);
    }
    assert_eq!(touched(&log, before), Some(vec![8]));
    assert_eq!(touched(&log, Cursor::default()), Some(vec![7, 8]));
    // It was read in a stretch of which nothing is left, or is not.
    assert!(touched(&log, inside).is_none_or(|nodes| nodes == [9]));
    (0..3 * KEPT).for_each(|_| log.touch(NodeId(9)));
    assert_eq!(touched(&log, before), None);
}
