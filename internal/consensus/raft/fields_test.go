package raft_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// fieldsOf are the fields of a message that each kind may use, beside From, To, Term and Config: one struct serves all kinds,
// and no field has two meanings.
var fieldsOf = map[consensus.MessageKind]string{
	consensus.MsgPreVote:        "Last Committed Force",
	consensus.MsgPreVoteReply:   "Last Committed Reject",
	consensus.MsgVote:           "Last Committed Force",
	consensus.MsgVoteReply:      "Last Committed Reject Records",
	consensus.MsgAppend:         "Commit Durable Prev Entries Round WaitedFor DiskTook AllTook",
	consensus.MsgAppendReply:    "Match Refused Hint Reject Round Patience Received Durable DiskTook",
	consensus.MsgHeartbeat:      "Commit Durable Round WaitedFor DiskTook AllTook",
	consensus.MsgHeartbeatReply: "Match Received Round Patience Durable",
	consensus.MsgPropose:        "Proposals",
	consensus.MsgProposeReply:   "Refusals",
	consensus.MsgRead:           "Reads Query",
	consensus.MsgReadReply:      "Reads Query WaitedFor DiskTook",
	consensus.MsgSnapshotOffer:  "Commit Snapshot Round",
	consensus.MsgSnapshotReply:  "Match Refused Reject Round Patience",
	consensus.MsgTimeoutNow:     "",
	consensus.MsgTransfer:       "Target",
	consensus.MsgRemoved:        "",
	consensus.MsgAcknowledged:   "Match DiskTook",
	consensus.MsgLogQuery:       "Query",
	consensus.MsgLogQueryReply:  "Query Last Unlogged",
	consensus.MsgRecord:         "Proposals Due",
	consensus.MsgRecorded:       "Verdicts DiskTook",
	consensus.MsgFastPropose:    "Proposals Due",
	consensus.MsgFast:           "Verdicts DiskTook",
	consensus.MsgOrphans:        "Verdicts",
}

// foreignField returns a field that a message sets and its kind does not use; empty if there is none.
func foreignField(m *message) string {
	v := reflect.ValueOf(m).Elem()
	for _, field := range reflect.VisibleFields(v.Type()) {
		name := field.Name
		common := slices.Contains([]string{"Kind", "From", "To", "Term", "Config"}, name)
		if common || field.Anonymous || v.FieldByIndex(field.Index).IsZero() {
			continue
		}
		if !slices.Contains(strings.Fields(fieldsOf[m.Kind]), name) {
			return name
		}
	}
	return ""
}

// Ensure that no message sets a field of another kind, whatever happens to a cluster: a field whose meaning depends on the kind
// is read wrongly sooner or later. Ensure too that each message is for another member, and that the leader gets no
// acknowledgement a second time as a proposer.
func TestReplica_Step_fieldsOfKind(t *testing.T) {
	if name := foreignField(&message{Kind: consensus.MsgRecord, Round: 1}); name != "Round" {
		t.Fatalf("a record with a round bears %q", name)
	}
	seen := map[consensus.MessageKind]bool{}
	c := newCluster([]memberID{1, 2, 3, 4, 5}, []memberID{6}, func(o *raft.Options) {
		o.Fast.Footprint, o.LeaderLease, o.TickMicros = footprintOf, true, 1000
	})
	look := func(m *message) {
		seen[m.Kind] = true
		if name := foreignField(m); name != "" {
			t.Errorf("kind %d bears %s: %s", m.Kind, name, describe(m))
		}
	}
	c.check = func(n *node, out *raft.Output) {
		s := n.replica.Status()
		for _, list := range [][]message{out.Send, out.SendAfter} {
			for i := range list {
				look(&list[i])
				if why := unfit(&list[i], &s); why != "" {
					t.Errorf("%s: %s", why, describe(&list[i]))
				}
			}
		}
		for i := range out.Evaluate {
			look(&out.Evaluate[i].Message)
		}
	}
	c.infer = true
	c.elect(1)
	c.tick(2)
	c.propose(2, "a=1", "b=2")
	c.proposeFast(3, "c=3")
	c.tick(2)
	for _, spread := range []bool{false, true} {
		c.node(4).step(raft.Read{IDs: []uint64{uint64(len(seen) + 100)}, Spread: spread})
		c.tick(1)
	}
	c.node(2).offered(consensus.MsgRecord, proposalOf(500, "d=1")) // and the leader never receives it
	c.isolate(5, true)
	c.propose(1, "e=1", "f=2", "g=3")
	c.tick(80)
	c.node(1).compact(c.node(1).store.position.Index)
	c.isolate(5, false)
	c.tick(5)
	c.node(3).step(raft.Transfer{To: 2})
	c.settle()
	c.tick(3)
	c.isolate(3, true)
	c.node(3).step(raft.Campaign{})
	c.isolate(3, false)
	c.tick(3)
	leader := c.leader().id
	c.change(leader, consensus.ChangeRemove, consensus.Member{ID: 6})
	c.tick(3)
	c.node(6).step(raft.Campaign{})
	c.tick(3)
	c.propose(4, "h=1")
	c.node(leader).step(raft.Propose{Proposals: []consensus.Proposal{proposalOf(501, "a=9")}})
	c.tick(2)
	var never []consensus.MessageKind
	for kind := range fieldsOf {
		if !seen[kind] {
			never = append(never, kind)
		}
	}
	slices.Sort(never)
	if t.Logf("never sent: %v", never); len(never) > 1 {
		t.Errorf("%d of %d kinds were never sent", len(never), len(fieldsOf))
	}
}
