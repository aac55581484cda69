package transport

import (
	"encoding/binary"
	"errors"
	"slices"
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
// send is, that it counts until it is handed on, that a process which was dialled has the same bound, and a member none.
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
		dialled := reader{}
		if _, _, err := dialled.decode(c.body); (err == nil) != c.fits {
			t.Errorf("%s, of a process that was dialled: %v", c.name, err)
		}
		r.leave = func() {} // admitted
		if _, done, err := r.decode(c.body); err != nil || held != 0 {
			t.Errorf("%s, of a member: %d bytes are held, and %v", c.name, held, err)
		} else {
			done()
		}
	}
}

// Ensure that every frame which a member fills is taken of a sender that is not known, whatever the frame is full of: messages
// without lists, or messages with one element of a list, or one message with a long list.
func TestReader_decode_fullFrames(t *testing.T) {
	elements := map[string]func(m *consensus.Message, n int){
		"nothing": func(*consensus.Message, int) {},
		"entries": func(m *consensus.Message, n int) {
			m.Entries = slices.Repeat([]consensus.Entry{{Index: 1, Term: 1}}, n)
		},
		"proposals": func(m *consensus.Message, n int) { m.Proposals = make([]consensus.Proposal, n) },
		"refusals":  func(m *consensus.Message, n int) { m.Refusals = make([]consensus.Refusal, n) },
		"reads":     func(m *consensus.Message, n int) { m.Reads = make([]consensus.ReadIndex, n) },
		"records":   func(m *consensus.Message, n int) { m.Records = make([]consensus.Record, n) },
		"verdicts":  func(m *consensus.Message, n int) { m.Verdicts = make([]consensus.Verdict, n) },
	}
	for name, fill := range elements {
		for _, each := range []int{1, 10, 100, softFrameBytes / 8} {
			message := consensus.Message{Kind: consensus.MsgHeartbeat, From: 1, To: 2, Term: 3}
			fill(&message, each)
			for each > 1 && message.SizeBytes() > softFrameBytes { // a sender puts no more elements into one message
				each = each * 7 / 8
				fill(&message, each)
			}
			waiting := slices.Repeat([]consensus.Message{message}, softFrameBytes/64)
			n, _ := batch(waiting)
			r := reader{hold: func(int64) {}}
			got, _, err := r.decode(bodyOf(waiting[:n]...))
			if err != nil || len(got) != n {
				t.Errorf("%d messages with %d %s each: got %d and %v", n, each, name, len(got), err)
			}
		}
	}
}
