package controller_test

import (
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/objects"
)

// Ensure that a disruption budget of somebody else with the cluster's name stays as it is, and that the status says so.
func TestReconcile_othersBudget(t *testing.T) {
	for _, least := range []int{7, 2} { // the latter is what the cluster wants, too
		f := start(t, interceptor.Funcs{}, nil)
		theirs := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "ns"}}
		at := intstr.FromInt32(int32(least))
		theirs.Spec = policyv1.PodDisruptionBudgetSpec{MinAvailable: &at,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "payments"}}}
		f.must(f.Create(t.Context(), theirs))
		for range 12 {
			_ = f.step(1)
			for _, pod := range f.pods() {
				f.run(&pod, true)
			}
		}
		f.group.described = &quoratepb.Cluster{ClusterId: 0xabc, Leader: 1, Term: 1, Epoch: "0"}
		for i, pod := range f.pods() {
			f.group.described.Members = append(f.group.described.Members, &quoratepb.Member{Id: uint64(i + 1), Name: pod.Name,
				Role: quoratepb.Role_ROLE_VOTER, Started: true, Active: true, CaughtUp: true, Leader: i == 0})
		}
		_ = f.step(3)
		there := &policyv1.PodDisruptionBudget{}
		f.must(f.Get(t.Context(), f.key, there))
		if there.Spec.MinAvailable.IntValue() != least || there.Spec.Selector.MatchLabels["app"] != "payments" || len(there.OwnerReferences) > 0 {
			t.Errorf("%d: the budget is %+v", least, there.Spec)
		}
		if got := f.cluster().Status.Action; !strings.Contains(got, "the disruption budget: kv exists and is not of this cluster") {
			t.Errorf("%d: doing %q", least, got)
		}
	}
}

// Ensure that labels alone make nothing the cluster's: a copy of a member's claim that kept them, or a claim that somebody labelled, stays
// as it is, with the Secret of its name; a pod is asked nothing; and the status names them.
func TestReconcile_labelled(t *testing.T) {
	f := start(t, interceptor.Funcs{}, func(c *v1alpha1.QuorateCluster) { c.Spec.TLS.Mode = "BuiltIn" })
	f.found()
	first := &corev1.PersistentVolumeClaim{}
	f.must(f.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: prefix() + "1"}, first))
	want := map[string]map[string]string{}
	add := func(name string, labels map[string]string) {
		t.Helper()
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Labels: maps.Clone(labels),
			Annotations: maps.Clone(first.Annotations)}}
		f.must(f.Create(t.Context(), claim))
		want[name] = maps.Clone(claim.Annotations)
		f.must(f.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name + "-tls", Namespace: "ns"},
			Data: map[string][]byte{"tls.crt": []byte("theirs")}}))
	}
	add("copy", first.Labels)
	add(prefix()+"9", first.Labels) // its label names the first
	other := maps.Clone(first.Labels)
	other[objects.LabelMember] = "wildcard"
	add("wildcard", other)
	delete(other, objects.LabelMember)
	add("a-wildcard", other)
	evil := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "aaa", Namespace: "ns", Labels: maps.Clone(f.pods()[0].Labels)}}
	evil.Labels[objects.LabelMember] = "aaa"
	f.must(f.Create(t.Context(), &evil))
	f.run(&evil, true)
	forged := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: prefix() + "8", Namespace: "ns", Labels: maps.Clone(evil.Labels),
		OwnerReferences: f.pods()[len(f.pods())-1].OwnerReferences}}
	forged.Labels[objects.LabelMember] = forged.Name // and no claim
	f.must(f.Create(t.Context(), &forged))
	f.run(&forged, true)
	_ = f.step(8)
	for name, annotations := range want {
		claim := &corev1.PersistentVolumeClaim{}
		f.must(f.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, claim))
		if !maps.Equal(claim.Annotations, annotations) || len(claim.OwnerReferences) > 0 {
			t.Errorf("%s: %+v", name, claim.ObjectMeta)
		}
		if got := string(f.secret(name + "-tls").Data["tls.crt"]); got != "theirs" {
			t.Errorf("the Secret %s-tls was replaced", name)
		}
	}
	for _, seat := range f.group.seats {
		if seat.Member == "aaa" || seat.Member == forged.Name {
			t.Errorf("%s is asked", seat.Member)
		}
	}
	at := meta.FindStatusCondition(f.cluster().Status.Conditions, "Strangers")
	if at == nil || !strings.Contains(at.Message, "claim copy (its name is not that of its label quorate.io/member)") ||
		!strings.Contains(at.Message, "and more") {
		t.Errorf("the condition: %+v", at)
	}
}

// Ensure that a pod that somebody made from a member's, with its labels and no owner, is told of: it holds up the member's own.
func TestReconcile_copiedPod(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	f.found()
	of := f.pods()[1]
	f.must(f.Delete(t.Context(), &of))
	f.must(f.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: of.Name, Namespace: "ns", Labels: of.Labels}}))
	_ = f.step(3)
	if got := f.cluster().Status.Action; !strings.Contains(got, of.Name+" exists and is not of this cluster") ||
		!strings.Contains(got, "the cluster does not own it") {
		t.Errorf("doing %q", got)
	}
}

// Ensure that the Secret of a member's certificate that is somebody else's stays as it is.
func TestReconcile_othersCertificate(t *testing.T) {
	f := start(t, interceptor.Funcs{}, func(c *v1alpha1.QuorateCluster) { c.Spec.TLS.Mode = "BuiltIn" })
	f.must(f.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: prefix() + "1-tls", Namespace: "ns"},
		Data: map[string][]byte{"tls.crt": []byte("theirs")}}))
	if err := f.step(6); err == nil || !strings.Contains(err.Error(), prefix()+"1-tls exists and is not of this cluster") {
		t.Errorf("got %v", err)
	}
	if got := string(f.secret(prefix() + "1-tls").Data["tls.crt"]); got != "theirs" {
		t.Error("it was replaced")
	}
}

// Ensure that a Certificate of cert-manager follows the spec, keeps what others set, and is not taken from somebody else.
func TestReconcile_certManager(t *testing.T) {
	certificate := func(f *fixture, name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("cert-manager.io/v1")
		u.SetKind("Certificate")
		if name != "" {
			f.must(f.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, u))
		}
		return u
	}
	managed := func(c *v1alpha1.QuorateCluster) {
		c.Spec.TLS.Mode, c.Spec.TLS.IssuerRef = "CertManager", &v1alpha1.IssuerRef{Name: "ca", Kind: "Issuer"}
	}
	f := start(t, interceptor.Funcs{}, managed)
	_ = f.step(8)
	mine := certificate(f, prefix()+"1-tls")
	f.must(unstructured.SetNestedField(mine.Object, "2160h", "spec", "duration"))
	f.must(f.Update(t.Context(), mine))
	c := f.cluster()
	c.Spec.Exposure.Hosts = []string{"kv.example.com"}
	f.must(f.Update(t.Context(), c))
	_ = f.step(1)
	mine = certificate(f, mine.GetName())
	names, _, _ := unstructured.NestedStringSlice(mine.Object, "spec", "dnsNames")
	kept, _, _ := unstructured.NestedString(mine.Object, "spec", "duration")
	if !strings.Contains(strings.Join(names, " "), "kv.example.com") || kept != "2160h" {
		t.Errorf("the Certificate has %q, and the duration %q", names, kept)
	}

	f = start(t, interceptor.Funcs{}, managed)
	theirs := certificate(f, "")
	theirs.SetName(prefix() + "1-tls")
	theirs.SetNamespace("ns")
	f.must(f.Create(t.Context(), theirs))
	if err := f.step(8); err == nil || !strings.Contains(err.Error(), "exists and is not of this cluster") {
		t.Errorf("a Certificate of somebody else: %v", err)
	}
	if theirs = certificate(f, theirs.GetName()); theirs.Object["spec"] != nil {
		t.Errorf("it has %v", theirs.Object["spec"])
	}
}

// Ensure that a spec gets no Secret with a key of another cluster, and no disk of a member, whichever field names it; and that the
// published certificate of an authority, and Secrets of nobody's, are taken.
func TestReconcile_othersSecret(t *testing.T) {
	meta := objects.Meta(&v1alpha1.QuorateCluster{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "ns", UID: "uid-2"}}, "theirs")
	password := map[string][]byte{"password": []byte("x"), "tls.key": []byte("x")}
	for name, row := range map[string]struct {
		there  client.Object
		change func(*v1alpha1.QuorateClusterSpec)
		says   string
	}{
		"secrets": {&corev1.Secret{ObjectMeta: meta, Data: password}, func(s *v1alpha1.QuorateClusterSpec) { s.Secrets = []string{"theirs"} },
			"the Secret theirs is of the QuorateCluster db"},
		"env": {&corev1.Secret{ObjectMeta: meta, Data: password}, func(s *v1alpha1.QuorateClusterSpec) {
			s.Env = []corev1.EnvVar{{Name: "X", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "theirs"}, Key: "password"}}}}
		}, "the Secret theirs is of the QuorateCluster db"},
		"tls": {&corev1.Secret{ObjectMeta: meta, Data: password}, func(s *v1alpha1.QuorateClusterSpec) {
			s.TLS.Mode, s.TLS.SecretName = "Secret", "theirs"
		}, "the Secret theirs is of the QuorateCluster db"},
		"root": {&corev1.Secret{ObjectMeta: meta, Data: password}, func(s *v1alpha1.QuorateClusterSpec) {
			s.Auth = &v1alpha1.Auth{RootPasswordSecret: "theirs"}
		}, "the Secret theirs is of the QuorateCluster db"},
		"claim": {&corev1.PersistentVolumeClaim{ObjectMeta: meta}, func(s *v1alpha1.QuorateClusterSpec) { s.Claims = []string{"theirs"} },
			"the claim theirs is the disk of a member of the QuorateCluster db"},
		"an authority that is published": {&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"ca.crt": nil}},
			func(s *v1alpha1.QuorateClusterSpec) { s.Secrets = []string{"theirs"} }, ""},
		"a Secret of nobody's": {&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "theirs", Namespace: "ns"}, Data: password},
			func(s *v1alpha1.QuorateClusterSpec) { s.Secrets = []string{"theirs", "absent"} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, interceptor.Funcs{}, func(c *v1alpha1.QuorateCluster) { row.change(&c.Spec) })
			f.must(f.Create(t.Context(), row.there.DeepCopyObject().(client.Object)))
			err := f.step(8)
			if (err != nil) != (row.says != "") || err != nil && !strings.Contains(err.Error(), row.says) || err != nil && len(f.pods()) > 0 {
				t.Errorf("got %v, and %d pods", err, len(f.pods()))
			}
		})
	}
}

// Ensure that a view that somebody else made stops no backup that was begun by hand, and is not taken for the cluster's.
func TestReconcile_othersBackup(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	f.found()
	view := &v1alpha1.QuorateBackup{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "ns", Labels: objects.Labels(f.cluster())}}
	f.must(f.Create(t.Context(), view))
	if f.must(f.step(2)); len(f.group.backup) > 0 {
		t.Errorf("told %+v", f.group.backup)
	}
	c := f.cluster()
	c.Spec.Backup = &v1alpha1.Backup{Place: "s3://b/p"}
	f.must(f.Update(t.Context(), c))
	if err := f.step(2); err == nil || !strings.Contains(err.Error(), "the QuorateBackup kv exists and is not of this cluster") {
		t.Errorf("got %v", err)
	}
}

// Ensure that another name of the Secret of root's password makes no second one.
func TestReconcile_oneRootSecret(t *testing.T) {
	f := start(t, interceptor.Funcs{}, func(c *v1alpha1.QuorateCluster) { c.Spec.Auth = &v1alpha1.Auth{RootPasswordSecret: "root"} })
	f.found()
	for _, name := range []string{"other", "db-authority"} {
		c := f.cluster()
		c.Spec.Auth.RootPasswordSecret = name
		f.must(f.Update(t.Context(), c))
		if err := f.step(2); err == nil || !strings.Contains(err.Error(), "there is no Secret "+name+": make it") {
			t.Errorf("got %v", err)
		}
		if err := f.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, &corev1.Secret{}); err == nil {
			t.Errorf("the Secret %s was made", name)
		}
	}
}
