package main

import (
	"context"
	"sort"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// answerScenario evaluates every pending pod and every pending pod group of a scenario alone. For a scenario with cycles,
// it only runs these.
func answerScenario(document []byte) (*Answer, error) {
	restore, err := setFeatureGates(document)
	if err != nil {
		return nil, err
	}
	defer restore()
	s, err := decodeScenario(document)
	if err != nil {
		return nil, err
	}
	answer := &Answer{}
	if answer.Cycles, err = answerCycles(s, document); err != nil || answer.Cycles != nil {
		return answer, err
	}
	if utilfeature.DefaultFeatureGate.Enabled(features.GenericWorkload) {
		if answer.PodGroups, err = answerGroups(s); err != nil {
			return nil, err
		}
	}
	if answer.Events, err = answerEvents(s, document); err != nil {
		return nil, err
	}
	answer.Pods, answer.Bindings, err = answerPods(s)
	return answer, err
}

// isPending reports whether the scheduler of the scenario's profile has to schedule a pod, perhaps on its own node.
func isPending(pod *v1.Pod, s *scenario) bool {
	if pod.Spec.NodeName != "" && !waitsForResize(pod) {
		return false
	}
	return pod.DeletionTimestamp == nil && pod.Spec.SchedulerName == s.profile.SchedulerName
}

// answerPods evaluates the pods, and binds those that use claims or volumes to some nodes.
func answerPods(s *scenario) (answers map[string]*PodAnswer, bindings map[string]map[string]*BindingAnswer, err error) {
	answers, bindings = map[string]*PodAnswer{}, map[string]map[string]*BindingAnswer{}
	var c *cluster
	groups := utilfeature.DefaultFeatureGate.Enabled(features.GenericWorkload)
	for _, pod := range s.pods {
		if !isPending(pod, s) || groups && pod.Spec.SchedulingGroup != nil && pod.Spec.NodeName == "" {
			continue
		}
		if c == nil {
			if c, err = newCluster(s); err != nil {
				return nil, nil, err
			}
		}
		answer := c.evaluate(context.Background(), pod)
		answers[podKey(pod)] = answer
		if usesClaims(pod) && pod.Spec.NodeName == "" && len(answer.Feasible) > 0 {
			if bindings[podKey(pod)], err = answerBindings(s, pod, answer.Feasible); err != nil {
				return nil, nil, err
			}
		}
		if c.isChanged() {
			c.stop()
			c = nil
		}
	}
	if c != nil {
		c.stop()
	}
	return answers, bindings, nil
}

func podKey(pod *v1.Pod) string { return pod.Namespace + "/" + pod.Name }

// evaluate runs every extension point of the scheduling cycle for one pod on all nodes.
func (c *cluster) evaluate(ctx context.Context, pod *v1.Pod) *PodAnswer {
	answer := newPodAnswer()
	if answer.PreEnqueue = askPreEnqueue(ctx, c.framework, pod); answer.PreEnqueue != nil {
		return answer
	}
	answer.PreFilter = &PreFilter{}
	nodes, err := c.snapshot.NodeInfos().List()
	if err != nil {
		fail(err)
	}
	if len(nodes) == 0 {
		answer.setMessage(scheduler.ErrNoNodesAvailable)
		return answer
	}
	state := framework.NewCycleState()
	diagnosis := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
	left, status, plugins := c.framework.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		answer.PreFilter.Status = newStatus(status)
		if !status.IsRejected() {
			answer.setMessage(status.AsError())
			return answer
		}
		diagnosis.NodeToStatus.SetAbsentNodesStatus(status)
		diagnosis.PreFilterMsg = status.Message()
		c.runPostFilter(ctx, state, pod, len(nodes), diagnosis, answer)
		return answer
	}
	filtered := nodes
	if !left.AllNodes() {
		answer.PreFilter.Nodes = sortedNames(left.NodeNames.UnsortedList())
		filtered = nil
		for _, node := range nodes {
			if left.NodeNames.Has(node.Node().Name) {
				filtered = append(filtered, node)
			}
		}
		diagnosis.NodeToStatus.SetAbsentNodesStatus(absentNodesStatus(plugins.UnsortedList()))
	}
	// DynamicResources remembers in the state what Filter finds, so plugins that run on their own need another state.
	stateOfEach := framework.NewCycleState()
	c.framework.RunPreFilterPlugins(ctx, stateOfEach, pod)
	for _, node := range filtered {
		answer.Nodes[node.Node().Name] = NodeFilters{Filters: c.askEachFilter(ctx, stateOfEach, pod, node)}
	}
	feasible, failure := c.runFilters(ctx, state, pod, filtered, diagnosis, answer)
	switch {
	case failure != nil:
		answer.setMessage(failure)
	case len(feasible) == 0:
		c.runPostFilter(ctx, state, pod, len(nodes), diagnosis, answer)
	case pod.Spec.NodeName != "":
		answer.Best = answer.Feasible // its own node, which kube-scheduler does not score
	default:
		c.runScore(ctx, state, pod, feasible, answer)
	}
	return answer
}

// askPreEnqueue returns the first plugin that keeps a pod out of the queue.
func askPreEnqueue(ctx context.Context, profile framework.Framework, pod *v1.Pod) *PreEnqueue {
	for _, plugin := range profile.PreEnqueuePlugins() {
		if status := plugin.PreEnqueue(ctx, pod); !status.IsSuccess() {
			return &PreEnqueue{plugin.Name(), sortedReasons(status)}
		}
	}
	return nil
}

// runFilters filters the nodes, with the nominated pods; it returns the first error in order of the nodes' names.
func (c *cluster) runFilters(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo, diagnosis framework.Diagnosis, answer *PodAnswer) ([]fwk.NodeInfo, error) {
	nodes = append([]fwk.NodeInfo{}, nodes...)
	sort.Slice(nodes, func(i, j int) bool { return nodes[i].Node().Name < nodes[j].Node().Name })
	var feasible []fwk.NodeInfo
	var failure error
	for _, node := range nodes {
		name := node.Node().Name
		filters := answer.Nodes[name]
		status := c.framework.RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
		if status.IsSuccess() {
			feasible = append(feasible, node)
		} else {
			filters.FirstFailure = newStatus(status)
			if status.IsRejected() {
				diagnosis.NodeToStatus.Set(name, status)
			} else if failure == nil {
				failure = status.AsError()
			}
		}
		answer.Nodes[name] = filters
	}
	if failure != nil {
		return nil, failure
	}
	for _, node := range feasible {
		answer.Feasible = append(answer.Feasible, node.Node().Name)
	}
	return feasible, nil
}

// askEachFilter asks each Filter plugin on its own: first with the nominated pods of the node, then without them.
func (c *cluster) askEachFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) map[string]Rejection {
	nodeWithNominated, stateWithNominated := node.Snapshot(), state.Clone()
	nominated := 0
	for _, other := range c.framework.NominatedPodsForNode(node.Node().Name) {
		if corev1helpers.PodPriority(other.GetPod()) >= corev1helpers.PodPriority(pod) && other.GetPod().UID != pod.UID {
			nodeWithNominated.AddPodInfo(other)
			c.framework.RunPreFilterExtensionAddPod(ctx, stateWithNominated, pod, other, nodeWithNominated)
			nominated++
		}
	}
	if nominated > 0 {
		if rejections := c.askFilters(ctx, stateWithNominated, pod, nodeWithNominated); len(rejections) > 0 {
			return rejections
		}
	}
	return c.askFilters(ctx, state, pod, node)
}

func (c *cluster) askFilters(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) map[string]Rejection {
	rejections := map[string]Rejection{}
	for _, enabled := range c.framework.ListPlugins().Filter.Enabled {
		if state.GetSkipFilterPlugins().Has(enabled.Name) {
			continue
		}
		plugin := c.plugins[enabled.Name].(fwk.FilterPlugin)
		if status := plugin.Filter(ctx, state, pod, node); !status.IsSuccess() {
			rejections[enabled.Name] = Rejection{status.Code().String(), sortedReasons(status)}
		}
	}
	return rejections
}

// runScore scores the feasible nodes. With a single one, an error has no consequence.
func (c *cluster) runScore(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo, answer *PodAnswer) {
	if !c.framework.HasScorePlugins() {
		for _, node := range nodes {
			answer.Scores[node.Node().Name] = NodeScore{1, map[string]PluginScore{}}
		}
		answer.Best = answer.Feasible
		return
	}
	status := c.framework.RunPreScorePlugins(ctx, state, pod, nodes)
	var scores []fwk.NodePluginScores
	if status.IsSuccess() {
		scores, status = c.framework.RunScorePlugins(ctx, state, pod, nodes)
	}
	if !status.IsSuccess() {
		if len(nodes) == 1 {
			answer.Best = answer.Feasible
		} else {
			answer.setMessage(status.AsError())
		}
		return
	}
	weights := map[string]int64{}
	for _, enabled := range c.framework.ListPlugins().Score.Enabled {
		weights[enabled.Name] = int64(enabled.Weight)
	}
	for i, node := range nodes {
		plugins := map[string]PluginScore{}
		for _, score := range scores[i].Scores {
			raw, _ := c.plugins[score.Name].(fwk.ScorePlugin).Score(ctx, state, pod, node)
			plugins[score.Name] = PluginScore{raw, score.Score / weights[score.Name], score.Score}
		}
		answer.Scores[node.Node().Name] = NodeScore{scores[i].TotalScore, plugins}
	}
	answer.setBest()
}

// setBest sets the nodes with the highest total.
func (a *PodAnswer) setBest() {
	for _, name := range a.Feasible {
		if len(a.Best) > 0 && a.Scores[name].Total > a.Scores[a.Best[0]].Total {
			a.Best = []string{}
		}
		if len(a.Best) == 0 || a.Scores[name].Total == a.Scores[a.Best[0]].Total {
			a.Best = append(a.Best, name)
		}
	}
}

// setMessage sets both messages to the error that ended the attempt.
func (a *PodAnswer) setMessage(err error) {
	text := err.Error()
	a.FilterMessage, a.Message = &text, &text
}

func sortedNames(names []string) []string {
	names = append([]string{}, names...)
	sort.Strings(names)
	return names
}
