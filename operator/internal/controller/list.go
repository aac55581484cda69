package controller

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Bounds of the pods and claims that count as those of one cluster: labels are anybody's, and an object may have more than a
// MiB.
const (
	pageOf     = 10      // that are read at once
	mostListed = 500     // after years, a claim is left of each member that was replaced
	mostHeld   = 2 << 20 // bytes of them
	mostRead   = 8       // pages, or objects of clusters, that the process reads at once
)

var reading = make(chan struct{}, mostRead)

// listPods lists pods, without what the operator does not read.
func (r *Clusters) listPods(ctx context.Context, with ...client.ListOption) ([]corev1.Pod, error) {
	return listed(ctx, r.Read, "pods", &corev1.PodList{}, func(l *corev1.PodList) []corev1.Pod { return l.Items }, with)
}

// listClaims lists claims, without what the operator does not read.
func (r *Clusters) listClaims(ctx context.Context, with ...client.ListOption) ([]corev1.PersistentVolumeClaim, error) {
	return listed(ctx, r.Read, "claims", &corev1.PersistentVolumeClaimList{},
		func(l *corev1.PersistentVolumeClaimList) []corev1.PersistentVolumeClaim { return l.Items }, with)
}

// sized is an object of some type that tells how many bytes it has.
type sized[T any] interface {
	*T
	metav1.Object
	Size() int
}

// listed reads a list by pages, without what the operator does not read of objects. kind names them in errors.
func listed[L client.ObjectList, T any, P sized[T]](
	ctx context.Context, from client.Reader, kind string, page L, items func(L) []T, with []client.ListOption,
) (all []T, err error) {
	next, held := "", 0
	for {
		page := page.DeepCopyObject().(L)
		select {
		case reading <- struct{}{}:
		case <-ctx.Done():
			return nil, fmt.Errorf("list the %s: %w", kind, ctx.Err())
		}
		err := from.List(ctx, page, append([]client.ListOption{client.Limit(pageOf), client.Continue(next)}, with...)...)
		found := items(page)
		for i := range found {
			lessen(P(&found[i]))
			held += P(&found[i]).Size()
		}
		<-reading
		all = append(all, found...)
		switch next = page.GetContinue(); {
		case err != nil:
			return nil, fmt.Errorf("list the %s: %w", kind, err)
		case len(all) > mostListed || held > mostHeld:
			return nil, fmt.Errorf("more than %d %s, or than %d MiB of them, have the cluster's labels: take the labels off "+
				"those that are not its own, and delete claims of members that left", mostListed, kind, mostHeld>>20)
		case next == "":
			return all, nil
		}
	}
}

// lessen takes off an object what others write onto it. A patch is made of differences, and leaves that as it is.
func lessen(o metav1.Object) {
	o.SetManagedFields(nil)
	notes := o.GetAnnotations()
	for key := range notes {
		if !strings.HasPrefix(key, ownPrefix) {
			delete(notes, key)
		}
	}
	labels := o.GetLabels()
	for key := range labels {
		if !strings.HasPrefix(key, ownPrefix) {
			delete(labels, key)
		}
	}
}

const ownPrefix = "quorate.io/"
