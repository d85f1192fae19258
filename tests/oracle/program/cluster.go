package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// cluster is the state of one scheduler that has seen all objects of a scenario and scheduled nothing.
type cluster struct {
	framework  framework.Framework
	plugins    map[string]fwk.Plugin
	preemption *recordedPreemption
	snapshot   *internalcache.Snapshot
	factory    *staticFactory
	writes     *atomic.Int64
	written    func(clienttesting.Action) // gets each write
	stop       context.CancelFunc
}

// isChanged reports whether a PostFilter plugin changed the cluster, so that no further pod may be evaluated on it.
func (c *cluster) isChanged() bool {
	return c.writes.Load() > 0 || c.preemption != nil && c.preemption.status.IsSuccess()
}

// newCluster connects the parts of a scheduler as kube-scheduler does, without its event handlers.
func newCluster(s *scenario) (*cluster, error) {
	ctx, cancel := context.WithCancel(context.Background())
	logger := klog.FromContext(ctx)
	c := &cluster{plugins: map[string]fwk.Plugin{}, snapshot: internalcache.NewEmptySnapshot(), writes: &atomic.Int64{}, stop: cancel}
	client := c.newClient()
	c.factory = newStaticFactory(client, s.objects)
	draManager, err := newDRAManager(ctx, c.factory, client)
	if err != nil {
		return nil, err
	}
	schedulerCache := newCache(ctx)
	recorder := metrics.NewMetricsAsyncRecorder(1000, time.Minute, ctx.Done())
	options := append(snapshotOptions(c.snapshot),
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(c.factory),
		frameworkruntime.WithSharedDRAManager(draManager),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(c.factory.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithParallelism(4),
		frameworkruntime.WithMetricsRecorder(recorder),
		frameworkruntime.WithEventRecorder(&events.FakeRecorder{}),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()),
		frameworkruntime.WithPodsInPreBind(frameworkruntime.NewPodsInPreBindMap()),
		frameworkruntime.WithPodGroupManager(schedulerCache),
	)
	if c.framework, err = frameworkruntime.NewFramework(ctx, c.registry(), s.profile, options...); err != nil {
		return nil, err
	}
	preEnqueue := map[string]fwk.PreEnqueuePlugin{}
	for _, plugin := range c.framework.PreEnqueuePlugins() {
		preEnqueue[plugin.Name()] = plugin
	}
	queue := internalqueue.NewSchedulingQueue(c.framework.QueueSortFunc(), c.factory,
		internalqueue.WithPodLister(c.factory.Core().V1().Pods().Lister()),
		internalqueue.WithPreEnqueuePluginMap(map[string]map[string]fwk.PreEnqueuePlugin{s.profile.SchedulerName: preEnqueue}),
		internalqueue.WithMetricsRecorder(recorder),
	)
	c.framework.SetPodNominator(queue)
	c.framework.SetPodActivator(queue)
	for _, node := range s.nodes {
		schedulerCache.AddNode(logger, node)
	}
	addPodGroups(schedulerCache, s)
	for _, pod := range s.pods {
		if pod.Spec.NodeName != "" {
			if err := schedulerCache.AddPod(logger, pod); err != nil {
				return nil, err
			}
		} else if pod.Spec.SchedulerName == s.profile.SchedulerName {
			schedulerCache.AddPodGroupMember(pod)
			queue.Add(ctx, pod)
		}
	}
	return c, schedulerCache.UpdateSnapshot(logger, c.snapshot)
}

// registry returns the plugins of kube-scheduler; it remembers every plugin that is made.
func (c *cluster) registry() frameworkruntime.Registry {
	registry := frameworkruntime.Registry{}
	for name, newPlugin := range frameworkplugins.NewInTreeRegistry() {
		registry[name] = func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			plugin, err := newPlugin(ctx, args, handle)
			if err != nil {
				return nil, err
			}
			if preemption, ok := plugin.(*defaultpreemption.DefaultPreemption); ok {
				c.preemption = &recordedPreemption{DefaultPreemption: preemption}
				plugin = c.preemption
			}
			c.plugins[name] = plugin
			return plugin, nil
		}
	}
	return registry
}

// newDRAManager makes what kube-scheduler's DynamicResources plugin needs to know of claims, slices and classes.
func newDRAManager(ctx context.Context, factory *staticFactory, client *fake.Clientset) (fwk.SharedDRAManager, error) {
	claims := assumecache.NewAssumeCache(klog.FromContext(ctx), factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
	options := resourceslicetracker.Options{
		EnableDeviceTaintRules:   utilfeature.DefaultFeatureGate.Enabled(features.DRADeviceTaintRules),
		EnableConsumableCapacity: utilfeature.DefaultFeatureGate.Enabled(features.DRAConsumableCapacity),
		SliceInformer:            factory.Resource().V1().ResourceSlices(),
	}
	setTaintRules(&options, factory)
	tracker, err := resourceslicetracker.StartTracker(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("resource slice tracker: %w", err)
	}
	manager := dynamicresources.NewDRAManager(ctx, claims, tracker, factory)
	if resolver, ok := manager.DeviceClassResolver().(*extendedresourcecache.ExtendedResourceCache); ok && resolver != nil {
		if _, err := factory.Resource().V1().DeviceClasses().Informer().AddEventHandler(resolver); err != nil {
			return nil, err
		}
	}
	return manager, nil
}

// newClient makes a client that accepts every write, stores nothing and counts the writes.
func (c *cluster) newClient() *fake.Clientset {
	client := fake.NewSimpleClientset()
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		var object runtime.Object
		switch action := action.(type) {
		case clienttesting.UpdateAction: // also a CreateAction
			object = action.GetObject()
		case clienttesting.DeleteAction, clienttesting.PatchAction:
		default:
			return false, nil, nil
		}
		c.writes.Add(1)
		if c.written != nil {
			c.written(action)
		}
		return true, object, nil
	})
	return client
}
