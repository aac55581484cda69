package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/objects"
)

// surroundings keeps what members need around them: services, root's password, and certificates; while the cluster is paused,
// certificates alone, which members need to go on. An error of one of them keeps none of the others from being there.
func (r *Clusters) surroundings(ctx context.Context, c *v1alpha1.QuorateCluster) error {
	if c.Spec.Paused {
		return r.certificates(ctx, c)
	}
	var failed []error
	for _, service := range objects.Services(c) {
		if err := r.service(ctx, c, service); err != nil {
			failed = append(failed, fmt.Errorf("the Service %s: %w", service.Name, err))
		}
	}
	if c.Spec.Auth != nil {
		if err := r.rootPassword(ctx, c); err != nil {
			failed = append(failed, fmt.Errorf("root's password: %w", err))
		}
	}
	return errors.Join(append(failed, r.certificates(ctx, c))...)
}

// certificates keeps those of members, by the mode of the spec.
func (r *Clusters) certificates(ctx context.Context, c *v1alpha1.QuorateCluster) error {
	switch c.Spec.TLS.Mode {
	case objects.TLSBuiltIn:
		return r.builtIn(ctx, c)
	case objects.TLSCertManager:
		return r.certManager(ctx, c)
	}
	return nil
}

func (r *Clusters) service(ctx context.Context, c *v1alpha1.QuorateCluster, wanted *corev1.Service) error {
	there := &corev1.Service{}
	err := r.Read.Get(ctx, client.ObjectKeyFromObject(wanted), there)
	switch {
	case apierrors.IsNotFound(err):
		return r.create(ctx, wanted, c)
	case err != nil:
		return err
	case there.Labels[objects.LabelUID] != string(c.UID):
		return othersError(there)
	}
	from := there.DeepCopy()
	there.Spec.Type, there.Spec.Selector = wanted.Spec.Type, wanted.Spec.Selector
	there.Spec.PublishNotReadyAddresses = wanted.Spec.PublishNotReadyAddresses
	if there.Spec.Type == "" {
		there.Spec.Type = corev1.ServiceTypeClusterIP
	}
	for key, value := range wanted.Annotations {
		if there.Annotations == nil {
			there.Annotations = map[string]string{}
		}
		there.Annotations[key] = value
	}
	if from.Spec.Type == there.Spec.Type && maps.Equal(from.Annotations, there.Annotations) &&
		maps.Equal(from.Spec.Selector, there.Spec.Selector) &&
		from.Spec.PublishNotReadyAddresses == there.Spec.PublishNotReadyAddresses {
		return nil
	}
	return r.Patch(ctx, there, client.MergeFrom(from))
}

// membersOf are the members that have a claim: each has a certificate before it has a pod.
func (r *Clusters) membersOf(ctx context.Context, c *v1alpha1.QuorateCluster) ([]string, error) {
	claims, err := r.listClaims(ctx, client.InNamespace(c.Namespace), client.MatchingLabels(objects.Select(c)))
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range claims {
		if claim := &claims[i]; objects.NotOf(c, claim) == "" {
			names = append(names, claim.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// hosts are the names in the certificate of a member: its own, and those of the services that lead to it.
func hosts(c *v1alpha1.QuorateCluster, member string) []string {
	out := []string{objects.Host(c, member), objects.MembersService(c) + "." + c.Namespace + ".svc", c.Name +
		"." + c.Namespace + ".svc",
		c.Name + "." + c.Namespace, c.Name, "localhost"}
	return append(out, c.Spec.Exposure.Hosts...)
}

// certManager asks cert-manager for the certificates of members.
func (r *Clusters) certManager(ctx context.Context, c *v1alpha1.QuorateCluster) error {
	names, err := r.membersOf(ctx, c)
	if err != nil {
		return err
	}
	var failed []error
	for _, member := range names {
		meta := objects.Meta(c, objects.TLSSecretOf(c, member))
		wanted := &unstructured.Unstructured{}
		wanted.SetGroupVersionKind(schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"})
		wanted.SetName(meta.Name)
		wanted.SetNamespace(meta.Namespace)
		wanted.SetLabels(meta.Labels)
		wanted.SetOwnerReferences(meta.OwnerReferences)
		dns := []any{}
		for _, host := range hosts(c, member) {
			dns = append(dns, host)
		}
		wanted.Object["spec"] = map[string]any{"secretName": meta.Name, "commonName": member, "dnsNames": dns,
			"usages":    []any{"server auth", "client auth"},
			"issuerRef": map[string]any{"name": c.Spec.TLS.IssuerRef.Name, "kind": c.Spec.TLS.IssuerRef.Kind}}
		there := &unstructured.Unstructured{}
		there.SetGroupVersionKind(wanted.GroupVersionKind())
		err := r.certificateOf(ctx, c, wanted, there)
		if apierrors.IsForbidden(err) {
			err = fmt.Errorf("%w: set rbac.certManager=true in the values of the chart quorate-operator", err)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("the Certificate %s of cert-manager: %w", meta.Name, err))
		}
	}
	return errors.Join(failed...)
}

// certificateOf makes a Certificate, or lets the cluster's own be as the spec wants it.
func (r *Clusters) certificateOf(
	ctx context.Context, c *v1alpha1.QuorateCluster, wanted, there *unstructured.Unstructured,
) error {
	err := r.Read.Get(ctx, client.ObjectKeyFromObject(wanted), there)
	switch {
	case apierrors.IsNotFound(err):
		return r.create(ctx, wanted, c)
	case err != nil:
		return err
	case there.GetLabels()[objects.LabelUID] != string(c.UID):
		return othersError(there)
	}
	from, spec := there.DeepCopy(), map[string]any{}
	if is, ok := there.Object["spec"].(map[string]any); ok {
		maps.Copy(spec, is) // somebody may have set more, such as a duration
	}
	maps.Copy(spec, wanted.Object["spec"].(map[string]any))
	if there.Object["spec"] = spec; equality.Semantic.DeepEqual(from.Object["spec"], there.Object["spec"]) {
		return nil
	}
	return r.Patch(ctx, there, client.MergeFrom(from))
}
