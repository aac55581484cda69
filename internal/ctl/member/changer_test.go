package member_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
)

// Ensure that nothing happens until a person says yes, and that a yes starts the job of that very plan.
func TestRun_memberChange_question(t *testing.T) {
	f := startCluster(t)
	f.attended(t, "n\n", "member", "remove", "m2").Want(t, command.StatusRefused, planText[1:],
		"Proceed? [y/N] quorate: nothing was changed")
	f.attended(t, "", "member", "remove", "m2").Want(t, command.StatusRefused, planText[1:], "nothing was changed")
	if len(f.started) > 0 {
		t.Fatalf("got %d jobs, want none", len(f.started))
	}
	f.attended(t, "Yes\n", "member", "remove", "m2", "--detach").Want(t, 0,
		planText[1:]+"job 3f2a is queued; see `quorate member jobs watch 3f2a`\n", "Proceed? [y/N] ")
	if len(f.started) != 1 || f.started[0].RequestId == 0 || !proto.Equal(f.started[0].Spec.Expected, f.plan.Config) {
		t.Errorf("got %v, want one job with a number that expects configuration 41.7.0", f.started)
	}
	got := f.attended(t, "y\n", "member", "remove", "m2", "--detach", "-o", "json")
	if !strings.HasPrefix(got.Out, `{"id":"16170",`) || !strings.HasPrefix(got.Err, planText[1:]) {
		t.Errorf("as JSON: got %q, errors %q; want the job, and the plan beside it", got.Out, got.Err)
	}
}

// Ensure that a command that is given again means the member that its job has removed, and not one that bears its name now.
func TestRun_memberChange_removedBefore(t *testing.T) {
	f := startCluster(t)
	removed := func(id uint64, name string) *quoratepb.Job {
		return &quoratepb.Job{Spec: &quoratepb.ChangeSpec{Remove: []uint64{id}}, State: "done",
			Names: []*quoratepb.NamedMember{{Id: id, Name: name}}}
	}
	f.jobs = []*quoratepb.Job{removed(0xb8, "m9"), removed(0xb1, "m1"), removed(0xb9, "m9")}
	f.plan = &quoratepb.PlanResponse{Config: f.cluster.Config, Done: true}
	for word, want := range map[string]uint64{"m9": 0xb9, "m1": 0xa1, "b1": 0xb1, "b8": 0xb8, "m8": 0} {
		f.planned = nil
		got := f.run(t, "member", "remove", word, "--yes")
		switch {
		case want == 0 && (got.Status != command.StatusRefused || !strings.Contains(got.Err, "no member is called")):
			t.Errorf("%s: got %+v", word, got)
		case want != 0 && (len(f.planned) != 1 || f.planned[0].Remove[0] != want || got.Out != "nothing to do: the members are as asked\n"):
			t.Errorf("%s: got %+v, planned %v, want %x", word, got, f.planned, want)
		}
	}
}

// Ensure that a plan whose cluster has changed is refused, and that a leader that is missing for a moment is waited for.
func TestRun_memberChange_refusals(t *testing.T) {
	f := startCluster(t)
	f.refusals = []error{nil, stale(t)}
	f.run(t, "member", "remove", "m2", "--yes", "--detach").Want(t, command.StatusRefused, planText[1:],
		"the members have changed since the plan was made: configuration 43.8.0 is in force now; nothing was changed, plan again")
	f.started = nil
	f.refusals = []error{status.Error(codes.Unavailable, "etcdserver: no leader"), nil, status.Error(codes.Unavailable, "x")}
	f.run(t, "member", "remove", "m2", "--yes", "--detach").Want(t, 0,
		planText[1:]+"job 3f2a is queued; see `quorate member jobs watch 3f2a`\n", "")
	if len(f.started) != 2 || f.started[0].RequestId != f.started[1].RequestId {
		t.Errorf("got %v, want the same request twice", f.started)
	}
	for range 9 {
		f.refusals = append(f.refusals, status.Error(codes.Unavailable, "etcdserver: no leader"))
	}
	f.run(t, "member", "remove", "m2", "--yes", "--timeout=300ms").Want(t, command.StatusUnreachable, "",
		"the cluster did not do it within 300ms: no leader")
}
