package main

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"sort"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// recordedPreemption is kube-scheduler's plugin; it keeps the last result of PostFilter.
type recordedPreemption struct {
	*defaultpreemption.DefaultPreemption
	ran    bool
	result *fwk.PostFilterResult
	status *fwk.Status
}

func (p *recordedPreemption) PostFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	p.result, p.status = p.DefaultPreemption.PostFilter(ctx, state, pod, nodes)
	p.ran = true
	return p.result, p.status
}

// absentNodesStatus is the status of the nodes that PreFilter left out.
func absentNodesStatus(plugins []string) *fwk.Status {
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sortedNames(plugins)))
}

// runPostFilter runs the PostFilter plugins for a pod that fits on no node, and forms the messages.
func (c *cluster) runPostFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodeCount int, diagnosis framework.Diagnosis, answer *PodAnswer) {
	failure := &framework.FitError{Pod: pod, NumAllNodes: nodeCount, Diagnosis: diagnosis}
	filterMessage := failure.Error()
	answer.FilterMessage = &filterMessage
	message := filterMessage
	if c.framework.HasPostFilterPlugins() {
		if c.preemption != nil {
			c.preemption.ran, c.preemption.status = false, nil
		}
		candidates := c.dryRun(ctx, pod, diagnosis.NodeToStatus)
		_, status := c.framework.RunPostFilterPlugins(ctx, state, pod, diagnosis.NodeToStatus)
		failure.Diagnosis.PostFilterMsg = status.Message()
		message = failure.Error()
		if c.preemption != nil && c.preemption.ran {
			answer.Preemption = c.describePreemption(candidates)
			if status.IsSuccess() && answer.Preemption.NominatedNode != "" {
				message = withFirstTie(message, answer.Preemption)
			}
		}
	}
	answer.Message = &message
}

// dryRun returns the victims of every node on which evicting pods would help.
func (c *cluster) dryRun(ctx context.Context, pod *v1.Pod, statuses fwk.NodeToStatusReader) map[string]*extenderv1.Victims {
	if c.preemption == nil {
		return nil
	}
	nodes, err := statuses.NodesForStatusCode(c.snapshot.NodeInfos(), fwk.Unschedulable)
	if err != nil || len(nodes) == 0 {
		return nil
	}
	budgets, err := c.factory.Policy().V1().PodDisruptionBudgets().Lister().List(labels.Everything())
	if err != nil {
		fail(err)
	}
	// DynamicResources remembers in the state what Filter finds, and its PostFilter uses it, so the dry run needs another state.
	state := framework.NewCycleState()
	c.framework.RunPreFilterPlugins(ctx, state, pod)
	candidates, _, _ := c.preemption.Evaluator.DryRunPreemption(ctx, state, pod, nodes, budgets, 0, int32(len(nodes)))
	return c.preemption.CandidatesToVictimsMap(candidates)
}

// describePreemption describes the last run of default preemption. kube-scheduler picks one of the ties at random;
// the answer has the first of them.
func (c *cluster) describePreemption(candidates map[string]*extenderv1.Victims) *Preemption {
	answer := &Preemption{
		Code:       c.preemption.status.Code().String(),
		Reasons:    []string{},
		Victims:    []string{},
		Ties:       []string{},
		Candidates: map[string]Candidate{},
	}
	if !c.preemption.status.IsSuccess() {
		answer.Reasons = sortedReasons(c.preemption.status)
		if c.preemption.status.Code() == fwk.Unschedulable && len(candidates) == 0 {
			return answer
		}
	}
	for node, victims := range candidates {
		answer.Candidates[node] = Candidate{victimKeys(victims), victims.NumPDBViolations}
	}
	if !c.preemption.status.IsSuccess() {
		answer.Candidates = map[string]Candidate{}
		return answer
	}
	answer.Ties = selectTies(candidates)
	chosen := c.preemption.result.NominatedNodeName
	if i := sort.SearchStrings(answer.Ties, chosen); i == len(answer.Ties) || answer.Ties[i] != chosen {
		panic(fmt.Sprintf("it nominated %s, which is not one of the ties %v", chosen, answer.Ties))
	}
	answer.NominatedNode = answer.Ties[0]
	answer.Victims = answer.Candidates[answer.NominatedNode].Victims
	return answer
}

func victimKeys(victims *extenderv1.Victims) []string {
	keys := []string{}
	for _, pod := range victims.Pods {
		keys = append(keys, podKey(pod))
	}
	sort.Strings(keys)
	return keys
}

// selectTies returns the nodes that are equally good by all of kube-scheduler's criteria, sorted.
func selectTies(candidates map[string]*extenderv1.Victims) []string {
	var ties []string
	var best [criteria]int64
	for node, victims := range candidates {
		rank := rankVictims(victims)
		if len(ties) == 0 || isBetter(rank, best) {
			ties, best = nil, rank
		}
		if rank == best {
			ties = append(ties, node)
		}
	}
	sort.Strings(ties)
	return ties
}

// criteria is the number of kube-scheduler's criteria for the choice between candidates.
const criteria = 5

// rankVictims returns one number per criterion, the most important first; a smaller number is better.
func rankVictims(victims *extenderv1.Victims) [criteria]int64 {
	first, sum := int64(math.MinInt64), int64(0)
	for i, pod := range victims.Pods {
		priority := int64(corev1helpers.PodPriority(pod))
		if i == 0 {
			first = priority // the highest one, unless an extender orders the victims
		}
		sum += priority + math.MaxInt32 + 1
	}
	start := int64(math.MinInt64 + 1)
	if time := util.GetEarliestPodStartTime(victims); time != nil {
		start = time.UnixNano()
	}
	return [criteria]int64{victims.NumPDBViolations, first, sum, int64(len(victims.Pods)), -start}
}

func isBetter(rank, other [criteria]int64) bool {
	for i := range rank {
		if rank[i] != other[i] {
			return rank[i] < other[i]
		}
	}
	return false
}

var placement = regexp.MustCompile(`placement for pod on node \S+, preempting \d+ victims`)

// withFirstTie puts the first of the ties into the text of a successful preemption (1.37).
func withFirstTie(message string, answer *Preemption) string {
	text := fmt.Sprintf("placement for pod on node %s, preempting %d victims", answer.NominatedNode, len(answer.Victims))
	return placement.ReplaceAllLiteralString(message, text)
}
