package controller_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/controller"
)

// Ensure that a paused cluster is left alone but for certificates, that the status says so, and that the end of the pause has what was
// held up done.
func TestReconcile_paused(t *testing.T) {
	f := start(t, interceptor.Funcs{}, func(c *v1alpha1.QuorateCluster) {
		c.Spec.TLS.Mode, c.Spec.Auth = "BuiltIn", &v1alpha1.Auth{RootPasswordSecret: "root"}
	})
	f.found()
	pause := func(is bool) {
		c := f.cluster()
		c.Spec.Paused, c.Spec.Members, c.Spec.Storage.Keep = is, 5, true
		f.must(f.Update(t.Context(), c))
	}
	pause(true)
	asked, users, backups := len(f.group.asked), len(f.group.users), len(f.group.backup)
	gone, budget := f.pods()[1], &policyv1.PodDisruptionBudget{}
	f.must(f.Get(t.Context(), f.key, budget))
	for _, o := range []client.Object{&gone, budget, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "ns"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "root", Namespace: "ns"}}} {
		f.must(f.Delete(t.Context(), o))
	}
	secret := client.ObjectKey{Namespace: "ns", Name: gone.Name + "-tls"}
	before, after := &corev1.Secret{}, &corev1.Secret{}
	f.must(f.Get(t.Context(), secret, before))
	f.now = f.now.Add(80 * 24 * time.Hour)
	f.must(f.step(5))
	f.must(f.Get(t.Context(), secret, after))
	if string(before.Data["tls.crt"]) == string(after.Data["tls.crt"]) {
		t.Error("a certificate was not renewed")
	}
	for _, o := range []client.Object{&corev1.Pod{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{}} {
		key := f.key
		if _, is := o.(*corev1.Pod); is {
			key.Name = gone.Name
		}
		if err := f.Get(t.Context(), key, o); err == nil {
			t.Errorf("%T was made", o)
		}
	}
	var claims corev1.PersistentVolumeClaimList
	f.must(f.List(t.Context(), &claims))
	for i := range claims.Items {
		if len(claims.Items[i].OwnerReferences) == 0 {
			t.Errorf("the owner of %s was changed", claims.Items[i].Name)
		}
	}
	if len(f.group.asked) > asked || len(f.group.users) > users || len(f.group.backup) > backups || len(claims.Items) != 3 {
		t.Errorf("asked %v, users %d, backups %d, claims %d", f.group.asked, len(f.group.users), len(f.group.backup), len(claims.Items))
	}
	st := f.cluster().Status
	if !meta.IsStatusConditionTrue(st.Conditions, controller.Paused) || !strings.Contains(st.Action,
		"paused by spec.paused. The next step would be CreatePod "+gone.Name) {
		t.Errorf("doing %q, conditions %+v", st.Action, st.Conditions)
	}
	if at := meta.FindStatusCondition(st.Conditions, controller.Progressing); at.Status != metav1.ConditionUnknown {
		t.Errorf("progressing is %+v", at)
	}
	pause(false)
	f.must(f.step(3))
	if st := f.cluster().Status; meta.FindStatusCondition(st.Conditions, controller.Paused) != nil {
		t.Errorf("after the pause: %+v", st.Conditions)
	}
	f.must(f.Get(t.Context(), client.ObjectKeyFromObject(&gone), &corev1.Pod{}))
	f.must(f.Get(t.Context(), f.key, &corev1.Service{}))
}

// Ensure that a pause ends a recovery whose command may have run, as far as anybody knows: after it the survivor tells, the loss is
// reported again, and the consent, which is void, recovers nothing.
func TestReconcile_pausedRecovery(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	f.found()
	id, survivor := f.loseTwo(), f.pods()[0]
	change := func(set func(c *v1alpha1.QuorateCluster)) {
		c := f.cluster()
		set(c)
		f.must(f.Update(t.Context(), c))
	}
	change(func(c *v1alpha1.QuorateCluster) { c.Spec.Recovery = &v1alpha1.Recovery{AcceptLossAfter: 5, Loss: id} })
	f.must(f.step(6))
	command := &corev1.Pod{}
	at := client.ObjectKey{Namespace: "ns", Name: survivor.Name + "-recover"}
	f.must(f.Get(t.Context(), at, command))
	f.must(f.Delete(t.Context(), command)) // by somebody, and a node may have run it
	change(func(c *v1alpha1.QuorateCluster) { c.Spec.Paused = true })
	f.must(f.step(2))
	if r := f.cluster().Status.Recovery; !strings.Contains(r.Failed, "spec.paused is set") || strings.Contains(r.Failed, "nothing") {
		t.Errorf("the recovery is %+v", r)
	}
	change(func(c *v1alpha1.QuorateCluster) { c.Spec.Paused = false })
	f.must(f.step(1))
	f.must(f.Get(t.Context(), client.ObjectKeyFromObject(&survivor), &survivor))
	f.run(&survivor, false)
	f.must(f.step(6))
	st := f.cluster().Status
	if st.QuorumLoss == nil || st.VoidedConsent == nil || !strings.Contains(st.Action, "is void") {
		t.Errorf("after the pause: loss %+v, void %+v, doing %q", st.QuorumLoss, st.VoidedConsent, st.Action)
	}
	if err := f.Get(t.Context(), at, command); err == nil {
		t.Error("a void consent recovers")
	}
}
