package controller_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/members"
)

// Ensure that the operator can log in whatever becomes of the Secret with root's password: changed before the cluster has the new one,
// changed again, or deleted; and that a password which the cluster has is never drawn anew.
func TestReconcile_rootPassword(t *testing.T) {
	f := start(t, interceptor.Funcs{}, func(c *v1alpha1.QuorateCluster) { c.Spec.Auth = &v1alpha1.Auth{RootPasswordSecret: "root"} })
	f.found()
	drawn := string(f.secret("root").Data["password"])
	set := func(password string) {
		s := f.secret("root")
		s.Data["password"] = []byte(password)
		f.must(f.Update(t.Context(), s))
	}
	logins := func(when string, want ...string) {
		t.Helper()
		_ = f.step(1)
		if got := f.group.access.Passwords; !slices.Equal(got, want) {
			t.Errorf("%s: logs in with %q, want %q", when, got, want)
		}
	}
	logins("founded", drawn)
	f.group.refuses = errors.New("no")
	set("two")
	logins("changed", "two", drawn)
	set("three") // "two" may have arrived
	logins("changed again", "three", "two", drawn)
	f.group.refuses = nil
	f.must(f.step(1))
	logins("taken", "three")
	f.must(f.Delete(t.Context(), f.secret("root")))
	f.must(f.step(1))
	if got := string(f.secret("root").Data["password"]); got != "three" {
		t.Errorf("the Secret was deleted, and has %q now", got)
	}
	f.must(f.Delete(t.Context(), f.secret("root")))
	f.must(f.Delete(t.Context(), f.secret("kv-root-applied")))
	if err := f.step(1); err == nil || !strings.Contains(err.Error(), "make the Secret again") {
		t.Errorf("nothing is left of the password: %v", err)
	}
}

// Ensure that the status has nothing that passwords could be guessed by.
func TestReconcile_usersApplied(t *testing.T) {
	hash := map[string]bool{}
	for _, password := range []string{"one", "two"} {
		f := start(t, interceptor.Funcs{}, func(c *v1alpha1.QuorateCluster) { c.Spec.Auth = &v1alpha1.Auth{RootPasswordSecret: "root"} })
		f.must(f.step(1))
		s := f.secret("root")
		s.Data["password"] = []byte(password)
		f.must(f.Update(t.Context(), s))
		f.found()
		f.must(f.step(1))
		hash[f.cluster().Status.UsersApplied] = true
	}
	if len(hash) != 1 || hash[""] {
		t.Errorf("it depends on the password: %v", hash)
	}
}

// Ensure that the operator still logs in where users were taken out of the spec, that a restored cluster is reached by the password of
// its state, and that the status says what helps where none counts.
func TestReconcile_noLogin(t *testing.T) {
	f := start(t, interceptor.Funcs{}, func(c *v1alpha1.QuorateCluster) { c.Spec.Auth = &v1alpha1.Auth{RootPasswordSecret: "root"} })
	f.found()
	drawn := string(f.secret("root").Data["password"])
	says := func(when, want string) {
		t.Helper()
		f.must(f.step(1))
		if got := f.cluster().Status.Action; !strings.Contains(got, want) {
			t.Errorf("%s: doing %q, want …%s…", when, got, want)
		}
	}
	f.group.described, f.group.refused = nil, true
	says("another password", "put the one that the cluster has into the Secret root")
	c := f.cluster()
	c.Spec.Auth = nil
	f.must(f.Update(t.Context(), c))
	says("without users in the spec", "name a Secret with root's password by spec.auth.rootPasswordSecret")
	if got := f.group.access.Passwords; !slices.Equal(got, []string{drawn}) {
		t.Errorf("without users in the spec: logs in with %q", got)
	}
	f.group.refused, f.group.gauges = false, []members.Gauge{{Member: f.pods()[0].Name, ID: "1", Term: 3, Index: 9, Revision: 5}}
	c = f.cluster()
	c.Spec.Auth, c.Status.Members = &v1alpha1.Auth{RootPasswordSecret: "root"}, nil
	f.must(f.Status().Update(t.Context(), c))
	c = f.cluster()
	c.Spec.Auth = &v1alpha1.Auth{RootPasswordSecret: "root"}
	f.must(f.Update(t.Context(), c))
	says("without members in the status", "status.members, which says who votes, was removed")

	f = start(t, interceptor.Funcs{}, func(c *v1alpha1.QuorateCluster) {
		c.Spec.Auth = &v1alpha1.Auth{RootPasswordSecret: "root"}
		c.Spec.Restore = &v1alpha1.RestoreFrom{Place: "s3://b/p", RootPasswordSecret: "former"}
	})
	f.must(f.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "former", Namespace: "ns"},
		Data: map[string][]byte{"password": []byte("old")}}))
	f.must(f.step(8))
	pod := f.pods()[0]
	f.run(&pod, false)
	f.group.refused = true
	says("restored", "A restored state has the password of its time")
	if got := f.group.access.Passwords; len(got) != 2 || got[1] != "old" {
		t.Errorf("restored: logs in with %q", got)
	}
}
