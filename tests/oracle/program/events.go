package main

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// changedObject is a change of an object in `events` of a scenario. Target marks an update of a pending pod.
type changedObject struct {
	Resource string          `json:"resource"`
	Action   string          `json:"action"`
	Old      json.RawMessage `json:"old"`
	New      json.RawMessage `json:"new"`
	Target   bool            `json:"target"`
}

var actionTypes = map[string]fwk.ActionType{"Add": fwk.Add, "Delete": fwk.Delete, "Update": fwk.Update}

// answerEvents returns for each change its cluster events, and what the queueing hints say about each pending pod.
func answerEvents(s *scenario, document []byte) ([]EventAnswer, error) {
	var list struct {
		Events []changedObject `json:"events"`
	}
	if err := json.Unmarshal(document, &list); err != nil || len(list.Events) == 0 {
		return nil, err
	}
	c, err := newCluster(s)
	if err != nil {
		return nil, err
	}
	defer c.stop()
	registered, err := c.registeredEvents()
	if err != nil {
		return nil, err
	}
	var answers []EventAnswer
	for i, change := range list.Events {
		oldObject, err := decodeObject(change.Old)
		if err != nil {
			return nil, fmt.Errorf("events[%d]: %w", i, err)
		}
		newObject, err := decodeObject(change.New)
		if err != nil {
			return nil, fmt.Errorf("events[%d]: %w", i, err)
		}
		answer := EventAnswer{Labels: []string{}, Hints: map[string]map[string]map[string]string{}}
		for _, event := range clusterEvents(change, oldObject, newObject) {
			answer.Labels = append(answer.Labels, event.Label())
			for _, pod := range s.pods {
				if !isPending(pod, s) {
					continue
				}
				if change.Target {
					if newObject.(*v1.Pod).UID != pod.UID {
						continue
					}
					pod = newObject.(*v1.Pod)
				}
				for plugin, events := range registered {
					for _, r := range events {
						if framework.MatchClusterEvents(r.Event, event) {
							answer.add(event.Label(), plugin, podKey(pod), askHint(r.QueueingHintFn, pod, oldObject, newObject))
						}
					}
				}
			}
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

// registeredEvents returns the events of each plugin that may reject pods, with their hints. Those of others are never
// asked.
func (c *cluster) registeredEvents() (map[string][]fwk.ClusterEventWithHint, error) {
	enabled := map[string]bool{}
	points := c.framework.ListPlugins()
	for _, point := range []config.PluginSet{points.PreEnqueue, points.PreFilter, points.Filter, points.PostFilter, points.Reserve, points.Permit} {
		for _, plugin := range point.Enabled {
			enabled[plugin.Name] = true
		}
	}
	registered := map[string][]fwk.ClusterEventWithHint{}
	for name, plugin := range c.plugins {
		if extensions, ok := plugin.(fwk.EnqueueExtensions); ok && enabled[name] {
			events, err := extensions.EventsToRegister(context.Background())
			if err != nil {
				return nil, err
			}
			registered[name] = unrollPodEvents(events)
		}
	}
	return registered, nil
}

// decodeObject decodes one side of a change; it returns nil if there is none.
func decodeObject(raw json.RawMessage) (any, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	object, _, err := legacyscheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
	if err != nil {
		return nil, err
	}
	legacyscheme.Scheme.Default(object.(runtime.Object))
	return object, nil
}

// clusterEvents returns the events of a change as the event handlers of kube-scheduler make them.
func clusterEvents(change changedObject, oldObject, newObject any) []fwk.ClusterEvent {
	if change.Action == "Update" {
		switch newTyped := newObject.(type) {
		case *v1.Node:
			return framework.NodeSchedulingPropertiesChange(newTyped, oldObject.(*v1.Node))
		case *v1.Pod:
			return podEvents(newTyped, oldObject.(*v1.Pod), change.Target)
		}
	}
	return []fwk.ClusterEvent{{Resource: fwk.EventResource(change.Resource), ActionType: actionTypes[change.Action]}}
}

// askHint returns Queue or QueueSkip; Error if the hint fails.
func askHint(hint fwk.QueueingHintFn, pod *v1.Pod, oldObject, newObject any) string {
	if hint == nil {
		return fwk.Queue.String()
	}
	result, err := hint(klog.Background(), pod, oldObject, newObject)
	if err != nil {
		return "Error"
	}
	return result.String()
}

func (a *EventAnswer) add(label, plugin, pod, hint string) {
	if a.Hints[label] == nil {
		a.Hints[label] = map[string]map[string]string{}
	}
	if a.Hints[label][plugin] == nil {
		a.Hints[label][plugin] = map[string]string{}
	}
	a.Hints[label][plugin][pod] += hint + ";"
}
