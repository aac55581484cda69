package consensus_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/internal/consensus"
)

var sampleConfig = consensus.Config{
	Voters:       []consensus.MemberID{1, 2, 3},
	Outgoing:     []consensus.MemberID{1, 2},
	Learners:     []consensus.MemberID{4},
	LearnersNext: []consensus.MemberID{2},
	Members: []consensus.Member{
		{ID: 1, Name: "a", PeerURLs: []string{"http://a:2380", "http://b:2380"}},
		{ID: 2, Name: "b", Cordoned: true}, {ID: 3}, {ID: 4, PeerURLs: []string{"http://d:2380"}},
	},
}

func sampleEntries() []consensus.Entry {
	id := consensus.ProposalID{Session: consensus.SessionID{Member: 7, Number: math.MaxUint64}, Sequence: 300}
	return []consensus.Entry{
		{},
		{Index: 1, Term: 1, Kind: consensus.EntryNoop},
		{Index: 2, Term: 1, Kind: consensus.EntryCommand, Proposal: id, Proposer: 7, Payload: []byte("put")},
		{Index: 3, Term: 1, Kind: consensus.EntryCommand, Proposal: id, Proposer: 8, Answered: 9, ExactRevision: 1 << 40},
		{Index: math.MaxUint64, Term: math.MaxUint64, Kind: consensus.EntryConfig, Proposal: consensus.ProposalID{
			Session: consensus.SessionID{Member: 1, Number: 2}, Sequence: math.MaxUint64,
		}, Proposer: 2, Answered: 3, ExactRevision: math.MaxUint64, Payload: consensus.AppendConfigChange(nil, &consensus.ConfigChange{Config: sampleConfig})},
	}
}

// sampleRecords are what a voter holds of a member and of a native client.
func sampleRecords() []consensus.Record {
	member := consensus.ProposalID{Session: consensus.SessionID{Member: 7, Number: 1}, Sequence: 300}
	client := consensus.ProposalID{Session: consensus.ClientSession(7, 1), Sequence: 300}
	record := func(id consensus.ProposalID, payload string) consensus.Record {
		return consensus.Record{
			Attempt: consensus.AttemptOf(id, 9, []byte(payload)), Term: 3, Config: consensus.ConfigID{Index: 2, Term: 1},
			Payload: []byte(payload),
		}
	}
	return []consensus.Record{record(member, "put"), record(client, "put"), record(client, "another")}
}

// Ensure that attempts of a client differ if their payloads do, and those of a member do not; and that a slow entry, which
// decides its proposal whatever its payload is, has one name.
func TestAttemptOf(t *testing.T) {
	r := sampleRecords()
	if r[0].Digest != (consensus.Digest{}) || r[1].Digest == (consensus.Digest{}) || r[1].Attempt == r[2].Attempt {
		t.Errorf("attempts %x, %x and %x", r[0].Attempt, r[1].Attempt, r[2].Attempt)
	}
	slow := consensus.Entry{Proposal: r[1].Proposal, Payload: r[1].Payload}
	if slow.Attempt() != (consensus.Attempt{Proposal: r[1].Proposal}) {
		t.Errorf("a slow entry is %x", slow.Attempt())
	}
}

func BenchmarkAttemptOf(b *testing.B) {
	for _, session := range []consensus.SessionID{{Member: 7, Number: 1}, consensus.ClientSession(7, 1)} {
		for _, size := range []int{64, 256, 4096} {
			b.Run(fmt.Sprintf("client=%t/%d", session.OfClient(), size), func(b *testing.B) {
				b.ReportAllocs()
				payload := make([]byte, size)
				for range b.N {
					consensus.AttemptOf(consensus.ProposalID{Session: session, Sequence: 1}, 2, payload)
				}
			})
		}
	}
}

func sampleMessages() []consensus.Message {
	verdicts := []consensus.Verdict{{Refusal: consensus.RefusedWide}}
	for _, r := range sampleRecords() {
		verdicts = append(verdicts, consensus.Verdict{Attempt: r.Attempt, Reply: []byte("reply")})
	}
	meta := consensus.SnapshotMeta{
		Position: consensus.Position{Index: 9, Term: 2}, Config: sampleConfig, ConfigID: consensus.ConfigID{Index: 5, Term: 2, Stage: 1},
	}
	return []consensus.Message{
		{},
		{Kind: consensus.MsgHeartbeat, From: 1, To: 2, Term: 3, Commit: 4, Durable: 5, Round: 6},
		{Kind: consensus.MsgVoteReply, From: 2, To: 1, Term: 3, Reject: true, Ballot: consensus.Ballot{Committed: consensus.Position{Index: 1, Term: 1}},
			Last: consensus.Position{Index: 4, Term: 2}},
		{Kind: consensus.MsgVote, From: 2, To: 1, Term: 3, Force: true},
		{Kind: consensus.MsgVoteReply, From: 2, To: 1, Term: 3, Ballot: consensus.Ballot{Records: sampleRecords()}},
		{Kind: consensus.MsgFast, From: 2, To: 1, Term: 3, Verdicts: verdicts},
		{
			Kind: consensus.MsgAppend, From: 1, To: 2, Term: math.MaxUint64, Prev: consensus.Position{Index: 7, Term: 3}, Commit: 5,
			Config: consensus.ConfigID{Index: 1, Term: 1, Stage: 1}, Entries: sampleEntries(),
			Target:        9,
			Match:         consensus.Position{Index: 8, Term: 3},
			Mismatch:      consensus.Mismatch{Refused: consensus.Position{Index: 2, Term: 1}, Hint: consensus.Position{Index: 1}},
			FollowerState: consensus.FollowerState{Received: 11, Patience: 1 << 30}, Due: math.MaxUint64,
			Waited:    consensus.Waited{WaitedFor: 12, DiskTook: math.MaxUint32, AllTook: 1},
			LogQuery:  consensus.LogQuery{Query: 1 << 40, Unlogged: true},
			Proposals: []consensus.Proposal{{Kind: consensus.EntryCommand, Proposer: 3, Payload: []byte("p")}, {}},
			Refusals:  []consensus.Refusal{{Reason: consensus.ReasonBusy, Config: consensus.ConfigID{Index: 4}}},
			Reads:     []consensus.ReadIndex{{ID: 1 << 60, Index: 3}, {ID: 2}},
			Snapshot:  &meta,
		},
	}
}

// Ensure that every word survives a round trip, that what follows it is returned, and that any cut is an error.
func TestCodec_roundTrip(t *testing.T) {
	for i, e := range sampleEntries() {
		check(t, fmt.Sprintf("entry %d", i), e, consensus.AppendEntry, consensus.DecodeEntry)
	}
	for i, m := range sampleMessages() {
		check(t, fmt.Sprintf("message %d", i), m, consensus.AppendMessage, consensus.DecodeMessage)
	}
	check(t, "hard state with a promise", consensus.HardState{Term: 300, Vote: 4, Commit: 1 << 50, Promise: 1 << 40},
		consensus.AppendHardState, consensus.DecodeHardState)
	check(t, "hard state", consensus.HardState{Term: 300, Vote: 4, Commit: 1 << 50},
		consensus.AppendHardState, consensus.DecodeHardState)
	check(t, "marks", consensus.Config{Members: []consensus.Member{{ID: 1, Promote: true}, {ID: 2, Joining: true},
		{ID: 3, PeerURLs: []string{"http://a:1"}, FormerURLs: []string{"http://b:1", "http://c:1"}}}},
		consensus.AppendConfig, consensus.DecodeConfig)
	check(t, "config", sampleConfig, consensus.AppendConfig, consensus.DecodeConfig)
	check(t, "empty config", consensus.Config{}, consensus.AppendConfig, consensus.DecodeConfig)
	checkAlone(t, "change", consensus.ConfigChange{
		Protocol: consensus.ProtocolSingle, Replaces: consensus.ConfigID{Index: 3, Term: 2, Stage: 1},
		Config: sampleConfig, Tombs: []consensus.MemberID{9},
	}, consensus.AppendConfigChange, consensus.DecodeConfigChange)
	checkAlone(t, "abort", consensus.ConfigChange{
		Protocol: consensus.ProtocolJoint, Abort: true, Config: sampleConfig,
	}, consensus.AppendConfigChange, consensus.DecodeConfigChange)
	checkAlone(t, "request", consensus.ChangeRequest{
		Steps: []consensus.ChangeStep{
			{Kind: consensus.ChangeAddLearner, Member: sampleConfig.Members[0]},
			{Kind: consensus.ChangeRemove, Member: consensus.Member{ID: 7}},
		},
		Protocol: consensus.ProtocolActivate, Expected: consensus.ConfigID{Index: 1, Term: 1, Stage: 1},
	}, consensus.AppendChangeRequest, consensus.DecodeChangeRequest)
	checkAlone(t, "abort request", consensus.ChangeRequest{Abort: true}, consensus.AppendChangeRequest,
		consensus.DecodeChangeRequest)
	appendID := func(dst []byte, id *consensus.ConfigID) []byte { return consensus.AppendConfigID(dst, *id) }
	checkAlone(t, "config id", consensus.ConfigID{Index: 1 << 40, Term: 3, Stage: 1}, appendID, consensus.DecodeConfigID)
	checkAlone(t, "request of nothing", consensus.ChangeRequest{}, consensus.AppendChangeRequest, consensus.DecodeChangeRequest)
	check(t, "snapshot", consensus.SnapshotMeta{Position: consensus.Position{Index: 3, Term: 4}, Config: sampleConfig},
		consensus.AppendSnapshotMeta, consensus.DecodeSnapshotMeta)
	check(t, "snapshot amid a change", consensus.SnapshotMeta{
		Position: consensus.Position{Index: 3, Term: 4}, Config: sampleConfig, Protocol: consensus.ProtocolApply, Open: true,
		Tombs: []consensus.MemberID{3},
	}, consensus.AppendSnapshotMeta, consensus.DecodeSnapshotMeta)
}

// ofLists returns a message for each list that messages have, with so many zero elements in it.
func ofLists(elements int) (all []consensus.Message) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[consensus.Message]()) {
		if field.Type.Kind() == reflect.Slice {
			m := consensus.Message{}
			reflect.ValueOf(&m).Elem().FieldByIndex(field.Index).Set(reflect.MakeSlice(field.Type, elements, elements))
			all = append(all, m)
		}
	}
	return all
}

// Ensure that lists of the shortest things that there are decode, also at the end of a message: what bounds the count of a list, by
// the bytes that are left, must not ask for more than they take.
func TestCodec_roundTrip_shortest(t *testing.T) {
	const many = 3
	for i, m := range ofLists(many) {
		check(t, fmt.Sprintf("list %d", i), m, consensus.AppendMessage, consensus.DecodeMessage)
	}
	checkAlone(t, "ids", consensus.ConfigChange{Tombs: make([]consensus.MemberID, many)},
		consensus.AppendConfigChange, consensus.DecodeConfigChange)
	check(t, "members", consensus.Config{Members: make([]consensus.Member, many)}, consensus.AppendConfig, consensus.DecodeConfig)
	check(t, "texts", consensus.Config{Members: []consensus.Member{{PeerURLs: make([]string, many), FormerURLs: make([]string, many)}}},
		consensus.AppendConfig, consensus.DecodeConfig)
	checkAlone(t, "steps", consensus.ChangeRequest{Steps: make([]consensus.ChangeStep, many)},
		consensus.AppendChangeRequest, consensus.DecodeChangeRequest)
}

// Ensure that a list of nothing is none, whether a message bears its count or not.
func TestDecodeMessage_emptyLists(t *testing.T) {
	bare := consensus.AppendMessage(nil, &consensus.Message{})
	for i, m := range ofLists(1) {
		with := consensus.AppendMessage(nil, &m)
		_, flags := binary.Uvarint(with[1:])
		head := len(bare) - 1 + flags
		got, rest, err := consensus.DecodeMessage(append(with[:head:head], 0))
		if diff := cmp.Diff(consensus.Message{}, got); diff != "" || err != nil || len(rest) > 0 {
			t.Errorf("list %d: rest %q, error %v, -want +got\n%s", i, rest, err, diff)
		}
	}
}

func check[T any](t *testing.T, name string, value T, encode func([]byte, *T) []byte,
	decode func([]byte) (T, []byte, error),
) {
	t.Helper()
	enc := encode([]byte("before"), &value)[len("before"):]
	got, rest, err := decode(append(bytes.Clone(enc), "after"...))
	if err != nil || string(rest) != "after" {
		t.Fatalf("%s: rest %q, error %v", name, rest, err)
	}
	if diff := cmp.Diff(value, got); diff != "" {
		t.Fatalf("%s: -want +got\n%s", name, diff)
	}
	if _, rest, err := decode(enc); err != nil || len(rest) > 0 {
		t.Fatalf("%s with nothing behind it: rest %q, error %v", name, rest, err)
	}
	for cut := range enc {
		if _, _, err := decode(enc[:cut:cut]); !errors.Is(err, consensus.ErrCorrupt) {
			t.Fatalf("%s cut at %d of %d: got error %v", name, cut, len(enc), err)
		}
	}
}

// checkAlone is check for a value that takes every byte.
func checkAlone[T any](t *testing.T, name string, value T, encode func([]byte, *T) []byte, decode func([]byte) (T, error)) {
	t.Helper()
	enc := encode([]byte("before"), &value)[len("before"):]
	got, err := decode(enc)
	if diff := cmp.Diff(value, got); err != nil || diff != "" {
		t.Fatalf("%s: error %v, -want +got\n%s", name, err, diff)
	}
	if _, err := decode(append(bytes.Clone(enc), 0)); !errors.Is(err, consensus.ErrCorrupt) {
		t.Fatalf("%s with a byte behind it: error %v", name, err)
	}
	for cut := range enc {
		if _, err := decode(enc[:cut:cut]); !errors.Is(err, consensus.ErrCorrupt) {
			t.Fatalf("%s cut at %d of %d: got error %v", name, cut, len(enc), err)
		}
	}
}

// Ensure that the flow-control size of an entry never understates its encoding.
func TestEntry_SizeBytes_bound(t *testing.T) {
	for _, e := range sampleEntries() {
		if enc := consensus.AppendEntry(nil, &e); len(enc) > e.SizeBytes() {
			t.Errorf("entry %v: encoded in %d bytes, counted as %d", e.Position(), len(enc), e.SizeBytes())
		}
	}
}

// Ensure that a huge count in a short message allocates nothing huge.
func TestDecodeMessage_hugeCount(t *testing.T) {
	m := consensus.Message{Kind: consensus.MsgAppend, Entries: make([]consensus.Entry, 1)}
	enc := consensus.AppendMessage(nil, &m)
	enc = append(enc[:len(enc)-5], 0xff, 0xff, 0xff, 0xff, 0x0f)
	if _, _, err := consensus.DecodeMessage(enc); !errors.Is(err, consensus.ErrCorrupt) {
		t.Fatalf("got error %v", err)
	}
}

// fuzz decodes any bytes; what decodes must encode to something that decodes to the same value.
func fuzz[T any](f *testing.F, encode func([]byte, *T) []byte, decode func([]byte) (T, []byte, error)) {
	f.Fuzz(func(t *testing.T, src []byte) {
		value, rest, err := decode(src)
		if err != nil {
			if len(rest) != 0 {
				t.Fatalf("an error and a rest of %d bytes", len(rest))
			}
			return
		}
		again, rest, err := decode(encode(nil, &value))
		if err != nil || len(rest) != 0 {
			t.Fatalf("second decoding: rest %d bytes, error %v", len(rest), err)
		}
		if diff := cmp.Diff(value, again); diff != "" {
			t.Fatal(diff)
		}
	})
}

// followed is a decoder of a value that stands alone as one of a value that nothing follows.
func followed[T any](decode func([]byte) (T, error)) func([]byte) (T, []byte, error) {
	return func(src []byte) (value T, rest []byte, err error) {
		value, err = decode(src)
		return value, nil, err
	}
}

func FuzzDecodeEntry(f *testing.F) {
	for _, e := range sampleEntries() {
		f.Add(consensus.AppendEntry(nil, &e))
	}
	fuzz(f, consensus.AppendEntry, consensus.DecodeEntry)
}

func FuzzDecodeMessage(f *testing.F) {
	for _, m := range sampleMessages() {
		f.Add(consensus.AppendMessage(nil, &m))
	}
	fuzz(f, consensus.AppendMessage, consensus.DecodeMessage)
}

func FuzzDecodeHardState(f *testing.F) {
	f.Add(consensus.AppendHardState(nil, &consensus.HardState{Term: 1, Vote: 2, Commit: 3}))
	f.Add(consensus.AppendHardState(nil, &consensus.HardState{Term: 1, Vote: 2, Commit: 3, Promise: 1e6}))
	fuzz(f, consensus.AppendHardState, consensus.DecodeHardState)
}

func FuzzDecodeConfigChange(f *testing.F) {
	f.Add(consensus.AppendConfigChange(nil, &consensus.ConfigChange{Config: sampleConfig, Tombs: []consensus.MemberID{1}}))
	fuzz(f, consensus.AppendConfigChange, followed(consensus.DecodeConfigChange))
}

func FuzzDecodeChangeRequest(f *testing.F) {
	f.Add(consensus.AppendChangeRequest(nil, &consensus.ChangeRequest{Steps: []consensus.ChangeStep{{Kind: 1, Member: sampleConfig.Members[0]}}}))
	fuzz(f, consensus.AppendChangeRequest, followed(consensus.DecodeChangeRequest))
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add(consensus.AppendRecord(nil, &consensus.Record{Term: 3, Payload: []byte("p")}))
	fuzz(f, consensus.AppendRecord, followed(consensus.DecodeRecord))
}

func FuzzDecodeConfig(f *testing.F) {
	f.Add(consensus.AppendConfig(nil, &sampleConfig))
	fuzz(f, consensus.AppendConfig, consensus.DecodeConfig)
}

func FuzzDecodeConfigID(f *testing.F) {
	f.Add(consensus.AppendConfigID(nil, consensus.ConfigID{Index: 7, Term: 3, Stage: 1}))
	encode := func(dst []byte, id *consensus.ConfigID) []byte { return consensus.AppendConfigID(dst, *id) }
	fuzz(f, encode, followed(consensus.DecodeConfigID))
}

func FuzzDecodeSnapshotMeta(f *testing.F) {
	f.Add(consensus.AppendSnapshotMeta(nil, &consensus.SnapshotMeta{Config: sampleConfig}))
	fuzz(f, consensus.AppendSnapshotMeta, consensus.DecodeSnapshotMeta)
}

func BenchmarkAppendMessage(b *testing.B) { benchmarkCodec(b, false) }
func BenchmarkDecodeMessage(b *testing.B) { benchmarkCodec(b, true) }

func benchmarkCodec(b *testing.B, decode bool) {
	m := consensus.Message{Kind: consensus.MsgAppend, From: 1, To: 2, Term: 3, Commit: 1000}
	for i := range 64 {
		m.Entries = append(m.Entries, consensus.Entry{
			Index: consensus.Index(1000 + i), Term: 3, Kind: consensus.EntryCommand, Proposer: 1 << 60, Payload: make([]byte, 256),
			Proposal: consensus.ProposalID{Session: consensus.SessionID{Member: 1 << 60, Number: 1 << 61}, Sequence: uint64(i)},
		})
	}
	buf := consensus.AppendMessage(nil, &m)
	b.ReportAllocs()
	for b.Loop() {
		if !decode {
			buf = consensus.AppendMessage(buf[:0], &m)
			continue
		}
		if _, _, err := consensus.DecodeMessage(buf); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/entry")
}
