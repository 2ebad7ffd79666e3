// Command oracle asks kube-scheduler's own filter plugins.
//
// It reads worlds, one JSON object per line, and answers each with one line: for every pending pod
// and every node, which of kube-scheduler's default filter plugins reject the pair and why. It links
// the scheduler of the Kubernetes version its go.mod names, with that version's default feature
// gates, and is the judge in dovetail's differential tests. Nothing here decides by itself. With
// -selectors it reads device selectors instead, and answers by that release's evaluation of CEL.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"

	// Registers Kubernetes' feature gates with their defaults.
	_ "k8s.io/kubernetes/pkg/features"
)

// maxWorldBytes bounds one line of input.
const maxWorldBytes = 64 << 20

func main() {
	about := flag.Bool("about", false, "print the version, the plugins in their order and the feature gates, then exit")
	selectors := flag.Bool("selectors", false, "read questions about device selectors, not worlds")
	flag.Parse()
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	var err error
	switch {
	case *about:
		err = describe(os.Stdout)
	case *selectors:
		err = answerAll(os.Stdin, os.Stdout, answerSelectors, func(problem string) *SelectorAnswers {
			return &SelectorAnswers{Error: problem, Selectors: []SelectorAnswer{}}
		})
	default:
		err = answerAll(os.Stdin, os.Stdout, answerLine, func(problem string) *Answer {
			return &Answer{Error: problem, Pods: []PodAnswer{}}
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

// answerAll answers each line of input with a line of output. A question that cannot be answered gets
// an answer with `error` set; only broken input or output ends the run.
func answerAll[T any](input io.Reader, output io.Writer, answerLine func([]byte) (T, error), failed func(string) T) error {
	lines := bufio.NewScanner(input)
	lines.Buffer(make([]byte, 1<<20), maxWorldBytes)
	writer := bufio.NewWriterSize(output, 1<<20)
	encoder := json.NewEncoder(writer)
	for number := 1; lines.Scan(); number++ {
		answer, err := answerLine(lines.Bytes())
		if err != nil {
			answer = failed(fmt.Sprintf("line %d: %v", number, err))
		}
		if err := encoder.Encode(answer); err != nil {
			return fmt.Errorf("writing the answer to line %d: %w", number, err)
		}
		// A caller may wait for this answer before it sends the next world.
		if err := writer.Flush(); err != nil {
			return fmt.Errorf("writing the answer to line %d: %w", number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading questions: %w", err)
	}
	return nil
}

func answerLine(line []byte) (*Answer, error) {
	world, err := parseWorld(line)
	if err != nil {
		return nil, err
	}
	return judgeWorld(world)
}

// describe prints what this oracle is made of.
func describe(output io.Writer) error {
	court, err := openCourt(&World{})
	if err != nil {
		return err
	}
	defer court.close()
	gates := map[string]bool{}
	for gate := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		gates[string(gate)] = utilfeature.DefaultFeatureGate.Enabled(gate)
	}
	names := make([]string, 0, len(court.plugins))
	for _, plugin := range court.plugins {
		names = append(names, plugin.name)
	}
	return json.NewEncoder(output).Encode(map[string]any{
		"version": version.Get().GitVersion,
		"plugins": names,
		"gates":   gates,
	})
}
