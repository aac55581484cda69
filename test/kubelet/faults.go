package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// killNode switches the leader's node off until the API has noticed, and on again.
func killNode(ctx context.Context, c *cluster) error {
	n, err := c.leaderNode(ctx)
	if err != nil {
		return err
	}
	n.Kill()
	if err := c.noticed(ctx, n.Name); err != nil {
		return err
	}
	if err := c.progress(ctx, someWrites); err != nil {
		return err
	}
	return n.Boot()
}

// noticed waits until a node is known to be silent.
func (c *cluster) noticed(ctx context.Context, name string) error {
	return until(ctx, time.Minute, name+" is marked unreachable", func() error {
		n, err := c.plane.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, t := range n.Spec.Taints {
			if t.Key == "node.kubernetes.io/unreachable" {
				return nil
			}
		}
		return fmt.Errorf("it is not")
	})
}

func freezeNode(ctx context.Context, c *cluster) error {
	n, err := c.leaderNode(ctx)
	if err != nil {
		return err
	}
	n.Freeze()
	if err := c.noticed(ctx, n.Name); err != nil {
		return err
	}
	if err := c.progress(ctx, someWrites); err != nil {
		return err
	}
	return n.Thaw()
}

func cutNode(ctx context.Context, c *cluster) error {
	n, err := c.leaderNode(ctx)
	if err != nil {
		return err
	}
	if err := n.Connect(false); err != nil {
		return err
	}
	if err := c.noticed(ctx, n.Name); err != nil {
		return err
	}
	if err := c.progress(ctx, someWrites); err != nil {
		return err
	}
	return n.Connect(true)
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
