package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/quorate/quorate/operator/internal/decide"
)

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
	status, ok := of.object.Object["status"].(map[string]any)
	if !ok {
		status = map[string]any{"healthyMembers": int64(0)} // which the CRD wants
		of.object.Object["status"] = status
	}
	status["action"] = text
	r.unknown(of.object, status, text)
	err = r.Status().Update(ctx, of.object)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return true, fmt.Errorf("%s; its status: %w", text, err)
	}
	r.Events.Eventf(of.object, nil, corev1.EventTypeWarning, "Unreadable", string(decide.Wait), "%s", bounded(text, mostNoted))
	return true, nil
}

// unknown says in the conditions of a status that nobody looks at the cluster: the last that was known would be taken for how
// it is. Other conditions stay.
func (r *Clusters) unknown(object *unstructured.Unstructured, status map[string]any, text string) {
	all, _ := status["conditions"].([]any)
	all = slices.DeleteFunc(slices.Clone(all), func(one any) bool {
		of, ok := one.(map[string]any)
		return !ok || slices.Contains([]any{Available, Healthy, Progressing}, of["type"])
	})
	for _, kind := range []string{Available, Healthy, Progressing} {
		all = append(all, map[string]any{"type": kind, "status": string(metav1.ConditionUnknown), "reason": "Unreadable",
			"message": text, "observedGeneration": object.GetGeneration(),
			"lastTransitionTime": r.Now().UTC().Format(time.RFC3339)})
	}
	status["conditions"] = all
}
