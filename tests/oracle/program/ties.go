package main

import (
	"context"
	"fmt"
	"sort"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/topologyaware"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

const (
	firstOfTiesName     = "OracleFirstOfTies"
	sortedPlacementName = "OracleSortedPlacements"
	// tieFactor is more than the largest score of firstOfTies, so that it decides only between equal totals.
	tieFactor = fwk.MaxNodeScore + 1
)

// tieBreakers are the plugins that make the choice between equal nodes and placements predictable.
var tieBreakers = frameworkruntime.Registry{
	firstOfTiesName: func(_ context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		return &firstOfTies{handle: handle}, nil
	},
	sortedPlacementName: func(ctx context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		generator, err := topologyaware.New(ctx, nil, handle, feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate))
		return &sortedPlacements{generator}, err
	},
}

// withFirstOfTies returns copies of the profiles of a scenario, with the plugins of tieBreakers, and of its extenders.
func withFirstOfTies(s *scenario) (profiles []config.KubeSchedulerProfile, extenders []config.Extender) {
	for i := range s.profiles {
		profiles = append(profiles, addTieBreakers(&s.profiles[i]))
	}
	for _, extender := range s.extenders {
		extender.Weight *= tieFactor
		extenders = append(extenders, extender)
	}
	return profiles, extenders
}

func addTieBreakers(profile *config.KubeSchedulerProfile) config.KubeSchedulerProfile {
	result := *profile.DeepCopy()
	for _, set := range []*config.PluginSet{&result.Plugins.MultiPoint, &result.Plugins.Score, &result.Plugins.PlacementScore} {
		for i := range set.Enabled {
			set.Enabled[i].Weight = max(set.Enabled[i].Weight, 1) * int32(tieFactor)
			if set.Enabled[i].Name == names.TopologyPlacementGenerator {
				set.Enabled[i].Name = sortedPlacementName
			}
		}
	}
	multiPoint := &result.Plugins.MultiPoint
	multiPoint.Enabled = append([]config.Plugin{{Name: firstOfTiesName, Weight: 1}}, multiPoint.Enabled...)
	return result
}

// firstOfTies gives the first node and the first placement the highest score. It also stops each pod before it is bound.
type firstOfTies struct {
	handle fwk.Handle
}

func (p *firstOfTies) Name() string                                           { return firstOfTiesName }
func (p *firstOfTies) ScoreExtensions() fwk.ScoreExtensions                   { return nil }
func (p *firstOfTies) PlacementScoreExtensions() fwk.PlacementScoreExtensions { return nil }

// SignPod ends opportunistic batching, which extender does not have. It would score a member on nodes as they were before
// the potential victims were removed.
func (p *firstOfTies) SignPod(context.Context, *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return nil, fwk.NewStatus(fwk.Unschedulable, "the oracle does not batch pods")
}

func (p *firstOfTies) Score(_ context.Context, _ fwk.CycleState, _ *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	return p.scoreName(node.Node().Name)
}

func (p *firstOfTies) ScorePlacement(_ context.Context, _ placementState, _ fwk.PodGroupInfo, assignments *fwk.PodGroupAssignments) (int64, *fwk.Status) {
	return p.scoreName(firstNode(assignments.Placement))
}

// scoreName returns a higher score for a name that is earlier among the names of all nodes.
func (p *firstOfTies) scoreName(name string) (int64, *fwk.Status) {
	nodes, err := p.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return 0, fwk.AsStatus(err)
	}
	score := int64(fwk.MaxNodeScore)
	for _, node := range nodes {
		if node.Node().Name < name {
			score--
		}
	}
	if score < 0 {
		return 0, fwk.AsStatus(fmt.Errorf("a scenario with pod groups has more than %d nodes", fwk.MaxNodeScore))
	}
	return score, nil
}

func (p *firstOfTies) PreBindPreFlight(context.Context, fwk.CycleState, *v1.Pod, string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	return nil, nil
}

// PreBind waits until the answer is complete.
func (p *firstOfTies) PreBind(ctx context.Context, _ fwk.CycleState, _ *v1.Pod, _ string) *fwk.Status {
	<-ctx.Done()
	return nil
}

// sortedPlacements is kube-scheduler's plugin, which generates the placements in any order.
type sortedPlacements struct {
	*topologyaware.TopologyPlacement
}

func (p *sortedPlacements) GeneratePlacements(ctx context.Context, state fwk.PodGroupCycleState, group fwk.PodGroupInfo, parent *fwk.Placement) (*fwk.GeneratePlacementsResult, *fwk.Status) {
	result, status := p.TopologyPlacement.GeneratePlacements(ctx, state, group, parent)
	if result != nil {
		sort.Slice(result.Placements, func(i, j int) bool {
			return firstNode(result.Placements[i]) < firstNode(result.Placements[j])
		})
	}
	return result, status
}

func firstNode(placement *fwk.Placement) string {
	first := ""
	for _, node := range placement.Nodes {
		if first == "" || node.Node().Name < first {
			first = node.Node().Name
		}
	}
	return first
}

// firstCandidate is default preemption's evaluator; among equal candidates it selects the first node.
type firstCandidate struct {
	*defaultpreemption.DefaultPreemption
}

func (p firstCandidate) OrderedScoreFuncs(_ context.Context, nodesToVictims map[string]*extenderv1.Victims) []func(node string) int64 {
	var functions []func(node string) int64
	for i := range criteria {
		functions = append(functions, func(node string) int64 { return -rankVictims(nodesToVictims[node])[i] })
	}
	return append(functions, func(node string) (score int64) {
		for other := range nodesToVictims {
			if other < node {
				score--
			}
		}
		return score
	})
}
