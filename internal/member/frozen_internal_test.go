package member

import (
	"context"
	"flag"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/member/integrity"
	"github.com/quorate/quorate/internal/member/peercall"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/test/golden/frozen"
)

var rewrite = flag.Bool("rewrite", false, "append calls of new kinds to the table")

// frozenID is the configuration that fenced questions are asked under.
var frozenID = consensus.ConfigID{Index: 300, Term: 7, Stage: 1}

// frozenCall is a question and its answer, as they are sent.
func frozenCall[Q, A any](t *testing.T, m *peercall.Method[Q, A], q Q, a A) []frozen.Value {
	t.Helper()
	question, err := peercall.Encode(m, frozenID, q)
	if err != nil {
		t.Fatal(err)
	}
	table := peercall.NewTable(faults, func(context.Context, consensus.ConfigID) error { return nil })
	peercall.Serve(table, m, func(context.Context, Q) (A, error) { return a, nil })
	answer, _, err := table.Answer(t.Context(), m.Name, question)
	if err != nil {
		t.Fatal(err)
	}
	return []frozen.Value{{Name: "question " + m.Name, Bytes: question}, {Name: "answer to " + m.Name, Bytes: answer}}
}

// frozenCode is the code of an error, which is the first byte of the answer.
func frozenCode(t *testing.T, name string, told error) frozen.Value {
	t.Helper()
	table := peercall.NewTable(faults, nil)
	peercall.Serve(table, &methodTTL, func(context.Context, kv.LeaseID) (leaseTTL, error) { return leaseTTL{}, told })
	answer, _, err := table.Answer(t.Context(), methodTTL.Name, []byte{1})
	if err != nil || len(answer) == 0 {
		t.Fatalf("%v is told as %q, %v", told, answer, err)
	}
	return frozen.Value{Name: "code: " + name, Bytes: answer[:1]}
}

// Ensure that calls which are lists of numbers have the bytes of 1.0, and that all methods and errors have its names and codes.
// Calls that are JSON may get fields: the table has those of a question and an answer whose rows are in the log as well.
func TestFrozen(t *testing.T) {
	ids := []kv.LeaseID{7, -7}
	renewals := []lease.Renewal{{TTLSeconds: 300}, {Err: kv.ErrLeaseNotFound}, {Err: lease.ErrExpired}}
	question, answer := integrity.Question{At: 300}, integrity.Answer{Known: true, Base: 1, At: 300, Sum: 1 << 60}
	values := frozenCall(t, &methodRenew, ids, renewals)
	values = append(values, frozenCall(t, &methodTTL, 300, leaseTTL{remaining: 5, granted: 300})...)
	values = append(values, frozenCall(t, &methodHeard, []consensus.MemberID{1, 300}, peercall.Nothing{})...)
	for _, kind := range []integrity.Kind{integrity.Chain, integrity.Contents} {
		values = append(values, frozenCall(t, integrityMethod(kind), question, answer)...)
	}
	start := startQuestion{ID: 0x10b, Spec: membership.Spec{Kind: membership.KindChange, Remove: []consensus.MemberID{2}}}
	values = append(values, frozenCall(t, &methodStart, start, membership.Job{ID: 0x10b, Spec: start.Spec,
		State: membership.StateQueued})...)
	moved := movedQuestion{ID: 2, URLs: []string{"http://a:2"}}
	values = append(values, frozenCall(t, &methodMovedStep, moved, peercall.Nothing{})...)
	for _, name := range []string{methodView.Name, methodPlan.Name, methodCancel.Name, methodJoinStep.Name, methodJoin.Name,
		methodMoved.Name, methodDescribe.Name, methodAddresses.Name, MethodGreet, string(SubjectObservation),
		string(SubjectTop)} {
		values = append(values, frozen.Value{Name: "method " + name, Bytes: []byte(name)})
	}
	for _, told := range []struct {
		name string
		err  error
	}{
		{"change blocked", &membership.BlockedError{}}, {"change refused", &membership.RefusedError{}},
		{"wrong spec", &membership.SpecError{}}, {"wrong address", &membership.AddressError{}},
		{"no such job", membership.ErrJobNotFound}, {"too many jobs", membership.ErrTooManyJobs},
		{"started already", membership.ErrAlreadyStarted}, {"job failed", membership.ErrJobFailed}, {"too large", ErrTooLarge},
		{"no such lease", kv.ErrLeaseNotFound}, {"not leader", ErrNotLeader}, {"no leader", ErrNoLeader},
	} {
		values = append(values, frozenCode(t, told.name, told.err))
	}
	frozen.Check(t, "testdata/calls.txt", *rewrite, values)
}
