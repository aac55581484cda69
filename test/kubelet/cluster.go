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

// A cluster is Quorate's, in a namespace of its own.
type cluster struct {
	*ground
	subject
	namespace string
	class     string
	wanted    wanted // of an operated one
	writer    *writer
}

// create makes the cluster and waits until it is whole. Then writes begin.
func (c *cluster) create(ctx context.Context, class string) error {
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
	c.writer, err = startWriter(c.endpoints(c.namespace))
	return err
}

// ready waits until the cluster is whole.
func (c *cluster) ready(ctx context.Context) error {
	return until(ctx, readyTime, "the cluster is whole", func() error { return c.whole(ctx, c) })
}

// setWhole says why not all pods of a StatefulSet are of its newest revision, and ready.
func (c *cluster) setWhole(ctx context.Context, name string) error {
	set, err := c.plane.Client.AppsV1().StatefulSets(c.namespace).Get(ctx, name, metav1.GetOptions{})
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

func (c *cluster) pod(ctx context.Context, i int) (*corev1.Pod, error) {
	return c.plane.Client.CoreV1().Pods(c.namespace).Get(ctx, fmt.Sprintf("q-%d", i), metav1.GetOptions{})
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
		if leads(ctx, "http://"+pods[i].Status.PodIP+":2379") {
			return &pods[i], nil
		}
	}
	return nil, errors.New("no member leads")
}

func leads(ctx context.Context, endpoint string) bool {
	client, err := connect([]string{endpoint})
	if err != nil {
		return false
	}
	defer client.Close()
	call, cancel := context.WithTimeout(ctx, putTime)
	defer cancel()
	status, err := client.Status(call, endpoint)
	return err == nil && status.Leader == status.Header.MemberId
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
	command.Env = append(os.Environ(), "QUORATE_ENDPOINTS="+strings.Join(c.endpoints(c.namespace), ","))
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
