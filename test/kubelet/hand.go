package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quorate/quorate/test/kubelet/claims"
	"github.com/quorate/quorate/test/kubelet/node"
)

const (
	handVoters = 5
	handPage   = "kubernetes-operator.md"
	handTitle  = "### Recover by hand"
	// restricted refuses pods that could do more than pods have to.
	restricted = `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`
)

// recoverByHand loses three of five nodes for ever, whose disks are theirs alone. The two survivors are on two nodes, so that
// the operator cannot recover, and a person does: by the commands of docs/kubernetes-operator.md, as they stand there.
func recoverByHand(ctx context.Context, c *cluster) error {
	return c.loseAndRecover(ctx, c.stuckLoss, c.typeRecovery)
}

// loseAndRecover loses three of five nodes, waits by one of its functions until a person has to act, and acts by the other.
func (c *cluster) loseAndRecover(ctx context.Context, stuck func(context.Context) (*quorumLoss, error),
	act func(context.Context, *quorumLoss) error) error {
	if err := c.grow(ctx, handVoters); err != nil {
		return err
	}
	spaces := c.plane.Client.CoreV1().Namespaces()
	if _, err := spaces.Patch(ctx, c.namespace, types.MergePatchType, []byte(restricted), metav1.PatchOptions{}); err != nil {
		return err
	}
	if err := c.scaleTo(ctx, handVoters); err != nil {
		return err
	}
	if err := errors.Join(c.quiet(ctx), c.progress(ctx, someWrites)); err != nil {
		return err
	}
	lost, err := c.loseMost(ctx)
	if err != nil {
		return err
	}
	loss, err := stuck(ctx)
	if err != nil {
		return err
	}
	if err := act(ctx, loss); err != nil {
		return err
	}
	err = until(ctx, readyTime, "five members are ready on two nodes", func() error { return c.ledBy(ctx, loss) })
	if err != nil {
		return err
	}
	if err := errors.Join(c.voters(ctx, handVoters), c.progress(ctx, someWrites)); err != nil {
		return err
	}
	for _, n := range lost { // as other machines of these names
		if err := n.Boot(); err != nil {
			return err
		}
	}
	return nil
}

// quiet waits until the operator has nothing to do: after the first newcomers it restarts the founders.
func (c *cluster) quiet(ctx context.Context) error {
	return until(ctx, readyTime, "the operator has nothing to do", func() error {
		action, err := c.action(ctx)
		if err == nil && action != "" {
			err = errors.New(action)
		}
		return errors.Join(err, c.whole(ctx, c))
	})
}

// action is what the operator does or waits for.
func (c *cluster) action(ctx context.Context) (string, error) {
	objects := c.apply.client.Resource(quorateClusters).Namespace(c.namespace)
	object, err := objects.Get(ctx, operatedName, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	action, _, err := unstructured.NestedString(object.Object, "status", "action")
	return action, err
}

// loseMost switches off the leader's node and two others, and deletes what is on their disks. Each node has one member.
func (c *cluster) loseMost(ctx context.Context) ([]*node.Node, error) {
	pods, err := c.pods(ctx)
	if err != nil {
		return nil, err
	}
	places := map[string]bool{}
	for i := range pods {
		places[pods[i].Spec.NodeName] = true
	}
	if len(places) != handVoters {
		return nil, fmt.Errorf("%d members are on %d nodes", len(pods), len(places))
	}
	leader, err := c.leaderNode(ctx)
	if err != nil {
		return nil, err
	}
	lost := []*node.Node{leader}
	for _, n := range c.nodes {
		if n != leader && len(lost) < 3 {
			lost = append(lost, n)
		}
	}
	for _, n := range lost {
		n.Kill()
	}
	for _, n := range lost {
		if err := n.Wipe(); err != nil {
			return nil, err
		}
	}
	return lost, nil
}

// A quorumLoss is what the status tells of one.
type quorumLoss struct {
	best, other string   // the survivors
	left        []string // all but the best one
	revision    int64
	id          string
}

// toldLoss waits until the loss is told.
func (c *cluster) toldLoss(ctx context.Context) (*quorumLoss, error) {
	objects := c.apply.client.Resource(quorateClusters).Namespace(c.namespace)
	var loss quorumLoss
	return &loss, until(ctx, readyTime, "the loss is told", func() error {
		object, err := objects.Get(ctx, operatedName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		told, _, _ := unstructured.NestedMap(object.Object, "status", "quorumLoss")
		if told == nil {
			return errors.New("it is not")
		}
		loss.best, _, _ = unstructured.NestedString(told, "survivor")
		loss.revision, _, _ = unstructured.NestedInt64(told, "revision")
		loss.id, _, _ = unstructured.NestedString(told, "id")
		survivors, _, _ := unstructured.NestedStringSlice(told, "survivors")
		others := slices.DeleteFunc(survivors, func(name string) bool { return name == loss.best })
		loss.left, _, _ = unstructured.NestedStringSlice(told, "lost")
		if len(others) != 1 || len(loss.left) != handVoters-2 {
			return fmt.Errorf("%s survives, and beside it %v; %v are lost", loss.best, others, loss.left)
		}
		loss.other, loss.left = others[0], append(loss.left, others[0])
		return nil
	})
}

// accept consents to a loss.
func (c *cluster) accept(ctx context.Context, loss *quorumLoss) error {
	objects := c.apply.client.Resource(quorateClusters).Namespace(c.namespace)
	consent := fmt.Sprintf(`{"spec":{"recovery":{"acceptLossAfter":%d,"loss":%q}}}`, loss.revision, loss.id)
	_, err := objects.Patch(ctx, operatedName, types.MergePatchType, []byte(consent), metav1.PatchOptions{})
	return err
}

// stuckLoss waits until the loss is told, consents to it, and waits until the operator says that it cannot recover.
func (c *cluster) stuckLoss(ctx context.Context) (*quorumLoss, error) {
	loss, err := c.toldLoss(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.accept(ctx, loss); err != nil {
		return nil, err
	}
	return loss, c.actionSays(ctx, "no node takes the pod that recovers "+loss.best)
}

// actionSays waits until the operator says something.
func (c *cluster) actionSays(ctx context.Context, text string) error {
	return until(ctx, readyTime, fmt.Sprintf("the operator says %q", text), func() error {
		action, err := c.action(ctx)
		if err != nil {
			return err
		}
		if !strings.Contains(action, text) {
			return fmt.Errorf("it says %q%s", action, c.complaints(ctx))
		}
		return nil
	})
}

// A typedBlock is one of a page, and what is looked at once it was typed.
type typedBlock struct {
	text  string
	check func(*cluster, *quorumLoss, string) error // gets what was said; nil: nothing is looked at
}

// handBlocks is what is looked at after each block of the page. A page with another number of blocks is not run.
var handBlocks = []func(*cluster, *quorumLoss, string) error{
	nil, // look
	nil, // pause the cluster
	nil, // stop the members
	nil, // note on the claim
	nil, // shells
	func(_ *cluster, _ *quorumLoss, said string) error {
		sums := regexp.MustCompile(`(?m)^[0-9a-f]{64}  -$`).FindAllString(said, -1)
		if len(sums) != 2 || sums[0] != sums[1] {
			return fmt.Errorf("the sums are not the same: %s", said)
		}
		return nil
	},
	nil, // shells are stopped
	func(_ *cluster, _ *quorumLoss, said string) error {
		return says(said, "This was a dry run: nothing was changed.")
	},
	func(c *cluster, loss *quorumLoss, said string) error {
		if err := says(said, loss.best+" is recovered."); err != nil {
			return err
		}
		stored := regexp.MustCompile(`store +revision (\d+) `).FindStringSubmatch(said)
		if stored == nil {
			return fmt.Errorf("the log tells no revision: %s", said)
		}
		revision, err := strconv.ParseInt(stored[1], 10, 64)
		if err != nil {
			return err
		}
		revision = max(revision, loss.revision)
		c.say("by hand %d acknowledged writes after revision %d are given up", c.writer.giveUpAfter(revision), revision)
		return nil
	},
	func(c *cluster, loss *quorumLoss, _ string) error { return c.noCopies(loss.best) },
}

func says(said, text string) error {
	if !strings.Contains(said, text) {
		return fmt.Errorf("the log does not say %q: %s", text, said)
	}
	return nil
}

// handScript is what the page says to type, with the names that are here.
func (g *ground) handScript(loss *quorumLoss, version string) ([]typedBlock, error) {
	all, err := blocksOf(g.docs, handPage, handTitle)
	if err != nil {
		return nil, err
	}
	if len(all) != len(handBlocks) {
		return nil, fmt.Errorf("the section has %d blocks, and this scenario knows %d", len(all), len(handBlocks))
	}
	all, err = replaced(all, "kv-x-2,kv-x-3,kv-x-4,kv-x-5", strings.Join(loss.left, ","), "kv-x-1", loss.best,
		"kv-x-4", loss.other, "cluster=kv", "cluster="+operatedName, "quoratecluster kv", "quoratecluster "+operatedName,
		"quoratecluster/kv", "quoratecluster/"+operatedName,
		"registry.example.com/quorate:v1.1.0", "quorate:"+version)
	typed := make([]typedBlock, len(all))
	for i, block := range all {
		typed[i] = typedBlock{block, handBlocks[i]}
	}
	return typed, err
}

// typeRecovery types the commands of the page.
func (c *cluster) typeRecovery(ctx context.Context, loss *quorumLoss) error {
	all, err := c.handScript(loss, c.wanted.version)
	if err != nil {
		return err
	}
	return c.typeAll(ctx, loss, all)
}

// typeAll types blocks into one bash, and looks at what each has said.
func (c *cluster) typeAll(ctx context.Context, loss *quorumLoss, all []typedBlock) error {
	shell, err := c.typist(ctx, c.namespace)
	if err != nil {
		return err
	}
	defer shell.end()
	for i, block := range all {
		said, err := shell.enter(ctx, block.text)
		c.note(said)
		if err == nil && block.check != nil {
			err = block.check(c, loss, said)
		}
		if err != nil {
			return fmt.Errorf("block %d: %w", i+1, err)
		}
	}
	return nil
}

// note keeps the output of commands in a file, where the cause of a failure can be looked for.
func (c *cluster) note(said string) {
	file, err := os.OpenFile(filepath.Join(c.directory, c.namespace+".said"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		c.say("%v", err)
		return
	}
	defer file.Close()
	fmt.Fprintln(file, said)
}

// noCopies fails if something lies beside a member's data.
func (c *cluster) noCopies(member string) error {
	ctx := context.Background()
	claim, err := c.plane.Client.CoreV1().PersistentVolumeClaims(c.namespace).Get(ctx, member, metav1.GetOptions{})
	if err != nil {
		return err
	}
	volume, err := c.plane.Client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(claims.Directory(c.root, volume))
	if err != nil {
		return err
	}
	if len(entries) != 1 || entries[0].Name() != "data" {
		return fmt.Errorf("beside the data of %s is something: %v", member, entries)
	}
	return nil
}

// ledBy fails while not five members are ready, the recovered one among them, on the nodes that were not lost.
func (c *cluster) ledBy(ctx context.Context, loss *quorumLoss) error {
	pods, err := c.pods(ctx)
	if err != nil {
		return err
	}
	ready := slices.DeleteFunc(pods, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil || !isReady(&p) })
	has := func(name string) bool {
		return slices.ContainsFunc(ready, func(p corev1.Pod) bool { return p.Name == name })
	}
	switch {
	case len(ready) < handVoters || !has(loss.best):
		action, err := c.action(ctx)
		return errors.Join(err, fmt.Errorf("%d members are ready; action %q%s", len(ready), action, c.complaints(ctx)))
	case slices.ContainsFunc(loss.left, has):
		return errors.New("one that was left out is ready")
	}
	return nil
}
