//go:build kubernetes1_37

package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

func newCache(ctx context.Context) internalcache.Cache {
	gates := utilfeature.DefaultFeatureGate
	return internalcache.New(ctx, nil, gates.Enabled(features.GenericWorkload), gates.Enabled(features.CompositePodGroup))
}

func snapshotOptions(snapshot *internalcache.Snapshot) []frameworkruntime.Option {
	return []frameworkruntime.Option{
		frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithMutableSnapshotLister(snapshot),
	}
}

func setTaintRules(options *resourceslicetracker.Options, factory *staticFactory) {
	if options.EnableDeviceTaintRules {
		options.TaintInformer = factory.Resource().V1().DeviceTaintRules()
	}
}

type placementState = fwk.PlacementCycleState

func addPodGroups(cache internalcache.Cache, s *scenario) {
	if !utilfeature.DefaultFeatureGate.Enabled(features.GenericWorkload) {
		return
	}
	for _, object := range s.objects {
		if group, ok := object.(*schedulingv1beta1.PodGroup); ok {
			cache.AddPodGroup(group)
		}
	}
}

func (g *groupScheduler) findQueued(pod *v1.Pod) *framework.QueuedPodInfo {
	info, _ := g.SchedulingQueue.GetPod(pod.Name, pod.Namespace, pod.Spec.SchedulingGroup)
	return info
}

// selectGroup makes the next cycle schedule the group of the pods; it returns false if the group is not in the queue.
func (g *groupScheduler) selectGroup(logger klog.Logger, pods []*v1.Pod) bool {
	member := pods[0]
	var others []framework.QueuedEntityInfo
	// The nominator knows the requests and the priority of a nominated pod only while the pod is in the queue.
	defer func() {
		for _, other := range others {
			other.ForEachPodInfo(func(pod *framework.QueuedPodInfo) bool {
				g.SchedulingQueue.Done(pod.Pod.UID)
				g.SchedulingQueue.Add(klog.NewContext(context.Background(), logger), pod.Pod)
				return true
			})
		}
	}()
	for len(g.SchedulingQueue.PodsInActiveQ()) > 0 {
		next, err := g.SchedulingQueue.Pop(logger)
		if err != nil {
			fail(err)
		}
		group, ok := next.(*framework.QueuedPodGroupInfo)
		if ok && group.Name == *member.Spec.SchedulingGroup.PodGroupName && group.Namespace == member.Namespace {
			g.NextEntity = func(klog.Logger) (framework.QueuedEntityInfo, error) { return next, nil }
			return true
		}
		others = append(others, next)
	}
	return false
}
