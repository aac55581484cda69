package controller

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

// tellUnread says of a cluster that it is not read, and why. Nothing else is done about it.
func (r *Clusters) tellUnread(ctx context.Context, err error) (told bool, failed error) {
	var of *unread
	if !errors.As(err, &of) {
		return false, err
	}
	text := bounded("nothing is done: "+of.Error(), 1024)
	if former, _, _ := unstructured.NestedString(of.object.Object, "status", "action"); former == text {
		return true, nil
	}
	r.Events.Eventf(of.object, nil, corev1.EventTypeWarning, "Unreadable", string(decide.Wait), "%s", bounded(text, mostNoted))
	status, ok := of.object.Object["status"].(map[string]any)
	if !ok {
		status = map[string]any{"healthyMembers": int64(0)} // which the CRD wants
		of.object.Object["status"] = status
	}
	status["action"] = text
	if err := r.Status().Update(ctx, of.object); err != nil && !apierrors.IsNotFound(err) {
		return true, fmt.Errorf("%s; its status: %w", text, err)
	}
	return true, nil
}
