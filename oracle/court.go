package main

import (
	"context"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// court is kube-scheduler as its own code assembles it, with one world in its cache.
type court struct {
	scheduler *scheduler.Scheduler
	framework framework.Framework
	snapshot  *cache.Snapshot
	// plugins are the filter plugins in the order in which kube-scheduler asks them.
	plugins []filterPlugin
	context context.Context
	close   context.CancelFunc
}

// filterPlugin is one plugin instance. preFilter is nil where it has no such step.
type filterPlugin struct {
	name      string
	preFilter fwk.PreFilterPlugin
	filter    fwk.FilterPlugin
}

// defaults are kube-scheduler's default profiles.
var defaults = sync.OnceValues(func() ([]schedulerapi.KubeSchedulerProfile, error) {
	configuration, err := latest.Default()
	if err != nil {
		return nil, fmt.Errorf("the default configuration: %w", err)
	}
	return configuration.Profiles, nil
})

// client is never asked: nothing binds, and informers are filled by hand.
var client = sync.OnceValue(func() clientset.Interface { return fake.NewClientset() })

// openCourt builds a scheduler and loads the world into it. The caller closes it.
func openCourt(world *World) (*court, error) {
	profiles, err := defaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Background()))
	factory := newStillFactory()
	everyNode := int32(100)
	built, err := scheduler.New(ctx, client(), factory, nil,
		silentRecorder,
		scheduler.WithProfiles(profiles...),
		scheduler.WithPercentageOfNodesToScore(&everyNode),
		scheduler.WithParallelism(1),
	)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("building the scheduler: %w", err)
	}
	c := &court{scheduler: built, context: ctx, close: cancel}
	if err := c.load(factory, world); err != nil {
		cancel()
		return nil, err
	}
	return c, nil
}

// load puts the world into the informers, takes the scheduler's snapshot and finds the plugins.
func (c *court) load(factory *stillFactory, world *World) error {
	for _, object := range objectsOf(world) {
		if err := factory.put(object); err != nil {
			return err
		}
	}
	c.framework = c.scheduler.Profiles[v1.DefaultSchedulerName]
	snapshot, ok := c.framework.SnapshotSharedLister().(*cache.Snapshot)
	if !ok {
		return fmt.Errorf("the framework's snapshot is a %T", c.framework.SnapshotSharedLister())
	}
	c.snapshot = snapshot
	if err := c.scheduler.Cache.UpdateSnapshot(klog.FromContext(c.context), snapshot); err != nil {
		return fmt.Errorf("taking the snapshot: %w", err)
	}
	return c.findPlugins()
}

// objectsOf lists what is loaded, in an order that needs no repair: what pods refer to comes first.
func objectsOf(world *World) []runtime.Object {
	var objects []runtime.Object
	objects = appendAll(objects, world.Namespaces)
	objects = appendAll(objects, world.StorageClasses)
	objects = appendAll(objects, world.CSIDrivers)
	objects = appendAll(objects, world.CSINodes)
	objects = appendAll(objects, world.CSIStorageCapacities)
	objects = appendAll(objects, world.PersistentVolumes)
	objects = appendAll(objects, world.PersistentVolumeClaims)
	objects = appendAll(objects, world.VolumeAttachments)
	objects = appendAll(objects, world.DeviceClasses)
	objects = appendAll(objects, world.DeviceTaintRules)
	objects = appendAll(objects, world.ResourceSlices)
	objects = appendAll(objects, world.ResourceClaims)
	objects = appendAll(objects, world.Nodes)
	for _, pod := range world.Pods {
		// kube-scheduler's pod informer has the field selector that leaves these out.
		if pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed {
			objects = append(objects, pod)
		}
	}
	return objects
}

func appendAll[T runtime.Object](objects []runtime.Object, more []T) []runtime.Object {
	for _, object := range more {
		objects = append(objects, object)
	}
	return objects
}

// findPlugins takes the plugin instances from the list of those that register events: every filter
// plugin is in it, and the configuration names the order.
func (c *court) findPlugins() error {
	instances := map[string]fwk.Plugin{}
	for _, plugin := range c.framework.EnqueueExtensions() {
		instances[plugin.Name()] = plugin
	}
	for _, entry := range c.framework.ListPlugins().Filter.Enabled {
		filter, ok := instances[entry.Name].(fwk.FilterPlugin)
		if !ok {
			return fmt.Errorf("the filter plugin %s is not among those that register events", entry.Name)
		}
		preFilter, _ := instances[entry.Name].(fwk.PreFilterPlugin)
		c.plugins = append(c.plugins, filterPlugin{name: entry.Name, preFilter: preFilter, filter: filter})
	}
	return nil
}
