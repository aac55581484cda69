package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/objects"
)

// keep lets each claim go with the cluster when that is deleted, or stay, as storage.keep says now: Kubernetes deletes what the
// cluster owns.
func (r *Clusters) keep(ctx context.Context, c *v1alpha1.QuorateCluster, s *sight) error {
	own := func(o metav1.OwnerReference) bool { return o.UID == c.UID }
	for _, name := range slices.Sorted(maps.Keys(s.claims)) {
		claim := s.claims[name]
		if slices.ContainsFunc(claim.OwnerReferences, own) != c.Spec.Storage.Keep {
			continue
		}
		from := claim.DeepCopy()
		if c.Spec.Storage.Keep {
			claim.OwnerReferences = slices.DeleteFunc(claim.OwnerReferences, own)
		} else {
			claim.OwnerReferences = append(claim.OwnerReferences, objects.Meta(c, name).OwnerReferences...)
		}
		err := r.Patch(ctx, claim, client.MergeFromWithOptions(from, client.MergeFromWithOptimisticLock{}))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("the owner of the claim %s: %w", name, err)
		}
	}
	return nil
}
