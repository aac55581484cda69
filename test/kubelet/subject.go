package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quorate/quorate/test/kubelet/claims"
)

// A subject is a way to have a cluster of Quorate on Kubernetes.
type subject interface {
	// missing says what the ground lacks for it; empty if it lacks nothing.
	missing(g *ground) string
	// install makes the cluster in its namespace, with claims of a class.
	install(ctx context.Context, c *cluster, class string) error
	// whole says why the cluster is not as it shall be.
	whole(ctx context.Context, c *cluster) error
	// endpoints are those of clients.
	endpoints(namespace string) []string
	// selector selects the pods of members.
	selector() string
}

// statefulSet is one written by hand: cluster.yaml.
type statefulSet struct{}

func (statefulSet) missing(*ground) string { return "" }

func (statefulSet) install(ctx context.Context, c *cluster, class string) error {
	affinity := apart
	if class == claims.Network {
		affinity = preferred // a member may go where another one is
	}
	filled := strings.NewReplacer("NAMESPACE", c.namespace, "CLASS", class, "IMAGE", "quorate:now", "ANTIAFFINITY", affinity)
	return c.apply.apply(ctx, c.namespace, filled.Replace(clusterManifest))
}

func (statefulSet) whole(ctx context.Context, c *cluster) error { return c.setWhole(ctx, "q") }

func (statefulSet) endpoints(namespace string) []string {
	var all []string
	for i := range replicas {
		all = append(all, fmt.Sprintf("http://q-%d.q.%s.svc.cluster.local:2379", i, namespace))
	}
	return all
}

func (statefulSet) selector() string { return "app=q" }

// chart is deploy/charts/quorate, installed by Helm under the name quorate.
type chart struct{}

const chartName = "quorate"

func (chart) missing(g *ground) string { return g.helmMissing(chartName) }

func (chart) install(ctx context.Context, c *cluster, class string) error {
	return c.helm(ctx, append([]string{"install"}, c.chartValues(class)...)...)
}

// chartValues are the arguments of an installation or an upgrade, with more values.
func (c *cluster) chartValues(class string, more ...string) []string {
	all := []string{chartName, c.charts + "/" + chartName, "-n", c.namespace, "--wait", "--timeout", "3m",
		"--set", "image.tag=now,auth.rbac.create=false,persistence.size=1Gi,extraFlags={--memory=192MiB}",
		"--set", "persistence.storageClass=" + class}
	for _, value := range more {
		all = append(all, "--set", value)
	}
	return all
}

func (chart) whole(ctx context.Context, c *cluster) error { return c.setWhole(ctx, chartName) }

func (chart) endpoints(namespace string) []string {
	return []string{fmt.Sprintf("http://%s.%s.svc.cluster.local:2379", chartName, namespace)}
}

func (chart) selector() string { return "app.kubernetes.io/instance=" + chartName }

// operated is a QuorateCluster, run by the operator of deploy/charts/quorate-operator.
type operated struct{}

const (
	operatorChart  = "quorate-operator"
	operatorSpace  = "quorate-system"
	operatedName   = "q"
	operatedObject = `
apiVersion: quorate.io/v1alpha1
kind: QuorateCluster
metadata: {name: q}
spec:
  members: %d
  image: quorate
  version: %s
  storage: {size: %s, className: %s}
  tls: {mode: None}
  replaceAfter: 10s
  args: [--memory=192MiB]
`
)

func (operated) missing(g *ground) string {
	if _, ok := g.images[operatorChart]; !ok {
		return "-image " + operatorChart + "=PATH"
	}
	return g.helmMissing(operatorChart)
}

func (operated) install(ctx context.Context, c *cluster, class string) error {
	if !c.operatorInstalled {
		err := c.helm(ctx, "install", operatorChart, c.charts+"/"+operatorChart, "-n", operatorSpace,
			"--create-namespace", "--wait",
			"--timeout", "2m")
		if err != nil {
			return err
		}
		c.operatorInstalled = true
		c.apply.forget()
	}
	return c.want(ctx, class, wanted{members: replicas, version: "now", size: "1Gi"})
}

// wanted is what a QuorateCluster shall be.
type wanted struct {
	members       int
	version, size string
}

// want applies the QuorateCluster.
func (c *cluster) want(ctx context.Context, class string, w wanted) error {
	c.class, c.wanted = class, w
	return c.apply.apply(ctx, c.namespace, fmt.Sprintf(operatedObject, w.members, w.version, w.size, class))
}

var quorateClusters = schema.GroupVersionResource{Group: "quorate.io", Version: "v1alpha1", Resource: "quorateclusters"}

func (operated) whole(ctx context.Context, c *cluster) error {
	object, err := c.apply.client.Resource(quorateClusters).Namespace(c.namespace).Get(ctx, operatedName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	seen, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	healthy, _, _ := unstructured.NestedInt64(object.Object, "status", "healthyMembers")
	action, _, _ := unstructured.NestedString(object.Object, "status", "action")
	pods, err := c.pods(ctx)
	if err != nil {
		return err
	}
	ready := 0
	for _, p := range pods {
		if isReady(&p) && p.DeletionTimestamp == nil && strings.HasSuffix(p.Spec.Containers[0].Image, ":"+c.wanted.version) {
			ready++
		}
	}
	if seen < object.GetGeneration() || int(healthy) != c.wanted.members || ready != c.wanted.members || len(pods) != ready {
		return fmt.Errorf("%d healthy members, %d of %d pods are ready and of the version, action %q%s", healthy, ready,
			len(pods), action,
			c.complaints(ctx))
	}
	return nil
}

func (operated) endpoints(namespace string) []string {
	return []string{fmt.Sprintf("http://%s.%s.svc.cluster.local:2379", operatedName, namespace)}
}

func (operated) selector() string {
	return "quorate.io/cluster=" + operatedName + ",quorate.io/purpose=member"
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// helmMissing says what a chart needs that was not given.
func (g *ground) helmMissing(name string) string {
	switch _, err := os.Stat(g.charts + "/" + name + "/Chart.yaml"); {
	case g.helmPath == "":
		return "-helm PATH"
	case err != nil:
		return "the chart " + name + " in -charts DIR"
	}
	return ""
}

// helm runs Helm.
func (g *ground) helm(ctx context.Context, arguments ...string) error {
	command := exec.CommandContext(ctx, g.helmPath, arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+g.plane.Kubeconfig, "HOME="+g.directory)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("helm %s: %w: %s", arguments[0], err, out)
	}
	return nil
}
