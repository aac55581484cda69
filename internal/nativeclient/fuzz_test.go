package nativeclient

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
)

// Whatever a member says, in whatever order: the client does not panic, ends no write twice, and never sends two writes under one
// name.
func FuzzTable_hears(f *testing.F) {
	for _, r := range []*quoratepb.ProposeResponse{
		{Opened: &quoratepb.SessionOpened{Session: 7}},
		{Answers: []*quoratepb.Answer{{Session: 7, Sequence: 1}, {Session: 7, Sequence: 2, Code: 8}}},
		{Answers: []*quoratepb.Answer{{Session: 7, Sequence: 1, Verdict: quoratepb.Answer_VERDICT_GONE}}},
		{Status: &quoratepb.MemberStatus{Leader: 1, Term: 3}},
		{Verdicts: []*quoratepb.Verdicts{{}}},
	} {
		message, err := proto.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(message, message)
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		table := newTable()
		for i := range 3 {
			if _, err := table.Add(quoratepb.Proposal_KIND_PUT, []byte{byte(i)}, func() {}); err != nil {
				t.Fatal(err)
			}
		}
		type name struct{ client, session, sequence uint64 }
		sent := map[name]string{}
		say := func() {
			r := table.Next()
			if r == nil {
				return
			}
			for _, p := range r.Proposals {
				n := name{table.ID(), p.Session, p.Sequence}
				if before, known := sent[n]; known && before != string(p.Request) {
					t.Fatalf("two writes under the name %v", n)
				}
				sent[n] = string(p.Request)
			}
		}
		say()
		table.Opened(&quoratepb.SessionOpened{Session: 7})
		say()
		for _, message := range [][]byte{first, second, first} {
			var r quoratepb.ProposeResponse
			if proto.Unmarshal(message, &r) != nil {
				return
			}
			if r.Status != nil {
				table.NoteStatus(r.Status)
			}
			for _, v := range r.Verdicts {
				table.Verdicts(1, v)
			}
			for _, a := range r.Answers {
				table.Answer(a)
			}
			if r.Opened != nil {
				table.Opened(r.Opened)
			}
			say()
			table.Retry()
			say()
		}
		table.Restart()
		say()
	})
}
