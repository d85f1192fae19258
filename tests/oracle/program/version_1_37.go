//go:build kubernetes1_37

package main

import (
	"context"
	"sort"

	v1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-helpers/resource"
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
		switch group := object.(type) {
		case *schedulingv1beta1.PodGroup:
			cache.AddPodGroup(group)
		case *schedulingv1alpha3.CompositePodGroup:
			cache.AddCompositePodGroup(klog.Background(), group)
		}
	}
}

// findRoot returns the root above the pod group of a pod, or the pod group itself if a group on the way does not exist.
func findRoot(s *scenario, pod *v1.Pod) groupRoot {
	leaf := groupRoot{namespace: pod.Namespace, name: *pod.Spec.SchedulingGroup.PodGroupName}
	if !utilfeature.DefaultFeatureGate.Enabled(features.CompositePodGroup) {
		return leaf
	}
	parents := map[groupRoot]*string{}
	for _, object := range s.objects {
		switch group := object.(type) {
		case *schedulingv1beta1.PodGroup:
			parents[groupRoot{group.Namespace, group.Name, false}] = group.Spec.ParentCompositePodGroupName
		case *schedulingv1alpha3.CompositePodGroup:
			parents[groupRoot{group.Namespace, group.Name, true}] = group.Spec.ParentCompositePodGroupName
		}
	}
	root := leaf
	for range len(parents) + 1 {
		parent, ok := parents[root]
		if !ok {
			return leaf
		}
		if parent == nil {
			return root
		}
		root = groupRoot{pod.Namespace, *parent, true}
	}
	return leaf
}

// sortedFramework gives PodGroupPostFilter plugins the members of a tree in scheduling order; kube-scheduler gives them in
// any order of their pod groups.
type sortedFramework struct {
	framework.Framework
}

func withSortedAssignments(f framework.Framework) framework.Framework { return &sortedFramework{f} }

func (f *sortedFramework) RunPodGroupPostFilterPlugins(ctx context.Context, state *framework.CycleState, group fwk.PodGroupInfo, schedule fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	order := map[string]int{}
	var walk func(group fwk.PodGroupInfo)
	walk = func(group fwk.PodGroupInfo) {
		for _, child := range group.GetChildren() {
			walk(child)
		}
		order[group.GetKey()] = len(order)
	}
	walk(group)
	position := func(assignment fwk.ProposedAssignment) int {
		pod := assignment.GetPod()
		return order[fwk.PodGroupKey(pod.Namespace, *pod.Spec.SchedulingGroup.PodGroupName).String()]
	}
	return f.Framework.RunPodGroupPostFilterPlugins(ctx, state, group, func(ctx context.Context) (*fwk.PodGroupAssignments, *fwk.Status) {
		result, status := schedule(ctx)
		if result != nil {
			sort.SliceStable(result.ProposedAssignments, func(i, j int) bool {
				return position(result.ProposedAssignments[i]) < position(result.ProposedAssignments[j])
			})
		}
		return result, status
	})
}

func (g *groupScheduler) findQueued(pod *v1.Pod) *framework.QueuedPodInfo {
	info, _ := g.SchedulingQueue.GetPod(pod.Name, pod.Namespace, pod.Spec.SchedulingGroup)
	return info
}

// selectGroup makes the next cycle schedule the root; it returns false if the root is not in the queue.
func (g *groupScheduler) selectGroup(logger klog.Logger, root groupRoot, _ []*v1.Pod) bool {
	return g.selectEntity(logger, func(next framework.QueuedEntityInfo) bool {
		group, ok := next.(*framework.QueuedPodGroupInfo)
		return ok && (groupRoot{group.Namespace, group.Name, group.CompositePodGroup != nil}) == root
	})
}

// selectPod makes the next cycle schedule the pod; it returns false if the pod is not in the queue.
func (g *groupScheduler) selectPod(logger klog.Logger, pod *v1.Pod) bool {
	return g.selectEntity(logger, func(next framework.QueuedEntityInfo) bool {
		info, ok := next.(*framework.QueuedPodInfo)
		return ok && info.Pod.UID == pod.UID
	})
}

func (g *groupScheduler) selectEntity(logger klog.Logger, isSelected func(framework.QueuedEntityInfo) bool) bool {
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
		if isSelected(next) {
			g.NextEntity = func(klog.Logger) (framework.QueuedEntityInfo, error) { return next, nil }
			return true
		}
		others = append(others, next)
	}
	return false
}

// waitsForResize reports whether a pod on a node is scheduled again because its resize is deferred.
func waitsForResize(pod *v1.Pod) bool {
	return utilfeature.DefaultFeatureGate.Enabled(features.InPlacePodVerticalScalingSchedulerPreemption) && resource.IsPodResizeDeferred(pod)
}

// unrollPodEvents replaces events of any pods by those of assigned, unscheduled and waiting pods.
func unrollPodEvents(events []fwk.ClusterEventWithHint) (result []fwk.ClusterEventWithHint) {
	for _, event := range events {
		if event.Event.Resource != fwk.Pod {
			result = append(result, event)
			continue
		}
		for _, unrolled := range framework.UnrollPodEvent(event.Event) {
			result = append(result, fwk.ClusterEventWithHint{Event: unrolled, QueueingHintFn: event.QueueingHintFn})
		}
	}
	return result
}

func podEvents(newPod, oldPod *v1.Pod, isTarget bool) []fwk.ClusterEvent {
	return framework.PodSchedulingPropertiesChange(newPod, oldPod, isTarget)
}
