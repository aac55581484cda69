package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quorate/quorate/test/kubelet/node"
)

// loseQuorum loses two of three nodes for ever, and consents to what that loses. Writes up to the revision that the status
// tells must be there afterwards. The nodes come back once the cluster is whole without them.
func loseQuorum(ctx context.Context, c *cluster) error {
	if err := c.progress(ctx, someWrites); err != nil {
		return err
	}
	first, err := c.leaderNode(ctx)
	if err != nil {
		return err
	}
	other := c.nodes[0]
	if other == first {
		other = c.nodes[1]
	}
	lost := []*node.Node{first, other}
	for _, n := range lost {
		n.Kill()
	}
	objects := c.apply.client.Resource(quorateClusters).Namespace(c.namespace)
	var revision int64
	var id string
	err = until(ctx, readyTime, "the loss is told", func() error {
		object, err := objects.Get(ctx, operatedName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		var told bool
		if revision, told, _ = unstructured.NestedInt64(object.Object, "status", "quorumLoss", "revision"); !told {
			return errors.New("it is not")
		}
		id, _, _ = unstructured.NestedString(object.Object, "status", "quorumLoss", "id")
		return nil
	})
	if err != nil {
		return err
	}
	c.say("by consent %d acknowledged writes after revision %d are given up", c.writer.giveUpAfter(revision), revision)
	consent := fmt.Sprintf(`{"spec":{"recovery":{"acceptLossAfter":%d,"loss":%q}}}`, revision, id)
	if _, err := objects.Patch(ctx, operatedName, types.MergePatchType, []byte(consent), metav1.PatchOptions{}); err != nil {
		return err
	}
	err = until(ctx, readyTime, "the cluster is recovered, and whole on one node", func() error {
		object, err := objects.Get(ctx, operatedName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		done, _, _ := unstructured.NestedBool(object.Object, "status", "recovery", "done")
		healthy, _, _ := unstructured.NestedInt64(object.Object, "status", "healthyMembers")
		action, _, _ := unstructured.NestedString(object.Object, "status", "action")
		if !done || healthy < replicas {
			return fmt.Errorf("recovered: %v; %d healthy members; action %q%s", done, healthy, action, c.complaints(ctx))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := errors.Join(c.voters(ctx, replicas), c.progress(ctx, someWrites)); err != nil {
		return err
	}
	for _, n := range lost {
		if err := n.Boot(); err != nil {
			return err
		}
	}
	return until(ctx, time.Minute, "all nodes are ready", func() error { return c.nodesReady(ctx) })
}
