// Oracle answers, with kube-scheduler's own framework and plugins, what kube-scheduler decides about the pending pods
// of a scenario. With the path of a scenario as its argument it prints one answer. Without, it reads one scenario per
// line from standard input and prints one answer per line, in the same order.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

func main() {
	gates := flag.String("feature-gates", "", "feature gates that differ from their defaults, such as A=true,B=false")
	flag.Parse()
	// Errors of plugins are part of the answer; their log lines are not.
	klog.SetOutput(io.Discard)
	logging := flag.NewFlagSet("", flag.PanicOnError)
	klog.InitFlags(logging)
	_ = logging.Parse([]string{"-logtostderr=false", "-stderrthreshold=FATAL"})
	utilruntime.ErrorHandlers = nil
	// A plugin that panics in a goroutine of the framework ends kube-scheduler; here it ends only one scenario.
	utilruntime.ReallyCrash = false
	utilruntime.PanicHandlers = []func(context.Context, any){func(_ context.Context, value any) { panicked.Store(fmt.Sprint(value)) }}
	if err := utilfeature.DefaultMutableFeatureGate.Set(*gates); err != nil {
		fail(err)
	}
	// Metrics of pod groups are only registered with their feature gate.
	restore, err := setFeatureGates([]byte(`{"featureGates": {"GenericWorkload": true}}`))
	if err != nil {
		fail(err)
	}
	metrics.Register()
	restore()
	if flag.NArg() > 0 {
		document, err := os.ReadFile(flag.Arg(0))
		if err != nil {
			fail(err)
		}
		answer, err := answerOrPanic(document)
		if err != nil {
			fail(err)
		}
		print(answer, os.Stdout)
		return
	}
	answerLines(os.Stdin, os.Stdout)
}

// answerLines answers one scenario per line until the input ends. A scenario that cannot be evaluated gets an "error".
func answerLines(input io.Reader, output io.Writer) {
	lines := bufio.NewReaderSize(input, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 1 {
			answer, failure := answerOrPanic(line)
			if failure != nil {
				print(map[string]string{"error": failure.Error()}, output)
			} else {
				print(answer, output)
			}
		}
		if err != nil {
			return
		}
	}
}

// panicked has the text of the last panic in a goroutine of the framework.
var panicked atomic.Value

// answerOrPanic answers a scenario; it returns an error if a plugin panics.
func answerOrPanic(document []byte) (answer *Answer, err error) {
	panicked.Store("")
	defer func() {
		value := any(panicked.Load())
		if recovered := recover(); recovered != nil {
			value = recovered
		}
		if value != "" {
			answer, err = nil, fmt.Errorf("kube-scheduler panics: %v", value)
		}
	}()
	return answerScenario(document)
}

func print(value any, output io.Writer) {
	text, err := json.Marshal(value)
	if err != nil {
		fail(err)
	}
	if _, err := output.Write(append(text, '\n')); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "oracle:", err)
	os.Exit(1)
}
