package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/test/kubelet/node"
)

// killNode switches the leader's node off until the API has noticed, and on again.
func killNode(ctx context.Context, c *cluster) error {
	return c.withoutLeader(ctx, func(n *node.Node) error { n.Kill(); return nil }, (*node.Node).Boot)
}

func freezeNode(ctx context.Context, c *cluster) error {
	return c.withoutLeader(ctx, func(n *node.Node) error { n.Freeze(); return nil }, (*node.Node).Thaw)
}

func cutNode(ctx context.Context, c *cluster) error {
	connect := func(connected bool) func(*node.Node) error {
		return func(n *node.Node) error { return n.Connect(connected) }
	}
	return c.withoutLeader(ctx, connect(false), connect(true))
}

// withoutLeader takes the leader's node away until the cluster goes on without it, and brings it back.
func (c *cluster) withoutLeader(ctx context.Context, away, back func(*node.Node) error) error {
	n, err := c.leaderNode(ctx)
	if err != nil {
		return err
	}
	if err := away(n); err != nil {
		return err
	}
	if err := c.goesOnWithout(ctx, n); err != nil {
		return err
	}
	return back(n)
}

// goesOnWithout waits until the API has noticed that a node is silent, and then until more writes are acknowledged.
func (c *cluster) goesOnWithout(ctx context.Context, n *node.Node) error {
	if err := c.noticed(ctx, n.Name); err != nil {
		return err
	}
	return c.progress(ctx, someWrites)
}

// noticed waits until a node is known to be silent.
func (c *cluster) noticed(ctx context.Context, name string) error {
	return until(ctx, time.Minute, name+" is marked unreachable", func() error {
		n, err := c.plane.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		has := func(effect corev1.TaintEffect) bool {
			return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
				return t.Key == corev1.TaintNodeUnreachable && t.Effect == effect
			})
		}
		if has(corev1.TaintEffectNoExecute) && has(corev1.TaintEffectNoSchedule) {
			return nil
		}
		return fmt.Errorf("it is not")
	})
}

func drainAll(ctx context.Context, c *cluster) error {
	for _, n := range c.nodes {
		if err := c.drain(ctx, n.Name); err != nil {
			return err
		}
		if err := c.ready(ctx); err != nil {
			return err
		}
		if err := c.cordon(ctx, n.Name, false); err != nil {
			return err
		}
	}
	return nil
}

func apiAway(ctx context.Context, c *cluster, away time.Duration) error {
	c.plane.StopAPI()
	timer := time.NewTimer(away)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	if err := c.progress(ctx, someWrites); err != nil {
		return err
	}
	return c.plane.StartAPI(ctx)
}

func loseAll(ctx context.Context, c *cluster) error {
	for _, n := range c.nodes {
		n.Kill()
	}
	for _, n := range c.nodes {
		if err := n.Boot(); err != nil {
			return err
		}
	}
	return nil
}
