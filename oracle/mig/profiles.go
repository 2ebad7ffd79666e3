package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/NVIDIA/go-nvlib/pkg/nvlib/device"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/gpus"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
)

// played are the GPUs that go-nvml plays as drivers report them. Its Hopper and Blackwell GPUs are
// not: there an instance of `3g` takes three memory slices instead of four, among others.
var played = map[string]gpus.Config{
	"A100-40GB": gpus.A100_SXM4_40GB,
	"A100-80GB": gpus.A100_SXM4_80GB,
	"A30":       gpus.A30_PCIE_24GB,
}

// Question asks for the profiles of a GPU, and what names mean there.
type Question struct {
	GPU   string   `json:"gpu"`
	Names []string `json:"names"`
}

// Answer has the profiles of instances in the order of NVML's numbers, and one name per name asked
// for.
type Answer struct {
	Error    string    `json:"error,omitempty"`
	Profiles []Profile `json:"profiles"`
	Names    []Name    `json:"names"`
}

// Profile is one kind of GPU instance. Instances start at memory slices.
type Profile struct {
	Name          string   `json:"name"`
	ComputeSlices uint32   `json:"computeSlices"`
	MemorySlices  uint32   `json:"memorySlices"`
	MostInstances uint32   `json:"mostInstances"`
	Starts        []uint32 `json:"starts"`
}

// Name says what a name means.
type Name struct {
	// Profile is the profile of the GPU that it is a name of; empty: of none.
	Profile string `json:"profile"`
	// IsWellFormed says whether it could be the name of a profile of some GPU.
	IsWellFormed bool `json:"isWellFormed"`
}

func answerLine(line []byte) (*Answer, error) {
	question := &Question{}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(question); err != nil {
		return nil, fmt.Errorf("not a question about profiles: %w", err)
	}
	config, isPlayed := played[question.GPU]
	if !isPlayed {
		return nil, fmt.Errorf("no GPU %q is played here", question.GPU)
	}
	host, err := server.New(server.WithGPUs(config))
	if err != nil {
		return nil, fmt.Errorf("playing a GPU %s: %w", question.GPU, err)
	}
	library := device.New(host)
	profiles, err := profilesOf(library, host.Devices[0])
	if err != nil {
		return nil, err
	}
	answer := &Answer{Profiles: profiles, Names: []Name{}}
	for _, name := range question.Names {
		answer.Names = append(answer.Names, read(library, name))
	}
	return answer, nil
}

// profilesOf names each kind of GPU instance as go-nvlib does.
func profilesOf(library device.Interface, gpu nvml.Device) ([]Profile, error) {
	named, err := library.GetMigProfiles()
	if err != nil {
		return nil, err
	}
	profiles := []Profile{}
	seen := map[int]bool{}
	for _, profile := range named {
		info := profile.GetInfo()
		// The others divide an instance further: its compute instances. An instance that has one
		// of all its compute slices is named once for each engine of it.
		if info.C != info.G || seen[info.GIProfileID] {
			continue
		}
		seen[info.GIProfileID] = true
		instance, result := gpu.GetGpuInstanceProfileInfo(info.GIProfileID)
		if result != nvml.SUCCESS {
			return nil, fmt.Errorf("profile %s: %v", profile, result)
		}
		placements, result := gpu.GetGpuInstancePossiblePlacements(&instance)
		if result != nvml.SUCCESS {
			return nil, fmt.Errorf("starts of profile %s: %v", profile, result)
		}
		one := Profile{
			Name:          profile.String(),
			ComputeSlices: instance.SliceCount,
			MostInstances: instance.InstanceCount,
			Starts:        []uint32{},
		}
		for _, placement := range placements {
			one.Starts = append(one.Starts, placement.Start)
			one.MemorySlices = placement.Size
		}
		profiles = append(profiles, one)
	}
	return profiles, nil
}

func read(library device.Interface, name string) Name {
	read := Name{IsWellFormed: library.AssertValidMigProfileFormat(name) == nil}
	if profile, err := library.ParseMigProfile(name); err == nil {
		read.Profile = profile.String()
	}
	return read
}
