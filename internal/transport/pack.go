package transport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"
)

const (
	// packedTrip is the round trip from which on bytes cost more than the time to pack them. Machines of one site are
	// nearer.
	packedTrip = 5 * time.Millisecond
	// packWindow is how far back what is packed refers to: the larger, the more memory for both ends.
	packWindow = 64 << 10
	// maxPackedBytes bounds what a packed frame unpacks to. A larger frame is sent as it is.
	maxPackedBytes = 4 << 20

	// packerBytes and unpackerBytes are the memory that each end of a packed stream takes, as measured.
	packerBytes   = 768 << 10
	unpackerBytes = 320 << 10
)

// canUnpack is the bit of a hello that says that its sender takes packed frames on this stream.
const canUnpack = 1 << 0

// A packed frame carries a plain one. All packed frames of a stream are one zstd stream (RFC 8878), flushed after each of
// them: what they have in common, such as ids and terms, is sent once. Plain frames may come between them.
//
//	0      1        5       6
//	+------+--------+-------+--------+-------------
//	| kind | CRC32C | inner | length | packed body
//	+------+--------+-------+--------+-------------
//
// inner is the kind of the plain frame, length (a varint) that of its body, and the sum is its own: it is that of kind and
// body before packing, so that it also covers packing and unpacking.

// packer packs the frames of one stream. The one who sends on the stream owns it.
type packer struct {
	encoder *zstd.Encoder
	frame   []byte // the one that is being built
}

func newPacker() *packer {
	p := &packer{}
	// The options are constants: they are valid, or no test passes.
	p.encoder, _ = zstd.NewWriter(p, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(packWindow), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
	return p
}

// Write implements io.Writer for the encoder.
func (p *packer) Write(b []byte) (int, error) {
	p.frame = append(p.frame, b...)
	return len(b), nil
}

// pack appends the packed form of a sealed frame to dst, which must be empty.
func (p *packer) pack(dst, plain []byte) ([]byte, error) {
	p.frame = append(dst, byte(framePacked))
	p.frame = append(p.frame, plain[1:frameHeaderBytes]...)
	p.frame = append(p.frame, plain[0])
	p.frame = binary.AppendUvarint(p.frame, uint64(len(plain)-frameHeaderBytes))
	if _, err := p.encoder.Write(plain[frameHeaderBytes:]); err != nil {
		return nil, err
	}
	if err := p.encoder.Flush(); err != nil {
		return nil, err
	}
	dst, p.frame = p.frame, nil
	return dst, nil
}

// unpacker undoes what a packer did, frame by frame and in order. The one who receives from the stream owns it.
type unpacker struct {
	budget    *packBudget
	nonMember bool          // no known member confirms whose stream it is
	decoder   *zstd.Decoder // nil until the first packed frame
	source    packedSource
}

// packedSource gives the decoder the packed body of one frame. The decoder reads a block at a time and no further, so it
// comes to the end of a body only if that lacks something.
type packedSource struct{ rest []byte }

// Read implements io.Reader.
func (s *packedSource) Read(dst []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n := copy(dst, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// plain returns a frame as it was before it was packed, or frame itself if it is not packed.
func (u *unpacker) plain(frame []byte) ([]byte, error) {
	if len(frame) == 0 || frameKind(frame[0]) != framePacked {
		return frame, nil
	}
	if u == nil {
		return nil, fmt.Errorf("%w: a packed frame that nobody asked for", ErrCorruptFrame)
	}
	return u.unpack(frame)
}

// unpack returns the plain frame in a packed one, in memory of its own: at most maxPackedBytes, whatever the frame says.
func (u *unpacker) unpack(frame []byte) ([]byte, error) {
	const fixed = frameHeaderBytes + 1
	if len(frame) < fixed {
		return nil, fmt.Errorf("%w: %d packed bytes", ErrCorruptFrame, len(frame))
	}
	length, n := binary.Uvarint(frame[fixed:])
	if n <= 0 || length > maxPackedBytes {
		return nil, fmt.Errorf("%w: a packed frame of %d bytes", ErrCorruptFrame, length)
	}
	if u.decoder == nil {
		// The options are constants; the first read comes below.
		u.decoder, _ = zstd.NewReader(&u.source, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(packWindow))
	}
	plain := make([]byte, frameHeaderBytes+int(length))
	plain[0] = frame[frameHeaderBytes]
	copy(plain[1:], frame[1:frameHeaderBytes])
	u.source.rest = frame[fixed+n:]
	if _, err := io.ReadFull(u.decoder, plain[frameHeaderBytes:]); err != nil {
		return nil, fmt.Errorf("%w: a packed frame: %w", ErrCorruptFrame, notEOF(err))
	}
	if len(u.source.rest) != 0 {
		return nil, fmt.Errorf("%w: %d bytes after what is packed", ErrCorruptFrame, len(u.source.rest))
	}
	u.source.rest = nil // the frame's memory may be used again
	return plain, nil
}

// notEOF keeps the end of a damaged zstd stream from being taken for the end of the connection.
func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// newUnpacker returns what unpacks the frames of one stream; nil if they must not be packed. The stream is one of a member
// that is known, or a non-member's, which may become one.
func newUnpacker(o *Packing, budget *packBudget, nonMember bool) *unpacker {
	take := budget.take
	if nonMember {
		take = budget.takeForNonMember
	}
	if o.When == PackNever || !take(unpackerBytes) {
		return nil
	}
	return &unpacker{budget: budget, nonMember: nonMember}
}

// known has the unpacker count as a member's from now on.
func (u *unpacker) known() {
	if u != nil && u.nonMember {
		u.nonMember = false
		u.budget.nonMembers.Add(-unpackerBytes)
	}
}

// bits is what the hello of the stream says of it.
func (u *unpacker) bits() byte {
	if u == nil {
		return 0
	}
	return canUnpack
}

// close gives the memory back.
func (u *unpacker) close() {
	if u == nil {
		return
	}
	if u.decoder != nil {
		u.decoder.Close()
	}
	u.known()
	u.budget.give(unpackerBytes)
}

// packBudget bounds the memory of all packers and unpackers of a transport. Strangers have half of it at most: the streams of
// members find the rest.
type packBudget struct{ total, left, nonMembers atomic.Int64 }

// open says how much there is in all.
func (b *packBudget) open(bytes int64) {
	b.total.Store(bytes)
	b.left.Store(bytes)
}

func (b *packBudget) take(bytes int64) bool {
	for {
		left := b.left.Load()
		if left < bytes {
			return false
		}
		if b.left.CompareAndSwap(left, left-bytes) {
			return true
		}
	}
}

func (b *packBudget) takeForNonMember(bytes int64) bool {
	if b.nonMembers.Add(bytes) <= b.total.Load()/2 && b.take(bytes) {
		return true
	}
	b.nonMembers.Add(-bytes)
	return false
}

func (b *packBudget) give(bytes int64) { b.left.Add(bytes) }

// packing packs what one stream sends once the peer is far away. The one who sends on the stream owns it.
type packing struct {
	options *Packing
	budget  *packBudget
	trips   *Lowest // to the peer
	allowed bool    // the peer takes packed frames
	packer  *packer
}

// newPacking prepares for a stream to a peer that said what it can take.
func newPacking(o *Packing, budget *packBudget, trips *Lowest, can byte) *packing {
	return &packing{options: o, budget: budget, trips: trips, allowed: can&canUnpack != 0 && o.When != PackNever}
}

// wanted reports whether frames are packed from now on. Once a stream has begun to pack it goes on: the packer has its
// memory already.
func (k *packing) wanted() bool {
	if k == nil || !k.allowed {
		return false
	}
	if k.packer != nil {
		return true
	}
	if k.options.When != PackAlways {
		if trip, known := k.trips.Get(time.Now()); !known || trip < packedTrip {
			return false
		}
	}
	if !k.budget.take(packerBytes) {
		return false
	}
	k.packer = newPacker()
	return true
}

// frame returns a frame, packed if that is wanted. It takes over plain, which comes from framePool.
func (k *packing) frame(plain *[]byte) (*[]byte, error) {
	if len(*plain) > maxPackedBytes || !k.wanted() {
		return plain, nil
	}
	packed := framePool.Get(0)
	var err error
	*packed, err = k.packer.pack(slices.Grow(*packed, len(*plain)/2), *plain)
	framePool.Put(plain)
	return packed, err
}

// close gives the memory back.
func (k *packing) close() {
	if k == nil || k.packer == nil {
		return
	}
	_ = k.packer.encoder.Close() // writes an end that is not sent
	k.packer = nil
	k.budget.give(packerBytes)
}
