package controller

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/decide"
	"github.com/quorate/quorate/operator/internal/objects"
)

// recoveryStatus and recoveryOf are two forms of what is remembered of a recovery.
func recoveryStatus(r *decide.Recovery) *v1alpha1.RecoveryStatus {
	lost := make([]v1alpha1.LostVoter, len(r.Lost))
	for i, l := range r.Lost {
		lost[i] = v1alpha1.LostVoter{Name: l.Member, Life: l.Life, Homeless: l.Homeless}
	}
	return &v1alpha1.RecoveryStatus{Survivor: r.Survivor, Lost: lost, Leaves: r.Leaves, Compare: r.Compare,
		Consent: v1alpha1.Consent{AcceptLossAfter: r.Accepted.Revision, Loss: r.Accepted.Loss},
		LogTerm: int64(r.Term), LogIndex: r.Index, Stopping: r.Stopping, Done: r.Done, Failed: r.Failed}
}

func recoveryOf(r *v1alpha1.RecoveryStatus) *decide.Recovery {
	if r == nil {
		return nil
	}
	lost := make([]decide.LostVoter, len(r.Lost))
	for i, l := range r.Lost {
		lost[i] = decide.LostVoter{Member: l.Name, Life: l.Life, Homeless: l.Homeless}
	}
	return &decide.Recovery{Survivor: r.Survivor, Lost: lost, Leaves: r.Leaves, Compare: r.Compare,
		Accepted: *consentOf(&r.Consent), Term: uint64(max(0, r.LogTerm)),
		Index: r.LogIndex, Stopping: r.Stopping, Done: r.Done, Failed: r.Failed}
}

func consentOf(c *v1alpha1.Consent) *decide.Consent {
	if c == nil {
		return nil
	}
	return &decide.Consent{Revision: c.AcceptLossAfter, Loss: c.Loss}
}

// recoverPod is the pod of a recovery.
func recoverPod(c *v1alpha1.QuorateCluster, r *decide.Recovery) *corev1.Pod {
	pod := objects.RecoverPod(c, &objects.Recovery{Survivor: r.Survivor, Leaves: r.Leaves, Compare: r.Compare,
		Term: int64(r.Term), Index: r.Index})
	pod.Annotations[objects.AnnotationTemplate] = objects.Template(c) // one that does not start is made anew by another
	return pod
}
