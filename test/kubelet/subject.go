package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quorate/quorate/test/kubelet/claims"
)

// thisTag is the tag of the build under test.
const thisTag = "now"

// statefulSet is one written by hand: cluster.yaml.
type statefulSet struct{ tag string }

func (s statefulSet) missing(g *ground) string {
	if s.tag != "" {
		return g.formerMissing()
	}
	return ""
}

func (s statefulSet) install(ctx context.Context, c *cluster, class string) error {
	affinity := apart
	if class == claims.Network {
		affinity = preferred // a member may go where another one is
	}
	for i := range replicas {
		c.access.endpoints = append(c.access.endpoints,
			fmt.Sprintf("http://%s.q.%s.svc.cluster.local:2379", c.podName(i), c.namespace))
	}
	filled := strings.NewReplacer("NAMESPACE", c.namespace, "CLASS", class, "IMAGE", "quorate:"+cmp.Or(s.tag, thisTag),
		"ANTIAFFINITY", affinity)
	return c.apply.apply(ctx, c.namespace, filled.Replace(clusterManifest))
}

func (statefulSet) whole(ctx context.Context, c *cluster) error { return c.setWhole(ctx) }

func (statefulSet) selector() string { return "app=q" }

func (statefulSet) set() string { return "q" }

func (statefulSet) judge(*cluster) error { return nil }

func (statefulSet) String() string { return "StatefulSet" }

// chart is deploy/charts/quorate, installed by Helm under the name chartName, unless it is given another one: with TLS for
// clients and members, and with users, or without; its first members have an image of a tag, or this build's. The name has the
// chart's, so that it is that of the members, too.
type chart struct {
	tls, users   bool
	release, tag string
}

const chartName = "quorate"

func (s chart) named() string { return cmp.Or(s.release, chartName) }

func (s chart) missing(g *ground) string {
	if s.tag != "" && g.formerMissing() != "" {
		return g.formerMissing()
	}
	return g.helmMissing(chartName)
}

func (s chart) install(ctx context.Context, c *cluster, class string) error {
	scheme := "http"
	if s.tls {
		scheme, c.values = "https", slices.Clone(encryptedValues)
		if err := c.issueSecret(ctx); err != nil {
			return err
		}
	}
	c.access.endpoints = []string{fmt.Sprintf("%s://%s.%s.svc.cluster.local:2379", scheme, s.named(), c.namespace)}
	if s.tag != "" {
		c.values = append(c.values, formerValues...)
	}
	if !s.users {
		c.values = append(c.values, "auth.rbac.create=false")
		return c.helm(ctx, append([]string{"install"}, c.chartValues(class, "image.tag="+cmp.Or(s.tag, thisTag))...)...)
	}
	if err := c.helm(ctx, append([]string{"install"}, c.chartValues(class)...)...); err != nil {
		return err
	}
	return c.readPassword(ctx, chartName, "etcd-root-password")
}

// chartValues are the arguments of an installation or an upgrade, with more values.
func (c *cluster) chartValues(class string, more ...string) []string {
	memory := cmp.Or(c.wanted.memory, "192MiB")
	all := []string{c.set(), c.charts + "/" + chartName, "-n", c.namespace, "--wait", "--timeout", "3m",
		"--set", "image.tag=now,persistence.size=1Gi", "--set", "persistence.storageClass=" + class}
	if c.valuesFile != "" {
		all = append(all, "-f", c.valuesFile, "--set", "memory="+memory)
	} else {
		all = append(all, "--set", "extraFlags={--memory="+memory+"}")
	}
	for _, value := range append(slices.Clone(c.values), more...) {
		all = append(all, "--set", value)
	}
	return all
}

func (chart) whole(ctx context.Context, c *cluster) error { return c.setWhole(ctx) }

func (s chart) selector() string {
	return "app.kubernetes.io/instance=" + s.named() + ",app.kubernetes.io/component=" + chartName
}

func (s chart) set() string { return s.named() }

func (chart) judge(*cluster) error { return nil }

func (chart) String() string { return "chart" }

// operated is a QuorateCluster, run by the operator of deploy/charts/quorate-operator: with an authority of the operator's, and
// with users, or without; its first members have a version, or this build's. Its name is operatedName, unless it is given
// another one.
type operated struct {
	tls, users    bool
	name, version string
}

const (
	operatorChart  = "quorate-operator"
	operatorSpace  = "quorate-system"
	secondSpace    = "quorate-second" // of a second operator, which has a lease of its own there: both act
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
  tls: {mode: %s}
  exposure: {hosts: [%s]}
%s
  replaceAfter: 10s
  args: [--memory=%s]
%s
`
)

func (s operated) missing(g *ground) string {
	if s.version != "" && g.formerMissing() != "" {
		return g.formerMissing()
	}
	if _, ok := g.images[operatorChart]; !ok {
		return "-image " + operatorChart + "=PATH"
	}
	return g.helmMissing(operatorChart)
}

func (s operated) install(ctx context.Context, c *cluster, class string) error {
	if !c.operatorInstalled {
		if err := c.installOperator(ctx, operatorSpace); err != nil {
			return err
		}
		c.operatorInstalled = true
		c.apply.forget()
	}
	mode := "None"
	if s.tls {
		mode = "BuiltIn"
	}
	c.access.endpoints = []string{s.endpoint(c.namespace)}
	c.wanted = wanted{members: replicas, version: cmp.Or(s.version, thisTag), size: "1Gi", class: class, tls: mode,
		host:   "q.example.com",
		memory: "192MiB"}
	if s.users {
		c.wanted.auth = "  auth: {rootPasswordSecret: q-root}"
	}
	if err := c.want(ctx, func(*wanted) {}); err != nil {
		return err
	}
	if s.tls {
		if err := c.readAuthority(ctx, operatedName+"-ca"); err != nil {
			return err
		}
	}
	if s.users {
		return c.readPassword(ctx, "q-root", "password")
	}
	return nil
}

// endpoint is the URL of clients.
func (s operated) endpoint(namespace string) string {
	scheme := "http"
	if s.tls {
		scheme = "https"
	}
	return fmt.Sprintf("%s://%s.%s.svc:2379", scheme, s.named(), namespace)
}

// installOperator installs the operator, with its CRDs, account and rights.
func (c *cluster) installOperator(ctx context.Context, namespace string) error {
	return c.helm(ctx, "install", operatorChart, c.charts+"/"+operatorChart, "-n", namespace, "--create-namespace", "--wait",
		"--timeout", "2m")
}

// want changes what the QuorateCluster shall be, and applies it.
func (c *cluster) want(ctx context.Context, change func(*wanted)) error {
	change(&c.wanted)
	w := c.wanted
	object := fmt.Sprintf(operatedObject, w.members, w.version, w.size, w.class, w.tls, w.host, w.auth,
		w.memory, w.more)
	return c.apply.apply(ctx, c.namespace, object)
}

// The resources of the operator.
var (
	quorateClusters = schema.GroupVersionResource{Group: "quorate.io", Version: "v1alpha1", Resource: "quorateclusters"}
	quorateBackups  = schema.GroupVersionResource{Group: "quorate.io", Version: "v1alpha1", Resource: "quoratebackups"}
	quorateRestores = schema.GroupVersionResource{Group: "quorate.io", Version: "v1alpha1", Resource: "quoraterestores"}
)

// object reads an object of the cluster's namespace.
func (c *cluster) object(ctx context.Context, kind schema.GroupVersionResource, name string) (*unstructured.Unstructured,
	error) {
	return c.apply.client.Resource(kind).Namespace(c.namespace).Get(ctx, name, metav1.GetOptions{})
}

// named is the name of the QuorateCluster.
func (s operated) named() string { return cmp.Or(s.name, operatedName) }

func (s operated) whole(ctx context.Context, c *cluster) error {
	object, err := c.object(ctx, quorateClusters, s.named())
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

func (s operated) selector() string {
	return "quorate.io/cluster=" + s.named() + ",quorate.io/purpose=member"
}

func (operated) set() string { return "" }

// judge fails if the operator was refused a right: its chart gives all that it needs.
func (operated) judge(c *cluster) error { return c.refusals(operatorSpace) }

func (operated) String() string { return "operator" }

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
