package plugin

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/objects"
)

// A pod wears the labels that somebody gave it, and gets root's password: it counts only as one of the object that makes the
// cluster's pods, and that object says which Secrets are read and whether connections are encrypted.

// instanceLabel of the pods of members is the name of the cluster, whoever made them.
const instanceLabel = "app.kubernetes.io/instance"

// Kinds before a name say which is meant where a QuorateCluster and a release have it.
const (
	kindCluster = "quoratecluster"
	kindRelease = "release"
)

// cluster is a cluster with the pods of its members.
type cluster struct {
	name, namespace string
	typed           string                     // as the command names it, maybe with its kind before the name
	resource        *unstructured.Unstructured // the QuorateCluster; nil: a release of the chart
	made            map[string]*appsv1.StatefulSet
	pods            []*pod // that run; the ready ones first
	warnings        []string
}

// memberOf reads a pod with the label of a cluster's name; nil: it is none of its members.
func (k *Kubernetes) memberOf(ctx context.Context, c *cluster, kind string, p *corev1.Pod) (*pod, error) {
	m := member(p)
	if m == nil {
		return nil, nil
	}
	if c.resource != nil && c.owns(p) {
		return m, c.encrypts(m)
	}
	owner := metav1.GetControllerOf(p)
	if owner == nil || owner.Kind != "StatefulSet" || c.resource != nil && kind == kindCluster {
		return nil, nil
	}
	if c.resource != nil {
		return nil, command.Usagef("a QuorateCluster and a release have the name %s: write %[2]s/%[1]s or %[3]s/%[1]s", c.name,
			kindCluster, kindRelease)
	}
	set, err := k.setOf(ctx, c, owner.Name)
	if err != nil || set == nil || set.UID != owner.UID || set.Labels[instanceLabel] != c.name || !isOf(p, set) {
		return nil, err
	}
	made := corev1.Pod{ObjectMeta: set.Spec.Template.ObjectMeta, Spec: set.Spec.Template.Spec}
	made.Name, made.Namespace = p.Name, p.Namespace
	if from := member(&made); from != nil { // what it says counts, whatever became of the pod
		m.password, m.encrypted = from.password, from.encrypted
		m.demands, m.selfSigned, m.foreign = from.demands, from.selfSigned, from.foreign
		m.authority, m.certificate, m.key = from.authority, from.certificate, from.key
	}
	return m, nil
}

// owns tells whether a pod is a member's of the QuorateCluster, and one that its status names, if that names any.
func (c *cluster) owns(p *corev1.Pod) bool {
	of := &v1alpha1.QuorateCluster{}
	of.Name, of.Namespace, of.UID = c.name, c.namespace, c.resource.GetUID()
	if objects.NotOf(of, p) != "" {
		return false
	}
	members, _, _ := unstructured.NestedSlice(c.resource.Object, "status", "members")
	return len(members) == 0 || slices.ContainsFunc(members, func(of any) bool {
		m, ok := of.(map[string]any)
		return ok && m["name"] == p.Name
	})
}

// encrypts lets the spec say by which Secrets a member is known, and refuses one that does not encrypt though the spec says so.
func (c *cluster) encrypts(m *pod) error {
	m.password = nil // the spec names it
	text := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(c.resource.Object, append([]string{"spec", "tls"}, fields...)...)
		return value
	}
	mode, secret := text("mode"), m.name+"-tls"
	switch {
	case mode == objects.TLSNone:
		return nil
	case !m.encrypted || m.selfSigned:
		return command.Refused(fmt.Errorf("the pod %s does not encrypt as spec.tls of the QuorateCluster %s says, and nothing "+
			"is sent to it: see kubectl -n %s describe pod %[1]s", m.name, c.name, c.namespace))
	case mode == objects.TLSSecret:
		secret = text("secretName")
	}
	m.foreign, m.authority, m.certificate, m.key = "", &file{secret, "ca.crt"}, nil, nil
	switch {
	case m.demands:
		m.certificate, m.key = &file{secret, "tls.crt"}, &file{secret, "tls.key"}
	case mode == objects.TLSBuiltIn: // its Secret has no key, and the same name whichever members there are
		m.authority = &file{c.name + "-ca", "ca.crt"}
	}
	return nil
}

// setOf reads a StatefulSet once; nil: there is none of the name.
func (k *Kubernetes) setOf(ctx context.Context, c *cluster, name string) (*appsv1.StatefulSet, error) {
	if set, known := c.made[name]; known {
		return set, nil
	}
	set, err := k.Client.AppsV1().StatefulSets(k.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return nil, denied("read the StatefulSet "+name+", which says whose the pods of "+c.name+" are", err)
	case apierrors.IsNotFound(err):
		set = nil
	case err != nil:
		return nil, unreachable(err)
	}
	c.made[name] = set
	return set, nil
}

// isOf tells whether a pod has the name of one of a StatefulSet's: of a name there is one pod.
func isOf(p *corev1.Pod, set *appsv1.StatefulSet) bool {
	digits, ok := strings.CutPrefix(p.Name, set.Name+"-")
	number, err := strconv.Atoi(digits)
	first, count := 0, 1
	if set.Spec.Ordinals != nil {
		first = int(set.Spec.Ordinals.Start)
	}
	if set.Spec.Replicas != nil {
		count = int(*set.Spec.Replicas)
	}
	return ok && err == nil && digits == strconv.Itoa(number) && number >= first && number < first+count
}
