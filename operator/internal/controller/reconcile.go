package controller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/decide"
)

// workers is how many clusters are looked at at once.
const workers = 8

// A look that fails is tried again after firstRetry, and after twice as long each time until lastRetry: a cluster must not wait
// for a quarter of an hour once the API server is back. One look takes at most lookFor.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 15 * time.Second
	lookFor    = time.Minute
)

// SetUp adds the controller to a manager.
func (r *Clusters) SetUp(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		// a status that was written is no news
		For(&v1alpha1.QuorateCluster{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.Pod{}).
		Owns(&corev1.PersistentVolumeClaim{}).Owns(&policyv1.PodDisruptionBudget{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstRetry, lastRetry)}).Complete(r)
}

// Reconcile takes one step for one cluster.
func (r *Clusters) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	c := &v1alpha1.QuorateCluster{}
	if err := r.Read.Get(ctx, req.NamespacedName, c); err != nil {
		if apierrors.IsNotFound(err) {
			r.told.Delete(req.NamespacedName)
			r.ages.Delete(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !c.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // its objects go with it
	}
	s, before := &sight{}, c.Status.DeepCopy()
	err := r.surroundings(ctx, c)
	if err == nil {
		err = r.look(ctx, c, s)
	}
	defer s.close()
	action := decide.Action{Kind: decide.Wait}
	if err == nil {
		r.warnings(ctx, s)
		action = decide.Next(&s.observed)
		err = r.act(ctx, c, s, action)
		if action.Kind != decide.Wait {
			r.tell(c, action, err)
		}
	}
	if err == nil && !c.Spec.Paused {
		err = r.follow(ctx, c, s)
	}
	if err != nil && action.Kind == decide.Wait && !apierrors.IsConflict(err) && before.Action != doing(action, err) {
		r.tell(c, action, err) // the same again is no news
	}
	if reported := r.report(ctx, c, s, before, action, err); err == nil {
		err = reported
	}
	if apierrors.IsConflict(err) { // somebody changed what was read: look again
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	if err != nil {
		if text := action.String(); text != "" {
			err = fmt.Errorf("%s: %w", text, err)
		}
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: max(decide.Pause(action), 200*time.Millisecond)}, nil
}
