package main

import (
	"context"
	"encoding/json"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
)

// BindingAnswer has what the PreBind plugins write for a pod on a node: the claims by namespace and name, the requests of
// the claim for extended resources, the fields of the pod's status, the capacities of the volumes by claim, and the nodes
// that the volume claims select.
type BindingAnswer struct {
	Claims        map[string]BoundClaim       `json:"claims"`
	Requests      []resourceapi.DeviceRequest `json:"requests"`
	PodStatus     map[string]any              `json:"podStatus"`
	Volumes       map[string]string           `json:"volumes"`
	SelectedNodes map[string]string           `json:"selectedNodes"`
}

// BoundClaim is the written status of a device claim.
type BoundClaim struct {
	Allocation  *resourceapi.AllocationResult                `json:"allocation"`
	ReservedFor []resourceapi.ResourceClaimConsumerReference `json:"reservedFor"`
}

// preBindTimeout is enough for the writes, which are made before a plugin waits.
const preBindTimeout = 20 * time.Millisecond

// answerBindings binds a pod with volumes or claims to its first and its last feasible node, each in a cluster of its own.
func answerBindings(s *scenario, pod *v1.Pod, feasible []string) (map[string]*BindingAnswer, error) {
	answers := map[string]*BindingAnswer{}
	if len(feasible) > 2 {
		feasible = []string{feasible[0], feasible[len(feasible)-1]}
	}
	for _, node := range feasible {
		c, err := newCluster(s)
		if err != nil {
			return nil, err
		}
		answer := c.bind(context.Background(), pod.DeepCopy(), node)
		c.stop()
		if answer != nil {
			answers[node] = answer
		}
	}
	return answers, nil
}

// bind runs Reserve and each PreBind plugin; it returns nil if Reserve or an earlier step fails.
func (c *cluster) bind(ctx context.Context, pod *v1.Pod, name string) *BindingAnswer {
	state := framework.NewCycleState()
	node, err := c.snapshot.NodeInfos().Get(name)
	if err != nil {
		fail(err)
	}
	if _, status, _ := c.framework.RunPreFilterPlugins(ctx, state, pod); !status.IsSuccess() {
		return nil
	}
	if !c.framework.RunFilterPluginsWithNominatedPods(ctx, state, pod, node).IsSuccess() {
		return nil
	}
	if !c.framework.RunReservePluginsReserve(ctx, state, pod, name).IsSuccess() {
		return nil
	}
	answer := &BindingAnswer{Claims: map[string]BoundClaim{}, PodStatus: map[string]any{}, Volumes: map[string]string{}, SelectedNodes: map[string]string{}}
	c.written = func(action clienttesting.Action) {
		if !c.isUnchanged(action) {
			answer.add(action)
		}
	}
	pod.Spec.NodeName = name
	if utilfeature.DefaultFeatureGate.Enabled(features.DRANodeAllocatableResources) {
		pod.Status.NodeAllocatableResourceClaimStatuses = dynamicresources.ExtractPodNodeAllocatableResourceClaimStatus(klog.Background(), state, name)
	}
	for _, enabled := range c.framework.ListPlugins().PreBind.Enabled {
		plugin := c.plugins[enabled.Name].(fwk.PreBindPlugin)
		if _, status := plugin.PreBindPreFlight(ctx, state, pod, name); !status.IsSuccess() {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, preBindTimeout)
		plugin.PreBind(limited, state, pod, name) // fails if it waits
		cancel()
	}
	return answer
}

// isUnchanged reports whether a write of a volume, or of its claim, changes nothing.
func (c *cluster) isUnchanged(action clienttesting.Action) bool {
	update, ok := action.(clienttesting.UpdateAction)
	if !ok {
		return false
	}
	var before runtime.Object
	switch object := update.GetObject().(type) {
	case *v1.PersistentVolume:
		before, _ = c.factory.Core().V1().PersistentVolumes().Lister().Get(object.Name)
	case *v1.PersistentVolumeClaim:
		before, _ = c.factory.Core().V1().PersistentVolumeClaims().Lister().PersistentVolumeClaims(object.Namespace).Get(object.Name)
	default:
		return false
	}
	return equality.Semantic.DeepEqual(before, update.GetObject())
}

func (a *BindingAnswer) add(action clienttesting.Action) {
	var object runtime.Object
	switch action := action.(type) {
	case clienttesting.UpdateAction: // also a CreateAction
		object = action.GetObject()
	case clienttesting.PatchAction:
		var pod struct{ Status map[string]any }
		if err := json.Unmarshal(action.GetPatch(), &pod); err != nil {
			fail(err)
		}
		for key, value := range pod.Status {
			a.PodStatus[key] = value
		}
	}
	switch object := object.(type) {
	case *resourceapi.ResourceClaim:
		if action.GetVerb() == "create" {
			a.Requests = object.Spec.Devices.Requests
		} else if action.GetSubresource() == "status" {
			a.Claims[object.Namespace+"/"+object.Name] = BoundClaim{object.Status.Allocation, object.Status.ReservedFor}
		}
	case *v1.PersistentVolume:
		capacity := object.Spec.Capacity[v1.ResourceStorage]
		a.Volumes[object.Spec.ClaimRef.Namespace+"/"+object.Spec.ClaimRef.Name] = capacity.String()
	case *v1.PersistentVolumeClaim:
		a.SelectedNodes[object.Namespace+"/"+object.Name] = object.Annotations["volume.kubernetes.io/selected-node"]
	}
}

// usesClaims reports whether a pod has volumes, claims, or resources that devices may serve.
func usesClaims(pod *v1.Pod) bool {
	if len(pod.Spec.Volumes) > 0 || len(pod.Spec.ResourceClaims) > 0 {
		return true
	}
	for _, container := range append(append([]v1.Container{}, pod.Spec.Containers...), pod.Spec.InitContainers...) {
		for name := range container.Resources.Requests {
			if name != v1.ResourceCPU && name != v1.ResourceMemory {
				return true
			}
		}
	}
	return false
}
