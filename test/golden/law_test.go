package golden_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/test/golden/frozen"
)

// alone makes the decoder of a value that takes every byte one of a Form.
func alone[T any](encode func([]byte, *T) []byte, decode func([]byte) (T, error)) func([]byte) ([]byte, error) {
	return func(src []byte) ([]byte, error) {
		value, err := decode(src)
		if err != nil {
			return nil, err
		}
		return encode(nil, &value), nil
	}
}

// last makes the decoder of a value that others may follow one of a Form: nothing follows, or who calls it refuses that.
func last[T any](encode func([]byte, *T) []byte, decode func([]byte) (T, []byte, error)) func([]byte) ([]byte, error) {
	return alone(encode, func(src []byte) (T, error) {
		value, rest, err := decode(src)
		if err == nil && len(rest) > 0 {
			err = consensus.ErrCorrupt
		}
		return value, err
	})
}

// Ensure that every decoder of package consensus keeps the rule for what it does not know.
func TestLaw_consensus(t *testing.T) {
	change, request, meta := aChange(), aRequest(), aMeta()
	member := len("\x01\x02\x00") + 4 + 1 // of a request: up to the kind of its first step
	flags := bytes.Index(consensus.AppendChangeRequest(nil, &request), []byte("\x02m1")) + len("\x02m1") + 1 + 2*(1+len("http://a:1"))
	id := consensus.AppendConfigID(nil, aConfigID)
	end := len(consensus.AppendSnapshotMeta(nil, &meta)) - 1 - 2*8
	appendID := func(dst []byte, id *consensus.ConfigID) []byte { return consensus.AppendConfigID(dst, *id) }
	forms := []frozen.Form{
		{Name: "configuration change", Value: consensus.AppendConfigChange(nil, &change),
			Decode: alone(consensus.AppendConfigChange, consensus.DecodeConfigChange), Later: map[int]byte{0: 2, 1: 6, 2: 2, 6: 2}},
		{Name: "change request", Value: consensus.AppendChangeRequest(nil, &request),
			Decode: alone(consensus.AppendChangeRequest, consensus.DecodeChangeRequest),
			Later:  map[int]byte{0: 2, 1: 6, 2: 2, 6: 2, member: 10, flags: 32}},
		{Name: "configuration id", Value: id, Decode: alone(appendID, consensus.DecodeConfigID), Later: map[int]byte{len(id) - 1: 2}},
		{Name: "snapshot metadata", Value: consensus.AppendSnapshotMeta(nil, &meta),
			Decode: last(consensus.AppendSnapshotMeta, consensus.DecodeSnapshotMeta), Later: map[int]byte{0: 2, end - 1: 2, end - 2: 6}},
		{Name: "hard state", Value: consensus.AppendHardState(nil, &hardStates()[1].value),
			Decode: last(consensus.AppendHardState, consensus.DecodeHardState)},
	}
	for i := range records() {
		forms = append(forms, frozen.Form{Name: "witness record", Value: consensus.AppendRecord(nil, &records()[i]),
			Decode: alone(consensus.AppendRecord, consensus.DecodeRecord)})
	}
	for _, e := range entries() {
		f := frozen.Form{Name: "entry " + e.name, Value: consensus.AppendEntry(nil, &e.value),
			Decode: last(consensus.AppendEntry, consensus.DecodeEntry)}
		f.Later = map[int]byte{0: f.Value[0]&^7 | 5}
		forms = append(forms, f)
	}
	for i := range forms {
		forms[i].Damage = consensus.ErrCorrupt
		forms[i].Obey(t)
	}
}

// Ensure that an entry of a kind that this build does not have, in a log or a message, and one that brings a configuration of a
// later form, in a message, are a later build's.
func TestLaw_entries(t *testing.T) {
	for kind := consensus.EntryAbort + 1; kind < 8; kind++ {
		later := consensus.AppendEntry(nil, &consensus.Entry{Index: 1, Term: 1, Kind: kind})
		if _, _, err := consensus.DecodeEntry(later); err != level.ErrLater {
			t.Errorf("an entry of kind %d: %v", kind, err)
		}
	}
	change := aChange()
	payload := consensus.AppendConfigChange(nil, &change)
	for name, row := range map[string]struct {
		at   int
		is   byte
		want error
	}{"its own": {0, 1, nil}, "a later one": {0, 2, level.ErrLater}, "damage": {0, 0, consensus.ErrCorrupt}} {
		e := consensus.Entry{Index: 2, Term: 1, Kind: consensus.EntryConfig, Payload: bytes.Clone(payload)}
		e.Payload[row.at] = row.is
		if err := consensus.CheckEntry(&e); err != row.want {
			t.Errorf("%s: %v", name, err)
		}
		m := consensus.Message{Kind: consensus.MsgAppend, From: 1, To: 2, Term: 1, Entries: []consensus.Entry{e}}
		if _, _, err := consensus.DecodeMessage(consensus.AppendMessage(nil, &m)); err != row.want {
			t.Errorf("%s, in a message: %v", name, err)
		}
	}
}

// Ensure that a message with a kind, a field, or a reason that this build does not know is a later build's.
func TestLaw_messages(t *testing.T) {
	plain := consensus.Message{Kind: consensus.MsgHeartbeat, From: 1, To: 2, Term: 7}
	encoded := consensus.AppendMessage(nil, &plain)
	for kind := 27; kind < 256; kind++ {
		encoded[0] = byte(kind)
		if _, _, err := consensus.DecodeMessage(encoded); err != level.ErrLater {
			t.Errorf("kind %d: %v", kind, err)
		}
	}
	for bit := 28; bit < 64; bit++ { // the fields are a varint of one byte, zero
		with := append([]byte{byte(consensus.MsgHeartbeat)}, uvarint(1<<bit)...)
		if _, _, err := consensus.DecodeMessage(append(with, encoded[2:]...)); err != level.ErrLater {
			t.Errorf("field %d: %v", bit, err)
		}
	}
	for name, m := range map[string]consensus.Message{
		"refusal":  {Refusals: []consensus.Refusal{{ID: aProposal, Reason: consensus.ReasonAllCordoned + 1}}},
		"verdict":  {Verdicts: []consensus.Verdict{{Refusal: consensus.RefusedReasons}}},
		"proposal": {Proposals: []consensus.Proposal{{ID: aProposal, Kind: consensus.EntryAbort + 1}}},
	} {
		if _, _, err := consensus.DecodeMessage(consensus.AppendMessage(nil, &m)); err != level.ErrLater {
			t.Errorf("a %s: %v", name, err)
		}
	}
}

func uvarint(n uint64) (b []byte) {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

// Ensure that the decoders of commands and results keep the rule.
func TestLaw_commands(t *testing.T) {
	encode := func(dst []byte, c *kv.Command) []byte { return c.Append(dst) }
	for _, c := range commands() {
		f := frozen.Form{Name: "command " + c.name, Value: c.value.Append(nil), Decode: alone(encode, kv.DecodeCommand),
			Damage: kv.ErrBadCommand, Later: map[int]byte{0: 3, 1: 200}}
		f.Decode = onlyOne(f.Decode, kv.ErrBadCommand)
		f.Obey(t)
	}
	appendResult := func(dst []byte, r *kv.Result) []byte { return r.Append(dst) }
	for _, r := range results() {
		f := frozen.Form{Name: "result " + r.name, Value: r.value.Append(nil), Damage: kv.ErrBadResult,
			Decode: onlyOne(alone(appendResult, kv.DecodeResult), kv.ErrBadResult), Later: map[int]byte{0: 3 << 5}}
		f.Obey(t)
	}
}

// onlyOne makes an error that is damage and a later build's one of a later build alone: kv says both, as an entry of a later build
// must not be passed over, and one that is no command changes nothing.
func onlyOne(decode func([]byte) ([]byte, error), damage error) func([]byte) ([]byte, error) {
	return func(src []byte) ([]byte, error) {
		again, err := decode(src)
		if errors.Is(err, level.ErrLater) && errors.Is(err, damage) {
			err = level.ErrLater
		}
		return again, err
	}
}

// Ensure that the error of a later build says what to do.
func TestLaw_sentence(t *testing.T) {
	for _, want := range []string{"a later build wrote this", "start that build"} {
		if !strings.Contains(level.ErrLater.Error(), want) {
			t.Errorf("%q is not in %q", want, level.ErrLater)
		}
	}
	c := kv.Command{Auth: &auth.Change{Kind: 99}}
	if err := c.Check(); err == nil || !strings.Contains(err.Error(), "later build") {
		t.Errorf("a command of a later build may be proposed: %v", err)
	}
}
