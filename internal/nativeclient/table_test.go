package nativeclient

import (
	"crypto/rand"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/quorate/quorate/api/quoratepb"
)

// newTable is the table of a client with a random key, which nothing wakes.
func newTable() *Table {
	return New(Options{Wake: func() {}, Key: func() []byte {
		key := make([]byte, quoratepb.ClientKeyBytes)
		_, _ = rand.Read(key) // never fails
		return key
	}})
}

func addOne(t *testing.T, table *Table) *Call {
	t.Helper()
	c, err := table.Add(quoratepb.Proposal_KIND_PUT, []byte("x"), func() {})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestTable_opened takes no session twice: its sequences would meet the answers of its first life.
func TestTable_opened(t *testing.T) {
	table := newTable()
	addOne(t, table)
	if r := table.Next(); r.Open == nil || r.Open.Above != 0 || len(r.Proposals) != 0 {
		t.Fatalf("first: got %v, want the opening alone", r)
	}
	table.Opened(&quoratepb.SessionOpened{Session: 7})
	if r := table.Next(); len(r.Proposals) != 1 || r.Proposals[0].Session != 7 || r.Proposals[0].Sequence != 1 {
		t.Fatalf("got %v, want the write", r)
	}
	table.Answer(&quoratepb.Answer{Session: 7, Sequence: 1, Verdict: quoratepb.Answer_VERDICT_GONE})
	if r := table.Next(); r.Open == nil || r.Open.Above != 7 || len(r.Open.Keep) != 0 {
		t.Fatalf("after its end: got %v, want the opening of another one", r)
	}
	table.Opened(&quoratepb.SessionOpened{Session: 7})
	if r := table.Next(); r != nil || !table.Pausing() {
		t.Errorf("the same again: got %v", r)
	}
	table.Retry()
	if r := table.Next(); r == nil || r.Open == nil {
		t.Errorf("after a pause: got %v, want another opening", r)
	}
	id := table.ID()
	if table.Opened(&quoratepb.SessionOpened{Code: uint32(codes.AlreadyExists)}) || table.ID() == id || table.above != 0 {
		t.Error("a client whose id is taken keeps it")
	}
}

// TestTable_answer_aborted gives another name to what is known never to happen under the first, however often it was sent.
func TestTable_answer_aborted(t *testing.T) {
	table := newTable()
	c := addOne(t, table)
	table.Next()
	table.Opened(&quoratepb.SessionOpened{Session: 1})
	table.Next()
	table.Restart()
	table.Next()
	table.Answer(&quoratepb.Answer{Session: 1, Sequence: 1, Verdict: quoratepb.Answer_VERDICT_ABORTED})
	if r := table.Next(); r == nil || len(r.Proposals) != 1 || r.Proposals[0].Sequence != 2 || r.Proposals[0].Again || c.ended {
		t.Errorf("got %v, want it under another name", r)
	}
}

// TestTable_turn opens the next session in time, and retires the former one only when all of it is known.
func TestTable_turn(t *testing.T) {
	table := newTable()
	table.NoteStatus(&quoratepb.MemberStatus{SessionLength: 4})
	for range 5 {
		addOne(t, table)
	}
	table.Next()
	table.Opened(&quoratepb.SessionOpened{Session: 1})
	if r := table.Next(); len(r.Proposals) != 4 || r.Open != nil {
		t.Fatalf("got %v, want as much as the session holds", r)
	}
	r := table.Next()
	if r == nil || r.Open == nil || len(r.Open.Keep) != 1 || r.Open.Keep[0] != 1 || len(r.Proposals) != 0 {
		t.Fatalf("got %v, want the next session", r)
	}
	table.Opened(&quoratepb.SessionOpened{Session: 2})
	if r := table.Next(); len(r.Proposals) != 1 || r.Proposals[0].Session != 2 || len(r.Retire) != 0 {
		t.Fatalf("got %v, want the fifth write under the next session", r)
	}
	for sequence := uint64(1); sequence <= 4; sequence++ {
		if r := table.Next(); r != nil {
			t.Errorf("before answer %d: got %v", sequence, r)
		}
		table.Answer(&quoratepb.Answer{Session: 1, Sequence: sequence, Verdict: quoratepb.Answer_VERDICT_APPLIED})
	}
	if r := table.Next(); r == nil || len(r.Retire) != 1 || r.Retire[0] != 1 {
		t.Errorf("got %v, want the end of the first session", r)
	}
}
