//! What kube-state-metrics keeps of objects, also of those that are gone: who owned which pod,
//! which labels it had, what nodes offered, how much CPU and memory was kept for whom.
//!
//! Label names are written as Prometheus allows (`kueue.x-k8s.io/queue-name` is
//! `label_kueue_x_k8s_io_queue_name`), and kube-state-metrics keeps only labels that its operator
//! allowed (`--metric-labels-allowlist`): what is not there is unknown.
//!
//! | module | what |
//! |---|---|
//! | `read` | objects as they were last seen |
//! | `earlier` | what was said before a time in which it was away |
//! | `lives` | pods whose name another pod had before |
//! | `machines` | nodes whose name another machine had before |
//! | `devices` | how many devices nodes have and pods ask for, over time |
//! | `times` | when pods were made and got their nodes |

mod devices;
mod earlier;
mod lives;
mod machines;
mod read;
mod times;

pub use devices::{
    CountedSpan, DeviceAmounts, PodResource, SampleTime, any_request, devices_of_nodes,
    devices_of_pods,
};
pub use earlier::{AskedEarlier, EARLIER_MS, EarlierQueries, Unknown};
pub use lives::{BeginSeries, PodBegins, PodLife};
pub use machines::{MachineSeries, NodeSeries, node_history, reused};
pub use read::{KubeNode, KubePod, KubeState, KubeTable, Owner, PodSum, label};
pub use times::{KubeTimes, PodTimes, TimeSeries};

/// For so long Prometheus takes the last sample of a series for the present
/// (`--query.lookback-delta`), where nobody told it that the series ended.
const LOOK_BACK_MS: u64 = 300_000;

/// The query for a table of objects as they were last seen in a window before its moment. What pods
/// keep is seen for [`LOOK_BACK_MS`] after they are gone: whose pods they were is looked for as
/// much earlier.
pub fn last_seen(table: KubeTable, window_ms: u64) -> String {
    let more_ms = if table.is_of_nodes() { 0 } else { LOOK_BACK_MS };
    format!("last_over_time({}[{}ms])", table.series(), window_ms.max(1) + more_ms)
}

/// The query for pods that asked for anything but CPU, memory and storage in a window before its
/// moment: who asked for no device held none by its plugin.
pub fn asked_for_devices(window_ms: u64) -> String {
    const OTHERS: &str =
        "cpu|memory|storage|ephemeral_storage|pods|hugepages_.+|attachable_volumes_.+";
    // As many pods as `last_seen` has.
    let window_ms = window_ms.max(1) + LOOK_BACK_MS;
    let of =
        |series: &str| format!("last_over_time({series}{{resource!~\"{OTHERS}\"}}[{window_ms}ms])");
    let all = [
        of("kube_pod_container_resource_requests"),
        of("kube_pod_init_container_resource_requests"),
    ];
    format!("max by (namespace, exported_namespace, pod, exported_pod) ({})", all.join(" or "))
}

/// The query for pods that ended in a window before its moment, with their `phase`.
pub fn pod_ends(window_ms: u64) -> String {
    format!(
        "max_over_time(kube_pod_status_phase{{phase=~\"Succeeded|Failed\"}}[{}ms]) == 1",
        window_ms.max(1)
    )
}

/// The query for what was kept of a resource (`cpu`, `memory`) over a window before its moment, by
/// pod: the sum of one value for each step; a value is in cores or bytes. Pods that are over keep
/// nothing.
pub fn kept_over(resource: &str, window_ms: u64, step_ms: u64) -> String {
    format!(
        "sum by (namespace, pod, uid, node) (sum_over_time((sum by (namespace, pod, uid, node) \
         (kube_pod_container_resource_requests{{resource=\"{resource}\",node!=\"\"}}) * on (namespace, pod) \
         group_left () max by (namespace, pod) (kube_pod_status_phase{{phase=~\"Pending|Running\"}} == \
         1))[{}ms:{step_ms}ms]))",
        window_ms.max(1)
    )
}
