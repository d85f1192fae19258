package main

import (
	"sort"

	fwk "k8s.io/kube-scheduler/framework"
)

// Status is the status of a plugin, and the plugin.
type Status struct {
	Code    string   `json:"code"`
	Plugin  string   `json:"plugin"`
	Reasons []string `json:"reasons"`
}

// Rejection is the status with which one filter plugin rejects a node.
type Rejection struct {
	Code    string   `json:"code"`
	Reasons []string `json:"reasons"`
}

// PreEnqueue is the plugin that keeps a pod out of the queue.
type PreEnqueue struct {
	Plugin  string   `json:"plugin"`
	Reasons []string `json:"reasons"`
}

// PreFilter is the outcome of all PreFilter plugins; Nodes is null if all nodes are left.
type PreFilter struct {
	Status *Status  `json:"status"`
	Nodes  []string `json:"nodes"`
}

// NodeFilters has the rejections of one node by plugin.
type NodeFilters struct {
	Filters      map[string]Rejection `json:"filters"`
	FirstFailure *Status              `json:"firstFailure"`
}

// PluginScore is the score of one plugin for one node.
type PluginScore struct {
	Raw        int64 `json:"raw"`
	Normalized int64 `json:"normalized"`
	Weighted   int64 `json:"weighted"`
}

// NodeScore has the scores of one node by plugin.
type NodeScore struct {
	Total   int64                  `json:"total"`
	Plugins map[string]PluginScore `json:"plugins"`
}

// Candidate is a node on which evicting pods would help.
type Candidate struct {
	Victims          []string `json:"victims"`
	NumPDBViolations int64    `json:"numPDBViolations"`
}

// Preemption is the outcome of default preemption.
type Preemption struct {
	Code          string               `json:"code"`
	Reasons       []string             `json:"reasons"`
	NominatedNode string               `json:"nominatedNode"`
	Victims       []string             `json:"victims"`
	Ties          []string             `json:"ties"`
	Candidates    map[string]Candidate `json:"candidates"`
}

// PodAnswer is what kube-scheduler says about one pod.
type PodAnswer struct {
	PreEnqueue    *PreEnqueue            `json:"preEnqueue"`
	PreFilter     *PreFilter             `json:"preFilter"`
	Nodes         map[string]NodeFilters `json:"nodes"`
	Feasible      []string               `json:"feasible"`
	Scores        map[string]NodeScore   `json:"scores"`
	Best          []string               `json:"best"`
	FilterMessage *string                `json:"filterMessage"`
	Message       *string                `json:"message"`
	Preemption    *Preemption            `json:"preemption"`
}

// MemberAnswer is what kube-scheduler says about one pending pod of a pod group: the node of a pod that is bound, or that
// waits for preemption; else the message of its event.
type MemberAnswer struct {
	PreEnqueue *PreEnqueue `json:"preEnqueue"`
	Node       string      `json:"node"`
	Message    *string     `json:"message"`
}

// GroupAnswer is the outcome of the scheduling cycle of a pod group, or of a composite pod group with its tree. Message is
// that of the condition that the cycle writes; it is null if no member is scheduled, or the group has no object. Conditions
// has the messages of the pod groups of a tree, by namespace and name. Victims are the pods that the cycle deletes.
type GroupAnswer struct {
	Scheduled          bool                     `json:"scheduled"`
	WaitsForPreemption bool                     `json:"waitsForPreemption"`
	Message            *string                  `json:"message"`
	Victims            []string                 `json:"victims"`
	Members            map[string]*MemberAnswer `json:"members"`
	Conditions         map[string]string        `json:"conditions,omitempty"`
}

// EventAnswer has the labels of the cluster events of a change, and the queueing hints by label, plugin and pod.
type EventAnswer struct {
	Labels []string                                `json:"labels"`
	Hints  map[string]map[string]map[string]string `json:"hints"`
}

// CycleAnswer is the outcome of the scheduling cycle of one pod: its node, or the message of its failure, the plugins that
// reject it, and the node for which it is nominated: null if its nomination stays. Victims are the pods that the cycle
// deletes. A held pod is not in the queue.
type CycleAnswer struct {
	Held          bool     `json:"held"`
	Node          string   `json:"node"`
	Message       *string  `json:"message"`
	Rejectors     []string `json:"rejectors"`
	NominatedNode *string  `json:"nominatedNode"`
	Victims       []string `json:"victims"`
}

// Answer has the answers of all pending pods by namespace and name. With the feature gate GenericWorkload, those of
// groups are in PodGroups. Events has an answer for each change in `events` of the scenario, and Bindings has what PreBind
// writes for a pod on a node. A scenario with `cycles` has only Cycles.
type Answer struct {
	Pods      map[string]*PodAnswer                `json:"pods"`
	PodGroups map[string]*GroupAnswer              `json:"podGroups,omitempty"`
	Events    []EventAnswer                        `json:"events,omitempty"`
	Bindings  map[string]map[string]*BindingAnswer `json:"bindings,omitempty"`
	Cycles    map[string]*CycleAnswer              `json:"cycles,omitempty"`
}

func newPodAnswer() *PodAnswer {
	return &PodAnswer{
		Nodes:    map[string]NodeFilters{},
		Feasible: []string{},
		Scores:   map[string]NodeScore{},
		Best:     []string{},
	}
}

func newStatus(status *fwk.Status) *Status {
	return &Status{status.Code().String(), status.Plugin(), sortedReasons(status)}
}

func sortedReasons(status *fwk.Status) []string {
	reasons := append([]string{}, status.Reasons()...)
	sort.Strings(reasons)
	return reasons
}
