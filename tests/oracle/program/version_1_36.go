//go:build !kubernetes1_37

package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
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
	return internalcache.New(ctx, nil, utilfeature.DefaultFeatureGate.Enabled(features.GenericWorkload))
}

func snapshotOptions(snapshot *internalcache.Snapshot) []frameworkruntime.Option {
	return []frameworkruntime.Option{frameworkruntime.WithSnapshotSharedLister(snapshot)}
}

func setTaintRules(options *resourceslicetracker.Options, factory *staticFactory) {
	if options.EnableDeviceTaintRules {
		options.TaintInformer = factory.Resource().V1beta2().DeviceTaintRules()
		options.ClassInformer = factory.Resource().V1().DeviceClasses()
	}
}

type placementState = fwk.PodGroupCycleState

// addPodGroups does nothing: the cache of 1.36 knows only the members.
func addPodGroups(internalcache.Cache, *scenario) {}

func (g *groupScheduler) findQueued(pod *v1.Pod) *framework.QueuedPodInfo {
	info, _ := g.SchedulingQueue.GetPod(pod.Name, pod.Namespace)
	return info
}

// findRoot returns the pod group of a pod: 1.36 has no composite pod groups.
func findRoot(_ *scenario, pod *v1.Pod) groupRoot {
	return groupRoot{namespace: pod.Namespace, name: *pod.Spec.SchedulingGroup.PodGroupName}
}

func withSortedAssignments(f framework.Framework) framework.Framework { return f }

// selectGroup makes the next cycle schedule the group of the pods; it returns false if none of them is in the queue.
func (g *groupScheduler) selectGroup(logger klog.Logger, _ groupRoot, pods []*v1.Pod) bool {
	for _, pod := range pods {
		if g.selectPod(logger, pod) {
			return true
		}
	}
	return false
}

// selectPod makes the next cycle schedule the pod; it returns false if the pod is not in the queue.
func (g *groupScheduler) selectPod(logger klog.Logger, pod *v1.Pod) bool {
	next := g.SchedulingQueue.PopSpecificPod(logger, pod)
	if next == nil {
		return false
	}
	g.NextPod = func(klog.Logger) (*framework.QueuedPodInfo, error) { return next, nil }
	return true
}

// waitsForResize is false: 1.36 schedules no pods whose resize is deferred.
func waitsForResize(*v1.Pod) bool { return false }

func unrollPodEvents(events []fwk.ClusterEventWithHint) []fwk.ClusterEventWithHint { return events }

func podEvents(newPod, oldPod *v1.Pod, _ bool) []fwk.ClusterEvent {
	return framework.PodSchedulingPropertiesChange(newPod, oldPod)
}
