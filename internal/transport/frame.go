package transport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
)

// A frame is one gRPC message. TCP's own checksum lets about one damaged segment in 65,536 through, and what arrives
// here is written to a log with a fresh checksum, so every frame carries its own.
//
//	0      1           5
//	+------+-----------+----------------
//	| kind | CRC32C    | body ...
//	+------+-----------+----------------
//
// The sum covers the kind and the body.
type frameKind uint8

const (
	frameHello     frameKind = 1  // first in both directions of every stream
	frameMessages  frameKind = 2  // count, then that many consensus messages
	framePing      frameKind = 3  // eight bytes, echoed by the pong
	framePong      frameKind = 4  //
	frameHead      frameKind = 5  // snapshot: its metadata, after the hello
	frameChunk     frameKind = 6  // snapshot: a piece of the data
	frameEnd       frameKind = 7  // snapshot: total bytes and their CRC32C
	frameInstalled frameKind = 8  // snapshot: the receiver has all of it
	frameCall      frameKind = 9  // hello, method, body
	frameAnswer    frameKind = 10 // body
	framePacked    frameKind = 11 // another frame, packed: see pack.go

	lastFrame = framePacked
)

// outOfPlace is the error for a frame of a kind that may not come here, or that this build does not know.
func outOfPlace(kind frameKind, where string) error {
	if kind > lastFrame {
		return fmt.Errorf("transport: frame kind %d %s: %w", kind, where, level.ErrLater)
	}
	return fmt.Errorf("%w: frame kind %d %s", ErrCorruptFrame, kind, where)
}

const (
	frameHeaderBytes = 5
	// maxFrameBytes bounds what a peer can make us allocate. One entry must fit.
	maxFrameBytes = 256 << 20
	// softFrameBytes is where a batch is cut: big enough to spread the cost of a frame, small enough to keep the
	// receiver busy while the next is on its way.
	softFrameBytes = 512 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// beginFrame appends an unsealed header to dst, which must be empty.
func beginFrame(dst []byte, kind frameKind) []byte {
	return append(dst, byte(kind), 0, 0, 0, 0)
}

// sealFrame fills in the checksum once the body is complete.
func sealFrame(frame []byte) {
	binary.LittleEndian.PutUint32(frame[1:], frameSum(frame))
}

func frameSum(frame []byte) uint32 {
	sum := crc32.Update(0, castagnoli, frame[:1])
	return crc32.Update(sum, castagnoli, frame[frameHeaderBytes:])
}

// openFrame checks the sum and returns kind and body; the body aliases frame.
func openFrame(frame []byte) (frameKind, []byte, error) {
	if len(frame) < frameHeaderBytes {
		return 0, nil, fmt.Errorf("%w: %d bytes", ErrCorruptFrame, len(frame))
	}
	if frameSum(frame) != binary.LittleEndian.Uint32(frame[1:]) {
		return 0, nil, fmt.Errorf("%w: checksum mismatch in %d bytes", ErrCorruptFrame, len(frame))
	}
	return frameKind(frame[0]), frame[frameHeaderBytes:], nil
}

// appendMessages builds a whole frame of messages in dst, which must be empty, and tells what it carries.
func appendMessages(dst []byte, messages []consensus.Message) ([]byte, cargoBytes) {
	var cargo cargoBytes
	dst = beginFrame(dst, frameMessages)
	dst = binary.AppendUvarint(dst, uint64(len(messages)))
	for i := range messages {
		before := len(dst)
		dst = consensus.AppendMessage(dst, &messages[i])
		cargo[cargoOf(messages[i].Kind)] += uint64(len(dst) - before)
	}
	sealFrame(dst)
	return dst, cargo
}

// nonMemberRoom is how many bytes of memory the messages of a frame may take whose sender is not known, beside a body of so
// many bytes. Messages that members put into a frame (softFrameBytes, by Message.SizeBytes) take less: of all that it may be
// full of, messages without lists take most, three times as much as is estimated.
func nonMemberRoom(body int) int { return 4*softFrameBytes + 2*body }

// decodeMessages reads the body of a frameMessages. Payloads alias body.
func decodeMessages(body []byte) ([]consensus.Message, error) {
	messages, _, err := decodeWithin(body, math.MaxInt)
	return messages, err
}

// decodeWithin is decodeMessages for messages that take no more than room bytes of memory beside body. taken is how many they
// take.
func decodeWithin(body []byte, room int) (messages []consensus.Message, taken int, err error) {
	count, n := binary.Uvarint(body)
	if n <= 0 || count > uint64(len(body)) {
		return nil, 0, fmt.Errorf("%w: message count", ErrCorruptFrame)
	}
	body = body[n:]
	// A message takes more room decoded than encoded: a lying count must not make us allocate for it in advance.
	messages = make([]consensus.Message, 0, min(count, 1024, uint64(room/consensus.MessageSize)))
	left := room
	for i := range count {
		var m consensus.Message
		if m, body, left, err = consensus.DecodeMessageWithin(body, left); errors.Is(err, level.ErrLater) {
			return nil, 0, fmt.Errorf("transport: message %d of %d: %w", i+1, count, err)
		} else if err != nil {
			return nil, 0, fmt.Errorf("%w: message %d of %d: %w", ErrCorruptFrame, i+1, count, err)
		}
		messages = append(messages, m)
	}
	if len(body) != 0 {
		return nil, 0, fmt.Errorf("%w: %d bytes after the last message", ErrCorruptFrame, len(body))
	}
	return messages, room - left, nil
}

// tickFrame builds a ping or pong.
func tickFrame(kind frameKind, number uint64) []byte {
	frame := beginFrame(make([]byte, 0, frameHeaderBytes+8), kind)
	frame = binary.LittleEndian.AppendUint64(frame, number)
	sealFrame(frame)
	return frame
}

func decodeTick(body []byte) (uint64, error) {
	if len(body) != 8 {
		return 0, fmt.Errorf("%w: ping of %d bytes", ErrCorruptFrame, len(body))
	}
	return binary.LittleEndian.Uint64(body), nil
}
