package main

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const terminatingTitle = "#### A survivor's claim is Terminating"

// recoverTerminating is as recoverByHand, and before anybody acts both survivors' claims are deleted: they go with the pods
// that have to stop. The commands that keep the volumes, and make the claims again, are those of the page.
func recoverTerminating(ctx context.Context, c *cluster) error {
	return c.loseAndRecover(ctx, c.deletedLoss, c.typeTerminating)
}

// deletedLoss waits until the loss is told, deletes the claims of both survivors, and accepts the loss. The operator must not
// recover: the data would go with the pods that it stops.
func (c *cluster) deletedLoss(ctx context.Context) (*quorumLoss, error) {
	loss, err := c.toldLoss(ctx)
	if err != nil {
		return nil, err
	}
	claims := c.plane.Client.CoreV1().PersistentVolumeClaims(c.namespace)
	for _, name := range []string{loss.best, loss.other} {
		if err := claims.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{loss.best, loss.other} {
		if claim, err := claims.Get(ctx, name, metav1.GetOptions{}); err != nil || claim.DeletionTimestamp == nil {
			return nil, errors.Join(err, fmt.Errorf("the claim of %s is not Terminating", name))
		}
	}
	if err := c.accept(ctx, loss); err != nil {
		return nil, err
	}
	return loss, c.actionSays(ctx, loss.best+", at revision "+fmt.Sprint(loss.revision)+", whose claim was deleted")
}

// terminatingScript is what the page says to type for both claims, amid the recovery by hand.
func (g *ground) terminatingScript(loss *quorumLoss, version string) ([]typedBlock, error) {
	hand, err := g.handScript(loss, version)
	if err != nil {
		return nil, err
	}
	all, err := blocksOf(g.docs, handPage, terminatingTitle)
	if err != nil {
		return nil, err
	}
	if len(all) != 3 { // before step 2, after the first block of step 3, and at the end
		return nil, fmt.Errorf("the section has %d blocks, and this scenario knows 3", len(all))
	}
	kept := func(_ *cluster, _ *quorumLoss, said string) error {
		return errors.Join(says(said, " Retain\n"), says(said, "  volumeName: pvc-"))
	}
	checks := []func(*cluster, *quorumLoss, string) error{kept, nil, nil}
	var parts [3][]typedBlock
	for _, name := range []string{loss.other, loss.best} {
		texts, err := replaced(all, "kv-x-4", name)
		if err != nil {
			return nil, err
		}
		for i, text := range texts {
			parts[i] = append(parts[i], typedBlock{text, checks[i]})
		}
	}
	typed := append([]typedBlock{hand[0]}, parts[0]...)
	typed = append(append(typed, hand[1:3]...), parts[1]...)
	return append(append(typed, hand[3:]...), parts[2]...), nil
}

func (c *cluster) typeTerminating(ctx context.Context, loss *quorumLoss) error {
	all, err := c.terminatingScript(loss, c.wanted.version)
	if err != nil {
		return err
	}
	there := typedBlock{text: "cd " + c.directory + "\n"} // for the files that the page writes
	return c.typeAll(ctx, loss, append([]typedBlock{there}, all...))
}
