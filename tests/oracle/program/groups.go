package main

import (
	"context"
	"encoding/json"
	"sort"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	clocktesting "k8s.io/utils/clock/testing"
)

// groupScheduler is a complete scheduler that has seen all objects of a scenario. It runs one cycle, for one pod or one
// pod group, and starts no binding.
type groupScheduler struct {
	*scheduler.Scheduler
	factory *staticFactory
	// handleFailure is kube-scheduler's handler, which returns a pod to the queue.
	handleFailure scheduler.FailureHandlerFn
	mutex         sync.Mutex
	ended         bool
	failures      map[string]podFailure
	victims       []string
	// conditions are the conditions that the cycle adds to pod groups, by namespace and name.
	conditions map[string]*groupCondition
}

// groupRoot is a pod group without a parent, or the composite pod group at the top of a tree.
type groupRoot struct {
	namespace, name string
	composite       bool
}

// String returns the root's key in the answer.
func (r groupRoot) String() string {
	key := r.namespace + "/" + r.name
	if r.composite {
		return "composite " + key
	}
	return key
}

// podFailure is what the failure handler gets for a pod.
type podFailure struct {
	status     *fwk.Status
	nominating *fwk.NominatingInfo
}

func (f podFailure) nominatedNode() string {
	if f.nominating == nil {
		return ""
	}
	return f.nominating.NominatedNodeName
}

type groupCondition struct {
	Message string
}

// answerGroups schedules every root with a pending pod alone, as if the other pending pods did not exist.
func answerGroups(s *scenario) (map[string]*GroupAnswer, error) {
	members := map[groupRoot][]*v1.Pod{}
	for _, pod := range s.pods {
		if isPending(pod, s) && pod.Spec.NodeName == "" && pod.Spec.SchedulingGroup != nil {
			root := findRoot(s, pod)
			members[root] = append(members[root], pod)
		}
	}
	// Victims are then deleted before the cycle ends.
	restore, err := setFeatureGates([]byte(`{"featureGates": {"SchedulerAsyncPreemption": false}}`))
	if err != nil {
		return nil, err
	}
	defer restore()
	answers := map[string]*GroupAnswer{}
	for root, pods := range members {
		ctx, cancel := context.WithCancel(context.Background())
		answer, err := answerGroup(ctx, s, root, pods)
		cancel()
		if err != nil {
			return nil, err
		}
		answers[root.String()] = answer
	}
	return answers, nil
}

func answerGroup(ctx context.Context, s *scenario, root groupRoot, pods []*v1.Pod) (*GroupAnswer, error) {
	g, err := newGroupScheduler(ctx, s)
	if err != nil {
		return nil, err
	}
	answer := &GroupAnswer{Victims: []string{}, Members: map[string]*MemberAnswer{}}
	isHeld := map[string]bool{}
	for _, pod := range pods {
		member := &MemberAnswer{PreEnqueue: askPreEnqueue(ctx, g.Profiles[s.profile.SchedulerName], pod)}
		answer.Members[podKey(pod)] = member
		isHeld[podKey(pod)] = member.PreEnqueue != nil
	}
	g.orderMembers(pods)
	if !g.selectGroup(klog.FromContext(ctx), root, pods) {
		return answer, nil
	}
	before := countGroups()
	g.ScheduleOne(ctx)
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.ended = true
	for key, condition := range g.conditions {
		if !root.composite {
			answer.Message = &condition.Message
			continue
		}
		if answer.Conditions == nil {
			answer.Conditions = map[string]string{}
		}
		answer.Conditions[key] = condition.Message
	}
	after := countGroups()
	answer.Scheduled = after["scheduled"] > before["scheduled"]
	answer.WaitsForPreemption = after["waiting_on_preemption"] > before["waiting_on_preemption"]
	answer.Victims = append(answer.Victims, g.victims...)
	sort.Strings(answer.Victims)
	for _, pod := range pods {
		member := answer.Members[podKey(pod)]
		if failure, ok := g.failures[podKey(pod)]; ok {
			message := failure.status.Message()
			member.Message = &message
			member.Node = failure.nominatedNode()
		} else if assumed, err := g.Cache.GetPod(pod); err == nil && !isHeld[podKey(pod)] {
			member.Node = assumed.Spec.NodeName
		}
	}
	return answer, nil
}

// newGroupScheduler makes a scheduler as kube-scheduler does. Its choices between equal nodes, placements and candidates
// for preemption are not random: it takes the first one.
func newGroupScheduler(ctx context.Context, s *scenario) (*groupScheduler, error) {
	g := &groupScheduler{failures: map[string]podFailure{}, conditions: map[string]*groupCondition{}}
	client := g.newClient()
	factory := newStaticFactory(client, s.objects)
	recorder := func(string) events.EventRecorderLogger { return &events.FakeRecorder{} }
	profiles, extenders := withFirstOfTies(s)
	sched, err := scheduler.New(ctx, client, factory, nil, recorder,
		scheduler.WithProfiles(profiles...),
		scheduler.WithExtenders(extenders...),
		scheduler.WithFrameworkOutOfTreeRegistry(tieBreakers),
		scheduler.WithClock(clocktesting.NewFakeClock(time.Unix(0, 0))),
		scheduler.WithParallelism(1),
	)
	if err != nil {
		return nil, err
	}
	g.Scheduler, g.factory, g.handleFailure = sched, factory, sched.FailureHandler
	sched.FailureHandler = g.recordFailure
	for name, profile := range sched.Profiles {
		for _, plugin := range profile.PreEnqueuePlugins() {
			if preemption, ok := plugin.(*defaultpreemption.DefaultPreemption); ok {
				preemption.Evaluator.Interface = firstCandidate{preemption}
			}
		}
		sched.Profiles[name] = withSortedAssignments(profile)
	}
	return g, nil
}

// orderMembers makes the members enter the queue in the order of the scenario.
func (g *groupScheduler) orderMembers(pods []*v1.Pod) {
	for i, pod := range pods {
		if info := g.findQueued(pod); info != nil {
			timestamp := time.Unix(int64(i+1), 0)
			info.InitialAttemptTimestamp = &timestamp
		}
	}
}

// recordFailure replaces the handler that returns a pod to the queue.
func (g *groupScheduler) recordFailure(_ context.Context, _ framework.Framework, info *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo, _ time.Time) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.ended {
		return
	}
	g.failures[podKey(info.Pod)] = podFailure{status, nominating}
}

// newClient makes a client that accepts every write; it remembers the deleted pods and the conditions of pod groups.
func (g *groupScheduler) newClient() *fake.Clientset {
	client := fake.NewSimpleClientset()
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		g.mutex.Lock()
		defer g.mutex.Unlock()
		switch action := action.(type) {
		case clienttesting.UpdateAction: // also a CreateAction
			return true, action.GetObject(), nil
		case clienttesting.DeleteAction:
			if action.GetResource().Resource == "pods" && !g.ended {
				g.victims = append(g.victims, action.GetNamespace()+"/"+action.GetName())
			}
			return true, nil, nil
		case clienttesting.PatchAction:
			if action.GetResource().Resource == "podgroups" && !g.ended {
				if condition := decodeCondition(action.GetPatch()); condition != nil {
					g.conditions[action.GetNamespace()+"/"+action.GetName()] = condition
				}
			}
			return true, nil, nil
		}
		return false, nil, nil
	})
	return client
}

func decodeCondition(patch []byte) *groupCondition {
	var group struct {
		Status struct{ Conditions []groupCondition }
	}
	if err := json.Unmarshal(patch, &group); err != nil || len(group.Status.Conditions) != 1 {
		return nil
	}
	return &group.Status.Conditions[0]
}

// countGroups returns how many cycles of pod groups have ended, by result.
func countGroups() map[string]float64 {
	counts := map[string]float64{}
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		fail(err)
	}
	for _, family := range families {
		if family.GetName() != "scheduler_podgroup_schedule_attempts_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "result" {
					counts[label.GetValue()] += metric.GetCounter().GetValue()
				}
			}
		}
	}
	return counts
}
