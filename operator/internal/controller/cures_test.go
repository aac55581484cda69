package controller_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/quorate/quorate/internal/doctor"
)

// Ensure that conditions name what helps in Kubernetes: a change of the spec, or a command that can be typed there.
func TestReconcile_cures(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	f.found()
	for _, row := range []struct {
		code       doctor.Code
		members    int32
		cure, want string
	}{
		{doctor.MemberDown, 3, "quorate member list", "kubectl quorate -n ns kv member list"},
		{doctor.EvenVoters, 4, "quorate member plan --add NAME=URL", `kubectl patch -n ns quoratecluster kv --type merge -p '{"spec":{"members":5}}'`},
		{doctor.OneVoter, 1, "quorate member plan --add NAME=URL", `kubectl patch -n ns quoratecluster kv --type merge -p '{"spec":{"members":3}}'`},
		{doctor.TwoVoters, 3, "quorate member plan --add NAME=URL",
			"the operator brings the cluster to the 3 members of spec.members: status.action says what it waits for"},
		{doctor.BackupRefused, 3, "start the members with --backup-places",
			"members restart for spec.backup.place, one after the other: status.action says what they wait for"},
		{doctor.ReclaimFails, 3, "journalctl --grep 'garbage'", "kubectl logs -n ns m1 | grep 'garbage'"},
		{doctor.NoSync, 3, "quorate config print", "quorate config print"},
		{doctor.KeyUnavailable, 3, "quorate key status --endpoints MEMBER", "quorate key status --endpoints MEMBER"},
	} {
		c := f.cluster()
		c.Spec.Members = row.members
		f.must(f.Update(t.Context(), c))
		f.group.findings = []doctor.Finding{{Code: row.code, Severity: doctor.SlowerThanIs, Sentence: "s", Cure: row.cure,
			Members: []string{"m1"}}}
		_ = f.step(1)
		conditions := f.cluster().Status.Conditions
		for _, kind := range []string{string(row.code), "Healthy"} {
			if at := meta.FindStatusCondition(conditions, kind); at == nil || at.Message != "s → "+row.want {
				t.Errorf("%s: %+v, want %q", kind, at, row.want)
			}
		}
	}
}
