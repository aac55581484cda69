package controller

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/operator/internal/objects"
)

// epochs notes on the claim of each member that the leader names in which epoch that is. So claims themselves tell which
// members a recovery left out, whoever ran it, and whatever becomes of the status. A member that is named was not removed.
// While there is a doubt whose word counts nothing is noted: one that lies may name an epoch, too.
func (r *Clusters) epochs(ctx context.Context, s *sight) error {
	if s.observed.Cluster == nil || s.observed.Doubted() != "" {
		return nil
	}
	for i := range s.observed.Cluster.Members {
		claim := s.claims[s.observed.Cluster.Members[i].Name]
		if claim == nil || s.observed.Cluster.Epoch.Name == "" {
			continue
		}
		err := r.annotateAll(ctx, claim, map[string]string{objects.AnnotationEpoch: s.observed.Cluster.Epoch.Name,
			objects.AnnotationRemoved: ""})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("the epoch of the claim %s: %w", claim.Name, err)
		}
	}
	return nil
}
