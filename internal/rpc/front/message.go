package front

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/rpc/h2"
)

// errExhausted is how a call ends that would make this process keep too much.
var errExhausted = status.New(codes.ResourceExhausted, "quorate: the connections, calls, requests and unread answers of this "+
	"client host take all the memory that it may have at this member: read what was answered, and ask for less at once")

// copies is how many times a request is in memory while it is served: as it came, and as it was read.
const copies = 2

// holder counts what unpacking a message takes beside what came of it; false: there is no room.
type holder interface{ holdUnpacked(bytes int) bool }

// assembler puts messages together from the bytes of a request.
type assembler struct {
	most       int
	compressor string
	turns      *admission.Turns
	holder     holder
	prefix     [h2.PrefixBytes]byte
	read       int // bytes of the prefix
	message    []byte
	missing    int
}

// take reads p up to the end of a message; done if there is one, which is valid until the next call if whole.
func (a *assembler) take(p []byte) (message, rest []byte, done bool, err error) {
	if a.read < h2.PrefixBytes {
		n := copy(a.prefix[a.read:], p)
		a.read += n
		p = p[n:]
		if a.read < h2.PrefixBytes {
			return nil, nil, false, nil
		}
		size := binary.BigEndian.Uint32(a.prefix[1:])
		if int64(size) > int64(a.most) {
			return nil, nil, false, status.Errorf(codes.ResourceExhausted,
				"grpc: received message larger than max (%d vs. %d)", size, a.most)
		}
		a.missing = int(size)
		if a.missing <= len(p) { // whole
			message, rest = p[:a.missing], p[a.missing:]
			message, err = a.end(message)
			return message, rest, true, err
		}
	}
	n := min(a.missing, len(p))
	if spare := cap(a.message) - len(a.message); spare < n { // it grows with what has come, and not beyond what is announced
		grown := make([]byte, len(a.message), len(a.message)+min(a.missing, max(n, len(a.message))))
		copy(grown, a.message)
		a.message = grown
	}
	a.message = append(a.message, p[:n]...)
	a.missing -= n
	if a.missing > 0 {
		return nil, nil, false, nil
	}
	message, err = a.end(a.message)
	a.message = nil
	return message, p[n:], true, err
}

// kept is how many bytes are kept of a message that has not come in full.
func (a *assembler) kept() int { return cap(a.message) }

// partial reports whether a message has begun.
func (a *assembler) partial() bool { return a.read > 0 }

func (a *assembler) end(message []byte) ([]byte, error) {
	compressed := a.prefix[0]
	a.read = 0
	switch {
	case compressed == 0:
		return message, nil
	case compressed != 1:
		return nil, status.Errorf(codes.Internal, "grpc: received unexpected payload format %d", compressed)
	case a.compressor == "" || a.compressor == encoding.Identity:
		return nil, status.Error(codes.Internal, "grpc: compressed flag set with identity or empty encoding")
	}
	if !a.holder.holdUnpacked(unpackerBytes) {
		return nil, errExhausted.Err()
	}
	unpacked, err := encoding.GetCompressor(a.compressor).Decompress(bytes.NewReader(message))
	if err != nil {
		return nil, status.Errorf(codes.Internal, "grpc: failed to decompress the received message: %v", err)
	}
	all, err := a.unpack(unpacked)
	if errors.Is(err, errNoRoom) {
		return nil, errExhausted.Err()
	}
	if err != nil {
		return nil, status.Errorf(codes.Internal, "grpc: failed to decompress the received message: %v", err)
	}
	if len(all) > a.most {
		return nil, status.Errorf(codes.ResourceExhausted,
			"grpc: received message after decompression larger than max %d", a.most)
	}
	a.holder.holdUnpacked(copies * len(all)) // which is less than before
	return all, nil
}

// errNoRoom is why a message is not unpacked.
var errNoRoom = errors.New("front: no room to unpack a message")

// unpackerBytes is about what the state of a decompressor takes.
const unpackerBytes = 64 << 10

// unpack reads a message that is compressed, up to a byte more than it may have: a piece at a time, each once there is room for
// it, and in its turn but the first. A few bytes make a thousand times as many.
func (a *assembler) unpack(from io.Reader) ([]byte, error) {
	var all bytes.Buffer
	for weight, size := 0, admission.LargeBytes; ; weight, size = admission.LargeBytes, pieceBytes {
		size = min(size, a.most+1-all.Len())
		// A buffer that grows has up to twice what is in it.
		if !a.holder.holdUnpacked(unpackerBytes + copies*(all.Len()+size)) {
			return nil, errNoRoom
		}
		var err error
		a.turns.Do(weight, func() { _, err = io.CopyN(&all, from, int64(size)) })
		runtime.Gosched() // to calls that came in more bytes
		switch {
		case err == io.EOF || err == nil && all.Len() > a.most:
			return all.Bytes(), nil
		case err != nil:
			return nil, err
		}
	}
}

// pieceBytes of a large message are compressed, or the opposite, in one turn.
const pieceBytes = 256 << 10

// packed makes the parts of a message with its prefix, compressed if that is asked for. They own the memory of encoded.
func packed(turns *admission.Turns, encoded mem.BufferSlice, compressor string) ([]h2.Part, error) {
	size := encoded.Len()
	if c := encoding.GetCompressor(compressor); c != nil && compressor != "" && size > 0 {
		out, err := compress(turns, c, encoded)
		return []h2.Part{{Data: out, Release: encoded.Free}}, err
	}
	if size <= smallMessage {
		out := h2.AppendPrefix(make([]byte, 0, h2.PrefixBytes+size), size)
		for _, b := range encoded {
			out = append(out, b.ReadOnlyData()...)
		}
		encoded.Free()
		return []h2.Part{{Data: out}}, nil
	}
	parts := make([]h2.Part, 1, len(encoded)+1)
	parts[0].Data = h2.AppendPrefix(nil, size)
	for _, b := range encoded {
		parts = append(parts, h2.Part{Data: b.ReadOnlyData(), Release: b.Free})
	}
	return parts, nil
}

// smallMessage is the size up to which a message is copied behind its prefix.
const smallMessage = 1 << 10

// compress compresses a piece of a message at a time, each in its turn if the message is large.
func compress(turns *admission.Turns, c encoding.Compressor, encoded mem.BufferSlice) ([]byte, error) {
	out := make([]byte, h2.PrefixBytes, h2.PrefixBytes+encoded.Len()/2)
	w, err := c.Compress(&writer{&out})
	size := encoded.Len()
	for _, b := range encoded {
		for piece := range slices.Chunk(b.ReadOnlyData(), pieceBytes) {
			if err == nil {
				turns.Do(size, func() { _, err = w.Write(piece) })
			}
		}
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		encoded.Free()
		return nil, status.Errorf(codes.Internal, "grpc: error while compressing: %v", err)
	}
	out[0] = 1
	binary.BigEndian.PutUint32(out[1:], uint32(len(out)-h2.PrefixBytes))
	return out, nil
}

type writer struct{ to *[]byte }

func (w *writer) Write(p []byte) (int, error) {
	*w.to = append(*w.to, p...)
	return len(p), nil
}
