package offers

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
)

func offerOf(client consensus.MemberID, bytes int) consensus.Message {
	return consensus.Message{Kind: consensus.MsgRecord, From: client, Proposals: []consensus.Proposal{
		{Payload: make([]byte, bytes)},
	}}
}

func TestBudget_Enter(t *testing.T) {
	const each, little = 1 << 20, 16 << 20
	for _, test := range []struct {
		name  string
		most  int
		fit   int
		offer func(i int) consensus.Message
	}{
		{"one client", 0, maxOffered/clientParts/each - 1, func(int) consensus.Message { return offerOf(7, each) }},
		{"many clients", 0, maxOffered/each - 1, func(i int) consensus.Message { return offerOf(consensus.MemberID(i+1), each) }},
		{"many clients, little memory", little, little/each - 1,
			func(i int) consensus.Message { return offerOf(consensus.MemberID(i+1), each) }},
		{"one client, little memory", little, little/clientParts/each - 1, func(int) consensus.Message { return offerOf(7, each) }},
		{"one that is too large by itself", 0, 1, func(int) consensus.Message { return offerOf(7, maxOffered) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := Budget{Most: test.most}
			var in []consensus.Message
			for i := range test.fit {
				m := test.offer(i)
				if in = append(in, m); !r.Enter(&m) {
					t.Fatalf("number %d does not fit", i)
				}
			}
			last := test.offer(test.fit)
			if r.Enter(&last) {
				t.Fatalf("%d bytes wait, and one more offer is let in", r.Bytes())
			}
			if test.fit > 1 && r.Bytes() > maxOffered {
				t.Errorf("%d bytes wait, want %d at most", r.Bytes(), maxOffered)
			}
			for i := range in {
				r.Leave(&in[i])
			}
			if r.Bytes() != 0 || len(r.clients) != 0 {
				t.Errorf("all is taken, and %d bytes of %d clients wait", r.Bytes(), len(r.clients))
			}
			if !r.Enter(&last) {
				t.Error("what did not fit does not fit the empty budget")
			}
		})
	}
}

// Messages of members, and other messages, give nothing back.
func TestBudget_Leave_others(t *testing.T) {
	var r Budget
	mine, theirs, other := offerOf(7, 100), offerOf(8, 100), offerOf(7, 100)
	other.Kind = consensus.MsgHeartbeat
	r.Enter(&mine)
	before := r.Bytes()
	r.Leave(&theirs)
	r.Leave(&other)
	if got := r.Bytes(); got != before {
		t.Errorf("%d bytes wait, want %d", got, before)
	}
}
