package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/objects"
)

// label marks the pods of voters, which the disruption budget counts. A new pod gets its mark once all voters reach each
// other: until then none is evicted, since a member that others do not reach is no part of a quorum, though it is ready. A pod
// whose member is no voter any more loses it before the budget gets smaller: it would stand for a voter in the count. While
// members tell different clusters all marks stay.
func (r *Clusters) label(ctx context.Context, s *sight) error {
	if s.observed.Cluster == nil || s.observed.Doubted() != "" {
		return nil
	}
	voters := map[string]bool{}
	for i := range s.observed.Cluster.Members {
		if m := &s.observed.Cluster.Members[i]; m.Voter {
			voters[m.Name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		pod := s.pods[name]
		votes := voters[pod.Labels[objects.LabelMember]] && pod.Labels[objects.LabelPurpose] == objects.PurposeMember
		if (pod.Labels[objects.LabelVoter] == "true") == votes || votes && len(s.view.Apart) > 0 {
			continue
		}
		from := pod.DeepCopy()
		pod.Labels[objects.LabelVoter] = strconv.FormatBool(votes)
		if err := r.Patch(ctx, pod, client.MergeFrom(from)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("label the pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

// budget keeps the disruption budget at the number of voters. While no leader tells them it stays as it is: members that the
// spec does not want any more still count.
func (r *Clusters) budget(ctx context.Context, c *v1alpha1.QuorateCluster, s *sight) error {
	voters := max(int(c.Spec.Members), len(s.claims))
	if s.observed.Cluster != nil {
		voters = 0
		for i := range s.observed.Cluster.Members {
			if s.observed.Cluster.Members[i].Voter {
				voters++
			}
		}
	}
	wanted := objects.Budget(c, voters)
	there := &policyv1.PodDisruptionBudget{}
	err := r.Read.Get(ctx, client.ObjectKeyFromObject(wanted), there)
	switch {
	case apierrors.IsNotFound(err):
		return r.create(ctx, wanted, c)
	case err != nil:
		return err
	case there.Labels[objects.LabelUID] != string(c.UID):
		return othersError(there)
	case s.observed.Cluster == nil, s.observed.Doubted() != "":
		return nil
	case there.Spec.MinAvailable != nil && *there.Spec.MinAvailable == *wanted.Spec.MinAvailable:
		return nil
	}
	from := there.DeepCopy()
	there.Spec = wanted.Spec
	return r.Patch(ctx, there, client.MergeFrom(from))
}
