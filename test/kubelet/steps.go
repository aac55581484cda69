package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	operatorLease = "quorate-operator.quorate.io"
	lookEvery     = 20 * time.Millisecond
	fewestSteps   = 12 // fewer would mean that steps are not seen
)

// killAtSteps kills the operator at each of its steps, once: whenever it says that it does something else, and whenever it has
// made or deleted a pod or a claim. Meanwhile it has to bring the cluster to five members and back, and to replace one. The
// lease of the dead one is deleted, so that the next one need not wait for its end.
func killAtSteps(ctx context.Context, c *cluster) error {
	return c.killWhile(ctx, fewestSteps, c.steps, func() error {
		return errors.Join(operatedScale(ctx, c), operatedClaim(ctx, c), c.ready(ctx))
	})
}

// killWhile kills the operator at each step while something is done. Too few steps are an error: they are not seen.
func (c *cluster) killWhile(ctx context.Context, fewest int, steps func(context.Context) ([]string, error), do func() error,
) error {
	looking, stop := context.WithCancel(ctx)
	seen := make(chan []string, 1)
	failed := make(chan error, 1)
	go func() {
		killed, err := c.killAtEach(looking, steps)
		failed <- err
		seen <- killed
	}()
	err := do()
	stop()
	err = errors.Join(err, <-failed)
	killed := <-seen
	if err == nil && len(killed) < fewest {
		err = fmt.Errorf("only %d steps were seen: %s", len(killed), strings.Join(killed, "; "))
	}
	if err == nil {
		c.say("killed at %d steps: %s", len(killed), strings.Join(killed, "; "))
	}
	return err
}

// killAtEach kills the operator at each new step until ctx ends, and returns the steps.
func (c *cluster) killAtEach(ctx context.Context, steps func(context.Context) ([]string, error)) ([]string, error) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var killed []string
	before, err := steps(ctx)
	for err == nil {
		select {
		case <-ctx.Done():
			return killed, nil
		case <-ticker.C:
		}
		var now []string
		if now, err = steps(ctx); err != nil {
			break
		}
		fresh := slices.DeleteFunc(now, func(s string) bool { return slices.Contains(before, s) || slices.Contains(killed, s) })
		if len(fresh) == 0 {
			continue
		}
		killed = append(killed, fresh...)
		err = c.killOperatorNow(ctx)
	}
	if ctx.Err() != nil {
		err = nil
	}
	return killed, err
}

// steps are what can be seen of what the operator does and has done.
func (c *cluster) steps(ctx context.Context) ([]string, error) {
	object, err := c.object(ctx, quorateClusters, c.pluginName())
	if err != nil {
		return nil, err
	}
	var all []string
	if action, _, _ := unstructured.NestedString(object.Object, "status", "action"); action != "" {
		all = append(all, action)
	}
	pods, err := c.pods(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range pods {
		all = append(all, stepOf("pod", p.ObjectMeta))
	}
	own := metav1.ListOptions{LabelSelector: "quorate.io/cluster=" + c.pluginName()}
	claims, err := c.plane.Client.CoreV1().PersistentVolumeClaims(c.namespace).List(ctx, own)
	if err != nil {
		return nil, err
	}
	for _, one := range claims.Items {
		all = append(all, stepOf("claim", one.ObjectMeta))
	}
	return all, nil
}

func stepOf(kind string, m metav1.ObjectMeta) string {
	if m.DeletionTimestamp != nil {
		return fmt.Sprintf("%s %s %s deleted", kind, m.Name, m.UID[:4])
	}
	return fmt.Sprintf("%s %s %s made", kind, m.Name, m.UID[:4])
}

// killOperatorNow kills the operator, and lets the next one act at once.
func (c *cluster) killOperatorNow(ctx context.Context) error {
	var now int64
	err := c.plane.Client.CoreV1().Pods(operatorSpace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now},
		metav1.ListOptions{})
	if err != nil {
		return err
	}
	err = c.plane.Client.CoordinationV1().Leases(operatorSpace).Delete(ctx, operatorLease, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// twoOperators installs a second operator for the same clusters, while a version is rolled and members come and go.
func twoOperators(ctx context.Context, c *cluster) error {
	if err := c.installOperator(ctx, secondSpace); err != nil {
		return err
	}
	for _, space := range []string{operatorSpace, secondSpace} {
		if err := c.leased(ctx, space); err != nil {
			return err
		}
	}
	for _, change := range []func(*wanted){
		func(w *wanted) { w.version, w.members = "next", 5 },
		func(w *wanted) { w.members = 3 },
		func(w *wanted) { w.version = "now" },
	} {
		if err := c.want(ctx, change); err != nil {
			return err
		}
		if err := c.ready(ctx); err != nil {
			return err
		}
		if err := c.voters(ctx, c.wanted.members); err != nil {
			return err
		}
	}
	if err := c.refusals(secondSpace); err != nil { // its rights go before its pods do
		return err
	}
	if err := c.helm(ctx, "uninstall", operatorChart, "-n", secondSpace, "--wait", "--timeout", "2m"); err != nil {
		return err
	}
	return c.leased(ctx, operatorSpace)
}

// leased waits until an operator that runs has the lease of a namespace.
func (c *cluster) leased(ctx context.Context, space string) error {
	return until(ctx, time.Minute, "an operator acts in "+space, func() error {
		lease, err := c.plane.Client.CoordinationV1().Leases(space).Get(ctx, operatorLease, metav1.GetOptions{})
		if err != nil {
			return err
		}
		pods, err := c.plane.Client.CoreV1().Pods(space).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		holder := ""
		if lease.Spec.HolderIdentity != nil {
			holder, _, _ = strings.Cut(*lease.Spec.HolderIdentity, "_")
		}
		if !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.Name == holder }) {
			return fmt.Errorf("%q has the lease", holder)
		}
		return nil
	})
}
