package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quorate/quorate/test/kubelet/claims"
	"github.com/quorate/quorate/test/kubelet/node"
)

//go:embed cluster.yaml
var clusterManifest string

const (
	replicas  = 3
	container = "quorate"
	readyTime = 3 * time.Minute
)

// How pods of a cluster avoid each other's nodes.
const (
	elsewhere = `{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: q}}}`
	apart     = `requiredDuringSchedulingIgnoredDuringExecution: [` + elsewhere + `]`
	preferred = `preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: ` + elsewhere + `}]`
)

// A cluster is Quorate's, as a StatefulSet in a namespace of its own.
type cluster struct {
	*ground
	namespace string
	writer    *writer
}

func (c *cluster) manifest(class, image, affinity string) string {
	return strings.NewReplacer("NAMESPACE", c.namespace, "CLASS", class, "IMAGE", image, "ANTIAFFINITY",
		affinity).Replace(clusterManifest)
}

// create makes the cluster and waits until all its members are ready. Then writes begin.
func (c *cluster) create(ctx context.Context, class string) error {
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}}
	if _, err := c.plane.Client.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{}); err != nil {
		return err
	}
	affinity := apart
	if class == claims.Network {
		affinity = preferred // a member may go where another one is
	}
	if err := c.apply.apply(ctx, c.namespace, c.manifest(class, "quorate:now", affinity)); err != nil {
		return err
	}
	if err := c.ready(ctx); err != nil {
		return err
	}
	var err error
	c.writer, err = startWriter(c.endpoints())
	return err
}

func (c *cluster) endpoints() []string {
	var all []string
	for i := range replicas {
		all = append(all, "http://"+c.host(i)+":2379")
	}
	return all
}

func (c *cluster) host(i int) string {
	return fmt.Sprintf("q-%d.q.%s.svc.cluster.local", i, c.namespace)
}

// ready waits until all pods are of the newest revision, and ready, and all members answer as one cluster.
func (c *cluster) ready(ctx context.Context) error {
	return until(ctx, readyTime, "all members are ready", func() error {
		set, err := c.plane.Client.AppsV1().StatefulSets(c.namespace).Get(ctx, "q", metav1.GetOptions{})
		if err != nil {
			return err
		}
		s := set.Status
		if s.ObservedGeneration < set.Generation || s.ReadyReplicas < replicas || s.UpdatedReplicas < replicas {
			return fmt.Errorf("%d of %d are%s", s.ReadyReplicas, replicas, c.complaints(ctx))
		}
		return nil
	})
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

func (c *cluster) pod(ctx context.Context, i int) (*corev1.Pod, error) {
	return c.plane.Client.CoreV1().Pods(c.namespace).Get(ctx, fmt.Sprintf("q-%d", i), metav1.GetOptions{})
}

// nodeOf is the node on which a member's pod is.
func (c *cluster) nodeOf(ctx context.Context, i int) (*node.Node, error) {
	p, err := c.pod(ctx, i)
	if err != nil {
		return nil, err
	}
	for _, n := range c.nodes {
		if n.Name == p.Spec.NodeName {
			return n, nil
		}
	}
	return nil, fmt.Errorf("%s is on no node", p.Name)
}

// leader is the number of the member that leads: its loss is felt most.
func (c *cluster) leader(ctx context.Context) (int, error) {
	client, err := connect(c.endpoints())
	if err != nil {
		return 0, err
	}
	defer client.Close()
	for i, endpoint := range c.endpoints() {
		call, cancel := context.WithTimeout(ctx, putTime)
		status, err := client.Status(call, endpoint)
		cancel()
		if err == nil && status.Leader == status.Header.MemberId {
			return i, nil
		}
	}
	return 0, errors.New("no member leads")
}

// leaderNode is the node of the member that leads.
func (c *cluster) leaderNode(ctx context.Context) (*node.Node, error) {
	i, err := c.leader(ctx)
	if err != nil {
		return nil, err
	}
	return c.nodeOf(ctx, i)
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
	command.Env = append(os.Environ(), "QUORATE_ENDPOINTS="+strings.Join(c.endpoints(), ","))
	out, err := command.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("quorate %s: %w: %s", strings.Join(arguments, " "), err, out)
	}
	return string(out), nil
}

// logged waits until a member's log has a text.
func (c *cluster) logged(ctx context.Context, i int, text string) error {
	return until(ctx, time.Minute, fmt.Sprintf("the log of q-%d says %q", i, text), func() error {
		for _, n := range c.nodes {
			log, err := os.ReadFile(n.Log(c.namespace, fmt.Sprintf("q-%d", i), container))
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
			metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
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
