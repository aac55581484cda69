package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/certs"
	"github.com/quorate/quorate/operator/internal/objects"
)

// trustFirst is how long a new authority is trusted before it signs: kubelets bring files within minutes, and clients read
// what they were given when they please.
const trustFirst = 24 * time.Hour

// Keys of the Secret of the authority that is trusted, and signs later.
const (
	nextCert = "next.crt"
	nextKey  = "next.key"
)

// builtIn keeps the authority, its certificate for clients, and the certificates of members. Members read them anew by
// themselves: nothing restarts.
func (r *Clusters) builtIn(ctx context.Context, c *v1alpha1.QuorateCluster) error {
	names, err := r.membersOf(ctx, c)
	if err != nil {
		return err
	}
	authority, trusted, err := r.authority(ctx, c, names)
	if err != nil {
		return fmt.Errorf("the authority: %w", err)
	}
	var failed []error
	if err := r.publish(ctx, c, trusted); err != nil {
		failed = append(failed, fmt.Errorf("the certificate of the authority: %w", err))
	}
	for _, member := range names {
		if err := r.certificate(ctx, c, member, authority, trusted); err != nil {
			failed = append(failed, fmt.Errorf("the certificate of %s: %w", member, err))
		}
	}
	return errors.Join(failed...)
}

// authority returns the one that signs, and all that are trusted. A new one is trusted for a day before it signs, and the
// former one until its end.
func (r *Clusters) authority(ctx context.Context, c *v1alpha1.QuorateCluster, names []string) (certs.Pair, []byte, error) {
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: c.Namespace, Name: c.Name + "-authority"}
	err := r.Read.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		return r.newAuthority(ctx, c, key.Name, names)
	case err != nil:
		return certs.Pair{}, nil, err
	case secret.Labels[objects.LabelUID] != string(c.UID):
		return certs.Pair{}, nil, fmt.Errorf("the Secret %s exists and is not of this cluster: delete it", key.Name)
	}
	now := r.Now()
	signs := certs.Pair{Cert: secret.Data[corev1.TLSCertKey], Key: secret.Data[corev1.TLSPrivateKeyKey]}
	next := certs.Pair{Cert: secret.Data[nextCert], Key: secret.Data[nextKey]}
	if len(next.Cert) == 0 && certs.AuthorityOld(signs, now) {
		if next, err = certs.NewAuthority(c.Namespace+"/"+c.Name, now); err != nil {
			return signs, nil, err
		}
	}
	if len(next.Cert) > 0 && (certs.AuthorityAge(next, now) >= trustFirst || !certs.Signs(signs, now)) {
		signs, next = next, certs.Pair{}
	}
	trusted := certs.Trusted(signs.Cert, slices.Concat(next.Cert, secret.Data["ca.crt"]), now)
	data := map[string][]byte{corev1.TLSCertKey: signs.Cert, corev1.TLSPrivateKeyKey: signs.Key, "ca.crt": trusted}
	if len(next.Cert) > 0 {
		data[nextCert], data[nextKey] = next.Cert, next.Key
	}
	if same(secret.Data, data) {
		return signs, trusted, nil
	}
	secret.Data = data
	return signs, trusted, r.Update(ctx, secret)
}

// newAuthority makes the first one, or another one for a cluster whose Secret is gone: members go on with the certificates
// that they have, and trust the former one, which nobody can sign by any more.
func (r *Clusters) newAuthority(
	ctx context.Context, c *v1alpha1.QuorateCluster, name string, names []string,
) (certs.Pair, []byte, error) {
	var former []byte
	for _, member := range names {
		secret := &corev1.Secret{}
		key := types.NamespacedName{Namespace: c.Namespace, Name: objects.TLSSecretOf(c, member)}
		err := r.Read.Get(ctx, key, secret)
		if err != nil && !apierrors.IsNotFound(err) {
			return certs.Pair{}, nil, err
		}
		if secret.Labels[objects.LabelUID] == string(c.UID) {
			former = append(former, secret.Data["ca.crt"]...)
		}
	}
	pair, err := certs.NewAuthority(c.Namespace+"/"+c.Name, r.Now())
	if err != nil {
		return pair, nil, err
	}
	if len(former) > 0 {
		r.event(c, corev1.EventTypeWarning, "Authority", "Authority", fmt.Sprintf("the Secret %s was gone: another authority "+
			"signs from now on, and clients need ca.crt of the Secret %s anew", name, authorityName(c)))
	}
	trusted := certs.Trusted(pair.Cert, former, r.Now())
	return pair, trusted, r.create(ctx, &corev1.Secret{ObjectMeta: objects.Meta(c, name), Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: pair.Cert, corev1.TLSPrivateKeyKey: pair.Key, "ca.crt": trusted}}, c)
}

// authorityName is that of the Secret with which clients know members: it has no key.
func authorityName(c *v1alpha1.QuorateCluster) string { return c.Name + "-ca" }

// publish gives clients the certificates of the authorities apart from the key.
func (r *Clusters) publish(ctx context.Context, c *v1alpha1.QuorateCluster, trusted []byte) error {
	wanted := &corev1.Secret{ObjectMeta: objects.Meta(c, authorityName(c)), Data: map[string][]byte{"ca.crt": trusted}}
	there := &corev1.Secret{}
	err := r.Read.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: wanted.Name}, there)
	switch {
	case apierrors.IsNotFound(err):
		return r.create(ctx, wanted, c)
	case err != nil:
		return err
	case there.Labels[objects.LabelUID] != string(c.UID):
		return fmt.Errorf("the Secret %s exists and is not of this cluster: delete or rename it", wanted.Name)
	case bytes.Equal(there.Data["ca.crt"], trusted):
		return nil
	}
	there.Data = wanted.Data
	return r.Update(ctx, there)
}

func (r *Clusters) certificate(ctx context.Context, c *v1alpha1.QuorateCluster, member string, authority certs.Pair,
	trusted []byte) error {
	secret := &corev1.Secret{}
	name := objects.TLSSecretOf(c, member)
	err := r.Read.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: name}, secret)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	fresh := err != nil
	if !fresh && secret.Labels[objects.LabelUID] != string(c.UID) {
		return othersError(secret)
	}
	pair := certs.Pair{Cert: secret.Data[corev1.TLSCertKey], Key: secret.Data[corev1.TLSPrivateKeyKey]}
	due := fresh || certs.Due(pair, trusted, hosts(c, member), r.Now()) != ""
	if !due && bytes.Equal(secret.Data["ca.crt"], trusted) {
		return nil
	}
	if due {
		if pair, err = certs.Issue(authority, member, hosts(c, member), c.Spec.TLS.Validity.Duration, r.Now()); err != nil {
			return err
		}
	}
	data := map[string][]byte{corev1.TLSCertKey: pair.Cert, corev1.TLSPrivateKeyKey: pair.Key, "ca.crt": trusted}
	if fresh {
		made := &corev1.Secret{ObjectMeta: objects.Meta(c, name), Type: corev1.SecretTypeTLS, Data: data}
		return r.create(ctx, made, c)
	}
	secret.Data = data
	return r.Update(ctx, secret)
}
