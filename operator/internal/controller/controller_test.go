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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/doctor"
	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/controller"
	"github.com/quorate/quorate/operator/internal/decide"
	"github.com/quorate/quorate/operator/internal/members"
	"github.com/quorate/quorate/operator/internal/objects"
)

// Ensure that founders know each other, and that no pod can found a second cluster once there is one.
func TestReconcile_founding(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	f.found()
	for _, pod := range f.pods() {
		args := strings.Join(pod.Spec.Containers[0].Args, " ")
		for _, name := range f.cluster().Status.Founders {
			if !strings.Contains(args, name+"=http://"+name+".kv-members.ns.svc:2380") {
				t.Errorf("%s does not know %s: %s", pod.Name, name, args)
			}
		}
	}
	gone := f.pods()[1]
	f.must(f.Delete(t.Context(), &gone))
	f.must(f.step(1))
	back := &corev1.Pod{}
	f.must(f.Get(t.Context(), client.ObjectKeyFromObject(&gone), back))
	args := strings.Join(back.Spec.Containers[0].Args, " ")
	if strings.Contains(args, "--initial-cluster") || !strings.Contains(args, ".kv-members.ns.svc:2380,http://kv-members.ns.svc:2380") ||
		strings.Contains(args, "--join=http://"+gone.Name) {
		t.Errorf("a pod of a cluster that exists: %s", args)
	}
	if f.group.id != 0xabc {
		t.Errorf("asked for cluster %x", f.group.id)
	}
	budget := &policyv1.PodDisruptionBudget{}
	f.must(f.Get(t.Context(), f.key, budget))
	if budget.Spec.MinAvailable.IntVal != 2 {
		t.Errorf("the budget wants %v", budget.Spec.MinAvailable)
	}
}

// Ensure that objects of others are not taken, and the status says which.
func TestReconcile_foreign(t *testing.T) {
	for _, there := range []client.Object{
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: prefix() + "1", Namespace: "ns"}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "ns"}},
	} {
		f := start(t, interceptor.Funcs{}, nil)
		f.must(f.Create(t.Context(), there))
		err := f.step(3)
		at := meta.FindStatusCondition(f.cluster().Status.Conditions, "Progressing")
		if err == nil || at == nil || !strings.Contains(at.Message, "is not of this cluster") || len(f.pods()) > 0 {
			t.Errorf("%T: error %v, condition %+v, %d pods", there, err, at, len(f.pods()))
		}
		st := f.cluster().Status
		if !strings.Contains(st.Action, "is not of this cluster") || meta.FindStatusCondition(st.Conditions, "Available") == nil {
			t.Errorf("%T: doing %q, conditions %+v", there, st.Action, st.Conditions)
		}
		failed := 0
		for told := f.r.Events.(*events.FakeRecorder).Events; len(told) > 0; {
			if strings.Contains(<-told, "Warning Failed") {
				failed++
			}
		}
		if _, is := there.(*corev1.Service); is && failed != 1 {
			t.Errorf("%T: %d events for three looks", there, failed)
		}
	}
}

func prefix() string {
	return objects.Prefix(&v1alpha1.QuorateCluster{ObjectMeta: metav1.ObjectMeta{Name: "kv", UID: "uid-1"}})
}

// Ensure that a voter which works is evicted, so that the budget is asked, and that a refusal changes nothing.
func TestReconcile_evicts(t *testing.T) {
	evicted, deleted := []string{}, []string{}
	f := start(t, interceptor.Funcs{
		SubResourceCreate: func(_ context.Context, _ client.Client, kind string, o client.Object, _ client.Object,
			_ ...client.SubResourceCreateOption) error {
			evicted = append(evicted, kind+" "+o.GetName())
			return apierrors.NewTooManyRequests("the budget is used up", 1)
		},
		Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
			deleted = append(deleted, o.GetName())
			return nil
		},
	}, nil)
	f.found()
	c := f.cluster()
	c.Spec.Version = "2"
	f.must(f.Update(t.Context(), c))
	f.must(f.step(1))
	if len(evicted) != 1 || !strings.HasPrefix(evicted[0], "eviction ") || len(deleted) > 0 {
		t.Errorf("evicted %q, deleted %q", evicted, deleted)
	}
	f.group.findings = []doctor.Finding{{Code: doctor.DiskSlow, Severity: doctor.SlowerThanIs,
		Sentence: "the disk of m2 is slow",
		Cure:     "look at it"}}
	f.must(f.step(1))
	if c := f.cluster(); len(evicted) != 1 || !strings.Contains(c.Status.Action, "the disk of m2 is slow") {
		t.Errorf("with a finding: evicted %q, doing %q", evicted, c.Status.Action)
	}
}

// Ensure that a job is asked for by a claim that exists, once, and a pod comes only when the cluster knows the member.
func TestReconcile_replace(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	f.found()
	lost := f.pods()[2]
	f.group.described.Members[2].Active, f.group.described.Members[2].SilentMs = false, 60_000
	lost.Spec.NodeName = "gone" // no node has the name
	f.must(f.Update(t.Context(), &lost))
	f.must(f.step(1))
	claim := &corev1.PersistentVolumeClaim{}
	f.must(f.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: prefix() + "4"}, claim))
	if len(f.group.asked) > 0 || len(f.pods()) != 3 {
		t.Fatalf("before the claim is there: asked %v", f.group.asked)
	}
	f.must(f.step(1))
	if len(f.group.asked) != 1 || f.group.asked[0].Kind != decide.Replace || f.group.asked[0].ID != 3 ||
		f.group.asked[0].Member != prefix()+"4" {
		t.Errorf("asked %v", f.group.asked)
	}
	if len(f.pods()) != 3 {
		t.Errorf("a process was started before the cluster knows the member")
	}
}

// Ensure that a class that does not let claims grow is told once, and keeps nothing else from being done.
func TestReconcile_resizeRefused(t *testing.T) {
	tried := 0
	f := start(t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
		opts ...client.PatchOption) error {
		if claim, ok := o.(*corev1.PersistentVolumeClaim); ok && claim.Spec.Resources.Requests.Storage().String() == "9Gi" {
			there := &corev1.PersistentVolumeClaim{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(o), there); err != nil {
				return err
			}
			if there.Spec.Resources.Requests.Storage().String() != "9Gi" {
				tried++
				return apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, o.GetName(),
					fmt.Errorf("no expansion"))
			}
		}
		return c.Patch(ctx, o, p, opts...)
	}}, func(c *v1alpha1.QuorateCluster) { c.Spec.Storage.Size = resource.MustParse("8Gi") })
	f.found()
	c := f.cluster()
	c.Spec.Storage.Size = resource.MustParse("9Gi")
	f.must(f.Update(t.Context(), c))
	f.must(f.step(6))
	if c := f.cluster(); tried != 3 || !strings.Contains(c.Status.ResizeRefused, "does not grow to 9Gi") ||
		c.Status.Action != "" {
		t.Errorf("tried %d times; %q, doing %q", tried, c.Status.ResizeRefused, c.Status.Action)
	}
}

// Ensure that findings are conditions with cause and cure for as long as they stand, and that a lost majority says what is
// left.
func TestReconcile_conditions(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	f.found()
	f.group.findings = []doctor.Finding{{Code: doctor.DiskFull, Severity: doctor.CannotWrite,
		Sentence: "the disk of m1 is full",
		Cure:     "quorate compact"}, {Code: doctor.EvenVoters, Severity: doctor.Advice, Sentence: "two", Cure: "add"}}
	f.must(f.step(1))
	at := meta.FindStatusCondition(f.cluster().Status.Conditions, "DISK_FULL")
	if at == nil || at.Reason != "CannotWrite" || at.Message != "the disk of m1 is full → kubectl quorate -n ns kv compact" {
		t.Errorf("the finding: %+v", at)
	}
	f.group.findings = f.group.findings[1:]
	f.must(f.step(1))
	c := f.cluster()
	if meta.FindStatusCondition(c.Status.Conditions, "DISK_FULL") != nil || !meta.IsStatusConditionTrue(c.Status.Conditions,
		"Healthy") {
		t.Errorf("after it is over: %+v", c.Status.Conditions)
	}
	names := []string{f.pods()[0].Name, f.pods()[1].Name, f.pods()[2].Name}
	if c.Status.Leader != names[0] {
		t.Errorf("the leader is %q", c.Status.Leader)
	}
	f.group.described, f.group.answers = nil, []decide.Answer{{Member: names[0], Index: 9, Revision: 5, Voters: names,
		Members: names}}
	for _, name := range names[1:] {
		f.must(f.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}))
		f.must(f.Delete(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}))
	}
	f.must(f.step(1))
	c = f.cluster()
	if at := meta.FindStatusCondition(c.Status.Conditions, "Available"); at == nil || at.Reason != "QuorumLost" ||
		!strings.Contains(at.Message, c.Status.QuorumLoss.Consent) || c.Status.Leader != "" || c.Status.QuorumLoss.Survivor != names[0] {
		t.Errorf("a lost majority: %+v, %+v", at, c.Status.QuorumLoss)
	}
}

// Ensure that voters which share a node are told for as long as they do, as advice, and whether the others are a quorum.
func TestReconcile_sharedNode(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	f.found()
	on := func(nodes ...string) *metav1.Condition {
		for i, pod := range f.pods() {
			pod.Spec.NodeName = nodes[i]
			f.must(f.Update(t.Context(), &pod))
		}
		f.must(f.step(1))
		return meta.FindStatusCondition(f.cluster().Status.Conditions, controller.NodeShared)
	}
	for _, name := range []string{"n1", "n2", "n3"} {
		f.must(f.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	names := []string{f.pods()[0].Name, f.pods()[2].Name}
	at := on("n1", "n2", "n1")
	want := fmt.Sprintf("the members %v share the node n1: if it is lost, 1 of 3 voters are left, which are no quorum", names)
	if at == nil || at.Reason != "Advice" || !strings.HasPrefix(at.Message, want) {
		t.Errorf("two share a node: %+v, want %s", at, want)
	}
	if !meta.IsStatusConditionTrue(f.cluster().Status.Conditions, controller.Healthy) {
		t.Errorf("advice makes it unhealthy: %+v", f.cluster().Status.Conditions)
	}
	if at := on("n1", "n2", "n3"); at != nil {
		t.Errorf("each has a node of its own: %+v", at)
	}
	f.group.described.Members[2].Role = quoratepb.Role_ROLE_LEARNER
	if at := on("n1", "n2", "n1"); at != nil {
		t.Errorf("a learner shares a node: %+v", at)
	}
}

// Ensure that a recovery by consent is remembered before anything stops, drops nothing but members, and keeps their claims.
func TestReconcile_recovery(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	f.found()
	names := []string{f.pods()[0].Name, f.pods()[1].Name, f.pods()[2].Name}
	f.group.described, f.group.answers = nil, []decide.Answer{{Member: names[0], Term: 3, Index: 9, Revision: 5, Voters: names,
		Members: names}}
	for _, pod := range f.pods()[1:] {
		pod.Spec.NodeName, pod.Finalizers = "gone", []string{"kubelet/that-is-lost"}
		f.must(f.Update(t.Context(), &pod))
	}
	f.must(f.step(1))
	c := f.cluster()
	c.Spec.Recovery = &v1alpha1.Recovery{AcceptLossAfter: 5, Loss: c.Status.QuorumLoss.ID}
	f.must(f.Update(t.Context(), c))
	f.must(f.step(1))
	if r := f.cluster().Status.Recovery; r == nil || r.Survivor != names[0] || !slices.Equal(r.Leaves, names[1:]) ||
		len(f.pods()) != 3 {
		t.Fatalf("first it is remembered: %+v, %d pods", r, len(f.pods()))
	}
	f.must(f.step(5))
	pods := f.pods()
	if args := pods[0].Spec.Containers[0].Args; len(pods) != 3 || pods[0].Name != names[0]+"-recover" ||
		!slices.Contains(args, "--members-are-lost="+names[1]+","+names[2]) || !slices.Contains(args, "--log-ends-at=3:9") {
		t.Fatalf("then all stop but on lost nodes, and the command runs: %v", pods)
	}
	pods[0].Status.Phase = corev1.PodSucceeded
	f.must(f.Status().Update(t.Context(), &pods[0]))
	f.must(f.step(4))
	if c = f.cluster(); c.Status.Recovery.Done || len(f.pods()) != 3 || f.pods()[0].Name != names[0] ||
		f.pods()[1].DeletionTimestamp == nil || f.pods()[2].DeletionTimestamp == nil {
		t.Fatalf("the survivor has not told yet: %+v, pods %v", c.Status.Recovery, f.pods())
	}
	f.recovered(names[0])
	f.must(f.step(1))
	c = f.cluster()
	if !c.Status.Recovery.Done || !slices.Equal(c.Status.Dropped, names[1:]) || len(f.pods()) != 3 ||
		f.pods()[0].Name != names[0] {
		t.Errorf("the survivor starts alone: %+v, %v, pods %v", c.Status.Recovery, c.Status.Dropped, f.pods())
	}
	for _, name := range names {
		f.must(f.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, &corev1.PersistentVolumeClaim{}))
	}
}

// Ensure that a consent that is there while a leader answers counts for no later loss, that the status says which one does, and that one
// which was taken out and given again does.
func TestReconcile_voidConsent(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	f.found()
	consent := func(to *v1alpha1.Recovery) *v1alpha1.QuorateCluster {
		c := f.cluster()
		c.Spec.Recovery = to
		f.must(f.Update(t.Context(), c))
		f.must(f.step(2))
		return f.cluster()
	}
	former := &v1alpha1.Recovery{AcceptLossAfter: 5, Loss: "abc"}
	if void := consent(former).Status.VoidedConsent; void == nil || *void != (v1alpha1.Consent{AcceptLossAfter: 5, Loss: "abc"}) {
		t.Fatalf("a leader answers, and void is %v", void)
	}
	pods := f.pods()
	names := []string{pods[0].Name, pods[1].Name, pods[2].Name}
	f.group.described, f.group.answers = nil, []decide.Answer{{Member: names[0], Index: 9, Revision: 5, Voters: names,
		Members: names}}
	for _, pod := range pods[1:] {
		pod.Spec.NodeName = "gone"
		f.must(f.Update(t.Context(), &pod))
	}
	f.must(f.step(3))
	if st := f.cluster().Status; st.Recovery != nil || st.QuorumLoss == nil || !strings.Contains(st.Action, "is void") ||
		!strings.HasPrefix(st.QuorumLoss.Consent, "kubectl patch -n ns quoratecluster kv --type merge -p '{") {
		t.Fatalf("doing %q, %+v, %+v", st.Action, st.Recovery, st.QuorumLoss)
	}
	f.group.answers = nil // for a moment
	if st := consent(nil).Status; st.VoidedConsent != nil || st.QuorumLoss == nil {
		t.Errorf("taken out: void %v, %+v", st.VoidedConsent, st.QuorumLoss)
	}
	f.group.answers = []decide.Answer{{Member: names[0], Index: 9, Revision: 5, Voters: names, Members: names}}
	loss := f.cluster().Status.QuorumLoss
	id, patch := loss.ID, strings.Split(loss.Consent, "'")[1] // as somebody does who pastes the command
	f.must(f.Patch(t.Context(), f.cluster(), client.RawPatch(types.MergePatchType, []byte(patch))))
	f.must(f.step(2))
	st := f.cluster().Status
	if r := st.Recovery; r == nil || r.Consent.Loss != id || st.QuorumLoss != nil || !r.Stopping {
		t.Errorf("given again: %+v, %+v", r, st.QuorumLoss)
	}
	if st = consent(nil).Status; st.Recovery.Failed == "" || st.VoidedConsent != nil {
		t.Errorf("taken out before the command ran: %+v", st.Recovery)
	}
}

// Ensure that each member gets a certificate before it runs, and that it is renewed without a restart.
func TestReconcile_certificates(t *testing.T) {
	f := start(t, interceptor.Funcs{}, func(c *v1alpha1.QuorateCluster) { c.Spec.TLS.Mode = "BuiltIn" })
	f.found()
	secret := func() *corev1.Secret {
		s := &corev1.Secret{}
		f.must(f.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: prefix() + "1-tls"}, s))
		return s
	}
	before := secret()
	f.now = f.now.Add(50 * 24 * time.Hour)
	f.must(f.step(2))
	if string(secret().Data["tls.crt"]) != string(before.Data["tls.crt"]) {
		t.Error("renewed long before its end")
	}
	f.now = f.now.Add(15 * 24 * time.Hour)
	f.must(f.step(2))
	if string(secret().Data["tls.crt"]) == string(before.Data["tls.crt"]) || f.cluster().Status.Action != "" ||
		len(f.pods()) != 3 {
		t.Error("not renewed after two thirds of its life, or a pod went for it")
	}
	f.now = f.now.Add(6 * 365 * 24 * time.Hour)
	f.must(f.step(2))
	if n := strings.Count(string(secret().Data["ca.crt"]), "BEGIN CERTIFICATE"); n != 2 {
		t.Errorf("after half of the authority's life %d are trusted, want the former and the new one", n)
	}
}

// Ensure that users and the backup are applied when they change, and not at each look; and that a missing password is named.
func TestReconcile_follows(t *testing.T) {
	f := start(t, interceptor.Funcs{}, func(c *v1alpha1.QuorateCluster) {
		c.Spec.Auth = &v1alpha1.Auth{RootPasswordSecret: "root", Users: []v1alpha1.User{{Name: "app", PasswordSecret: "app",
			Prefixes: []v1alpha1.Permission{{Prefix: "app/", Access: "ReadWrite"}}}}}
		c.Spec.Backup = &v1alpha1.Backup{Place: "s3://b/p"}
	})
	password := func(text string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "app", Namespace: "ns"},
			Data: map[string][]byte{"password": []byte(text)}}
	}
	f.must(f.Create(t.Context(), password("one")))
	f.found()
	f.must(f.step(3))
	if len(f.group.users) != 1 || f.group.users[0].Users[0].Password != "one" || len(f.group.users[0].RootPassword) < 20 {
		t.Errorf("users: %+v", f.group.users)
	}
	f.must(f.Update(t.Context(), password("two")))
	f.must(f.step(2))
	if len(f.group.users) != 2 || f.group.users[1].Users[0].Password != "two" {
		t.Errorf("another password: %+v", f.group.users)
	}
	view := &v1alpha1.QuorateBackup{}
	f.must(f.Get(t.Context(), f.key, view))
	if last := f.group.backup[len(f.group.backup)-1]; !last.Applied || f.group.backup[0].Applied ||
		view.Status.RestorableRevision != 7 {
		t.Errorf("backup: %+v; %+v", f.group.backup, view.Status)
	}
	c := f.cluster()
	c.Spec.Backup, c.Spec.Auth.Users[0].PasswordSecret = nil, "absent"
	f.must(f.Update(t.Context(), c))
	if err := f.step(1); err == nil || !strings.Contains(err.Error(), "Secret absent") {
		t.Errorf("without a Secret: %v", err)
	}
}

// Ensure that a number in a sentence which grows at each look is written twice a minute at most, and anything else at once.
func TestReconcile_ticks(t *testing.T) {
	writes := 0
	f := start(t, interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, kind string, o client.Object,
		opts ...client.SubResourceUpdateOption) error {
		if _, ok := o.(*v1alpha1.QuorateCluster); ok {
			writes++
		}
		return c.SubResource(kind).Update(ctx, o, opts...)
	}}, nil)
	f.found()
	down := func(text string) {
		f.group.findings = []doctor.Finding{{Code: doctor.MemberDown, Severity: doctor.NextFailure, Sentence: text,
			Cure: "start it"}}
		f.must(f.step(1))
		f.now = f.now.Add(2 * time.Second)
	}
	down("m3 is down, for 1 s")
	before := writes
	for i := range 10 {
		down(fmt.Sprintf("m3 is down, for %d s", 3+2*i))
	}
	if writes != before {
		t.Errorf("%d writes in 20 seconds", writes-before)
	}
	down("m2 is down, and so is m3")
	if writes != before+1 {
		t.Error("another sentence was not written")
	}
	f.now = f.now.Add(time.Minute)
	down("m2 is down, and so is m4")
	if writes != before+2 {
		t.Error("a number was not written after a minute")
	}
}

// Ensure that the budget counts a new pod only once all voters reach each other, so that nobody evicts the next one before.
func TestReconcile_labels(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	f.found()
	voters := func() (n int) {
		for _, pod := range f.pods() {
			if pod.Labels[objects.LabelVoter] == "true" {
				n++
			}
		}
		return n
	}
	if voters() != 3 {
		t.Fatalf("%d voters are marked", voters())
	}
	gone := f.pods()[1]
	f.must(f.Delete(t.Context(), &gone))
	f.group.apart = []string{"m1 has no connection to m2 yet"}
	f.must(f.step(3))
	if voters() != 2 {
		t.Errorf("%d voters are marked while one is not reached", voters())
	}
	f.group.apart = nil
	f.must(f.step(1))
	if voters() != 3 {
		t.Errorf("%d voters are marked", voters())
	}
}

// Ensure that a lost majority is seen where users are on, too: nobody can log in then. Another process at a member's address is none.
func TestReconcile_quorumLossWithUsers(t *testing.T) {
	f := start(t, interceptor.Funcs{}, func(c *v1alpha1.QuorateCluster) { c.Spec.Auth = &v1alpha1.Auth{RootPasswordSecret: "root"} })
	f.found()
	pods := f.pods()
	f.group.described = nil
	for _, pod := range pods[1:] {
		pod.Spec.NodeName = "gone"
		f.must(f.Update(t.Context(), &pod))
	}
	// a learner that is far behind knows of no users yet, and answers alone
	names := []string{pods[0].Name, pods[1].Name, pods[2].Name}
	f.group.answers = []decide.Answer{{Member: "kv-x", Index: 2, Revision: 1, Voters: names, Members: append(names, "kv-x")}}
	f.group.gauges = []members.Gauge{{Member: pods[0].Name, ID: "77", Index: 9, Revision: 5}}
	f.must(f.step(1))
	if loss := f.cluster().Status.QuorumLoss; loss != nil {
		t.Errorf("another process is no survivor: %+v", loss)
	}
	f.group.gauges[0].ID = "1"
	f.must(f.step(1))
	if loss := f.cluster().Status.QuorumLoss; loss == nil || loss.Survivor != pods[0].Name || loss.Revision != 5 || len(loss.Lost) != 2 ||
		loss.LogIndex != 9 {
		t.Errorf("%+v", loss)
	}
}
