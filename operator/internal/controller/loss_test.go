package controller_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/decide"
	"github.com/quorate/quorate/operator/internal/objects"
)

// Ensure that claims of members that a recovery by hand left out stay, though the status knows of no recovery, and that those of members
// which the cluster removed go, as they were when that was decided.
func TestReconcile_recoveredByHand(t *testing.T) {
	var deleted []string
	f := start(t, interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
		if claim, ok := o.(*corev1.PersistentVolumeClaim); ok {
			as := (&client.DeleteOptions{}).ApplyOptions(opts).Preconditions
			if deleted = append(deleted, claim.Name); as == nil || as.UID == nil || as.ResourceVersion == nil {
				t.Errorf("the claim is deleted whatever it is now: %+v", as)
			}
		}
		return c.Delete(ctx, o, opts...)
	}}, func(c *v1alpha1.QuorateCluster) { c.Spec.Members = 3 })
	f.found()
	names := []string{f.pods()[0].Name, f.pods()[1].Name, f.pods()[2].Name}
	described, claim := f.group.described, &corev1.PersistentVolumeClaim{}
	described.Epoch, described.Members = "1-0a1b2c3d", described.Members[:1]
	f.must(f.step(2))
	if f.must(f.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: names[0]}, claim)); claim.Annotations[objects.AnnotationEpoch] != "0" {
		t.Error("the epoch is believed while members serve that it left out")
	}
	for _, pod := range f.pods()[1:] {
		f.run(&pod, false)
	}
	f.must(f.step(6))
	if len(deleted) > 0 {
		t.Fatalf("%v went, which may have what the survivor lacks", deleted)
	}
	for i, epoch := range []string{"1-0a1b2c3d", "0", "0"} {
		f.must(f.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: names[i]}, claim))
		if got := claim.Annotations[objects.AnnotationEpoch]; got != epoch {
			t.Errorf("%s is of epoch %q, want %q", names[i], got, epoch)
		}
	}
	delete(claim.Annotations, objects.AnnotationUsed) // by hand
	f.must(f.Update(t.Context(), claim))
	f.must(f.step(1))
	if f.group.newest.Name != "1-0a1b2c3d" {
		t.Errorf("a leader of another epoch than %+v counts", f.group.newest)
	}
	c := f.cluster()
	c.Status = v1alpha1.QuorateClusterStatus{}
	f.must(f.Status().Update(t.Context(), c))
	if f.must(f.step(6)); len(deleted) > 0 {
		t.Errorf("the status was removed, and %v went", deleted)
	}
	described.Epoch = "0" // as if the jobs of that epoch had removed them
	if f.must(f.step(6)); len(deleted) != 2 {
		t.Errorf("%v went, want those of two members that were removed", deleted)
	}
}

// Ensure that the budget stays as it is while no leader answers, whatever the spec wants, and that pods of members which were removed do
// not stand for voters in it.
func TestReconcile_budget(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	f.found()
	least := func() int {
		b := &policyv1.PodDisruptionBudget{}
		f.must(f.Get(t.Context(), f.key, b))
		return b.Spec.MinAvailable.IntValue()
	}
	described := f.group.described
	f.group.described = nil
	c := f.cluster()
	c.Spec.Members = 1
	f.must(f.Update(t.Context(), c))
	f.must(f.Delete(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: f.pods()[2].Name, Namespace: "ns"}}))
	if f.must(f.step(2)); least() != 2 {
		t.Errorf("%d pods must be there while nobody tells how many vote", least())
	}
	f.group.described = described
	described.Members = described.Members[:1]
	if f.must(f.step(1)); least() != 2 {
		t.Errorf("%d pods must be there while members serve that are not named", least())
	}
	for _, pod := range f.pods()[1:] { // they have heard that they were removed
		f.run(&pod, false)
	}
	f.must(f.step(1))
	var marked corev1.PodList
	f.must(f.List(t.Context(), &marked, client.MatchingLabels{objects.LabelVoter: "true"}))
	if least() != 0 || len(marked.Items) != 1 {
		t.Errorf("%d pods must be there, and %d count", least(), len(marked.Items))
	}
}

// Ensure that a loss is another one once the node of a lost voter was ready meanwhile, also if nothing else tells.
func TestReconcile_lossAgain(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	f.found()
	id := f.loseTwo()
	if f.must(f.step(1)); f.cluster().Status.QuorumLoss.ID != id {
		t.Errorf("the same loss has two ids, %s and %s", id, f.cluster().Status.QuorumLoss.ID)
	}
	node := &corev1.Node{}
	f.must(f.Get(t.Context(), client.ObjectKey{Name: "n1"}, node))
	node.Status.Conditions[0].LastTransitionTime = metav1.NewTime(f.now.Add(-40e9)) // it was ready, and was lost again
	f.must(f.Status().Update(t.Context(), node))
	if f.later(time.Minute); f.cluster().Status.QuorumLoss.ID == id {
		t.Errorf("a later loss has the id %s, too", id)
	}
}

// Ensure that the status tells which survivors are compared and which are not since their claims were deleted, and that the pod of one
// of these stays, though the loss is accepted.
func TestReconcile_survivorWithoutClaim(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	f.found()
	pods := f.pods()
	f.group.described = nil
	f.group.answers = nil
	for i := range pods {
		voters := slices.Clone(pods)
		for _, name := range []string{"gone-1", "gone-2", "gone-3"} {
			voters = append(voters, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		f.group.answers = append(f.group.answers, f.survivor(pods[i].Name, voters)...)
	}
	claim := &corev1.PersistentVolumeClaim{}
	f.must(f.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: pods[1].Name}, claim))
	claim.Finalizers = []string{"kubernetes.io/pvc-protection"}
	f.must(f.Update(t.Context(), claim))
	f.must(f.Delete(t.Context(), claim))
	f.must(f.step(1))
	c := f.cluster()
	at := meta.FindStatusCondition(c.Status.Conditions, "Available")
	for _, want := range []string{fmt.Sprintf("The claims of %v are compared then", []string{pods[0].Name, pods[2].Name}),
		fmt.Sprintf("%v survive, too, and their claims were deleted: they are not compared", []string{pods[1].Name})} {
		if at == nil || !strings.Contains(at.Message, want) {
			t.Errorf("the condition does not say %q: %+v", want, at)
		}
	}
	// a word for a former loss, which a tool puts back, or which a merge patch lets stay, is none for this one
	c.Spec.Recovery = &v1alpha1.Recovery{AcceptLossAfter: 5, Loss: c.Status.QuorumLoss.ID, UncomparedLoss: "0a1b2c3d4e5f"}
	f.must(f.Update(t.Context(), c))
	stays := func() {
		t.Helper()
		f.must(f.step(4))
		if c := f.cluster(); len(f.pods()) != 3 || c.Status.Recovery != nil ||
			!strings.Contains(c.Status.Action, "would not be compared") || !strings.HasSuffix(c.Status.Action, c.Status.QuorumLoss.ID) {
			t.Errorf("%d pods, recovery %+v, doing %q", len(f.pods()), c.Status.Recovery, c.Status.Action)
		}
	}
	stays()
	f.paste()
	stays()
	c = f.cluster()
	if c.Spec.Recovery.UncomparedLoss != "" || c.Spec.Recovery.Loss != c.Status.QuorumLoss.ID {
		t.Errorf("the command of the status makes %+v of a former consent", c.Spec.Recovery)
	}
	c.Spec.Recovery.UncomparedLoss = c.Spec.Recovery.Loss
	f.must(f.Update(t.Context(), c))
	f.must(f.step(1))
	if r := f.cluster().Status.Recovery; r == nil || r.Survivor != pods[0].Name {
		t.Errorf("without comparing: %+v", r)
	}
}

// paste runs the command of the status that accepts the loss.
func (f *fixture) paste() {
	f.Helper()
	c := f.cluster()
	_, patch, _ := strings.Cut(c.Status.QuorumLoss.Consent, " --type merge -p ")
	f.must(f.Patch(f.Context(), c, client.RawPatch(types.MergePatchType, []byte(strings.Trim(patch, "'")))))
}

// recovering lets the recovery of the first of three members begin, until the pod of the command is there.
func (f *fixture) recovering() (survivor string) {
	f.Helper()
	id := f.loseTwo()
	survivor = f.pods()[0].Name
	c := f.cluster()
	c.Spec.Recovery = &v1alpha1.Recovery{AcceptLossAfter: 5, Loss: id}
	f.must(f.Update(f.Context(), c))
	f.must(f.step(4))
	f.command(survivor)
	return survivor
}

func (f *fixture) command(survivor string) *corev1.Pod {
	f.Helper()
	pod := &corev1.Pod{}
	f.must(f.Get(f.Context(), client.ObjectKey{Namespace: "ns", Name: objects.RecoverName(survivor)}, pod))
	return pod
}

// Ensure that the pod of a recovery that a node took, and whose container does not start, is taken back as it was seen, and that the
// recovery has failed only once it is gone; and that one which was started is left alone.
func TestReconcile_recoveryNotStarted(t *testing.T) {
	var deleted []metav1.Preconditions
	f := start(t, interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
		if strings.HasSuffix(o.GetName(), "-recover") {
			as := (&client.DeleteOptions{}).ApplyOptions(opts).Preconditions
			deleted = append(deleted, metav1.Preconditions{UID: as.UID, ResourceVersion: as.ResourceVersion})
		}
		return c.Delete(ctx, o, opts...)
	}}, nil)
	f.found()
	survivor := f.recovering()
	says := func(state corev1.ContainerState, id string) {
		pod := f.command(survivor)
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "quorate", State: state, ContainerID: id}}
		f.must(f.Status().Update(t.Context(), pod))
		f.must(f.step(1))
	}
	image := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}
	says(image, "")
	if got := f.cluster().Status.Action; !strings.Contains(got, survivor+"-recover") || !strings.Contains(got, "ImagePullBackOff: no such image") {
		t.Errorf("doing %q", got)
	}
	c := f.cluster()
	c.Spec.Image = "another"
	f.must(f.Update(t.Context(), c))
	f.must(f.step(2))
	if len(deleted) != 1 || !strings.Contains(f.command(survivor).Spec.Containers[0].Image, "another") {
		t.Fatalf("another image: deleted %v", deleted)
	}
	says(image, "")
	c = f.cluster()
	consent := c.Spec.Recovery
	c.Spec.Recovery = nil
	f.must(f.Update(t.Context(), c))
	pod := f.command(survivor)
	pod.Finalizers = []string{"test/kubelet"} // which has not ended it yet
	f.must(f.Update(t.Context(), pod))
	f.must(f.step(3))
	if failed := f.cluster().Status.Recovery.Failed; failed != "" || len(deleted) != 2 || deleted[1].ResourceVersion == nil {
		t.Errorf("the pod is there, and the recovery has failed: %q; deleted %+v", failed, deleted)
	}
	pod = f.command(survivor)
	pod.Finalizers = nil
	f.must(f.Update(t.Context(), pod))
	f.must(f.step(1))
	if r := f.cluster().Status.Recovery; !strings.Contains(r.Failed, "nothing was recovered") || len(r.Lost) != 2 || r.Lost[0].Life == "" {
		t.Errorf("the pod is gone: %+v", r)
	}
	f.must(f.step(2)) // the survivor starts again
	f.run(f.memberPod(survivor), false)
	f.must(f.step(1))
	c = f.cluster()
	c.Spec.Recovery = consent
	f.must(f.Update(t.Context(), c))
	f.must(f.step(4))
	says(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, "containerd://1")
	c = f.cluster()
	c.Spec.Recovery = nil
	f.must(f.Update(t.Context(), c))
	f.must(f.step(4))
	if got := f.cluster().Status.Action; len(deleted) != 2 || !strings.Contains(got, "is recovered") {
		t.Errorf("it was started: doing %q, deleted %+v", got, deleted)
	}
}

// recovered lets the survivor of a recovery lead alone.
func (f *fixture) recovered(survivor string) {
	f.Helper()
	f.group.described = &quoratepb.Cluster{ClusterId: 0xabc, Leader: 1, Term: 9, Epoch: "1-0a1b2c3d", Settled: true, Members: []*quoratepb.Member{
		{Id: 1, Name: survivor, Role: quoratepb.Role_ROLE_VOTER, Started: true, Active: true, CaughtUp: true, Leader: true}}}
	f.run(f.memberPod(survivor), true)
}

func (f *fixture) claim(name string) *corev1.PersistentVolumeClaim {
	f.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	f.must(f.Get(f.Context(), client.ObjectKey{Namespace: "ns", Name: name}, claim))
	return claim
}

// leaveOut notes on a claim that no process starts there.
func (f *fixture) leaveOut(name string) {
	f.Helper()
	claim := f.claim(name)
	claim.Annotations[objects.AnnotationLeftOut] = "true"
	f.must(f.Update(f.Context(), claim))
}

// Ensure that a claim that is used no more is named while no leader answers, with what lets it be used again.
func TestReconcile_leftOutAlone(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	f.found()
	name := f.pods()[0].Name
	f.leaveOut(name)
	f.group.described, f.group.answers = nil, nil
	f.must(f.step(1))
	st := f.cluster().Status
	available := meta.FindStatusCondition(st.Conditions, "Available")
	for _, text := range []string{st.Action, available.Message} {
		if !strings.Contains(text, "kubectl annotate -n ns pvc "+name+" --overwrite quorate.io/leaves=") {
			t.Errorf("it says %q", text)
		}
	}
}

// Ensure that a command whose pod vanished once a node had taken it is not taken for one that did nothing, also if the status was removed
// meanwhile: the survivor starts alone, and tells; and that it never starts again where others lead before it does.
func TestReconcile_recoveryVanished(t *testing.T) {
	for _, row := range []struct {
		name string
		wipe bool
		tell func(f *fixture, survivor string)
		want func(st *v1alpha1.QuorateClusterStatus, notes map[string]string) bool
	}{
		{"it ran", false, (*fixture).recovered, func(st *v1alpha1.QuorateClusterStatus, notes map[string]string) bool {
			return st.Recovery.Done && st.Recovery.Failed == "" && len(st.Dropped) == 2 && notes[objects.AnnotationEpoch] == "1-0a1b2c3d"
		}},
		{"it ran, and the status is gone", true, (*fixture).recovered,
			func(st *v1alpha1.QuorateClusterStatus, notes map[string]string) bool {
				return st.Recovery.Done && len(st.Dropped) == 2 && notes[objects.AnnotationEpoch] == "1-0a1b2c3d"
			}},
		{"it ran, on a claim that was left out before", false, func(f *fixture, survivor string) {
			f.leaveOut(survivor)
			f.recovered(survivor)
		}, func(st *v1alpha1.QuorateClusterStatus, notes map[string]string) bool {
			return st.Recovery.Done && notes[objects.AnnotationLeftOut] == ""
		}},
		{"it did not", false, func(f *fixture, survivor string) {
			f.leaveOut(survivor) // before, and somebody has noted another command
			f.group.answers = f.survivor(survivor, f.allVoters)
			f.run(f.memberPod(survivor), false)
			c := f.cluster()
			c.Spec.Recovery = nil
			f.must(f.Update(f.Context(), c))
			f.must(f.step(1))
		}, func(st *v1alpha1.QuorateClusterStatus, notes map[string]string) bool {
			return strings.Contains(st.Recovery.Failed, "nothing was recovered") && notes[objects.AnnotationLeftOut] == ""
		}},
		{"others lead without it", false, func(f *fixture, survivor string) {
			f.must(f.Delete(f.Context(), f.memberPod(survivor)))
			f.group.described, f.before.Term = f.before, 4 // elected after the survivor's last entry
			for _, m := range f.before.Members {
				m.Active, m.Leader = m.Name != survivor, false
			}
		}, func(st *v1alpha1.QuorateClusterStatus, notes map[string]string) bool {
			return strings.Contains(st.Recovery.Failed, "a leader answers without it") && notes[objects.AnnotationLeftOut] == "4"
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := start(t, interceptor.Funcs{}, nil)
			f.found()
			f.before, f.allVoters = f.group.described, f.pods()
			survivor := f.recovering()
			if got := f.claim(survivor).Annotations[objects.AnnotationLeaves]; strings.Count(got, ",") != 1 {
				t.Fatalf("the claim does not say that a command may run: %q", got)
			}
			pod := f.command(survivor)
			pod.Spec.NodeName = "n2"
			f.must(f.Update(t.Context(), pod))
			f.must(f.Delete(t.Context(), pod)) // by force, as Kubernetes does where its node is gone
			if row.wipe {
				c := f.cluster()
				c.Status = v1alpha1.QuorateClusterStatus{}
				f.must(f.Status().Update(t.Context(), c))
			}
			f.group.answers = nil
			f.must(f.step(3))
			if st := f.cluster().Status; f.memberPod(survivor).Spec.Containers == nil || !row.wipe && st.Recovery.Failed != "" ||
				!strings.Contains(st.Action, "is not known before it answers") {
				t.Fatalf("doing %q, %+v", st.Action, st.Recovery)
			}
			row.tell(f, survivor)
			f.must(f.step(1))
			notes := f.claim(survivor).Annotations
			if st := f.cluster().Status; !row.want(&st, notes) || notes[objects.AnnotationLeaves] != "" {
				t.Errorf("%+v, dropped %v, notes %v", st.Recovery, st.Dropped, notes)
			}
		})
	}
}

func (f *fixture) memberPod(name string) *corev1.Pod {
	f.Helper()
	pod := &corev1.Pod{}
	f.must(f.Get(f.Context(), client.ObjectKey{Namespace: "ns", Name: name}, pod))
	return pod
}

// Ensure that pods of lost voters stay until the command of a recovery was started, and that it ends once one of their nodes is back.
func TestReconcile_recoveryLostBack(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	f.found()
	survivor := f.recovering()
	if len(f.pods()) != 3 {
		t.Fatalf("pods: %d", len(f.pods()))
	}
	node := &corev1.Node{}
	f.must(f.Get(t.Context(), client.ObjectKey{Name: "n1"}, node))
	node.Status.Conditions[0].Status, node.Status.Conditions[0].LastTransitionTime = corev1.ConditionTrue, metav1.NewTime(f.now)
	f.must(f.Status().Update(t.Context(), node))
	f.must(f.step(3))
	if r := f.cluster().Status.Recovery; !strings.Contains(r.Failed, "which was lost, came back: nothing was recovered") {
		t.Errorf("%+v", r)
	}
	if f.memberPod(survivor); len(f.pods()) != 3 {
		t.Errorf("pods: %d", len(f.pods()))
	}
}

// loseTwo lets two of three voters be on a node that is not ready, and returns the id of the loss that is reported.
func (f *fixture) loseTwo() string {
	f.Helper()
	pods := f.pods()
	lost := metav1.NewTime(f.now.Add(-60e9))
	f.must(f.Create(f.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: lost}}}}))
	for _, pod := range pods[1:] {
		pod.Spec.NodeName, pod.Finalizers = "n1", []string{"kubelet/that-is-lost"}
		f.must(f.Update(f.Context(), &pod))
	}
	f.group.described = nil
	f.group.answers = f.survivor(pods[0].Name, pods)
	f.later(time.Minute)
	loss := f.cluster().Status.QuorumLoss
	if loss == nil {
		f.Fatalf("no loss is reported: %+v", f.cluster().Status)
	}
	return loss.ID
}

// Ensure that a consent that names no loss, as the first operators took it, accepts none, and that a recovery which they began does not
// go on by it.
func TestReconcile_formerConsent(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	f.found()
	pods := f.pods()
	names := []string{pods[0].Name, pods[1].Name, pods[2].Name}
	f.group.described, f.group.answers = nil, []decide.Answer{{Member: names[0], Index: 9, Voters: names, Members: names}}
	for _, pod := range pods[1:] {
		pod.Spec.NodeName = "gone"
		f.must(f.Update(t.Context(), &pod))
	}
	f.must(f.step(2))
	for _, begun := range []*v1alpha1.RecoveryStatus{nil, {Survivor: names[0], Leaves: names[1:]}} {
		c := f.cluster()
		c.Spec.Recovery = &v1alpha1.Recovery{}
		f.must(f.Update(t.Context(), c))
		c.Status.Recovery = begun
		f.must(f.Status().Update(t.Context(), c))
		f.must(f.step(4))
		st := f.cluster().Status
		if !strings.Contains(st.Action, "see status.quorumLoss") || begun == nil && st.Recovery != nil ||
			begun != nil && !strings.Contains(st.Recovery.Failed, "nothing was recovered") {
			t.Errorf("begun %v: doing %q, %+v", begun, st.Action, st.Recovery)
		}
	}
}
