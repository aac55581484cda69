package controller_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/quorate/quorate/operator/api/v1alpha1"
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
