package controller

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/decide"
)

// mostNoted is how many bytes an event has at most: the API server refuses more than 1024, and bounded adds a mark.
const mostNoted = 1000

// event makes an event of a cluster.
func (r *Clusters) event(c *v1alpha1.QuorateCluster, kind, reason, action, text string) {
	r.Events.Eventf(c, nil, kind, reason, action, "%s", bounded(text, mostNoted))
}

// tell makes an event of an action.
func (r *Clusters) tell(c *v1alpha1.QuorateCluster, a decide.Action, err error) {
	if err != nil {
		r.event(c, corev1.EventTypeWarning, "Failed", string(a.Kind), doing(a, err))
		return
	}
	r.event(c, corev1.EventTypeNormal, string(a.Kind), string(a.Kind), a.String())
}
