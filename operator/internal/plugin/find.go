package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quorate/quorate/internal/ctl/command"
)

// mostListed bounds what is read of a list, and of names in an error.
const mostListed = 500

var clusterResource = schema.GroupVersionResource{Group: "quorate.io", Version: "v1alpha1", Resource: "quorateclusters"}

// find returns a cluster that has a running member.
func (k *Kubernetes) find(ctx context.Context, name string) (*cluster, error) {
	kind, bare, both := strings.Cut(name, "/")
	if !both {
		kind, bare = "", name
	} else if kind != kindCluster && kind != kindRelease {
		return nil, command.Usagef("%s: write NAME, %s/NAME or %s/NAME", name, kindCluster, kindRelease)
	}
	c := &cluster{name: bare, typed: name, namespace: k.Namespace, made: map[string]*appsv1.StatefulSet{}}
	resource, err := k.Resources.Resource(clusterResource).Namespace(k.Namespace).Get(ctx, bare, metav1.GetOptions{})
	switch {
	case kind == kindRelease:
	case err == nil:
		c.resource = resource
	case apierrors.IsForbidden(err): // it may be a release of the chart all the same
		c.warnings = append(c.warnings, "QuorateClusters cannot be read: "+err.Error())
	case !apierrors.IsNotFound(err): // which is also what an API server without the operator says
		return nil, unreachable(err)
	}
	selector := metav1.ListOptions{LabelSelector: instanceLabel + "=" + bare, Limit: mostListed}
	list, err := k.Client.CoreV1().Pods(k.Namespace).List(ctx, selector)
	switch {
	case apierrors.IsForbidden(err):
		return nil, denied("list the pods of "+name, err)
	case err != nil:
		return nil, unreachable(err)
	}
	var waiting []string
	for i := range list.Items {
		p, err := k.memberOf(ctx, c, kind, &list.Items[i])
		switch {
		case err != nil:
			return nil, err
		case p == nil:
		case p.running:
			c.pods = append(c.pods, p)
		default:
			waiting = append(waiting, p.name+" is "+p.state)
		}
	}
	slices.SortStableFunc(c.pods, func(a, b *pod) int { return order(b.ready) - order(a.ready) })
	if len(c.pods) > 0 {
		if !c.pods[0].ready {
			words := "no pod of " + name + " is ready: the cluster may have no leader; see kubectl -n " + k.Namespace +
				" get pods,pvc -o wide"
			c.warnings = append(c.warnings, strings.Join(append([]string{words}, waiting...), "; "))
		}
		return c, nil
	}
	switch {
	case len(waiting) > 0:
		return nil, command.Unreachable(fmt.Errorf("no pod of %s runs: %s; see kubectl -n %s describe pod", name,
			strings.Join(waiting, ", "), k.Namespace))
	case c.resource != nil:
		return nil, command.Unreachable(fmt.Errorf("the QuorateCluster %s has no pods: see kubectl -n %s describe "+
			"quoratecluster %[1]s", bare, k.Namespace))
	}
	return nil, k.absent(ctx, c)
}

func order(b bool) int {
	if b {
		return 1
	}
	return 0
}

// absent is the error of a name that no cluster has, with those that there are.
func (k *Kubernetes) absent(ctx context.Context, c *cluster) error {
	text := fmt.Sprintf("the namespace %s has no QuorateCluster and no release of the chart named %s", c.namespace, c.name)
	names, err := k.clusters(ctx)
	switch {
	case err != nil || len(names) == 0:
		text += "; -n names another namespace"
	default:
		text += "; it has " + strings.Join(names, ", ")
	}
	return command.Refused(errors.New(strings.Join(append([]string{text}, c.warnings...), "\n")))
}

// clusters are the names of the clusters of the namespace, sorted.
func (k *Kubernetes) clusters(ctx context.Context) (names []string, err error) {
	all := k.Resources.Resource(clusterResource).Namespace(k.Namespace)
	resources, err := all.List(ctx, metav1.ListOptions{Limit: mostListed})
	if err == nil {
		for i := range resources.Items {
			names = append(names, resources.Items[i].GetName())
		}
	}
	labelled := metav1.ListOptions{LabelSelector: instanceLabel, Limit: mostListed}
	pods, err := k.Client.CoreV1().Pods(k.Namespace).List(ctx, labelled)
	if err != nil {
		return names, err
	}
	for i := range pods.Items {
		if member(&pods.Items[i]) != nil {
			names = append(names, pods.Items[i].Labels[instanceLabel])
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// readSecret reads a Secret; instead says what else helps.
func (k *Kubernetes) readSecret(ctx context.Context, name, instead string) (*corev1.Secret, error) {
	s, err := k.Client.CoreV1().Secrets(k.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return nil, denied("read the Secret "+name, fmt.Errorf("%w; %s", err, instead))
	case err != nil:
		return nil, unreachable(err)
	}
	return s, nil
}
