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
func (r *Clusters) listPods(ctx context.Context, with ...client.ListOption) (all []corev1.Pod, err error) {
	held := 0
	err = r.pages(ctx, "pods", func(list func(client.ObjectList) error) (string, int, int, error) {
		var page corev1.PodList
		if err := list(&page); err != nil {
			return "", 0, 0, err
		}
		for i := range page.Items {
			lessen(&page.Items[i])
			held += page.Items[i].Size()
		}
		all = append(all, page.Items...)
		return page.Continue, len(all), held, nil
	}, with)
	return all, err
}

// listClaims lists claims, without what the operator does not read.
func (r *Clusters) listClaims(ctx context.Context, with ...client.ListOption) (all []corev1.PersistentVolumeClaim, err error) {
	held := 0
	err = r.pages(ctx, "claims", func(list func(client.ObjectList) error) (string, int, int, error) {
		var page corev1.PersistentVolumeClaimList
		if err := list(&page); err != nil {
			return "", 0, 0, err
		}
		for i := range page.Items {
			lessen(&page.Items[i])
			held += page.Items[i].Size()
		}
		all = append(all, page.Items...)
		return page.Continue, len(all), held, nil
	}, with)
	return all, err
}

// pages reads a list by pages, of which take tells where the next one begins, and how many objects and bytes there are.
func (r *Clusters) pages(ctx context.Context, kind string,
	take func(list func(client.ObjectList) error) (next string, objects, held int, err error), with []client.ListOption) error {
	next := ""
	for {
		select {
		case reading <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("list the %s: %w", kind, ctx.Err())
		}
		following, objects, held, err := take(func(into client.ObjectList) error {
			return r.Read.List(ctx, into, append([]client.ListOption{client.Limit(pageOf), client.Continue(next)}, with...)...)
		})
		<-reading
		switch {
		case err != nil:
			return fmt.Errorf("list the %s: %w", kind, err)
		case objects > mostListed || held > mostHeld:
			return fmt.Errorf("more than %d %s, or than %d MiB of them, have the cluster's labels: take the labels off those "+
				"that are not its own, and delete claims of members that left", mostListed, kind, mostHeld>>20)
		case following == "":
			return nil
		}
		next = following
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
