package main

// Answer is the reply to one world.
type Answer struct {
	// Error says why the world could not be judged; then Pods is empty.
	Error string      `json:"error,omitempty"`
	Pods  []PodAnswer `json:"pods"`
}

// PodAnswer is what kube-scheduler says about one pending pod.
type PodAnswer struct {
	Pod string `json:"pod"`
	// Gated are the reasons why the pod would not be queued at all (scheduling gates).
	Gated []string `json:"gated,omitempty"`
	// PreFilter is the rejection that ends the search before any node is looked at.
	PreFilter *Rejection `json:"preFilter,omitempty"`
	// Message is the text of the FailedScheduling event where no node fits.
	Message string       `json:"message,omitempty"`
	Nodes   []NodeAnswer `json:"nodes"`
}

// NodeAnswer lists every plugin that rejects the pod on this node, each asked as if it were the only
// one, in the order in which kube-scheduler asks them: the first is the one that kube-scheduler
// reports. An empty list means that the pod fits.
type NodeAnswer struct {
	Node string `json:"node"`
	// Overcommitted says that the node's pods hold more of something than it has.
	Overcommitted bool        `json:"overcommitted,omitempty"`
	Rejects       []Rejection `json:"rejects,omitempty"`
}

// Rejection is one plugin's no.
type Rejection struct {
	Plugin string `json:"plugin"`
	// Code is Unschedulable (preemption may help), UnschedulableAndUnresolvable or Error.
	Code    string   `json:"code"`
	Reasons []string `json:"reasons"`
	// BeforeNodes is set where the plugin rejects every node at once, in PreFilter.
	BeforeNodes bool `json:"beforeNodes,omitempty"`
}
