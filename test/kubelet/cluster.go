package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quorate/quorate/test/kubelet/node"
	"github.com/quorate/quorate/test/kubelet/plane"
)

//go:embed cluster.yaml
var clusterManifest string

const (
	replicas  = 3
	container = "quorate"
	readyTime = 3 * time.Minute

	someWrites = 100 // so many are progress
)

// How pods of a cluster avoid each other's nodes.
const (
	elsewhere = `{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: q}}}`
	apart     = `requiredDuringSchedulingIgnoredDuringExecution: [` + elsewhere + `]`
	preferred = `preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: ` + elsewhere + `}]`
)

// A subject is a way to have a cluster of Quorate on Kubernetes.
type subject interface {
	// missing says what the ground lacks for it; empty if it lacks nothing.
	missing(g *ground) string
	// install makes the cluster in its namespace, with claims of a class, and says how clients reach it.
	install(ctx context.Context, c *cluster, class string) error
	// whole says why the cluster is not as it shall be.
	whole(ctx context.Context, c *cluster) error
	// selector selects the pods of members.
	selector() string
	// set is the name of the StatefulSet; empty if there is none.
	set() string
	// judge says what else was wrong in a scenario that is over.
	judge(c *cluster) error
	// String is the subject's name in the table.
	String() string
}

// wanted is what a QuorateCluster shall be.
type wanted struct {
	members              int
	version, size, class string
	tls, host, auth      string
	memory               string // of each member
	more                 string // further lines of the spec
}

// A cluster is Quorate's, in a namespace of its own.
type cluster struct {
	*ground
	subject
	namespace string
	class     string
	access    access // once it is installed
	writer    *writer
	wanted    wanted   // of an operated one
	values    []string // further ones of a chart

	valuesFile string // of a chart: a file of further ones, which has the flags of members; empty: there is none

	rootSecret  string              // of the password of root; empty: there are no users
	authorities [2]*plane.Authority // of a chart's certificates
}

// create makes the cluster and waits until it is whole. Then writes begin.
func (c *cluster) create(ctx context.Context, class string) error {
	// Else two members may share a node, and a scenario that takes one node takes a majority.
	if err := until(ctx, time.Minute, "all nodes are ready", func() error { return c.nodesReady(ctx) }); err != nil {
		return err
	}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}}
	if _, err := c.plane.Client.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := c.install(ctx, c, class); err != nil {
		return err
	}
	if err := c.ready(ctx); err != nil {
		return err
	}
	var err error
	c.writer, err = startWriter(c.access, writePath)
	return err
}

// ready waits until the cluster is whole.
func (c *cluster) ready(ctx context.Context) error {
	return until(ctx, readyTime, "the cluster is whole", func() error { return c.whole(ctx, c) })
}

// setWhole says why not all pods of the StatefulSet are of its newest revision, and ready.
func (c *cluster) setWhole(ctx context.Context) error {
	set, err := c.plane.Client.AppsV1().StatefulSets(c.namespace).Get(ctx, c.set(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	s, want := set.Status, *set.Spec.Replicas
	if s.ObservedGeneration < set.Generation || s.ReadyReplicas < want || s.UpdatedReplicas < want || s.Replicas != want {
		return fmt.Errorf("%d of %d members are ready%s", s.ReadyReplicas, want, c.complaints(ctx))
	}
	return nil
}

// pods are those of members.
func (c *cluster) pods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := c.plane.Client.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: c.selector()})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// complaints says why pods do not run.
func (c *cluster) complaints(ctx context.Context) string {
	pods, err := c.plane.Client.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return ""
	}
	var all []string
	for _, p := range pods.Items {
		for _, s := range p.Status.ContainerStatuses {
			if s.State.Waiting != nil {
				all = append(all, fmt.Sprintf("%s: %s %s", p.Name, s.State.Waiting.Reason, s.State.Waiting.Message))
			}
		}
		if p.Spec.NodeName == "" {
			all = append(all, p.Name+" is not scheduled")
		}
	}
	if all == nil {
		return ""
	}
	return "; " + strings.Join(all, "; ")
}

// podName is that of a pod of the StatefulSet, and of its member.
func (c *cluster) podName(i int) string { return fmt.Sprintf("%s-%d", c.set(), i) }

func (c *cluster) claimName(i int) string { return "data-" + c.podName(i) }

func (c *cluster) pod(ctx context.Context, i int) (*corev1.Pod, error) {
	return c.plane.Client.CoreV1().Pods(c.namespace).Get(ctx, c.podName(i), metav1.GetOptions{})
}

// replaced waits until a pod is gone, or another one has its name.
func (c *cluster) replaced(ctx context.Context, p *corev1.Pod) error {
	return until(ctx, time.Minute, p.Name+" is gone", func() error {
		now, err := c.plane.Client.CoreV1().Pods(c.namespace).Get(ctx, p.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		case now.UID == p.UID:
			return errors.New("it is there")
		}
		return nil
	})
}

// nodeOf is the node on which a pod is.
func (c *cluster) nodeOf(p *corev1.Pod) (*node.Node, error) {
	for _, n := range c.nodes {
		if n.Name == p.Spec.NodeName {
			return n, nil
		}
	}
	return nil, fmt.Errorf("%s is on no node", p.Name)
}

// leader is the pod of the member that leads: its loss is felt most.
func (c *cluster) leader(ctx context.Context) (*corev1.Pod, error) {
	pods, err := c.pods(ctx)
	if err != nil {
		return nil, err
	}
	for i := range pods {
		if c.access.leads(ctx, pods[i].Status.PodIP) {
			return &pods[i], nil
		}
	}
	return nil, errors.New("no member leads")
}

// leaderNode is the node of the member that leads.
func (c *cluster) leaderNode(ctx context.Context) (*node.Node, error) {
	p, err := c.leader(ctx)
	if err != nil {
		return nil, err
	}
	return c.nodeOf(p)
}

// progress waits until more writes are acknowledged.
func (c *cluster) progress(ctx context.Context, more int) error {
	wanted := c.writer.acknowledged() + more
	return until(ctx, time.Minute, fmt.Sprintf("%d more writes are acknowledged", more), func() error {
		if has := c.writer.acknowledged(); has < wanted {
			return fmt.Errorf("%d are missing; the last error: %w", wanted-has, c.writer.problem())
		}
		return nil
	})
}

// quorateCommand runs a command of Quorate's own, as an operator does.
func (c *cluster) quorateCommand(ctx context.Context, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, c.quorate, arguments...)
	command.Env = append(os.Environ(), "QUORATE_ENDPOINTS="+strings.Join(c.access.endpoints, ","))
	if c.access.user != "" {
		command.Env = append(command.Env, "QUORATE_USER="+c.access.user, "QUORATE_PASSWORD="+c.access.password)
	}
	if c.access.authority != nil {
		file := filepath.Join(c.directory, c.namespace+".crt")
		if err := os.WriteFile(file, c.access.authority, 0o644); err != nil {
			return "", err
		}
		command.Env = append(command.Env, "QUORATE_CACERT="+file)
	}
	out, err := command.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("quorate %s: %w: %s", strings.Join(arguments, " "), err, out)
	}
	return string(out), nil
}

// logged waits until a member's log has a text.
func (c *cluster) logged(ctx context.Context, i int, text string) error {
	return until(ctx, time.Minute, fmt.Sprintf("the log of %s says %q", c.podName(i), text), func() error {
		for _, n := range c.nodes {
			log, err := os.ReadFile(n.Log(c.namespace, c.podName(i), container))
			if err == nil && strings.Contains(string(log), text) {
				return nil
			}
		}
		return errors.New("it does not")
	})
}

// drain cordons a node and evicts the cluster's pods from it, as kubectl drain does.
func (c *cluster) drain(ctx context.Context, name string) error {
	if err := c.cordon(ctx, name, true); err != nil {
		return err
	}
	return until(ctx, readyTime, name+" is empty", func() error {
		pods, err := c.plane.Client.CoreV1().Pods(c.namespace).List(ctx,
			metav1.ListOptions{FieldSelector: "spec.nodeName=" + name, LabelSelector: c.selector()})
		if err != nil {
			return err
		}
		for _, p := range pods.Items {
			eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace}}
			err := c.plane.Client.PolicyV1().Evictions(c.namespace).Evict(ctx, eviction)
			if err != nil && !apierrors.IsTooManyRequests(err) && !apierrors.IsNotFound(err) {
				return err
			}
		}
		if len(pods.Items) > 0 {
			return fmt.Errorf("%d pods are there", len(pods.Items))
		}
		return nil
	})
}

func (c *cluster) cordon(ctx context.Context, name string, cordoned bool) error {
	patch := fmt.Sprintf(`{"spec":{"unschedulable":%v}}`, cordoned)
	_, err := c.plane.Client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, []byte(patch),
		metav1.PatchOptions{})
	return err
}

// remove deletes the namespace with all that is in it, and waits until that is gone.
func (c *cluster) remove(ctx context.Context) error {
	spaces := c.plane.Client.CoreV1().Namespaces()
	if err := spaces.Delete(ctx, c.namespace, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return until(ctx, 2*time.Minute, "the namespace is gone", func() error {
		_, err := spaces.Get(ctx, c.namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.New("it is there")
	})
}
