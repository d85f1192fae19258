package main

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// extenderScript has the answers of one HTTP extender, by verb.
type extenderScript struct {
	Filter     filterScript     `json:"filter"`
	Prioritize prioritizeScript `json:"prioritize"`
	Preempt    preemptScript    `json:"preempt"`
}

// filterScript answers with the requested nodes that are not dropped, with more names, and with the other fields of
// Answer. A Code other than 0 is an HTTP status instead.
type filterScript struct {
	Code   int                             `json:"code"`
	Drop   []string                        `json:"drop"`
	More   []string                        `json:"more"`
	Answer extenderv1.ExtenderFilterResult `json:"answer"`
}

// prioritizeScript answers with the scores.
type prioritizeScript struct {
	Code   int                         `json:"code"`
	Scores extenderv1.HostPriorityList `json:"scores"`
}

// preemptScript answers with the offered nodes that are not dropped. The victims of a node are its first Keep ones, or its last ones with
// Reverse, then those of More.
type preemptScript struct {
	Code       int                 `json:"code"`
	Drop       []string            `json:"drop"`
	Reverse    bool                `json:"reverse"`
	Keep       map[string]int      `json:"keep"`
	More       map[string][]string `json:"more"`
	Violations map[string]int64    `json:"violations"`
}

var (
	startOnce sync.Once
	// scripts are those of the scenario that is evaluated, by the extender's URL.
	scripts map[string]extenderScript
)

// playScripts makes extenders with these URLs answer as the scripts say. Their requests go through a proxy on loopback,
// so that the URLs, which are in messages, are those of the configuration.
func playScripts(byURL map[string]extenderScript) {
	scripts = byURL
	startOnce.Do(func() {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			fail(err)
		}
		if err := os.Setenv("HTTP_PROXY", "http://"+listener.Addr().String()); err != nil {
			fail(err)
		}
		go func() { fail(http.Serve(listener, http.HandlerFunc(answerRequest))) }()
	})
}

func answerRequest(writer http.ResponseWriter, request *http.Request) {
	prefix, verb, _ := strings.Cut(request.URL.String(), "/verbs/")
	script := scripts[prefix+"/verbs"]
	var result any
	code := http.StatusNotFound
	switch verb {
	case "filter":
		var args extenderv1.ExtenderArgs
		decodeRequest(request, &args)
		code, result = script.Filter.Code, script.Filter.answer(&args)
	case "prioritize":
		code, result = script.Prioritize.Code, script.Prioritize.Scores
	case "preempt":
		var args extenderv1.ExtenderPreemptionArgs
		decodeRequest(request, &args)
		code, result = script.Preempt.Code, script.Preempt.answer(&args)
	}
	if code != 0 {
		writer.WriteHeader(code)
		return
	}
	print(result, writer)
}

func decodeRequest(request *http.Request, args any) {
	if err := json.NewDecoder(request.Body).Decode(args); err != nil {
		fail(err)
	}
}

func (s *filterScript) answer(args *extenderv1.ExtenderArgs) extenderv1.ExtenderFilterResult {
	result := s.Answer
	if args.NodeNames != nil {
		names := append([]string{}, s.More...)
		for _, name := range *args.NodeNames {
			if !slices.Contains(s.Drop, name) {
				names = append(names, name)
			}
		}
		result.NodeNames = &names
		return result
	}
	list := args.Nodes.DeepCopy()
	list.Items = list.Items[:0]
	for _, node := range args.Nodes.Items {
		if !slices.Contains(s.Drop, node.Name) {
			list.Items = append(list.Items, node)
		}
	}
	result.Nodes = list
	return result
}

func (s *preemptScript) answer(args *extenderv1.ExtenderPreemptionArgs) extenderv1.ExtenderPreemptionResult {
	offered := args.NodeNameToMetaVictims
	for node, victims := range args.NodeNameToVictims {
		if offered == nil {
			offered = map[string]*extenderv1.MetaVictims{}
		}
		offered[node] = &extenderv1.MetaVictims{NumPDBViolations: victims.NumPDBViolations}
		for _, pod := range victims.Pods {
			offered[node].Pods = append(offered[node].Pods, &extenderv1.MetaPod{UID: string(pod.UID)})
		}
	}
	accepted := map[string]*extenderv1.MetaVictims{}
	for node, victims := range offered {
		if slices.Contains(s.Drop, node) {
			continue
		}
		if s.Reverse {
			slices.Reverse(victims.Pods)
		}
		if count, ok := s.Keep[node]; ok {
			victims.Pods = victims.Pods[:min(count, len(victims.Pods))]
		}
		for _, uid := range s.More[node] {
			victims.Pods = append(victims.Pods, &extenderv1.MetaPod{UID: uid})
		}
		if count, ok := s.Violations[node]; ok {
			victims.NumPDBViolations = count
		}
		accepted[node] = victims
	}
	return extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: accepted}
}
