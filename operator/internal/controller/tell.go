package controller

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// tellAvailable makes an event where a cluster has begun to serve, has stopped, or has stopped for another reason.
func (r *Clusters) tellAvailable(c *v1alpha1.QuorateCluster, before *v1alpha1.QuorateClusterStatus) {
	is := meta.FindStatusCondition(c.Status.Conditions, Available)
	was := meta.FindStatusCondition(before.Conditions, Available)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return
	}
	kind := corev1.EventTypeWarning
	if is.Status == metav1.ConditionTrue {
		kind = corev1.EventTypeNormal
	} else if was == nil {
		return // it is being founded
	}
	r.Events.Eventf(c, nil, kind, is.Reason, Available, "%s", bounded(is.Message, 1024))
}
