package rpc_test

import (
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
)

// offer offers proposals to the member as the leader, and returns the first verdict and the first answer.
func (c *proposeClient) offer(on *quoratepb.TermConfig, proposals ...*quoratepb.Proposal) (*quoratepb.Verdicts, *quoratepb.Answer) {
	c.t.Helper()
	c.send(&quoratepb.ProposeRequest{TermConfig: on, Proposals: proposals})
	var verdicts *quoratepb.Verdicts
	var answer *quoratepb.Answer
	c.recv(func(r *quoratepb.ProposeResponse) bool {
		if verdicts == nil && len(r.Verdicts) > 0 {
			verdicts = r.Verdicts[0]
		}
		if answer == nil && len(r.Answers) > 0 {
			answer = r.Answers[0]
		}
		return answer != nil
	})
	return verdicts, answer
}

func named(t *testing.T, session, sequence uint64, r proto.Message) *quoratepb.Proposal {
	t.Helper()
	request, err := proto.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return &quoratepb.Proposal{Session: session, Sequence: sequence, Kind: quoratepb.Proposal_KIND_PUT, Request: request}
}

// TestServices_Propose_offered answers an offer of a client to the leader before it is applied, the same as after it.
func TestServices_Propose_offered(t *testing.T) {
	s := serveNative(t, nil)
	c := openPropose(t, s, 0xc1)
	if !c.first.Fast || len(c.first.Voters) != 1 || c.first.Voters[0] != uint64(testMember) || c.first.TermConfig.Term == 0 {
		t.Fatalf("status: got %v", c.first)
	}
	session, fast := c.open(), 0
	for sequence := uint64(1); sequence <= 20; sequence++ {
		verdicts, answer := c.offer(c.first.TermConfig, named(t, session, sequence, put("k")))
		response := new(pb.PutResponse)
		if answer.Verdict != quoratepb.Answer_VERDICT_APPLIED || proto.Unmarshal(answer.Response, response) != nil ||
			response.Header.Revision != int64(1+sequence) {
			t.Fatalf("%d: got %v, %v", sequence, answer, response)
		}
		if verdicts == nil {
			continue // the answer came before it
		}
		v := verdicts.Verdicts[0]
		if !verdicts.Leader || !proto.Equal(verdicts.TermConfig, c.first.TermConfig) || v.Session != session || v.Sequence != sequence {
			t.Fatalf("%d: got %v", sequence, verdicts)
		}
		if v.Revision != 0 {
			fast++
			if v.Revision != uint64(response.Header.Revision) || string(v.Response) != string(answer.Response) {
				t.Errorf("%d: got %v, and then %v", sequence, v, answer)
			}
		}
	}
	t.Logf("%d of 20 were answered before they were applied", fast)
	stale := proto.Clone(c.first.TermConfig).(*quoratepb.TermConfig)
	stale.ConfigIndex += 7
	if _, answer := c.offer(stale, named(t, session, 21, put("k"))); answer.Verdict != quoratepb.Answer_VERDICT_APPLIED {
		t.Errorf("under another configuration: got %v, want it applied the slow way", answer)
	}
	stale.ConfigIndex, stale.Term = c.first.TermConfig.ConfigIndex, c.first.TermConfig.Term-1
	if _, answer := c.offer(stale, named(t, session, 22, put("k"))); answer.Verdict != quoratepb.Answer_VERDICT_APPLIED {
		t.Errorf("in another term: got %v, want it applied the slow way", answer)
	}
	_, answer := c.offer(c.first.TermConfig, named(t, session, 23, put("")))
	if answer.Verdict != quoratepb.Answer_VERDICT_REFUSED || codes.Code(answer.Code) != codes.InvalidArgument {
		t.Errorf("no key: got %v", answer)
	}
	again := named(t, session, 1, put("k"))
	again.Again = true
	if _, answer := c.offer(c.first.TermConfig, again); answer.Verdict != quoratepb.Answer_VERDICT_APPLIED {
		t.Errorf("again: got %v", answer)
	}
}

// TestServices_Propose_offeredDue handles a stamped offer of a client when it is due, and not before.
func TestServices_Propose_offeredDue(t *testing.T) {
	s := serveNative(t, nil)
	c := openPropose(t, s, 0xc1)
	session := c.open()
	due := time.Now().Add(100 * time.Millisecond)
	c.send(&quoratepb.ProposeRequest{
		TermConfig: c.first.TermConfig, Due: uint64(due.UnixNano()), Proposals: []*quoratepb.Proposal{named(t, session, 1, put("k"))},
	})
	c.recv(func(r *quoratepb.ProposeResponse) bool { return len(r.Answers) > 0 })
	if early := time.Until(due); early > 0 {
		t.Errorf("it was answered %v before it was due", early)
	}
}

// TestServices_Propose_records gives the reason why each record is refused: a leader keeps none.
func TestServices_Propose_records(t *testing.T) {
	s := serveNative(t, nil)
	c := openPropose(t, s, 0xc1)
	session := c.open()
	c.send(&quoratepb.ProposeRequest{TermConfig: c.first.TermConfig, Records: []*quoratepb.Proposal{
		named(t, session, 1, put("k")), named(t, session, 2, put("")), named(t, 5, 3, put("k")),
	}})
	refused := map[uint64]uint32{}
	c.recv(func(r *quoratepb.ProposeResponse) bool {
		for _, all := range r.Verdicts {
			for _, v := range all.Verdicts {
				if v.Revision != 0 || all.Leader {
					t.Errorf("held: %v", v)
				}
				refused[v.Sequence] = v.Refusal
			}
		}
		return len(refused) == 3
	})
	if refused[1] == 0 || refused[2] == 0 || refused[3] == 0 {
		t.Errorf("got %v", refused)
	}
	if answer := c.propose(session, 1, put("k"), false); answer.Verdict != quoratepb.Answer_VERDICT_APPLIED {
		t.Errorf("afterwards: got %v", answer)
	}
}
