package clients

import (
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

func TestLiveness_silent(t *testing.T) {
	var r liveness
	begun := time.Unix(1000, 0)
	at := func(seconds int) time.Time { return begun.Add(time.Duration(seconds) * time.Second) }
	session := func(client consensus.MemberID) consensus.SessionID { return consensus.ClientSession(client, 1) }
	open := []consensus.SessionID{session(1), session(2)}
	silent := func(second int) []consensus.SessionID { return r.silent(open, at(second), 10*time.Second) }
	r.note([]consensus.MemberID{3}, at(0))
	if got := silent(0); len(got) != 0 {
		t.Errorf("new to this leader: got %v", got)
	}
	r.note([]consensus.MemberID{1}, at(6))
	if got := silent(11); !slices.Equal(got, []consensus.SessionID{session(2)}) {
		t.Errorf("got %v, want the second", got)
	}
	if _, known := r.heard[3]; known {
		t.Error("a client without a session is remembered for ever")
	}
	r.forget()
	if got := silent(100); len(got) != 0 {
		t.Errorf("after another one led: got %v, want the clock to begin anew", got)
	}
}
