//go:build !kubernetes_1_35

package main

import (
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// knowsEveryField says that worlds are written for this release's API.
const knowsEveryField = true

// deviceTaintRule is the form in which this release's scheduler reads them.
type deviceTaintRule = resourcev1.DeviceTaintRule

// selectorFeatures are those that change how selectors are evaluated.
var selectorFeatures = cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: false}

// silentRecorder makes recorders of events that nobody reads.
func silentRecorder(string) events.EventRecorderLogger { return &events.FakeRecorder{} }

// schedulePod asks kube-scheduler to place the pod; nothing is assumed or bound.
func schedulePod(c *court, pod *v1.Pod) error {
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return err
	}
	_, err = c.scheduler.SchedulePod(c.context, c.framework, framework.NewCycleState(), &framework.QueuedPodInfo{PodInfo: info})
	return err
}

func (alwaysSynced) HasSyncedChecker() cache.DoneChecker { return done{} }

func (*stillInformer) HasSyncedChecker() cache.DoneChecker { return done{} }

// done is what has always been synced.
type done struct{}

func (done) Name() string { return "a world put by hand" }

func (done) Done() <-chan struct{} {
	closed := make(chan struct{})
	close(closed)
	return closed
}
