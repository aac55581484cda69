package controller

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/decide"
)

// tell makes an event of an action.
func (r *Clusters) tell(c *v1alpha1.QuorateCluster, a decide.Action, err error) {
	if err != nil {
		r.Events.Eventf(c, nil, corev1.EventTypeWarning, "Failed", string(a.Kind), "%s", doing(a, err))
		return
	}
	r.Events.Eventf(c, nil, corev1.EventTypeNormal, string(a.Kind), string(a.Kind), "%s", a)
}
