package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// World is a cluster at one moment: API objects as the server stores them, defaults filled in.
type World struct {
	Nodes []*v1.Node `json:"nodes"`
	// Pods are what exists: assigned pods carry spec.nodeName.
	Pods []*v1.Pod `json:"pods"`
	// Pending are the pods in question. Each is judged alone, against Pods only.
	Pending                []*v1.Pod                       `json:"pending"`
	PersistentVolumes      []*v1.PersistentVolume          `json:"persistentVolumes"`
	PersistentVolumeClaims []*v1.PersistentVolumeClaim     `json:"persistentVolumeClaims"`
	StorageClasses         []*storagev1.StorageClass       `json:"storageClasses"`
	CSINodes               []*storagev1.CSINode            `json:"csiNodes"`
	CSIDrivers             []*storagev1.CSIDriver          `json:"csiDrivers"`
	CSIStorageCapacities   []*storagev1.CSIStorageCapacity `json:"csiStorageCapacities"`
	VolumeAttachments      []*storagev1.VolumeAttachment   `json:"volumeAttachments"`
	Namespaces             []*v1.Namespace                 `json:"namespaces"`
	DeviceClasses          []*resourcev1.DeviceClass       `json:"deviceClasses"`
	ResourceSlices         []*resourcev1.ResourceSlice     `json:"resourceSlices"`
	ResourceClaims         []*resourcev1.ResourceClaim     `json:"resourceClaims"`
	DeviceTaintRules       []*deviceTaintRule              `json:"deviceTaintRules"`
}

// parseWorld refuses fields that the newest API does not know: a world with a misspelt field would
// test nothing. Older releases drop what they do not know, as their servers do.
func parseWorld(line []byte) (*World, error) {
	world := &World{}
	decoder := json.NewDecoder(bytes.NewReader(line))
	if knowsEveryField {
		decoder.DisallowUnknownFields()
	}
	if err := decoder.Decode(world); err != nil {
		return nil, fmt.Errorf("not a world of API objects: %w", err)
	}
	return world, nil
}
