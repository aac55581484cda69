package node

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

const (
	heartbeat      = time.Second
	leaseNamespace = "kube-node-lease"
	leaseSeconds   = 8
)

// capacity is what a node says it has; nothing enforces it.
func capacity() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("16"),
		corev1.ResourceMemory: resource.MustParse("32Gi"),
		corev1.ResourcePods:   resource.MustParse("200"), corev1.ResourceEphemeralStorage: resource.MustParse("100Gi")}
}

func (n *Node) register(ctx context.Context) error {
	nodes := n.Client.CoreV1().Nodes()
	labels := map[string]string{"kubernetes.io/hostname": n.Name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
		"topology.kubernetes.io/zone": n.Zone, "topology.kubernetes.io/region": "here"}
	_, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: labels}},
		metav1.CreateOptions{})
	if err != nil && !errors.IsAlreadyExists(err) {
		return err
	}
	return n.tell(ctx)
}

// tell writes the node's status. Controllers write to nodes, too.
func (n *Node) tell(ctx context.Context) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { return n.tellOnce(ctx) })
}

func (n *Node) tellOnce(ctx context.Context) error {
	nodes := n.Client.CoreV1().Nodes()
	node, err := nodes.Get(ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	now := metav1.Now()
	node.Status.Capacity, node.Status.Allocatable = capacity(), capacity()
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: n.Address},
		{Type: corev1.NodeHostName, Address: n.Name}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = kubeletPort
	node.Status.NodeInfo = corev1.NodeSystemInfo{KubeletVersion: "v1.37.2", ContainerRuntimeVersion: "processes://1",
		OperatingSystem: "linux",
		Architecture:    "amd64"}
	wanted := map[corev1.NodeConditionType]corev1.ConditionStatus{corev1.NodeReady: corev1.ConditionTrue,
		corev1.NodeMemoryPressure: corev1.ConditionFalse, corev1.NodeDiskPressure: corev1.ConditionFalse,
		corev1.NodePIDPressure: corev1.ConditionFalse}
	before := node.Status.Conditions
	node.Status.Conditions = nil
	for _, kind := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure,
		corev1.NodePIDPressure} {
		condition := corev1.NodeCondition{Type: kind, Status: wanted[kind], LastHeartbeatTime: now, LastTransitionTime: now}
		for _, b := range before {
			if b.Type == kind && b.Status == condition.Status {
				condition.LastTransitionTime = b.LastTransitionTime
			}
		}
		node.Status.Conditions = append(node.Status.Conditions, condition)
	}
	_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}

// beat renews the node's lease until ctx ends, and writes its status where it was marked as silent.
func (n *Node) beat(ctx context.Context) {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		call, cancel := context.WithTimeout(ctx, callTime)
		err := n.renew(call)
		if node, e := n.Client.CoreV1().Nodes().Get(call, n.Name, metav1.GetOptions{ResourceVersion: "0"}); err == nil &&
			e == nil {
			for _, c := range node.Status.Conditions {
				if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
					err = n.tell(call)
				}
			}
		}
		cancel()
		if err != nil && ctx.Err() == nil && !errors.IsConflict(err) {
			n.Say("%s: heartbeat: %v", n.Name, err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (n *Node) renew(ctx context.Context) error {
	leases := n.Client.CoordinationV1().Leases(leaseNamespace)
	now, seconds := metav1.NowMicro(), int32(leaseSeconds)
	lease, err := leases.Get(ctx, n.Name, metav1.GetOptions{})
	if errors.IsNotFound(err) {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Namespace: leaseNamespace},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &n.Name, LeaseDurationSeconds: &seconds, RenewTime: &now}}
		_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	lease.Spec.RenewTime = &now
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}
