package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

// SelectorQuestion asks which devices meet each of some selectors, which are CEL expressions.
type SelectorQuestion struct {
	Selectors []string         `json:"selectors"`
	Devices   []SelectorDevice `json:"devices"`
}

// SelectorDevice is a device as its driver publishes it.
type SelectorDevice struct {
	Driver string            `json:"driver"`
	Device resourcev1.Device `json:"device"`
}

// SelectorAnswers has one entry per selector, in the order of the question.
type SelectorAnswers struct {
	Error     string           `json:"error,omitempty"`
	Selectors []SelectorAnswer `json:"selectors"`
}

// SelectorAnswer says what Kubernetes' own evaluation makes of one selector.
type SelectorAnswer struct {
	// Refused is why the API server would not store it: it does not compile, or may cost too much.
	Refused string `json:"refused,omitempty"`
	// Devices has one entry per device, in the order of the question.
	Devices []DeviceAnswer `json:"devices,omitempty"`
}

// DeviceAnswer says whether a device meets a selector, or why that cannot be said.
type DeviceAnswer struct {
	Meets bool   `json:"meets"`
	Error string `json:"error,omitempty"`
}

func answerSelectors(line []byte) (*SelectorAnswers, error) {
	question := &SelectorQuestion{}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(question); err != nil {
		return nil, fmt.Errorf("not a question about selectors: %w", err)
	}
	answers := &SelectorAnswers{Selectors: []SelectorAnswer{}}
	for _, selector := range question.Selectors {
		answers.Selectors = append(answers.Selectors, answerSelector(selector, question.Devices))
	}
	return answers, nil
}

func answerSelector(selector string, devices []SelectorDevice) SelectorAnswer {
	compiled := cel.GetCompiler(selectorFeatures).CompileCELExpression(selector, cel.Options{})
	if compiled.Error != nil {
		return SelectorAnswer{Refused: compiled.Error.Detail}
	}
	if compiled.MaxCost > resourcev1.CELSelectorExpressionMaxCost {
		return SelectorAnswer{Refused: fmt.Sprintf("it may cost %d", compiled.MaxCost)}
	}
	answer := SelectorAnswer{}
	for _, of := range devices {
		meets, _, err := compiled.DeviceMatches(context.Background(), cel.Device{
			Driver:                   of.Driver,
			AllowMultipleAllocations: of.Device.AllowMultipleAllocations,
			Attributes:               of.Device.Attributes,
			Capacity:                 of.Device.Capacity,
		})
		device := DeviceAnswer{Meets: meets}
		if err != nil {
			device.Error = err.Error()
		}
		answer.Devices = append(answer.Devices, device)
	}
	return answer
}
