package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// answerCycles runs the scheduling cycle of every pending pod of all profiles alone, with the extenders, if a scenario has
// `cycles`. That has a script for each extender of the configuration, in their order.
func answerCycles(s *scenario, document []byte) (map[string]*CycleAnswer, error) {
	var list struct {
		Cycles *struct {
			Extenders []extenderScript `json:"extenders"`
		} `json:"cycles"`
	}
	if err := json.Unmarshal(document, &list); err != nil {
		return nil, fmt.Errorf("cycles: %w", err)
	}
	if list.Cycles == nil {
		return nil, nil
	}
	if len(list.Cycles.Extenders) != len(s.extenders) {
		return nil, fmt.Errorf("cycles: %d scripts for %d extenders", len(list.Cycles.Extenders), len(s.extenders))
	}
	scripts := map[string]extenderScript{}
	for i, extender := range s.extenders {
		scripts[extender.URLPrefix] = list.Cycles.Extenders[i]
	}
	playScripts(scripts)
	// Victims are then deleted before the cycle ends.
	restore, err := setFeatureGates([]byte(`{"featureGates": {"SchedulerAsyncPreemption": false}}`))
	if err != nil {
		return nil, err
	}
	defer restore()
	answers := map[string]*CycleAnswer{}
	for _, pod := range s.pods {
		if pod.Spec.NodeName != "" && !waitsForResize(pod) || pod.DeletionTimestamp != nil || !s.hasProfile(pod.Spec.SchedulerName) {
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		answers[podKey(pod)], err = answerCycle(ctx, s, pod)
		cancel()
		if err != nil {
			return nil, err
		}
	}
	return answers, nil
}

func (s *scenario) hasProfile(name string) bool {
	for i := range s.profiles {
		if s.profiles[i].SchedulerName == name {
			return true
		}
	}
	return false
}

func answerCycle(ctx context.Context, s *scenario, pod *v1.Pod) (*CycleAnswer, error) {
	g, err := newGroupScheduler(ctx, s)
	if err != nil {
		return nil, err
	}
	answer := &CycleAnswer{Rejectors: []string{}, Victims: []string{}}
	if answer.Held = !g.selectPod(klog.FromContext(ctx), pod); answer.Held {
		return answer, nil
	}
	g.ScheduleOne(ctx)
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.ended = true
	answer.Victims = append(answer.Victims, g.victims...)
	sort.Strings(answer.Victims)
	answer.Victims = slices.Compact(answer.Victims) // an extender may repeat a victim
	failure, ok := g.failures[podKey(pod)]
	if !ok && pod.Spec.NodeName == "" {
		if assumed, err := g.Cache.GetPod(pod); err == nil {
			answer.Node = assumed.Spec.NodeName
		}
		return answer, nil
	}
	message := failure.status.Message()
	answer.Message = &message
	if failure.nominating != nil && failure.nominating.Mode() == fwk.ModeOverride {
		node := failure.nominatedNode()
		answer.NominatedNode = &node
	}
	var fitError *framework.FitError
	if errors.As(failure.status.AsError(), &fitError) {
		answer.Rejectors = append(answer.Rejectors, sortedNames(fitError.Diagnosis.UnschedulablePlugins.UnsortedList())...)
	}
	return answer, nil
}
