//go:build kubernetes_1_35

package main

import (
	v1 "k8s.io/api/core/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	"k8s.io/client-go/tools/events"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// knowsEveryField says that worlds are written for a newer API.
const knowsEveryField = false

// deviceTaintRule is the form in which this release's scheduler reads them.
type deviceTaintRule = resourcev1alpha3.DeviceTaintRule

// selectorFeatures are those that change how selectors are evaluated.
var selectorFeatures = cel.Features{EnableConsumableCapacity: true}

// silentRecorder makes recorders of events that nobody reads.
func silentRecorder(string) events.EventRecorder { return &events.FakeRecorder{} }

// schedulePod asks kube-scheduler to place the pod; nothing is assumed or bound.
func schedulePod(c *court, pod *v1.Pod) error {
	_, err := c.scheduler.SchedulePod(c.context, c.framework, framework.NewCycleState(), pod)
	return err
}
