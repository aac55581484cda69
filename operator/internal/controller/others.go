package controller

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/objects"
)

// others refuses a spec that gives members what is another cluster's: a Secret with a key that another cluster owns, such as
// its authority or root's passwords, and the disk of any member.
func (r *Clusters) others(ctx context.Context, c *v1alpha1.QuorateCluster) error {
	for _, name := range secretsOf(&c.Spec) {
		secret := &corev1.Secret{}
		err := r.Read.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: name}, secret)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("the Secret %s: %w", name, err)
		}
		_, public := secret.Data["ca.crt"]
		owner := metav1.GetControllerOf(secret)
		if owner != nil && owner.Kind == "QuorateCluster" && owner.UID != c.UID && !(public && len(secret.Data) == 1) {
			return fmt.Errorf("the Secret %s is of the QuorateCluster %s: take it out of the spec", name, owner.Name)
		}
	}
	for _, name := range c.Spec.Claims {
		claim := &corev1.PersistentVolumeClaim{}
		err := r.Read.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: name}, claim)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("the claim %s: %w", name, err)
		}
		if of := claim.Labels[objects.LabelCluster]; claim.Labels[objects.LabelUID] != "" {
			return fmt.Errorf("the claim %s is the disk of a member of the QuorateCluster %s: take it out of spec.claims", name,
				of)
		}
	}
	return nil
}

// secretsOf are the Secrets that the spec gives to members, or whose passwords it gives to users.
func secretsOf(spec *v1alpha1.QuorateClusterSpec) []string {
	names := append(slices.Clone(spec.Secrets), spec.TLS.SecretName)
	for i := range spec.Env {
		if from := spec.Env[i].ValueFrom; from != nil && from.SecretKeyRef != nil {
			names = append(names, from.SecretKeyRef.Name)
		}
	}
	if auth := spec.Auth; auth != nil {
		names = append(names, auth.RootPasswordSecret)
		for i := range auth.Users {
			names = append(names, auth.Users[i].PasswordSecret)
		}
	}
	if from := spec.Restore; from != nil {
		names = append(names, from.RootPasswordSecret, from.IdentitySecret)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}
