package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/quorate/quorate/test/kubelet/node"
)

// loseLeader switches the leader's node off, and waits until its pod is to be deleted. It returns the number of the pod.
func (c *cluster) loseLeader(ctx context.Context) (*node.Node, int, error) {
	p, err := c.leader(ctx)
	if err != nil {
		return nil, 0, err
	}
	n, err := c.nodeOf(p)
	if err != nil {
		return nil, 0, err
	}
	n.Kill()
	number := 0
	for c.podName(number) != p.Name {
		number++
	}
	return n, number, until(ctx, time.Minute, p.Name+" is to be deleted", func() error {
		now, err := c.pod(ctx, number)
		if err == nil && now.DeletionTimestamp == nil {
			err = errors.New("it is not")
		}
		return err
	})
}

// chartLoseNode loses a node with its disk, and does what docs/kubernetes-chart.md says: the node is deleted, then the claim
// and the pod that waits for it, and the member is reset.
func chartLoseNode(ctx context.Context, c *cluster) error {
	n, number, err := c.loseLeader(ctx)
	if err != nil {
		return err
	}
	if err := n.Wipe(); err != nil {
		return err
	}
	if err := c.plane.Client.CoreV1().Nodes().Delete(ctx, n.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	pods, claims := c.plane.Client.CoreV1().Pods(c.namespace), c.plane.Client.CoreV1().PersistentVolumeClaims(c.namespace)
	err = until(ctx, readyTime, c.podName(number)+" is pending", func() error {
		p, err := c.pod(ctx, number)
		switch {
		case err != nil:
			return err
		case p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodPending || !unschedulable(p):
			return fmt.Errorf("it is %s on %q", p.Status.Phase, p.Spec.NodeName)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := claims.Delete(ctx, c.claimName(number), metav1.DeleteOptions{}); err != nil {
		return err
	}
	if err := pods.Delete(ctx, c.podName(number), metav1.DeleteOptions{}); err != nil {
		return err
	}
	if err := c.reset(ctx, number); err != nil {
		return err
	}
	if err := c.ready(ctx); err != nil {
		return err
	}
	return n.Boot()
}

// unschedulable tells whether the scheduler has found no node for a pod.
func unschedulable(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
			return true
		}
	}
	return false
}

// chartOutOfService loses a node whose claims others reach: its taint says that it is off, and the pod starts elsewhere.
func chartOutOfService(ctx context.Context, c *cluster) error {
	n, number, err := c.loseLeader(ctx)
	if err != nil {
		return err
	}
	off := corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}
	isOff := func(t corev1.Taint) bool { return t.MatchTaint(&off) }
	nodes := c.plane.Client.CoreV1().Nodes()
	taint := func(more ...corev1.Taint) error { // the list is replaced whole, so the others are read first
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			now, err := nodes.Get(ctx, n.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			now.Spec.Taints = append(slices.DeleteFunc(now.Spec.Taints, isOff), more...)
			_, err = nodes.Update(ctx, now, metav1.UpdateOptions{})
			return err
		})
	}
	if err := taint(off); err != nil {
		return err
	}
	err = until(ctx, readyTime, c.podName(number)+" is ready on another node", func() error {
		p, err := c.pod(ctx, number)
		if err == nil && (p.Spec.NodeName == n.Name || !isReady(p)) {
			err = fmt.Errorf("it is %s on %q", p.Status.Phase, p.Spec.NodeName)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := c.progress(ctx, someWrites); err != nil {
		return err
	}
	if err := taint(); err != nil {
		return err
	}
	return n.Boot() // the next scenario waits until all nodes are ready
}
