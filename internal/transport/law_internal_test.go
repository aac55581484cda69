package transport

import (
	"errors"
	"testing"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
)

// Ensure that frames keep the rule of docs/formats.md: a kind that this build does not know, a later version in a hello, and a
// message with something of a later build in it are not taken for damage, and bytes behind the last message are.
func TestLaw_frames(t *testing.T) {
	for kind := range 256 {
		err := outOfPlace(frameKind(kind), "among messages")
		if later := kind > int(framePacked); errors.Is(err, level.ErrLater) != later || errors.Is(err, ErrCorruptFrame) == later {
			t.Errorf("a frame of kind %d: %v", kind, err)
		}
	}
	message := consensus.Message{Kind: consensus.MsgHeartbeat, From: 1, To: 2, Term: 7}
	frame, _ := appendMessages(nil, []consensus.Message{message})
	body := frame[frameHeaderBytes:]
	if _, err := decodeMessages(append(body[:len(body):len(body)], 0)); !errors.Is(err, ErrCorruptFrame) {
		t.Errorf("a byte behind the last message: %v", err)
	}
	body[1] = 200 // the kind of the message
	if _, err := decodeMessages(body); !errors.Is(err, level.ErrLater) || errors.Is(err, ErrCorruptFrame) {
		t.Errorf("a message of a later kind: %v", err)
	}
	for stream, want := range map[streamKind]error{streamNone: nil, streamExpress: nil, streamExpress + 1: level.ErrLater} {
		h := frozenHello()
		h.kind = stream
		if _, err := decodeHelloFrame(h.frame()); !errors.Is(err, want) {
			t.Errorf("a hello of a stream of kind %d: %v", stream, err)
		}
	}
	h := frozenHello()
	more := append(h.frame(), 1, 2, 3)
	sealFrame(more)
	if got, err := decodeHelloFrame(more); err != nil || got.token != h.token {
		t.Errorf("a hello that says more: %v", err)
	}
	h.version++
	if _, err := decodeHelloFrame(h.frame()); !errors.Is(err, level.ErrLater) {
		t.Errorf("a hello of a later version: %v", err)
	}
}
