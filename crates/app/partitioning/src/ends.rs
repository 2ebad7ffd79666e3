//! When pods are expected to finish by themselves.

use dovetail_objects::Pod;
use dovetail_translate::{said_run_time, time_limit_ms};

/// When a pod is expected to finish, in milliseconds since 1970: by the run time that it declares
/// or its time limit, whichever ends first. `None`: it has neither.
pub(crate) fn ends_ms(pod: &Pod) -> Option<u64> {
    let said_ms = said_run_time([pod]).map(|said| said.p90_ms);
    let limit_ms = time_limit_ms(&pod.meta, pod.active_deadline_s);
    let run_ms = said_ms.into_iter().chain(limit_ms).min()?;
    Some(pod.scheduled_ms.max(pod.meta.created_ms).saturating_add(run_ms))
}
