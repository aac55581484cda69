package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quorate/quorate/test/kubelet/claims"
)

// A scenario happens to a cluster whose members are ready, while writes run. It returns once it is over; then all members
// must become ready again, and no acknowledged write may be lost.
type scenario struct {
	name, class string
	run         func(context.Context, *cluster) error
}

const someWrites = 100

func scenarios(away time.Duration) []scenario {
	return []scenario{
		{"create", claims.Local, func(ctx context.Context, c *cluster) error { return c.progress(ctx, someWrites) }},
		{"kill the leader's node", claims.Local, killNode},
		{"freeze the leader's node", claims.Local, freezeNode},
		{"cut the leader's node off", claims.Local, cutNode},
		{"drain all nodes in turn", claims.Network, drainAll},
		{"roll a version and back", claims.Local, roll},
		{"delete a pod by force whose process lives on", claims.Network, forceDelete},
		{"API server away", claims.Local, func(ctx context.Context, c *cluster) error { return apiAway(ctx, c, away) }},
		{"resize", claims.Local, resize},
		{"delete a claim by hand", claims.Local, deleteClaim},
		{"wipe a disk", claims.Local, wipeDisk},
		{"all nodes lose power", claims.Local, loseAll},
	}
}

// perform runs the scenarios that match, and prints the table. It has an error if one failed.
func perform(ctx context.Context, g *ground, away time.Duration, matches *regexp.Regexp) error {
	var rows []row
	failed := 0
	for i, s := range scenarios(away) {
		if !matches.MatchString(s.name) || ctx.Err() != nil {
			continue
		}
		fmt.Fprintf(os.Stderr, "%s …\n", s.name)
		r := performOne(ctx, g, fmt.Sprintf("s%d", i), s)
		if r.failed != nil {
			failed++
			fmt.Fprintf(os.Stderr, "%s: %v\n", s.name, r.failed)
		}
		rows = append(rows, r)
	}
	printTable(os.Stdout, rows)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case failed > 0:
		return fmt.Errorf("%d of %d scenarios failed", failed, len(rows))
	case len(rows) == 0:
		return fmt.Errorf("no scenario matches %s", matches)
	}
	return nil
}

func performOne(ctx context.Context, g *ground, namespace string, s scenario) row {
	c := &cluster{ground: g, namespace: namespace}
	r := row{name: s.name}
	began := time.Now()
	if r.failed = c.create(ctx, s.class); r.failed != nil {
		return r
	}
	if s.name != "create" {
		began = time.Now()
	}
	r.failed = s.run(ctx, c)
	if r.failed == nil {
		r.failed = c.ready(ctx)
	}
	if r.failed == nil {
		r.failed = c.progress(ctx, someWrites)
	}
	r.took = time.Since(began)
	tally, err := c.writer.stop(ctx)
	r.tally = tally
	switch {
	case r.failed != nil:
	case err != nil:
		r.failed = err
	case tally.lost > 0:
		r.failed = fmt.Errorf("%d acknowledged writes are lost", tally.lost)
	default:
		r.failed = c.remove(ctx)
	}
	return r
}

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

// roll sets another image and back. Which build is behind the name does not matter to Kubernetes: pods are replaced in order.
func roll(ctx context.Context, c *cluster) error {
	for _, image := range []string{"quorate:next", "quorate:now"} {
		patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":%q,"image":%q}]}}}}`, container, image)
		_, err := c.plane.Client.AppsV1().StatefulSets(c.namespace).Patch(ctx, "q", types.StrategicMergePatchType,
			[]byte(patch), metav1.PatchOptions{})
		if err != nil {
			return err
		}
		if err := c.ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// forceDelete deletes a pod by force whose kubelet does not hear of it, so that a second process gets the claim.
func forceDelete(ctx context.Context, c *cluster) error {
	n, err := c.nodeOf(ctx, 0)
	if err != nil {
		return err
	}
	before, err := c.pod(ctx, 0)
	if err != nil {
		return err
	}
	n.Detach()
	if err := c.noticed(ctx, n.Name); err != nil {
		return err
	}
	var now int64
	if err := c.plane.Client.CoreV1().Pods(c.namespace).Delete(ctx, "q-0",
		metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		return err
	}
	err = until(ctx, time.Minute, "the new pod has tried to start on the old one's claim", func() error {
		p, err := c.pod(ctx, 0)
		switch {
		case err != nil:
			return err
		case p.UID == before.UID || p.Spec.NodeName == n.Name || len(p.Status.ContainerStatuses) == 0:
			return fmt.Errorf("it is not there")
		case p.Status.ContainerStatuses[0].Ready:
			return nil // the judge below says whether that was right
		case p.Status.ContainerStatuses[0].RestartCount < 1:
			return fmt.Errorf("it has not ended yet")
		}
		return nil
	})
	if err != nil {
		return err
	}
	if p, err := c.pod(ctx, 0); err != nil || p.Status.ContainerStatuses[0].Ready {
		return fmt.Errorf("a second process serves with the claim of one that runs (%w)", err)
	}
	if err := c.progress(ctx, someWrites); err != nil {
		return err
	}
	return n.Attach()
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

func resize(ctx context.Context, c *cluster) error {
	all := c.plane.Client.CoreV1().PersistentVolumeClaims(c.namespace)
	for i := range replicas {
		patch := []byte(`{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
		if _, err := all.Patch(ctx, fmt.Sprintf("data-q-%d", i), types.MergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return until(ctx, time.Minute, "all claims have their new size", func() error {
		list, err := all.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, one := range list.Items {
			if size := one.Status.Capacity.Storage(); size.String() != "2Gi" {
				return fmt.Errorf("%s has %s", one.Name, size)
			}
		}
		return nil
	})
}

// deleteClaim deletes a member's claim and its pod. The member must not begin anew by itself; an operator resets it.
func deleteClaim(ctx context.Context, c *cluster) error {
	claim, err := c.plane.Client.CoreV1().PersistentVolumeClaims(c.namespace).Get(ctx, "data-q-1", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := c.plane.Client.CoreV1().PersistentVolumeClaims(c.namespace).Delete(ctx, claim.Name,
		metav1.DeleteOptions{}); err != nil {
		return err
	}
	if err := c.plane.Client.CoreV1().Pods(c.namespace).Delete(ctx, "q-1", metav1.DeleteOptions{}); err != nil {
		return err
	}
	err = until(ctx, time.Minute, "there is a new claim", func() error {
		p, err := c.plane.Client.CoreV1().PersistentVolumeClaims(c.namespace).Get(ctx, "data-q-1", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if p.UID == claim.UID || p.Spec.VolumeName == "" {
			return fmt.Errorf("there is none")
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.reset(ctx, 1)
}

// reset waits until a member with an empty disk refuses to start, and replaces it.
func (c *cluster) reset(ctx context.Context, i int) error {
	if err := c.logged(ctx, i, "quorate member reset"); err != nil {
		return err
	}
	if err := c.progress(ctx, someWrites); err != nil {
		return err
	}
	_, err := c.quorateCommand(ctx, "member", "reset", fmt.Sprintf("q-%d", i), "--yes")
	return err
}

func wipeDisk(ctx context.Context, c *cluster) error {
	n, err := c.nodeOf(ctx, 2)
	if err != nil {
		return err
	}
	n.Kill()
	if err := n.Wipe(); err != nil {
		return err
	}
	if err := n.Boot(); err != nil {
		return err
	}
	return c.reset(ctx, 2)
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
