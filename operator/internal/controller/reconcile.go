package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/decide"
)

// workers is how many clusters are looked at at once: a look waits for members and for the API server, and computes little.
const workers = 64

// slow is how long a look takes that is not repeated before as long has passed: members that hang are not asked all the time.
const slow = 3 * time.Second

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
		// not by its type: one object that cannot be decoded would keep all others from being heard of. A status that was
		// written is no news
		For(unstructuredCluster(), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.Pod{}, builder.OnlyMetadata).Owns(&corev1.PersistentVolumeClaim{}, builder.OnlyMetadata).
		Owns(&policyv1.PodDisruptionBudget{}, builder.OnlyMetadata).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstRetry, lastRetry)}).Complete(r)
}

// unreadAgain is how long a cluster is left alone whose object is not read. A change of its spec is looked at at once.
const unreadAgain = time.Minute

// Reconcile takes one step for one cluster.
func (r *Clusters) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	done, ok := r.shares.take(req.Namespace)
	if !ok {
		return ctrl.Result{RequeueAfter: later()}, nil
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	begun := r.Now()
	c, err := readCluster(ctx, r.Read, req.NamespacedName)
	if apierrors.IsNotFound(err) {
		r.told.Delete(req.NamespacedName)
		r.ages.Delete(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if told, err := r.tellUnread(ctx, err); err != nil {
		return ctrl.Result{}, err
	} else if told {
		return ctrl.Result{RequeueAfter: unreadAgain}, nil
	}
	if !c.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // its objects go with it
	}
	action, err := r.take(ctx, c)
	if apierrors.IsConflict(err) { // somebody changed what was read: look again
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	if err != nil {
		if text := action.String(); text != "" {
			err = fmt.Errorf("%s: %w", text, err)
		}
		return ctrl.Result{}, err
	}
	pause := max(decide.Pause(action), 200*time.Millisecond)
	if took := r.Now().Sub(begun); took > slow && action.Kind == decide.Wait {
		pause = max(pause, took)
	}
	return ctrl.Result{RequeueAfter: pause}, nil
}

// take looks at a cluster, and takes one step for it.
func (r *Clusters) take(ctx context.Context, c *v1alpha1.QuorateCluster) (decide.Action, error) {
	s, before := &sight{}, c.Status.DeepCopy()
	err := r.prepare(ctx, c, s)
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
	known := errors.Join(err, s.around)
	if known != nil && action.Kind == decide.Wait && !apierrors.IsConflict(known) && before.Action != doing(action, known) {
		r.tell(c, action, known) // the same again is no news
	}
	if reported := r.report(ctx, c, s, before, action, known); err == nil {
		err = reported
	}
	if err != nil || action.Kind == decide.Wait && action.Why == "" {
		err = known // nothing else is done for the cluster: look again later and later
	}
	return action, err
}

// prepare keeps the surroundings of a cluster, and fails where nothing must be done without them: for a cluster that is not
// founded, or whose spec names what is another cluster's. Any other error is remembered, and members are kept: most of these
// concern only those that come, and a lost member waits for none.
func (r *Clusters) prepare(ctx context.Context, c *v1alpha1.QuorateCluster, s *sight) error {
	if !c.Spec.Paused {
		if err := r.others(ctx, c); err != nil {
			return err
		}
	}
	err := r.surroundings(ctx, c)
	if c.Status.ClusterID == "" || apierrors.IsConflict(err) {
		return err
	}
	s.around = err
	return nil
}
