package main

import (
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	configscheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	configv1 "k8s.io/kubernetes/pkg/scheduler/apis/config/v1"
)

// scenario is a decoded cluster and the configuration that applies to it. Its first profile answers about single pods.
type scenario struct {
	objects   []runtime.Object
	nodes     []*v1.Node
	pods      []*v1.Pod
	profile   *config.KubeSchedulerProfile
	profiles  []config.KubeSchedulerProfile
	extenders []config.Extender
}

// setFeatureGates sets the feature gates of a scenario; the returned function undoes that.
func setFeatureGates(document []byte) (restore func(), err error) {
	var header struct {
		FeatureGates map[string]bool `json:"featureGates"`
	}
	if err := json.Unmarshal(document, &header); err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	gates := utilfeature.DefaultMutableFeatureGate
	before := map[string]bool{}
	known := gates.GetAll()
	for name := range header.FeatureGates {
		if _, ok := known[featuregate.Feature(name)]; !ok {
			return nil, fmt.Errorf("featureGates: unknown gate %s", name)
		}
		before[name] = gates.Enabled(featuregate.Feature(name))
	}
	restore = func() {
		if err := gates.SetFromMap(before); err != nil {
			fail(err)
		}
	}
	if err := gates.SetFromMap(header.FeatureGates); err != nil {
		restore()
		return nil, fmt.Errorf("featureGates: %w", err)
	}
	return restore, nil
}

func decodeScenario(document []byte) (*scenario, error) {
	var list struct {
		Items  []json.RawMessage `json:"items"`
		Config json.RawMessage   `json:"config"`
	}
	if err := json.Unmarshal(document, &list); err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	decoder := legacyscheme.Codecs.UniversalDeserializer()
	result := &scenario{}
	for i, item := range list.Items {
		object, _, err := decoder.Decode(item, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		// A recorded object has the API server's defaults; a shrunk one may lack some.
		legacyscheme.Scheme.Default(object)
		switch object := object.(type) {
		case *v1.Node:
			result.nodes = append(result.nodes, object)
		case *v1.Pod:
			// The scheduler's informer leaves out finished pods.
			if object.Status.Phase == v1.PodSucceeded || object.Status.Phase == v1.PodFailed {
				continue
			}
			result.pods = append(result.pods, object)
		}
		result.objects = append(result.objects, object)
	}
	configuration, err := decodeConfiguration(list.Config)
	if err != nil {
		return nil, err
	}
	result.profiles, result.extenders = configuration.Profiles, configuration.Extenders
	result.profile = &result.profiles[0]
	return result, nil
}

// decodeConfiguration returns a configuration, or the default one.
func decodeConfiguration(document []byte) (*config.KubeSchedulerConfiguration, error) {
	if len(document) == 0 || string(document) == "null" {
		document = []byte(`{"apiVersion": "` + configv1.SchemeGroupVersion.String() + `", "kind": "KubeSchedulerConfiguration"}`)
	}
	object, _, err := configscheme.Codecs.UniversalDecoder().Decode(document, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	configuration, ok := object.(*config.KubeSchedulerConfiguration)
	if !ok || len(configuration.Profiles) == 0 {
		return nil, fmt.Errorf("config: want a KubeSchedulerConfiguration with a profile, got %T", object)
	}
	for _, profile := range configuration.Profiles {
		for _, plugin := range profile.PluginConfig {
			if args, ok := plugin.Args.(*config.DefaultPreemptionArgs); ok {
				// Every node is a candidate.
				args.MinCandidateNodesPercentage = 100
			}
		}
	}
	return configuration, nil
}
