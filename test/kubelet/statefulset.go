package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// roll sets another image and back. Which build is behind the name does not matter to Kubernetes: pods are replaced in order.
func roll(ctx context.Context, c *cluster) error {
	for _, version := range []string{"next", thisTag} {
		if err := setVersion(ctx, c, version); err != nil {
			return err
		}
	}
	return nil
}

func setVersion(ctx context.Context, c *cluster, version string) error {
	if err := c.setImage(ctx, "quorate:"+version); err != nil {
		return err
	}
	return c.ready(ctx)
}

// setImage sets the image of a StatefulSet's pods.
func (c *cluster) setImage(ctx context.Context, image string) error {
	patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":%q,"image":%q}]}}}}`, container, image)
	_, err := c.plane.Client.AppsV1().StatefulSets(c.namespace).Patch(ctx, c.set(), types.StrategicMergePatchType,
		[]byte(patch), metav1.PatchOptions{})
	return err
}

// forceDelete deletes a pod by force whose kubelet does not hear of it, so that a second process gets the claim.
func forceDelete(ctx context.Context, c *cluster) error {
	pods, err := c.pods(ctx)
	if err != nil {
		return err
	}
	before := &pods[0]
	again := func() (*corev1.Pod, error) {
		return c.plane.Client.CoreV1().Pods(c.namespace).Get(ctx, before.Name, metav1.GetOptions{})
	}
	n, err := c.nodeOf(before)
	if err != nil {
		return err
	}
	n.Detach()
	if err := c.noticed(ctx, n.Name); err != nil {
		return err
	}
	byForce := func() error {
		var now int64
		return c.plane.Client.CoreV1().Pods(c.namespace).Delete(ctx, before.Name,
			metav1.DeleteOptions{GracePeriodSeconds: &now})
	}
	if err := byForce(); err != nil {
		return err
	}
	err = until(ctx, time.Minute, "the new pod has tried to start on the old one's claim", func() error {
		p, err := again()
		switch {
		case err != nil:
			return err
		case p.UID != before.UID && p.Spec.NodeName == n.Name: // by a scheduler that had not heard of the node yet
			return errors.Join(byForce(), fmt.Errorf("it went to the silent node"))
		case p.UID == before.UID || len(p.Status.ContainerStatuses) == 0:
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
	if p, err := again(); err != nil || p.Status.ContainerStatuses[0].Ready {
		return fmt.Errorf("a second process serves with the claim of one that runs (%w)", err)
	}
	if err := c.progress(ctx, someWrites); err != nil {
		return err
	}
	return n.Attach()
}

func resize(ctx context.Context, c *cluster) error {
	all := c.plane.Client.CoreV1().PersistentVolumeClaims(c.namespace)
	for i := range replicas {
		patch := []byte(`{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
		if _, err := all.Patch(ctx, c.claimName(i), types.MergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return c.sized(ctx, "2Gi")
}

// sized waits until all claims have a size.
func (c *cluster) sized(ctx context.Context, size string) error {
	all := c.plane.Client.CoreV1().PersistentVolumeClaims(c.namespace)
	return until(ctx, time.Minute, "all claims have their new size", func() error {
		list, err := all.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, one := range list.Items {
			if has := one.Status.Capacity.Storage(); has.String() != size {
				return fmt.Errorf("%s has %s", one.Name, has)
			}
		}
		return nil
	})
}

// deleteClaim deletes a member's claim and its pod. The member must not begin anew by itself; an operator resets it.
func deleteClaim(ctx context.Context, c *cluster) error {
	claim, err := c.plane.Client.CoreV1().PersistentVolumeClaims(c.namespace).Get(ctx, c.claimName(1), metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := c.plane.Client.CoreV1().PersistentVolumeClaims(c.namespace).Delete(ctx, claim.Name,
		metav1.DeleteOptions{}); err != nil {
		return err
	}
	if err := c.plane.Client.CoreV1().Pods(c.namespace).Delete(ctx, c.podName(1), metav1.DeleteOptions{}); err != nil {
		return err
	}
	err = until(ctx, time.Minute, "there is a new claim", func() error {
		p, err := c.plane.Client.CoreV1().PersistentVolumeClaims(c.namespace).Get(ctx, c.claimName(1), metav1.GetOptions{})
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

// resetTime is how long the members may need to learn that one of them says it has lost its disk. Until then they refuse.
const resetTime = 30 * time.Second

// reset waits until a member with an empty disk refuses to start, and replaces it.
func (c *cluster) reset(ctx context.Context, i int) error {
	if err := c.logged(ctx, i, "quorate member reset"); err != nil {
		return err
	}
	if err := c.progress(ctx, someWrites); err != nil {
		return err
	}
	return until(ctx, resetTime, c.podName(i)+" can be reset", func() error {
		_, err := c.quorateCommand(ctx, "member", "reset", c.podName(i), "--yes")
		return err
	})
}

func wipeDisk(ctx context.Context, c *cluster) error {
	p, err := c.pod(ctx, 2)
	if err != nil {
		return err
	}
	n, err := c.nodeOf(p)
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
