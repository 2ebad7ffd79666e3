package main

import (
	"errors"
	"fmt"
	"sort"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// judgeWorld asks about every pending pod of a world.
func judgeWorld(world *World) (*Answer, error) {
	c, err := openCourt(world)
	if err != nil {
		return nil, err
	}
	defer c.close()
	nodes, err := c.snapshot.NodeInfos().List()
	if err != nil {
		return nil, err
	}
	nodes = append([]fwk.NodeInfo(nil), nodes...)
	sort.Slice(nodes, func(a, b int) bool { return nodes[a].Node().Name < nodes[b].Node().Name })
	answer := &Answer{Pods: []PodAnswer{}}
	for _, pod := range world.Pending {
		podAnswer, err := c.judgePod(pod, nodes)
		if err != nil {
			return nil, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		answer.Pods = append(answer.Pods, *podAnswer)
	}
	return answer, nil
}

func (c *court) judgePod(pod *v1.Pod, nodes []fwk.NodeInfo) (*PodAnswer, error) {
	answer := &PodAnswer{Pod: pod.Namespace + "/" + pod.Name, Nodes: make([]NodeAnswer, len(nodes))}
	for _, plugin := range c.framework.PreEnqueuePlugins() {
		if status := plugin.PreEnqueue(c.context, pod); !status.IsSuccess() {
			answer.Gated = append(answer.Gated, status.Reasons()...)
		}
	}
	for i, node := range nodes {
		answer.Nodes[i].Node = node.Node().Name
		answer.Nodes[i].Overcommitted = isOvercommitted(node)
	}
	for _, plugin := range c.plugins {
		for i, rejection := range c.askAlone(plugin, pod, nodes) {
			if rejection != nil {
				answer.Nodes[i].Rejects = append(answer.Nodes[i].Rejects, *rejection)
			}
		}
	}
	if err := c.compareWithFramework(pod, nodes, answer); err != nil {
		return nil, err
	}
	for _, node := range answer.Nodes {
		if len(node.Rejects) == 0 {
			return answer, nil
		}
	}
	return answer, c.explain(pod, answer)
}

// askAlone asks one plugin as if there were no other, and gives its rejection per node.
func (c *court) askAlone(plugin filterPlugin, pod *v1.Pod, nodes []fwk.NodeInfo) []*Rejection {
	rejections := make([]*Rejection, len(nodes))
	state := framework.NewCycleState()
	var only *fwk.PreFilterResult
	if plugin.preFilter != nil {
		result, status := plugin.preFilter.PreFilter(c.context, state, pod, nodes)
		if status.IsSkip() {
			return rejections
		}
		if !status.IsSuccess() {
			for i := range nodes {
				rejections[i] = rejectionOf(plugin.name, status)
				rejections[i].BeforeNodes = true
			}
			return rejections
		}
		only = result
	}
	for i, node := range nodes {
		if !only.AllNodes() && !only.NodeNames.Has(node.Node().Name) {
			rejections[i] = &Rejection{
				Plugin:  plugin.name,
				Code:    fwk.UnschedulableAndUnresolvable.String(),
				Reasons: []string{fmt.Sprintf("node(s) didn't satisfy plugin(s) [%s]", plugin.name)},
			}
			continue
		}
		if status := plugin.filter.Filter(c.context, state, pod, node); !status.IsSuccess() {
			rejections[i] = rejectionOf(plugin.name, status)
		}
	}
	return rejections
}

// isOvercommitted tells whether the pods of a node hold more of anything than the node has. Then
// kube-scheduler still places pods there that ask for nothing of what is short.
func isOvercommitted(node fwk.NodeInfo) bool {
	held, has := node.GetRequested(), node.GetAllocatable()
	for name, amount := range held.GetScalarResources() {
		if amount > has.GetScalarResources()[name] {
			return true
		}
	}
	return held.GetMilliCPU() > has.GetMilliCPU() || held.GetMemory() > has.GetMemory() ||
		held.GetEphemeralStorage() > has.GetEphemeralStorage() ||
		len(node.GetPods()) > has.GetAllowedPodNumber()
}

func rejectionOf(plugin string, status *fwk.Status) *Rejection {
	return &Rejection{Plugin: plugin, Code: status.Code().String(), Reasons: status.Reasons()}
}

// compareWithFramework runs the plugins the way kube-scheduler does, all in one cycle, and demands
// that each node's first rejection is the one found by asking them one by one.
func (c *court) compareWithFramework(pod *v1.Pod, nodes []fwk.NodeInfo, answer *PodAnswer) error {
	state := framework.NewCycleState()
	result, status, _ := c.framework.RunPreFilterPlugins(c.context, state, pod)
	if !status.IsSuccess() {
		answer.PreFilter = rejectionOf(status.Plugin(), status)
		answer.PreFilter.BeforeNodes = true
		for _, node := range answer.Nodes {
			if len(node.Rejects) == 0 {
				return fmt.Errorf("PreFilter rejects it (%s), but no plugin alone rejects it on %s", status.Message(), node.Node)
			}
		}
		return nil
	}
	for i, node := range nodes {
		rejects := answer.Nodes[i].Rejects
		alone := ""
		if len(rejects) > 0 {
			alone = rejects[0].Plugin
		}
		if !result.AllNodes() && !result.NodeNames.Has(node.Node().Name) {
			if alone == "" {
				return fmt.Errorf("PreFilter leaves %s out, but no plugin alone does", node.Node().Name)
			}
			continue
		}
		together := ""
		if status := c.framework.RunFilterPlugins(c.context, state, pod, node); !status.IsSuccess() {
			together = status.Plugin()
		}
		if alone != together {
			return fmt.Errorf("on %s the first rejection is by %q, but by %q when the plugins are asked one by one",
				node.Node().Name, together, alone)
		}
	}
	return nil
}

// explain adds the message that kube-scheduler would put into the event.
func (c *court) explain(pod *v1.Pod, answer *PodAnswer) error {
	err := schedulePod(c, pod)
	fit := &framework.FitError{}
	switch {
	case err == nil:
		return errors.New("kube-scheduler places it, but each node has a plugin that rejects it")
	case errors.As(err, &fit), errors.Is(err, scheduler.ErrNoNodesAvailable):
		answer.Message = err.Error()
		return nil
	default:
		// A plugin failed: kube-scheduler reports the error and tries again later.
		answer.Message = err.Error()
		return nil
	}
}
