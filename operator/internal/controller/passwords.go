package controller

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/objects"
)

// Keys of the Secret in which the operator remembers root's password: the one that the cluster took last, and the one that it
// is given. Whatever becomes of the Secret that the spec names, one of both counts.
const (
	passwordKey = "password"
	passwordNew = "next"
)

// annotationMade names on the Secret of remembered passwords the one that the operator made for people.
const annotationMade = "quorate.io/root-password-secret"

// rootPassword makes root's password, if nobody did. One that the cluster has already is never drawn anew, and no second Secret
// is made where the spec names another one: each would stay for ever.
func (r *Clusters) rootPassword(ctx context.Context, c *v1alpha1.QuorateCluster) error {
	key := types.NamespacedName{Namespace: c.Namespace, Name: c.Spec.Auth.RootPasswordSecret}
	err := r.Read.Get(ctx, key, &corev1.Secret{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	remembered, err := r.remembered(ctx, c)
	if err != nil {
		return err
	}
	text := cmp.Or(string(remembered.Data[passwordNew]), string(remembered.Data[passwordKey]))
	if text == "" && c.Status.UsersApplied != "" {
		return fmt.Errorf("the Secret %s is gone, and the cluster has a password of root: make the Secret again, with that "+
			"under the key %q", key.Name, passwordKey)
	}
	switch made := remembered.Annotations[annotationMade]; {
	case made == "":
		if remembered.Annotations == nil {
			remembered.Annotations = map[string]string{}
		}
		remembered.Annotations[annotationMade] = key.Name
		if err := r.write(ctx, c, remembered); err != nil {
			return err
		}
	case made != key.Name:
		return fmt.Errorf("there is no Secret %s: make it, with a password under the key %q. The operator has made the Secret "+
			"%s, and makes no other one", key.Name, passwordKey, made)
	}
	secret := &corev1.Secret{ObjectMeta: objects.Meta(c, key.Name),
		Data: map[string][]byte{passwordKey: []byte(cmp.Or(text, rand.Text()))}}
	secret.OwnerReferences = nil // it outlives the cluster, as its claims may
	return r.create(ctx, secret, c)
}

// remembered is the Secret of root's passwords that the cluster may have; an empty one if there is none yet.
func (r *Clusters) remembered(ctx context.Context, c *v1alpha1.QuorateCluster) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: c.Namespace, Name: c.Name + "-root-applied"}
	err := r.Read.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		return &corev1.Secret{ObjectMeta: objects.Meta(c, key.Name)}, nil
	case err != nil:
		return nil, err
	case secret.Labels[objects.LabelUID] != string(c.UID):
		return nil, fmt.Errorf("the Secret %s exists and is not of this cluster: delete or rename it", key.Name)
	}
	return secret, nil
}

// rememberRoot notes a password of root: before the cluster gets it, and once it has it.
func (r *Clusters) rememberRoot(ctx context.Context, c *v1alpha1.QuorateCluster, key, password string) error {
	secret, err := r.remembered(ctx, c)
	if err != nil {
		return err
	}
	if string(secret.Data[key]) == password {
		return nil
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[key] = []byte(password)
	return r.write(ctx, c, secret)
}

// write makes the Secret of remembered passwords, or changes it.
func (r *Clusters) write(ctx context.Context, c *v1alpha1.QuorateCluster, secret *corev1.Secret) error {
	if secret.ResourceVersion == "" {
		return r.create(ctx, secret, c)
	}
	return r.Update(ctx, secret)
}

// rootPasswords are those with which root may be able to log in, the one that is wanted first. A cluster whose spec has no
// users any more has those that were remembered; a restored one may have that of its state.
func (r *Clusters) rootPasswords(ctx context.Context, c *v1alpha1.QuorateCluster) (out []string, err error) {
	var wanted, restored string
	var failed error
	if c.Spec.Auth != nil {
		wanted, _, failed = r.password(ctx, c, c.Spec.Auth.RootPasswordSecret)
	}
	remembered, err := r.remembered(ctx, c)
	if err != nil { // another one's
		if remembered = (&corev1.Secret{}); c.Spec.Auth != nil {
			failed = errors.Join(failed, err)
		}
	}
	if from := c.Spec.Restore; from != nil && from.RootPasswordSecret != "" {
		if restored, _, err = r.password(ctx, c, from.RootPasswordSecret); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	texts := []string{wanted, string(remembered.Data[passwordNew]), string(remembered.Data[passwordKey]), restored}
	for _, text := range texts {
		if text != "" && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	if len(out) == 0 {
		return nil, failed
	}
	return out, nil
}

// password reads one from a Secret of the namespace, with the version of the Secret.
func (r *Clusters) password(ctx context.Context, c *v1alpha1.QuorateCluster, name string) (text, version string, err error) {
	secret := &corev1.Secret{}
	if err := r.Read.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: name}, secret); err != nil {
		return "", "", fmt.Errorf("the password in Secret %s: %w", name, err)
	}
	if len(secret.Data[passwordKey]) == 0 {
		return "", "", errors.New("the Secret " + name + ` has no password: put one under the key "password"`)
	}
	return string(secret.Data[passwordKey]), string(secret.UID) + "/" + secret.ResourceVersion, nil
}
