package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/decide"
	"github.com/quorate/quorate/operator/internal/objects"
)

// act performs an action. One that was done already is no error.
func (r *Clusters) act(ctx context.Context, c *v1alpha1.QuorateCluster, s *sight, a decide.Action) error {
	switch a.Kind {
	case decide.Wait:
		return nil
	case decide.Found, decide.Founded, decide.Recover, decide.StopMembers, decide.RecoverFails, decide.VoidConsent:
		return r.remember(ctx, c, s, a)
	case decide.CreateClaim:
		return r.create(ctx, objects.Claim(c, a.Member, a.Serial, a.Zone), c)
	case decide.NoteRemoved:
		return r.annotate(ctx, s.claims[a.Member], objects.AnnotationRemoved, "true")
	case decide.DeleteClaim:
		claim := s.claims[a.Member]
		// a process may have got it meanwhile
		as := client.Preconditions{UID: &claim.UID, ResourceVersion: &claim.ResourceVersion}
		return client.IgnoreNotFound(r.Delete(ctx, claim, as))
	case decide.ResizeClaim:
		return r.resize(ctx, c, s.claims[a.Member])
	case decide.CreatePod:
		return r.createPod(ctx, c, s, a)
	case decide.DeletePod:
		return r.deletePod(ctx, s.pods[a.Member], a)
	case decide.RunRecovery:
		return r.runRecovery(ctx, c, s, a)
	case decide.EndRecovery:
		return r.endRecovery(ctx, s, a)
	case decide.LeaveOut: // the claim first: the status forgets by what it was decided
		if err := r.noteEnd(ctx, s, a); err != nil {
			return err
		}
		return r.remember(ctx, c, s, a)
	case decide.Recovered:
		if err := r.remember(ctx, c, s, a); err != nil {
			return err
		}
		return r.noteEnd(ctx, s, a)
	case decide.Unchanged:
		return r.noteEnd(ctx, s, a)
	case decide.Cordon, decide.Uncordon:
		return r.cordon(ctx, c, s, a)
	}
	return s.group.Ask(ctx, s.view, a, objects.PeerURL(c, a.Member))
}

// create makes an object. One of the name that belongs to the cluster is it; any other is an error.
func (r *Clusters) create(ctx context.Context, object client.Object, c *v1alpha1.QuorateCluster) error {
	err := r.Create(ctx, object)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	there := object.DeepCopyObject().(client.Object)
	if err := r.Read.Get(ctx, client.ObjectKeyFromObject(object), there); err != nil {
		return err
	}
	switch there.(type) {
	case *corev1.Pod, *corev1.PersistentVolumeClaim:
		if why := objects.NotOf(c, there); why != "" {
			return fmt.Errorf("%w: %s", othersError(there), why)
		}
	}
	if there.GetLabels()[objects.LabelUID] != string(c.UID) {
		return othersError(there)
	}
	return nil
}

// createPod notes on the claim that a process had it, before it has.
func (r *Clusters) createPod(ctx context.Context, c *v1alpha1.QuorateCluster, s *sight, a decide.Action) error {
	claim := s.claims[a.Member]
	if err := r.annotate(ctx, claim, objects.AnnotationUsed, "true"); err != nil {
		return err
	}
	// it names the member
	if s.observed.Cluster != nil && s.observed.Cluster.Epoch.Name != "" && s.observed.Doubted() == "" {
		if err := r.annotate(ctx, claim, objects.AnnotationEpoch, s.observed.Cluster.Epoch.Name); err != nil {
			return err
		}
	}
	var others []string
	if s.observed.Cluster != nil {
		for i := range s.observed.Cluster.Members {
			if m := &s.observed.Cluster.Members[i]; m.Active && m.Name != a.Member {
				others = append(others, m.Name)
			}
		}
	}
	pod := objects.Pod(c, a.Member, claim.Annotations[objects.AnnotationZone], a.Names, others)
	pod.Annotations[objects.AnnotationTemplate] = objects.Template(c)
	return r.create(ctx, pod, c)
}

// runRecovery notes on the survivor's claim that a command may run there, and makes its pod.
func (r *Clusters) runRecovery(ctx context.Context, c *v1alpha1.QuorateCluster, s *sight, a decide.Action) error {
	note := strings.Join(a.Recovery.Leaves, ",")
	if err := r.annotate(ctx, s.claims[a.Member], objects.AnnotationLeaves, note); err != nil {
		return err
	}
	return r.create(ctx, recoverPod(c, a.Recovery), c)
}

// endRecovery deletes the pod of a command as it was seen. One that no node had taken has not run.
func (r *Clusters) endRecovery(ctx context.Context, s *sight, a decide.Action) error {
	pod, claim := s.pods[objects.RecoverName(a.Member)], s.claims[a.Member]
	// a node may have taken or started it meanwhile
	as := client.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion}
	if err := r.Delete(ctx, pod, as); err != nil {
		return client.IgnoreNotFound(err)
	}
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if pod.Spec.NodeName != "" || ended || claim == nil {
		return nil
	}
	return client.IgnoreNotFound(r.annotate(ctx, claim, objects.AnnotationLeaves, ""))
}

// noteEnd takes the note of a command off the survivor's claim, together with what counts from then on. One that has told what
// the command did is not left out any more, should somebody have recovered it by hand.
func (r *Clusters) noteEnd(ctx context.Context, s *sight, a decide.Action) error {
	notes := map[string]string{objects.AnnotationLeaves: "", objects.AnnotationLeftOut: ""}
	switch a.Kind {
	case decide.LeaveOut:
		notes[objects.AnnotationLeftOut] = "true"
		if led := s.observed.Cluster; led != nil {
			if term := decide.LeftOutTerm(s.observed.Kept.Recovery, a.Member, led.Term); term > 0 {
				notes[objects.AnnotationLeftOut] = strconv.FormatUint(term, 10)
			}
		}
	case decide.Recovered:
		if epoch := s.observed.Cluster.Epoch.Name; epoch != "" {
			notes[objects.AnnotationEpoch] = epoch
		}
	}
	return client.IgnoreNotFound(r.annotateAll(ctx, s.claims[a.Member], notes))
}

// annotate sets an annotation of a claim, or removes it if the value is empty; another version of the claim is refused.
func (r *Clusters) annotate(ctx context.Context, claim *corev1.PersistentVolumeClaim, key, value string) error {
	return r.annotateAll(ctx, claim, map[string]string{key: value})
}

func (r *Clusters) annotateAll(ctx context.Context, claim *corev1.PersistentVolumeClaim, values map[string]string) error {
	from := claim.DeepCopy()
	for key, value := range values {
		if value == "" {
			delete(claim.Annotations, key)
			continue
		}
		if claim.Annotations == nil {
			claim.Annotations = map[string]string{}
		}
		claim.Annotations[key] = value
	}
	if maps.Equal(from.Annotations, claim.Annotations) {
		return nil
	}
	return r.Patch(ctx, claim, client.MergeFromWithOptions(from, client.MergeFromWithOptimisticLock{}))
}

// deletePod deletes a pod, or evicts it: the API server refuses that while another voter is not ready. One that counts as not
// started is deleted only as it was seen.
func (r *Clusters) deletePod(ctx context.Context, pod *corev1.Pod, a decide.Action) error {
	if pod == nil {
		return nil
	}
	if !a.Evict {
		as := client.Preconditions{UID: &pod.UID}
		if a.Unstarted {
			as.ResourceVersion = &pod.ResourceVersion
		}
		return client.IgnoreNotFound(r.Delete(ctx, pod, as))
	}
	err := r.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}}})
	if apierrors.IsTooManyRequests(err) {
		return nil // the budget is for one at a time: the next look decides again
	}
	return client.IgnoreNotFound(err)
}

// resize asks for a larger claim. Where the class does not let it grow, that is noted, so that nothing waits for it.
func (r *Clusters) resize(ctx context.Context, c *v1alpha1.QuorateCluster, claim *corev1.PersistentVolumeClaim) error {
	from := claim.DeepCopy()
	claim.Spec.Resources.Requests[corev1.ResourceStorage] = c.Spec.Storage.Size
	err := r.Patch(ctx, claim, client.MergeFromWithOptions(from, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return r.annotate(ctx, from, objects.AnnotationRefused, c.Spec.Storage.Size.String())
	}
	return err
}

// cordon notes on the claim that the operator wants the member not to lead, so that it takes back only its own cordons.
func (r *Clusters) cordon(ctx context.Context, c *v1alpha1.QuorateCluster, s *sight, a decide.Action) error {
	claim := s.claims[a.Member]
	if a.Kind == decide.Cordon {
		if err := r.annotate(ctx, claim, objects.AnnotationCordon, "true"); err != nil {
			return err
		}
		return s.group.Ask(ctx, s.view, a, "")
	}
	for i := range s.observed.Cluster.Members {
		if m := &s.observed.Cluster.Members[i]; m.Name == a.Member && m.Cordoned {
			return s.group.Ask(ctx, s.view, a, "") // the note goes once that is done
		}
	}
	return r.annotate(ctx, claim, objects.AnnotationCordon, "")
}

// remember writes to the status what must be known before the next action. Another version of it is refused.
func (r *Clusters) remember(ctx context.Context, c *v1alpha1.QuorateCluster, s *sight, a decide.Action) error {
	st := &c.Status
	switch a.Kind {
	case decide.Found:
		st.Founders, st.Serial = a.Names, a.Serial
	case decide.Founded:
		if s.view.Described == nil {
			return errors.New("the cluster has no id")
		}
		st.ClusterID = strconv.FormatUint(s.view.Described.GetClusterId(), 16)
	case decide.Recover:
		st.Recovery, st.QuorumLoss = recoveryStatus(a.Recovery), nil
	case decide.StopMembers:
		st.Recovery.Stopping = true
	case decide.Recovered:
		if st.Recovery == nil || st.Recovery.Survivor != a.Member { // the status was removed, or is an older one
			st.Recovery = &v1alpha1.RecoveryStatus{Survivor: a.Member, Leaves: a.Names}
		} else {
			st.VoidedConsent = &st.Recovery.Consent // it is used once
		}
		st.Recovery.Done, st.Recovery.Failed = true, ""
		st.Dropped = slices.DeleteFunc(st.Dropped, func(name string) bool { return name == a.Member })
		for _, name := range a.Names {
			if !slices.Contains(st.Dropped, name) {
				st.Dropped = append(st.Dropped, name)
			}
		}
	case decide.LeaveOut:
		if st.Recovery == nil || st.Recovery.Survivor != a.Member || st.Recovery.Done {
			return nil
		}
		fallthrough
	case decide.RecoverFails:
		st.Recovery.Failed, st.VoidedConsent = bounded(a.Why, 1024), &st.Recovery.Consent
		if a.Forget {
			st.Recovery.Lost = nil
		}
	case decide.VoidConsent:
		st.VoidedConsent = &v1alpha1.Consent{AcceptLossAfter: a.Consent.Revision, Loss: a.Consent.Loss}
	}
	return r.Status().Update(ctx, c)
}
