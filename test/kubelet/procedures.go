package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/test/kubelet/node"
)

// A procedure is a section of docs/kubernetes-chart.md about releases, whose commands are typed as they stand there.
type procedure struct {
	heading string   // with its marks
	first   string   // what is typed before
	only    []string // if there are some, blocks without any of these words are left out
	leaves  []string // blocks that have one of these words are left out
	names   []string // pairs: what the page names, and what it is here
	values  []string // lines of values.yaml
}

// takes tells whether a block is typed.
func (p procedure) takes(block string) bool {
	has := func(words string) bool { return strings.Contains(block, words) }
	return (len(p.only) == 0 || slices.ContainsFunc(p.only, has)) && !slices.ContainsFunc(p.leaves, has)
}

// script is what a procedure types, with the names that are here.
func (c *cluster) script(p procedure) ([]string, error) {
	all, err := blocksOf(c.docs, "kubernetes-chart.md", p.heading)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(block string) bool { return !p.takes(block) })
	if len(all) == 0 {
		return nil, fmt.Errorf("the section %q has no such commands", p.heading)
	}
	names, whole := slices.Clone(p.names), strings.Join(all, "")
	for pair := range slices.Chunk([]string{"-n prod", "-n " + c.namespace, "instance=db,", "instance=" + chartName + ",",
		"db-quorate", chartName}, 2) { // of many sections, and not of all
		if strings.Contains(whole, pair[0]) {
			names = append(names, pair...)
		}
	}
	return replaced(all, names...)
}

// follow types the blocks of a procedure, and returns what was said.
func (c *cluster) follow(ctx context.Context, p procedure) (string, error) {
	all, err := c.script(p)
	if err != nil {
		return "", err
	}
	directory, err := os.MkdirTemp(c.directory, c.namespace+".page.")
	if err != nil {
		return "", err
	}
	values := strings.Join(p.values, "\n") + "\n"
	if err := os.WriteFile(filepath.Join(directory, "values.yaml"), []byte(values), 0o644); err != nil {
		return "", err
	}
	shell, err := c.typist(ctx, c.namespace)
	if err != nil {
		return "", err
	}
	defer shell.end()
	programs := filepath.Dir(c.plugin) + ":" + filepath.Dir(c.helmPath)
	whole := ""
	for _, block := range append([]string{"cd " + directory + "; PATH=" + programs + ":$PATH", p.first}, all...) {
		said, err := shell.enter(ctx, block)
		c.note(said)
		whole += said
		if err != nil {
			return whole, fmt.Errorf("%s: %w", strings.TrimLeft(p.heading, "# "), err)
		}
	}
	return whole, nil
}

// fileValues are what a release of this test was installed with, as lines of a file of values.
func (c *cluster) fileValues(size string, more ...string) []string {
	return append([]string{"image: {tag: now}", "persistence: {size: " + size + ", storageClass: " + c.class + "}",
		"extraFlags: [--memory=192MiB]"}, more...)
}

// growth is what is typed to grow the disks of a release of five members.
func (c *cluster) growth() procedure {
	return procedure{heading: "### Grow the disks",
		names: []string{"for n in 0 1 2;", "for n in 0 1 2 3 4;", "40Gi", "2Gi", "upgrade db ", "upgrade " + chartName + " ",
			"deploy/charts", c.charts},
		values: c.fileValues("2Gi", "replicaCount: 5", "auth: {rbac: {create: false}}")}
}

// chartGrow grows the disks of a release that has more members than have founded it. No pod may restart, and the founders stay.
func chartGrow(ctx context.Context, c *cluster) error {
	five := []string{"replicaCount=5", "podAntiAffinityPreset=soft"}
	if err := c.helm(ctx, append([]string{"upgrade"}, c.chartValues(c.class, five...)...)...); err != nil {
		return err
	}
	if err := errors.Join(c.ready(ctx), c.voters(ctx, 5)); err != nil {
		return err
	}
	before, err := c.lives(ctx)
	if err != nil {
		return err
	}
	if _, err := c.follow(ctx, c.growth()); err != nil {
		return err
	}
	if err := errors.Join(c.ready(ctx), c.sized(ctx, "2Gi"), c.progress(ctx, someWrites)); err != nil {
		return err
	}
	after, err := c.lives(ctx)
	if err != nil {
		return err
	}
	if after != before {
		return fmt.Errorf("members were restarted: %s were %s", after, before)
	}
	set, err := c.plane.Client.AppsV1().StatefulSets(c.namespace).Get(ctx, c.set(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	if got := set.Annotations["quorate.io/founders"]; got != fmt.Sprint(replicas) {
		return fmt.Errorf("%s members are said to have founded the cluster", got)
	}
	if size := set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String(); size != "2Gi" {
		return fmt.Errorf("later claims would have %s", size)
	}
	return nil
}

// recovery is what is typed to recover member 1 of a release, after what is typed first.
func (c *cluster) recovery(first string) procedure {
	return procedure{heading: "### A majority of a release is gone for ever", first: first,
		names: []string{"-n prod db ", "-n " + c.namespace + " " + chartName + " ",
			".prod.svc", "." + c.namespace + ".svc", "registry.example.com/quorate:v1.1.0", "quorate:now",
			"db-quorate-peer-tls", certificateSecret, "/tls/tls.crt", "/tls/cert.pem", "/tls/tls.key", "/tls/key.pem",
			"/tls/ca.crt", "/tls/ca.pem"}}
}

// chartLoseQuorum loses the nodes of members 0 and 2 for ever, with their disks, and recovers member 1. Nobody writes then, and
// all logs are equally long, so that no acknowledged write may be lost.
func chartLoseQuorum(ctx context.Context, c *cluster) error {
	if err := c.progress(ctx, someWrites); err != nil {
		return err
	}
	c.writer.hold()
	if err := c.sameLength(ctx); err != nil {
		return err
	}
	var lost []*node.Node
	gone := "" // the survivor is member 1, as in the page
	for _, number := range []int{0, 2} {
		p, err := c.pod(ctx, number)
		if err != nil {
			return err
		}
		n, err := c.nodeOf(p)
		if err != nil {
			return err
		}
		lost = append(lost, n)
		gone += "kubectl delete node " + n.Name + "\n"
	}
	for _, n := range lost {
		n.Kill()
		if err := n.Wipe(); err != nil {
			return err
		}
	}
	said, err := c.follow(ctx, c.recovery(gone))
	if err != nil {
		return err
	}
	for _, words := range []string{"quorate_raft_last_index ", "This was a dry run: nothing was changed.",
		chartName + "-1 is recovered."} {
		if err := says(said, words); err != nil {
			return err
		}
	}
	if err := errors.Join(c.ready(ctx), c.voters(ctx, replicas)); err != nil {
		return err
	}
	c.writer.resume()
	if err := c.progress(ctx, someWrites); err != nil {
		return err
	}
	for _, n := range lost { // as other machines of these names
		if err := n.Boot(); err != nil {
			return err
		}
	}
	return until(ctx, time.Minute, "all nodes are ready", func() error { return c.nodesReady(ctx) })
}

var lastIndex = regexp.MustCompile(`(?m)^quorate_raft_last_index (\S+)$`)

// sameLength waits until the logs of all members of a release end at one index.
func (c *cluster) sameLength(ctx context.Context) error {
	return until(ctx, time.Minute, "all logs end at one index", func() error {
		ends := map[string]bool{}
		for number := range replicas {
			p, err := c.pod(ctx, number)
			if err != nil {
				return err
			}
			answer, err := http.Get("http://" + p.Status.PodIP + ":9090/metrics")
			if err != nil {
				return err
			}
			text, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			found := lastIndex.FindSubmatch(text)
			if err != nil || found == nil {
				return fmt.Errorf("%s does not tell its index (%w)", p.Name, err)
			}
			ends[string(found[1])] = true
		}
		if len(ends) != 1 {
			return fmt.Errorf("they end at %v", ends)
		}
		return nil
	})
}

const restoreHeading = "### Restore into a release"

// restoration is what is typed to restore a saved file into a release, after what is typed first.
func (c *cluster) restoration(first string) procedure {
	return procedure{heading: restoreHeading, first: first,
		leaves: []string{"s3://", "initialClusterState"},
		names: []string{"-n prod db ", "-n " + c.namespace + " " + chartName + " ",
			"instance: db,", "instance: " + chartName + ",",
			".prod.svc", "." + c.namespace + ".svc", " prod/", " " + c.namespace + "/",
			"registry.example.com/quorate:v1.1.0", "quorate:now",
			"storageClassName: fast", "storageClassName: " + c.class, "storage: 20Gi", "storage: 1Gi",
			"--install db ", "--install " + chartName + " ", "deploy/charts", c.charts},
		values: c.fileValues("1Gi", "initialClusterState: existing", "auth:",
			"  client: {secureTransport: true, existingSecret: "+certificateSecret+", caFilename: ca.pem}",
			"  peer: {secureTransport: true, existingSecret: "+certificateSecret+
				", caFilename: ca.pem, enableAuthentication: true}")}
}

// chartRestore saves a file, and restores it into the release: what was written later is gone, and all else is there.
func chartRestore(ctx context.Context, c *cluster) error {
	if err := c.progress(ctx, someWrites); err != nil {
		return err
	}
	c.writer.hold()
	kept := c.writer.keys()
	saved := filepath.Join(c.directory, c.namespace+".db")
	if said, status := c.runPlugin(ctx, c.plane.Kubeconfig, "snapshot", "save", saved); status != 0 {
		return fmt.Errorf("the file is not saved: %s", said)
	}
	c.writer.resume()
	if err := c.progress(ctx, someWrites); err != nil {
		return err
	}
	c.writer.hold()
	said, err := c.follow(ctx, c.restoration("cp "+saved+" db.db"))
	if err != nil {
		return err
	}
	if err := errors.Join(c.ready(ctx), c.voters(ctx, replicas)); err != nil {
		return fmt.Errorf("%w; the commands said: %s", err, said)
	}
	gone := c.writer.keys()
	maps.DeleteFunc(gone, func(key string, _ int64) bool { return kept[key] > 0 })
	if err := c.wentBack(ctx, kept, gone); err != nil {
		return err
	}
	c.writer.giveUp(kept)
	c.writer.resume()
	return nil
}

// wentBack fails unless the cluster has all writes of a state, and none of those that are gone.
func (c *cluster) wentBack(ctx context.Context, kept, gone map[string]int64) error {
	present, err := c.writer.present(ctx)
	if err != nil {
		return err
	}
	more := 0
	for key := range gone {
		if _, there := present[key]; there {
			more++
		}
	}
	if missing := lost(kept, present); missing > 0 || more > 0 {
		return fmt.Errorf("of the %d writes of this state %d are missing, and %d of the %d later ones are there", len(kept),
			missing, more, len(gone))
	}
	return nil
}
