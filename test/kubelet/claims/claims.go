// Package claims makes volumes for claims, resizes them, and removes them: directories of nodes, for two storage classes.
//
//	local     a volume is on the disk of the node on which its first pod was placed, and pods go where it is
//	network   a volume can be used from every node
//
// Both wait for the first pod (WaitForFirstConsumer), and are of a CSI driver's source, so that Kubernetes treats them as
// those of a real driver. No driver runs: the node binds the directory. Sizes are not enforced.
package claims

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Driver is the name of the driver, and of the provisioner of both classes.
const Driver = "volumes.quorate.test"

// Local and Network are the storage classes. Local is the default.
const (
	Local   = "local"
	Network = "network"
)

const (
	hostLabel    = "kubernetes.io/hostname"
	selectedNode = "volume.kubernetes.io/selected-node"
	lookEvery    = 250 * time.Millisecond
)

// Root says where the volumes of a node are; the node is empty for volumes of the network.
type Root func(node string) string

// Directory is that of a volume.
func Directory(root Root, volume *corev1.PersistentVolume) string {
	return filepath.Join(root(volume.Spec.CSI.VolumeAttributes["node"]), "volumes", volume.Name)
}

// Install makes the storage classes and the driver's object.
func Install(ctx context.Context, client kubernetes.Interface) error {
	wait, expand, remove, no := storagev1.VolumeBindingWaitForFirstConsumer, true, corev1.PersistentVolumeReclaimDelete, false
	for _, name := range []string{Local, Network} {
		class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: Driver,
			ReclaimPolicy:        &remove,
			AllowVolumeExpansion: &expand, VolumeBindingMode: &wait}
		if name == Local {
			class.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
		}
		if _, err := client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: Driver},
		Spec: storagev1.CSIDriverSpec{AttachRequired: &no}}
	_, err := client.StorageV1().CSIDrivers().Create(ctx, driver, metav1.CreateOptions{})
	return err
}

// Run provisions, resizes and removes until ctx ends. A failure is told to say, and the next round tries again.
func Run(ctx context.Context, client kubernetes.Interface, root Root, say func(format string, arguments ...any)) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		if err := round(ctx, client, root); err != nil && ctx.Err() == nil {
			say("claims: %v", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func round(ctx context.Context, client kubernetes.Interface, root Root) error {
	claims, err := client.CoreV1().PersistentVolumeClaims("").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	volumes, err := client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	byName := map[string]*corev1.PersistentVolume{}
	for i := range volumes.Items {
		v := &volumes.Items[i]
		byName[v.Name] = v
		if v.Spec.CSI != nil && v.Spec.CSI.Driver == Driver && v.Status.Phase == corev1.VolumeReleased &&
			v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
			if err := remove(ctx, client, root, v); err != nil {
				return err
			}
		}
	}
	for i := range claims.Items {
		c := &claims.Items[i]
		volume := byName["pvc-"+string(c.UID)]
		switch {
		case !ours(c):
		case volume == nil && c.Status.Phase == corev1.ClaimPending && c.DeletionTimestamp == nil &&
			c.Annotations[selectedNode] != "":
			err = provision(ctx, client, c)
		case volume != nil && c.Status.Phase == corev1.ClaimBound:
			err = grow(ctx, client, c, volume)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func ours(c *corev1.PersistentVolumeClaim) bool {
	return c.Annotations["volume.kubernetes.io/storage-provisioner"] == Driver
}

func provision(ctx context.Context, client kubernetes.Interface, c *corev1.PersistentVolumeClaim) error {
	node := c.Annotations[selectedNode]
	class, size := *c.Spec.StorageClassName, c.Spec.Resources.Requests[corev1.ResourceStorage]
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(c.UID),
			Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": Driver}},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: c.Spec.AccessModes, StorageClassName: class, VolumeMode: c.Spec.VolumeMode,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: size},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			ClaimRef: &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: c.Namespace,
				Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: Driver,
				VolumeHandle: string(c.UID), VolumeAttributes: map[string]string{}}},
		},
	}
	if class == Local {
		volume.Spec.CSI.VolumeAttributes["node"] = node
		there := corev1.NodeSelectorRequirement{Key: hostLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}
		terms := []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{there}}}
		volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
	}
	_, err := client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
	if errors.IsAlreadyExists(err) {
		return nil // the cache had not seen it yet
	}
	return err
}

// remove deletes a volume whose claim is gone, and its files. Files of a node that is off go with it.
func remove(ctx context.Context, client kubernetes.Interface, root Root, volume *corev1.PersistentVolume) error {
	if err := os.RemoveAll(Directory(root, volume)); err != nil {
		return err
	}
	err := client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{})
	if errors.IsNotFound(err) {
		return nil
	}
	return err
}

// grow does what a resizer does first: the volume gets its new size, and the claim waits for the node, which has to grow
// the file system while a pod runs.
func grow(ctx context.Context, client kubernetes.Interface, c *corev1.PersistentVolumeClaim,
	volume *corev1.PersistentVolume) error {
	want, has := c.Spec.Resources.Requests[corev1.ResourceStorage], volume.Spec.Capacity[corev1.ResourceStorage]
	if want.Cmp(has) <= 0 {
		return nil
	}
	volume = volume.DeepCopy()
	volume.Spec.Capacity[corev1.ResourceStorage] = want
	if _, err := client.CoreV1().PersistentVolumes().Update(ctx, volume, metav1.UpdateOptions{}); err != nil {
		return ignoreConflict(err)
	}
	c = c.DeepCopy()
	pending := corev1.PersistentVolumeClaimCondition{Type: corev1.PersistentVolumeClaimFileSystemResizePending,
		Status:             corev1.ConditionTrue,
		LastTransitionTime: metav1.Now(),
		Message:            "Waiting for user to (re-)start a pod to finish file system resize of volume on node."}
	c.Status.Conditions = append(c.Status.Conditions, pending)
	_, err := client.CoreV1().PersistentVolumeClaims(c.Namespace).UpdateStatus(ctx, c, metav1.UpdateOptions{})
	return ignoreConflict(err)
}

// Grown does what a node does at last: the claim has its new size.
func Grown(ctx context.Context, client kubernetes.Interface, c *corev1.PersistentVolumeClaim,
	volume *corev1.PersistentVolume) error {
	size := volume.Spec.Capacity[corev1.ResourceStorage]
	if has := c.Status.Capacity[corev1.ResourceStorage]; has.Cmp(size) >= 0 {
		return nil
	}
	c = c.DeepCopy()
	c.Status.Capacity[corev1.ResourceStorage] = size
	c.Status.Conditions = nil
	_, err := client.CoreV1().PersistentVolumeClaims(c.Namespace).UpdateStatus(ctx, c, metav1.UpdateOptions{})
	return ignoreConflict(err)
}

func ignoreConflict(err error) error {
	if errors.IsConflict(err) {
		return nil // somebody was faster: the next round sees what is left
	}
	if err != nil {
		return fmt.Errorf("a claim cannot be resized: %w", err)
	}
	return nil
}
