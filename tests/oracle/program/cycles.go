package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// answerCycles runs the scheduling cycle of every pending pod of all profiles alone, with the extenders, if a scenario has
// `cycles`. That has a script for each extender of the configuration, in their order. With `sequence`, which has the names of
// pending pods, the cycles of these run one after another in one scheduler.
func answerCycles(s *scenario, document []byte) (map[string]*CycleAnswer, error) {
	var list struct {
		Cycles *struct {
			Extenders []extenderScript `json:"extenders"`
			Sequence  []string         `json:"sequence"`
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
	if len(list.Cycles.Sequence) > 0 {
		return answerSequence(s, list.Cycles.Sequence)
	}
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
	answer := g.answerCycle(ctx, pod)
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.ended = true
	return answer, nil
}

// answerSequence runs the cycles of pods in one scheduler. Scheduled pods stay assumed, failed pods go back to the queue, and
// victims are gone before the next cycle.
func answerSequence(s *scenario, keys []string) (map[string]*CycleAnswer, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	g, err := newGroupScheduler(ctx, s)
	if err != nil {
		return nil, err
	}
	handleFailure := g.handleFailure
	g.FailureHandler = func(ctx context.Context, f framework.Framework, info *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		g.recordFailure(ctx, f, info, status, nominating, start)
		handleFailure(ctx, f, info, status, nominating, start)
	}
	answers := map[string]*CycleAnswer{}
	for _, key := range keys {
		for _, pod := range s.pods {
			if podKey(pod) != key || pod.DeletionTimestamp != nil || !s.hasProfile(pod.Spec.SchedulerName) {
				continue
			}
			answers[key] = g.answerCycle(ctx, pod)
			if err := g.removeVictims(klog.FromContext(ctx), s); err != nil {
				return nil, err
			}
		}
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.ended = true
	return answers, nil
}

// removeVictims removes the deleted pods from the cache and from the informer.
func (g *groupScheduler) removeVictims(logger klog.Logger, s *scenario) error {
	g.mutex.Lock()
	victims := g.victims
	g.victims = nil
	g.mutex.Unlock()
	store := g.factory.Core().V1().Pods().Informer().GetStore()
	for _, pod := range s.pods {
		if pod.Spec.NodeName == "" || !slices.Contains(victims, podKey(pod)) {
			continue
		}
		if err := g.Cache.RemovePod(logger, pod); err != nil {
			return err
		}
		if err := store.Delete(pod); err != nil {
			return err
		}
	}
	return nil
}

func (g *groupScheduler) answerCycle(ctx context.Context, pod *v1.Pod) *CycleAnswer {
	answer := &CycleAnswer{Rejectors: []string{}, Victims: []string{}}
	if answer.Held = !g.selectPod(klog.FromContext(ctx), pod); answer.Held {
		return answer
	}
	g.ScheduleOne(ctx)
	g.mutex.Lock()
	defer g.mutex.Unlock()
	answer.Victims = append(answer.Victims, g.victims...)
	sort.Strings(answer.Victims)
	answer.Victims = slices.Compact(answer.Victims) // an extender may repeat a victim
	failure, ok := g.failures[podKey(pod)]
	if !ok && pod.Spec.NodeName == "" {
		if assumed, err := g.Cache.GetPod(pod); err == nil {
			answer.Node = assumed.Spec.NodeName
		}
		return answer
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
	return answer
}
