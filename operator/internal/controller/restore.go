package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/objects"
)

// The states of a restore.
const (
	RestoreWaiting   = "Waiting"
	RestoreRestoring = "Restoring"
	RestoreDone      = "Done"
	RestoreFailed    = "Failed" // and the condition of that name
)

// RestoreComplete is the condition of a restore whose cluster serves.
const RestoreComplete = "Complete"

// A restore looks at its cluster each restoreLook. One that waits for another object does so the more seldom the older it is,
// up to restoreRests. As many as restoreWorkers look at once.
const (
	restoreLook    = 5 * time.Second
	restoreRests   = 5 * time.Minute
	restoreWorkers = 4
)

// annotationRestore names on a cluster the restore that made it, by its UID.
const annotationRestore = "quorate.io/restore"

// Restores reconciles QuorateRestore: it makes a cluster, and tells how that goes.
type Restores struct {
	client.Client
	Read client.Reader
}

// SetUp adds the controller to a manager.
func (r *Restores) SetUp(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&v1alpha1.QuorateRestore{}, builder.OnlyMetadata).
		WithOptions(controller.Options{MaxConcurrentReconciles: restoreWorkers}).Complete(r)
}

// Reconcile takes one step for one restore.
func (r *Restores) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	q := &v1alpha1.QuorateRestore{}
	if err := r.Read.Get(ctx, req.NamespacedName, q); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !q.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	before := q.Status.DeepCopy()
	if st := &q.Status; st.State != RestoreDone && st.State != RestoreFailed {
		state, message, err := r.step(ctx, q)
		if err != nil {
			return ctrl.Result{}, err
		}
		st.State, st.Message = state, bounded(message, 1024)
	}
	restoreConditions(q)
	if !same(before, q.Status) {
		if err := r.Status().Update(ctx, q); err != nil {
			return ctrl.Result{}, err
		}
	}
	if q.Status.State == RestoreDone || q.Status.State == RestoreFailed {
		return ctrl.Result{}, nil
	}
	if q.Status.State == RestoreWaiting {
		age := time.Since(q.CreationTimestamp.Time)
		return ctrl.Result{RequeueAfter: min(max(age/4, restoreLook), restoreRests)}, nil
	}
	return ctrl.Result{RequeueAfter: restoreLook}, nil
}

// restoreConditions says of a restore by conditions what its state says, also of one that an older operator has ended.
func restoreConditions(q *v1alpha1.QuorateRestore) {
	st := &q.Status
	st.ObservedGeneration = q.Generation
	set := func(kind string, is bool) {
		status := metav1.ConditionFalse
		if is {
			status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&st.Conditions, metav1.Condition{Type: kind, Status: status, Reason: st.State,
			Message: st.Message, ObservedGeneration: q.Generation})
	}
	set(RestoreComplete, st.State == RestoreDone)
	set(RestoreFailed, st.State == RestoreFailed)
}

func (r *Restores) step(ctx context.Context, q *v1alpha1.QuorateRestore) (state, message string, err error) {
	made, err := readCluster(ctx, r.Read, types.NamespacedName{Namespace: q.Namespace, Name: q.Spec.ClusterName})
	var of *unread
	switch {
	case apierrors.IsNotFound(err):
		return r.make(ctx, q)
	case errors.As(err, &of):
		return RestoreWaiting, err.Error(), nil
	}
	if err != nil {
		return "", "", err
	}
	switch {
	case made.Annotations[annotationRestore] != string(q.UID):
		return RestoreFailed,
			fmt.Sprintf("a cluster %s exists: a restore changes none. Make another restore with another clusterName",
				made.Name), nil
	case made.Status.ClusterID != "" && meta.IsStatusConditionTrue(made.Status.Conditions, Available):
		return RestoreDone, fmt.Sprintf("cluster %s serves; further members join it", made.Name), nil
	}
	return RestoreRestoring, made.Status.Action, nil
}

// make makes the cluster like another one, with the past state, and without a backup, which would go to the place of the
// former, and without its exposure: names and addresses outside of Kubernetes are those of the former.
func (r *Restores) make(ctx context.Context, q *v1alpha1.QuorateRestore) (state, message string, err error) {
	like, err := readCluster(ctx, r.Read, types.NamespacedName{Namespace: q.Namespace, Name: q.Spec.Like})
	var of *unread
	switch {
	case apierrors.IsNotFound(err):
		return RestoreWaiting, fmt.Sprintf("there is no cluster %s to take the spec of", q.Spec.Like), nil
	case errors.As(err, &of):
		return RestoreWaiting, err.Error(), nil
	}
	if err != nil {
		return "", "", err
	}
	c := &v1alpha1.QuorateCluster{ObjectMeta: metav1.ObjectMeta{Name: q.Spec.ClusterName, Namespace: q.Namespace,
		Annotations: map[string]string{annotationRestore: string(q.UID)}}}
	like.Spec.DeepCopyInto(&c.Spec)
	c.Spec.Backup, c.Spec.Recovery, c.Spec.Restore, c.Spec.Paused = nil, nil, q.Spec.From.DeepCopy(), false
	// that of its members: the release of the spec does not read states of this level
	if meta.IsStatusConditionTrue(like.Status.Conditions, VersionRefused) && like.Status.Image != "" {
		c.Spec.Image, c.Spec.Version = objects.Split(like.Status.Image)
	}
	c.Spec.Exposure = v1alpha1.Exposure{Type: string(corev1.ServiceTypeClusterIP)}
	if err := r.Create(ctx, c); err != nil {
		if apierrors.IsInvalid(err) {
			return RestoreFailed, err.Error(), nil
		}
		return "", "", err
	}
	return RestoreRestoring, "the cluster was made", nil
}
