package top_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/ctltest"
	"github.com/quorate/quorate/internal/doctor"
)

// Ensure that one member that answers for all gives the table that all give, that the others are not asked, and that those that did
// not answer it are named with the reason.
func TestRun_throughMember(t *testing.T) {
	a, b := twoMembers()
	members := startCluster(t, a, b)
	direct := ctltest.RunAt(t, members[0].address, "top")
	asked := len(members[1].asked)
	members[0].answer = &quoratepb.TopAnswer{ClusterId: cluster, MemberId: members[0].id, Members: []*quoratepb.TopOfMember{
		{Id: members[0].id, Name: "m1", Answer: a}, {Id: members[1].id, Name: "m2", Answer: b}}}
	through := ctltest.RunAt(t, members[0].address, "top", "--through-member")
	same(t, "through a member", through.Out+through.Err, direct.Out+direct.Err)
	if len(members[1].asked) != asked || !members[0].asked[len(members[0].asked)-1].GetAllMembers() {
		t.Errorf("the second member was asked %d times, the first one for %v", len(members[1].asked)-asked, members[0].asked)
	}
	members[0].answer.Members = append(members[0].answer.Members,
		&quoratepb.TopOfMember{Id: 7, Name: "m\x1b[2J3", Fault: doctor.FaultRefused, FaultText: "connection \x1b[2Jrefused"},
		&quoratepb.TopOfMember{Id: 8, Name: "m4", Fault: doctor.FaultUnsupported, FaultText: "x", Answer: a},
		&quoratepb.TopOfMember{Id: 9, Name: "m5"})
	got := ctltest.RunAt(t, members[0].address, "top", "--through-member")
	for _, want := range []string{"2 of 5 members", "is not counted: connection [2Jrefused", "m4 is not counted: its build does not count calls",
		"m5 is not counted: it does not answer"} {
		if got.Status != command.StatusOK || !strings.Contains(got.Out, want) || strings.Contains(got.Out, "\x1b") {
			t.Errorf("status %d, want %q: %s%s", got.Status, want, got.Out, got.Err)
		}
	}
}

// Ensure that a member of a build which asks no others is told apart from one that has nothing to say.
func TestRun_throughMember_olderBuild(t *testing.T) {
	a, b := twoMembers()
	members := startCluster(t, a, b)
	for _, refusal := range []error{nil, status.Error(codes.Unimplemented, "this process asks no other members")} {
		members[0].refusal = refusal
		got := ctltest.RunAt(t, members[0].address, "top", "--through-member")
		if got.Status == command.StatusOK || !strings.Contains(got.Err, "leave --through-member out") {
			t.Errorf("status %d: %s%s", got.Status, got.Out, got.Err)
		}
	}
}
