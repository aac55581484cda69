package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// chartRoll upgrades a release to another image, and rolls it back.
func chartRoll(ctx context.Context, c *cluster) error {
	if err := c.helm(ctx, append([]string{"upgrade"}, c.chartValues(c.class, "image.tag=next")...)...); err != nil {
		return err
	}
	if err := c.ready(ctx); err != nil {
		return err
	}
	return c.helm(ctx, "rollback", chartName, "1", "-n", c.namespace, "--wait", "--timeout", "3m")
}

// chartScale needs more nodes than there are, unless members may share one.
func chartScale(ctx context.Context, c *cluster) error {
	for _, count := range []int{5, 3} {
		values := []string{fmt.Sprintf("replicaCount=%d", count), "podAntiAffinityPreset=soft"}
		if err := c.helm(ctx, append([]string{"upgrade"}, c.chartValues(c.class, values...)...)...); err != nil {
			return err
		}
		if err := c.ready(ctx); err != nil {
			return err
		}
		if err := c.voters(ctx, count); err != nil {
			return err
		}
	}
	return nil
}

// voters waits until the cluster has so many members, and no more.
func (c *cluster) voters(ctx context.Context, count int) error {
	client, err := c.access.connect()
	if err != nil {
		return err
	}
	defer client.Close()
	return until(ctx, time.Minute, fmt.Sprintf("there are %d members", count), func() error {
		call, cancel := context.WithTimeout(ctx, putTime)
		defer cancel()
		list, err := client.MemberList(call)
		if err != nil {
			return err
		}
		if len(list.Members) != count {
			return fmt.Errorf("there are %d", len(list.Members))
		}
		for _, m := range list.Members {
			if m.IsLearner {
				return fmt.Errorf("%s is a learner", m.Name)
			}
		}
		return nil
	})
}

// loseNode switches off the node of the leader, until the operator has put another member in its place.
func loseNode(ctx context.Context, c *cluster) error {
	p, err := c.leader(ctx)
	if err != nil {
		return err
	}
	n, err := c.nodeOf(p)
	if err != nil {
		return err
	}
	n.Kill()
	err = until(ctx, readyTime, p.Name+" has a successor", func() error {
		pods, err := c.pods(ctx)
		if err != nil {
			return err
		}
		others := 0
		for _, one := range pods {
			if one.UID != p.UID && isReady(&one) {
				others++
			}
		}
		if others < replicas {
			return fmt.Errorf("%d other members are ready%s", others, c.complaints(ctx))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := c.voters(ctx, replicas); err != nil {
		return err
	}
	return n.Boot()
}

func operatedRoll(ctx context.Context, c *cluster) error {
	for _, version := range []string{"next", "now"} {
		if err := c.want(ctx, func(w *wanted) { w.version = version }); err != nil {
			return err
		}
		if err := c.ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

func operatedScale(ctx context.Context, c *cluster) error {
	for _, count := range []int{5, 3} {
		if err := c.scaleTo(ctx, count); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) scaleTo(ctx context.Context, count int) error {
	if err := c.want(ctx, func(w *wanted) { w.members = count }); err != nil {
		return err
	}
	if err := c.ready(ctx); err != nil {
		return err
	}
	return c.voters(ctx, count)
}

func operatedResize(ctx context.Context, c *cluster) error {
	if err := c.want(ctx, func(w *wanted) { w.size = "2Gi" }); err != nil {
		return err
	}
	return c.sized(ctx, "2Gi")
}

// operatedClaim deletes the claim of the leader, and its pod. Another member takes the place.
func operatedClaim(ctx context.Context, c *cluster) error {
	p, err := c.leader(ctx)
	if err != nil {
		return err
	}
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		claims := c.plane.Client.CoreV1().PersistentVolumeClaims(c.namespace)
		if err := claims.Delete(ctx, v.PersistentVolumeClaim.ClaimName, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	if err := c.plane.Client.CoreV1().Pods(c.namespace).Delete(ctx, p.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return c.replaced(ctx, p)
}

// killEvery is longer than the operator's lease, which a successor has to wait for.
const killEvery = 20 * time.Second

// killOperator deletes the operator's pods by force, again and again, while it brings the cluster to five members and back.
func killOperator(ctx context.Context, c *cluster) error {
	killing, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		ticker := time.NewTicker(killEvery)
		defer ticker.Stop()
		for killing.Err() == nil {
			var now int64
			c.plane.Client.CoreV1().Pods(operatorSpace).DeleteCollection(killing,
				metav1.DeleteOptions{GracePeriodSeconds: &now},
				metav1.ListOptions{})
			select {
			case <-ticker.C:
			case <-killing.Done():
			}
		}
	}()
	return operatedScale(ctx, c)
}
