package membershipapi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/membership"
)

type memberIDs = []consensus.MemberID

func TestRoleOf_sets(t *testing.T) {
	joint := consensus.Config{
		Voters: memberIDs{1, 2}, Outgoing: memberIDs{1, 3, 4}, Learners: memberIDs{5}, LearnersNext: memberIDs{4},
	}
	plain := consensus.Config{Voters: memberIDs{1}, Learners: memberIDs{5, 6}}
	for _, row := range []struct {
		name    string
		config  consensus.Config
		member  consensus.Member
		joining bool
		want    quoratepb.Role
	}{
		{"a voter", plain, consensus.Member{ID: 1}, false, quoratepb.Role_ROLE_VOTER},
		{"a voter of both sets", joint, consensus.Member{ID: 1}, false, quoratepb.Role_ROLE_VOTER},
		{"a voter of the new set", joint, consensus.Member{ID: 2}, false, quoratepb.Role_ROLE_INCOMING},
		{"a voter of the old set", joint, consensus.Member{ID: 3}, false, quoratepb.Role_ROLE_OUTGOING},
		{"a voter that will learn", joint, consensus.Member{ID: 4}, false, quoratepb.Role_ROLE_DEMOTING},
		{"a learner", plain, consensus.Member{ID: 5}, false, quoratepb.Role_ROLE_LEARNER},
		{"a learner beside a joint change", joint, consensus.Member{ID: 5}, false, quoratepb.Role_ROLE_LEARNER},
		{"a learner that was added to vote", plain, consensus.Member{ID: 6, Promote: true}, false, quoratepb.Role_ROLE_JOINING},
		{"a learner that a job will promote", plain, consensus.Member{ID: 6}, true, quoratepb.Role_ROLE_JOINING},
		{"a voter that an unfinished job has promoted", plain, consensus.Member{ID: 1}, true, quoratepb.Role_ROLE_VOTER},
		{"nobody", plain, consensus.Member{ID: 9}, false, quoratepb.Role_ROLE_UNSPECIFIED},
	} {
		if got := roleOf(&row.config, &row.member, row.joining); got != row.want {
			t.Errorf("%s: got %v, want %v", row.name, got, row.want)
		}
	}
}

func TestClusterMessage_view(t *testing.T) {
	view := membership.View{
		Leader: 1, ID: consensus.ConfigID{Index: 9, Term: 4, Stage: 1}, Protocol: consensus.ProtocolJointEarly, Last: 50,
		Config: consensus.Config{
			Voters: memberIDs{1, 2, 3}, Learners: memberIDs{4, 5},
			Members: []consensus.Member{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4}, {ID: 5}},
		},
		Members: []membership.MemberView{
			{ID: 1, Name: "a", Active: true, Match: 50, CaughtUp: true, Started: true, Version: "1.0", Zone: "r7"},
			{ID: 2, Active: true, Match: 48, State: "replicate", CaughtUp: true},
			{ID: 3, SilentMS: 1500, State: "probe"},
			{ID: 4, Active: true, State: "snapshot", Snapshot: &membership.TransferView{Sent: 3, Total: 10, BytesPerSecond: 2}},
			{ID: 5, PeerURLs: []string{"http://a:5"}, ClientURLs: []string{"http://a:6"}},
		},
	}
	jobs := []membership.Job{
		{ID: 1, State: membership.StateDone, Spec: membership.Spec{Promote: memberIDs{5}}},
		{ID: 2, State: membership.StateRunning, Spec: membership.Spec{
			Add: []membership.Newcomer{{ID: 4}, {ID: 6, Learner: true}},
		}},
	}
	options := &Options{ClusterID: 0xc1, Member: ofEpoch{}}
	got := clusterMessage(options, &view, 7, jobs)
	want := &quoratepb.Cluster{
		ClusterId: 0xc1, Config: &quoratepb.ConfigID{Index: 9, Term: 4, Stage: 1}, Protocol: "joint-early", Leader: 1, Term: 7,
		LastIndex: 50, Epoch: "2-0a0b0c0d",
		Strength: &quoratepb.Strength{Voters: 3, Learners: 2, Quorum: 2, Superquorum: 3, Active: 2, Tolerates: 0},
		Members: []*quoratepb.Member{
			{Id: 1, Name: "a", Role: quoratepb.Role_ROLE_VOTER, Leader: true, Started: true, Active: true, CaughtUp: true,
				Match: 50, Version: "1.0", Zone: "r7"},
			{Id: 2, Role: quoratepb.Role_ROLE_VOTER, Active: true, CaughtUp: true, Match: 48, Lag: 2, State: "replicate"},
			{Id: 3, Role: quoratepb.Role_ROLE_VOTER, Lag: 50, State: "probe", SilentMs: 1500},
			{Id: 4, Role: quoratepb.Role_ROLE_JOINING, Active: true, Lag: 50, State: "snapshot", SnapshotSentBytes: 3,
				SnapshotTotalBytes: 10, BytesPerSecond: 2},
			{Id: 5, Role: quoratepb.Role_ROLE_LEARNER, Lag: 50, PeerUrls: []string{"http://a:5"},
				ClientUrls: []string{"http://a:6"}},
		},
	}
	if !proto.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	view.Protocol, view.Leader = consensus.ProtocolAuto, consensus.NoMember
	if got := clusterMessage(options, &view, 7, nil); got.Protocol != "" || got.Members[2].Lag != 0 || got.Members[3].Role != quoratepb.Role_ROLE_LEARNER {
		t.Errorf("the first configuration, without a leader or jobs: got %v, want no protocol, no lag and learners", got)
	}
}

func TestJobMessages_queue(t *testing.T) {
	job := func(id membership.JobID, state membership.State) membership.Job {
		return membership.Job{ID: id, State: state, Spec: membership.Spec{Kind: membership.KindDrain, Drain: memberIDs{1}}}
	}
	jobs := []membership.Job{
		job(1, membership.StateDone), job(2, membership.StateRunning), job(3, membership.StateCancelled),
		job(4, membership.StateQueued), job(5, membership.StateQueued),
	}
	want := []uint32{0, 0, 0, 1, 2}
	for i, got := range jobMessages(jobs) {
		if behind := strings.HasSuffix(got.Message, "job 2"); behind != (want[i] > 0) {
			t.Errorf("job %d (%s) says %q", got.Id, got.State, got.Message)
		}
		if got.QueuePosition != want[i] {
			t.Errorf("job %d (%s): %d jobs are before it, want %d", got.Id, got.State, got.QueuePosition, want[i])
		}
	}
	if later := job(6, membership.StateQueued); jobMessage(&later, jobs).QueuePosition != 3 {
		t.Errorf("a job that is not applied here yet: got %v, want three before it", jobMessage(&later, jobs))
	}
	full := membership.Job{
		ID: 9, State: membership.StateRunning, Phase: membership.PhaseJoin, Message: "m", CancelAsked: true,
		Created: 1, Started: 2, Updated: 3, Ended: 4, Phases: []membership.Phase{membership.PhaseSwap, membership.PhaseSettle},
		Names: []membership.Named{{ID: 1, Name: "one"}}, Undo: "u", Begun: []membership.PhaseTime{{Phase: membership.PhaseJoin, At: 2}},
		Config: consensus.ConfigID{Index: 5, Term: 1}, Final: consensus.ConfigID{Index: 6, Term: 1, Stage: 1},
		Spec: membership.Spec{
			Kind: membership.KindReplace, Add: []membership.Newcomer{{ID: 7, Name: "n", PeerURLs: []string{"http://a:7"}}},
			Remove: memberIDs{1}, Protocol: consensus.ProtocolActivate, Expected: consensus.ConfigID{Index: 5, Term: 1},
			Update: []consensus.Member{{ID: 2, PeerURLs: []string{"http://a:2"}}},
		},
	}
	message := jobMessage(&full, nil)
	expected := &quoratepb.Job{
		Id: 9, State: "running", Phase: "join", Message: "m", CancelAsked: true, CreatedMs: 1, StartedMs: 2, UpdatedMs: 3,
		EndedMs: 4, Config: &quoratepb.ConfigID{Index: 5, Term: 1}, Final: &quoratepb.ConfigID{Index: 6, Term: 1, Stage: 1},
		Newcomers: []uint64{7}, Phases: []string{"swap", "settle"}, Undo: "u",
		Names: []*quoratepb.NamedMember{{Id: 1, Name: "one"}}, Begun: []*quoratepb.PhaseTime{{Phase: "join", AtMs: 2}},
		Spec: &quoratepb.ChangeSpec{
			Kind: "replace", Add: []*quoratepb.Newcomer{{Name: "n", PeerUrls: []string{"http://a:7"}}}, Remove: []uint64{1},
			Update: []*quoratepb.NewURLs{{Id: 2, PeerUrls: []string{"http://a:2"}}}, Protocol: "activate",
			Expected: &quoratepb.ConfigID{Index: 5, Term: 1},
		},
	}
	if !proto.Equal(message, expected) {
		t.Errorf("got  %v\nwant %v", message, expected)
	}
}

func TestPlanMessage_plan(t *testing.T) {
	plan := membership.Plan{
		Config: consensus.ConfigID{Index: 5, Term: 2}, Leader: 1, Protocol: consensus.ProtocolSingle,
		Now:      membership.Strength{Voters: 3, Quorum: 2, Tolerates: 1},
		Steps:    []membership.PlanStep{{Title: "t", Detail: "d", During: membership.Strength{OutQuorum: 2}}},
		Blockers: []string{"b"}, Warnings: []string{"w"}, Done: true, Undo: "u",
	}
	want := &quoratepb.PlanResponse{
		Config: &quoratepb.ConfigID{Index: 5, Term: 2}, Leader: 1, Protocol: "single",
		Now: &quoratepb.Strength{Voters: 3, Quorum: 2, Tolerates: 1},
		Steps: []*quoratepb.PlanStep{{
			Title: "t", Detail: "d", During: &quoratepb.Strength{OutgoingQuorum: 2}, After: &quoratepb.Strength{},
		}},
		Blockers: []string{"b"}, Warnings: []string{"w"}, Done: true, Undo: "u",
	}
	if got := planMessage(&plan); !proto.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestSpecOf_roundTrip(t *testing.T) {
	asked := &quoratepb.ChangeSpec{
		Kind: "change", Add: []*quoratepb.Newcomer{{Name: "n", PeerUrls: []string{"http://a:2", "http://a:1"}, Learner: true, Cordoned: true}},
		Remove: []uint64{1}, Promote: []uint64{2}, Demote: []uint64{3}, Cordon: []uint64{4, 5}, Uncordon: []uint64{6},
		Update:   []*quoratepb.NewURLs{{Id: 4, PeerUrls: []string{"http://a:4"}}},
		Protocol: "joint", Expected: &quoratepb.ConfigID{Index: 5, Term: 2, Stage: 1},
	}
	spec, err := specOf(asked)
	if err != nil {
		t.Fatal(err)
	}
	if urls := spec.Add[0].PeerURLs; urls[0] != "http://a:1" {
		t.Errorf("got the URLs %v, want them sorted", urls)
	}
	asked.Add[0].PeerUrls = []string{"http://a:1", "http://a:2"}
	if got := specMessage(&spec); !proto.Equal(got, asked) {
		t.Errorf("got  %v\nwant %v", got, asked)
	}
	drain, err := specOf(&quoratepb.ChangeSpec{Kind: "drain", Drain: []uint64{7}})
	if err != nil || drain.Kind != membership.KindDrain || drain.Drain[0] != 7 || drain.Protocol != consensus.ProtocolAuto {
		t.Errorf("a drain: got %+v, %v", drain, err)
	}
}

func TestSpecOf_refusals(t *testing.T) {
	for _, row := range []struct {
		name string
		spec *quoratepb.ChangeSpec
		want []string // each is part of the text
	}{
		{"nothing", nil, []string{"nothing is asked for"}},
		{"an unknown kind", &quoratepb.ChangeSpec{Kind: "swap", Remove: []uint64{1}}, []string{"swap"}},
		{"an unknown protocol", &quoratepb.ChangeSpec{Protocol: "paxos", Remove: []uint64{1}}, []string{"paxos", "joint-early"}},
		{"an experiment", &quoratepb.ChangeSpec{Protocol: consensus.ExperimentSwitched, Remove: []uint64{1}},
			[]string{"no cluster runs", "quoratesim reconfig"}},
		{"a member twice", &quoratepb.ChangeSpec{Remove: []uint64{1}, Promote: []uint64{1}}, []string{"more than once"}},
		{"no id", &quoratepb.ChangeSpec{Remove: []uint64{0}}, []string{"lacks its id"}},
		{"no URL", &quoratepb.ChangeSpec{Add: []*quoratepb.Newcomer{{Name: "n"}}}, []string{"no peer URL"}},
		{"what is no URL, and an unknown protocol", &quoratepb.ChangeSpec{
			Protocol: "paxos", Add: []*quoratepb.Newcomer{{PeerUrls: []string{"ftp://a"}}},
		}, []string{"ftp://a", "paxos"}},
		{"a stage that there is not", &quoratepb.ChangeSpec{
			Remove: []uint64{1}, Expected: &quoratepb.ConfigID{Index: 1, Stage: 256},
		}, []string{"stage"}},
	} {
		_, err := specOf(row.spec)
		for _, part := range row.want {
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: got %v, want InvalidArgument that says %q", row.name, err, part)
			}
		}
	}
}

func TestMembershipError_codes(t *testing.T) {
	refused := func(reason consensus.RefusalReason) error {
		return fmt.Errorf("start: %w", &membership.RefusedError{Reason: reason, Config: consensus.ConfigID{Index: 9, Term: 3}})
	}
	for _, row := range []struct {
		name string
		err  error
		code codes.Code
		text string
	}{
		{"a blocked plan: one line per blocker", &membership.BlockedError{Plan: membership.Plan{Blockers: []string{"a is down", "b lags"}}},
			codes.FailedPrecondition, "a is down\nb lags"},
		{"a senseless spec", &membership.SpecError{Text: "no"}, codes.InvalidArgument, "no"},
		{"an unknown job", membership.ErrJobNotFound, codes.NotFound,
			"there is no such membership job; ended ones are forgotten after a while"},
		{"an unknown job, in the leader's words", fmt.Errorf("%w", membership.ErrJobNotFound), codes.NotFound,
			"there is no such membership job; ended ones are forgotten after a while"},
		{"too many jobs", membership.ErrTooManyJobs, codes.ResourceExhausted,
			"too many membership jobs are waiting: cancel some, or let them end"},
		{"no leader", member.ErrNoLeader, codes.Unavailable, "no leader"},
		{"a leader that does not answer", member.ErrTimeout, codes.Unavailable, "request timed out"},
		{"a leader that failed", fmt.Errorf("ask: %w", member.ErrLeaderFailed), codes.Unavailable,
			"ask: member: request timed out, possibly due to previous leader failure"},
		{"the caller's time", context.DeadlineExceeded, codes.DeadlineExceeded, "context deadline exceeded"},
		{"a stale configuration", refused(consensus.ReasonStaleConfig), codes.FailedPrecondition,
			"configuration 5.2.0 was expected, and 9.3.0 is in force: look at the members again, then decide"},
		{"a change beside another", refused(consensus.ReasonChangePending), codes.Unavailable,
			consensus.ReasonChangePending.String()},
		{"an unknown member", refused(consensus.ReasonMemberNotFound), codes.NotFound, "there is no such member"},
		{"a quorum that is not there", refused(consensus.ReasonQuorumLost), codes.FailedPrecondition,
			consensus.ReasonQuorumLost.String()},
		{"a newer leader", fmt.Errorf("%w", errors.ErrUnsupported), codes.Unimplemented, "unsupported operation"},
		{"what has a status already", status.Error(codes.Aborted, "x"), codes.Aborted, "x"},
		{"anything else", errors.New("disk on fire"), codes.Unknown, "disk on fire"},
	} {
		got := status.Convert(wireError(row.err, consensus.ConfigID{Index: 5, Term: 2}))
		if got.Code() != row.code || got.Message() != row.text {
			t.Errorf("%s: got %v %q, want %v %q", row.name, got.Code(), got.Message(), row.code, row.text)
		}
	}
	stale := status.Convert(wireError(refused(consensus.ReasonStaleConfig), consensus.ConfigID{}))
	if details := stale.Details(); len(details) != 1 ||
		!proto.Equal(details[0].(proto.Message), &quoratepb.StaleConfig{Current: &quoratepb.ConfigID{Index: 9, Term: 3}}) {
		t.Errorf("a stale configuration: got the details %v, want the one in force", details)
	}
	for reason := consensus.ReasonNoLeader; reason <= consensus.ReasonNoChange; reason++ {
		if got := status.Code(wireError(refused(reason), consensus.ConfigID{})); got == codes.Unknown || got == codes.OK {
			t.Errorf("%v: got the code %v", reason, got)
		}
	}
}

// ofEpoch is a member that only tells its epoch.
type ofEpoch struct{ Member }

func (ofEpoch) EpochName() string { return "2-0a0b0c0d" }
