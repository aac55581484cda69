package transport

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
)

func bodyOf(messages ...consensus.Message) []byte {
	body := binary.AppendUvarint(nil, uint64(len(messages)))
	for i := range messages {
		body = consensus.AppendMessage(body, &messages[i])
	}
	return body
}

// Ensure that small elements of which a frame has very many are not decoded for a sender that is not known, that what members
// send is, that it counts until it is handed on, and that a member's frames have no such bound.
func TestReader_decode_room(t *testing.T) {
	entries := make([]consensus.Entry, 2000)
	for i := range entries {
		entries[i] = consensus.Entry{Index: consensus.Index(i + 1), Term: 1, Kind: consensus.EntryCommand, Payload: make([]byte, 100)}
	}
	least := consensus.Entry{Index: 1, Term: 1, Kind: consensus.EntryCommand, Payload: make([]byte, 8)}
	short := make([]consensus.Entry, softFrameBytes/least.SizeBytes()) // as many as a sender puts into a frame
	for i := range short {
		short[i] = least
		short[i].Index = consensus.Index(i + 1)
	}
	heartbeats := make([]consensus.Message, 500)
	for i := range heartbeats {
		heartbeats[i] = consensus.Message{Kind: consensus.MsgHeartbeat, From: 1, To: 2, Term: 3}
	}
	large := consensus.Entry{Index: 1, Term: 1, Kind: consensus.EntryCommand, Payload: make([]byte, 1<<20)}
	append1 := consensus.Message{Kind: consensus.MsgAppend, From: 1, To: 2, Term: 1}
	many, one, full := append1, append1, append1
	many.Entries, one.Entries, full.Entries = entries, []consensus.Entry{large}, short
	bad := func(m consensus.Message) consensus.Message { m.From, m.To = 1, 2; return m }
	for _, c := range []struct {
		name string
		body []byte
		fits bool
	}{
		{"entries of a log", bodyOf(many), true},
		{"a large entry", bodyOf(one), true},
		{"a frame that is full of short entries", bodyOf(full), true},
		{"some hundred heartbeats", bodyOf(heartbeats...), true},
		{"very many empty messages", bodyOf(make([]consensus.Message, 30_000)...), false},
		{"very many empty proposals", bodyOf(bad(consensus.Message{Proposals: make([]consensus.Proposal, 300_000)})), false},
		{"very many empty entries", bodyOf(bad(consensus.Message{Entries: make([]consensus.Entry, 300_000)})), false},
		{"very many reads", bodyOf(bad(consensus.Message{Reads: make([]consensus.ReadIndex, 300_000)})), false},
	} {
		held, most := int64(0), int64(0)
		r := reader{hold: func(more int64) { held += more; most = max(most, held) }}
		messages, done, err := r.decode(c.body)
		if (err == nil) != c.fits || err != nil && !errors.Is(err, ErrCorruptFrame) {
			t.Errorf("%s: %d messages and %v", c.name, len(messages), err)
		}
		if least := int64(len(c.body) + len(messages)*consensus.MessageSize); held < least {
			t.Errorf("%s: %d bytes are held, and there are %d", c.name, held, least)
		}
		if done(); held != 0 || most > int64(len(c.body)+nonMemberRoom(len(c.body))) {
			t.Errorf("%s: %d bytes are held afterwards, and were %d", c.name, held, most)
		}
		r.leave = func() {} // admitted
		if _, done, err := r.decode(c.body); err != nil || held != 0 {
			t.Errorf("%s, of a member: %d bytes are held, and %v", c.name, held, err)
		} else {
			done()
		}
	}
}
