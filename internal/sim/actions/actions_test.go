package actions_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/sim/actions"
)

// Ensure that each step is one line, that a commit index is written when it grows, and again in the next life.
func TestMember_Committed(t *testing.T) {
	var out bytes.Buffer
	w := actions.New(&out, func() time.Duration { return time.Second }, func(err error) { t.Error(err) })
	w.Begin([]consensus.MemberID{1, 2})
	m := w.Member(1)
	for range 2 {
		m.Started(consensus.HardState{Term: 1}, consensus.Position{}, nil)
		m.Committed(1, 5)
		m.Committed(1, 5)
	}
	m.Persisted(1, &consensus.Batch{}) // nothing
	if lines := strings.Count(out.String(), "\n"); lines != 5 {
		t.Errorf("%d lines:\n%s", lines, out.String())
	}
}

// Ensure that a nil Writer can be used as any other.
func TestNew_noReader(t *testing.T) {
	w := actions.New(nil, nil, nil)
	w.Begin(nil)
	w.Sent([]consensus.Message{{Kind: consensus.MsgVoteReply}})
	m := w.Member(1)
	m.Started(consensus.HardState{}, consensus.Position{}, nil)
	m.Persisted(1, &consensus.Batch{})
	m.Committed(1, 1)
	m.Decided(nil)
}
