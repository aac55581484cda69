package backup

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/klauspost/compress/zstd"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// Bounds of a segment.
const (
	MaxItems    = 1 << 20   // entries
	MaxRawBytes = 256 << 20 // of the entries and what belongs to them, before they are packed
	// MaxSegmentBytes is the size of an object: zstd makes little longer what it cannot make shorter.
	MaxSegmentBytes = maxPlainBytes + sealedRoom
	maxPlainBytes   = MaxRawBytes + MaxRawBytes/128 + 1<<10
	// MaxEntryBytes is the largest entry (consensus.Entry.SizeBytes) that a segment takes beside others.
	MaxEntryBytes = MaxRawBytes / 2
)

// Item is an entry as it was applied.
type Item struct {
	Entry    consensus.Entry
	Time     int64       // milliseconds since 1970 on the shipping member, when it had applied the entry; never falls
	Revision kv.Revision // of the store after it
	Sum      uint64      // of the chain after it
}

// itemBytes is what an Item takes beside the bytes of its entry.
const itemBytes = int64(unsafe.Sizeof(Item{}))

// Segment is a sequence of entries, at least one.
type Segment struct {
	Cluster        consensus.ClusterID
	Epoch          uint64             // see BaseName
	Member         consensus.MemberID // the member that shipped it
	Since          consensus.Index    // where the chain began: kv/apply, ChainMark
	Before         uint64             // the chain's sum before the first entry
	RevisionBefore kv.Revision
	// Follows is the sum that the name of the object before it has, if that is of another set of recipients: an encrypted
	// segment's name has it instead of the label of Before. Zero: it is of the same set.
	Follows uint64
	// Predecessor is the hash of the segment that the same member, or the one that it took over from, shipped before; zero:
	// none.
	Predecessor Hash
	Items       []Item
}

// Last returns the last entry.
func (s *Segment) Last() *Item { return &s.Items[len(s.Items)-1] }

// End is the point after the last entry.
func (s *Segment) End() Point { return Point{s.Last().Entry.Index, s.Last().Sum} }

// SumAt returns the chain's sum after an entry of the segment, or before its first one.
func (s *Segment) SumAt(index consensus.Index) (sum uint64, has bool) {
	first := s.Items[0].Entry.Index
	switch {
	case index+1 == first:
		return s.Before, true
	case index < first || index-first >= consensus.Index(len(s.Items)):
		return 0, false
	}
	return s.Items[index-first].Sum, true
}

// Moment is that of the last entry.
func (s *Segment) Moment() Moment { return Moment{s.Last().Revision, s.Last().Time} }

// A segment begins with its head, in little-endian numbers, and goes on with one zstd frame:
//
//	0           8         12       16      16+length
//	+-----------+---------+--------+-------+--------+
//	| QUORSEG\n | version | length | head  | frame  |
//	+-----------+---------+--------+-------+--------+
//
// The frame holds columns: all entries as the log has them, then for each the milliseconds since the entry before, by how
// much the revision rose, and the sum (8 bytes). The first of them count from the head's.
const (
	segmentMagic   = "QUORSEG\n"
	segmentVersion = 1
	segmentFixed   = 16
	maxHeadBytes   = 256
	itemLeastBytes = 4 + 1 + 1 + 8
)

// Packer encodes segments. It is not safe for concurrent use.
type Packer struct {
	Lock    *Lock // nil: segments are in the clear
	encoder *zstd.Encoder
	raw     []byte
}

// NewPacker returns a Packer. It holds a few MiB.
func NewPacker() *Packer {
	// The options are constants: they are valid, or no test passes.
	encoder, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
	return &Packer{encoder: encoder}
}

// maxKept bounds the buffer that a Packer keeps.
const maxKept = 4 << 20

// Pack encodes a segment and names it. The content is the caller's.
func (p *Packer) Pack(s *Segment) (SegmentName, []byte) {
	first := &s.Items[0]
	raw := s.appendColumns(p.raw[:0])
	head := make([]byte, 0, maxHeadBytes)
	head = binary.LittleEndian.AppendUint64(head, uint64(s.Cluster))
	head = binary.LittleEndian.AppendUint64(head, uint64(s.Member))
	head = binary.LittleEndian.AppendUint64(head, s.Before)
	head = append(head, s.Predecessor[:]...)
	for _, n := range []uint64{s.Epoch, uint64(s.Since), uint64(first.Entry.Index), uint64(len(s.Items)),
		uint64(s.RevisionBefore), uint64(first.Time), uint64(len(raw))} {
		head = binary.AppendUvarint(head, n)
	}
	content := append(make([]byte, 0, segmentFixed+len(head)+len(raw)/2), segmentMagic...)
	content = binary.LittleEndian.AppendUint32(content, segmentVersion)
	content = binary.LittleEndian.AppendUint32(content, uint32(len(head)))
	content = p.encoder.EncodeAll(raw, append(content, head...))
	if p.raw = raw; cap(raw) > maxKept {
		p.raw = nil
	}
	if p.Lock == nil {
		return s.named(HashOf(content)), content
	}
	return s.sealed(p.Lock, content)
}

// labelBytes are those of the two sums in the name of an encrypted segment, which lie before its content: a reader needs no
// secret to see that the name belongs to it.
const labelBytes = 16

func (s *Segment) sealed(lock *Lock, content []byte) (SegmentName, []byte) {
	name := s.named(Hash{})
	name.Set = lock.Set()
	name.Before = cmp.Or(s.Follows, lock.secret().Label(name.Start()).Sum)
	name.End = lock.secret().Label(name.End)
	labelled := binary.LittleEndian.AppendUint64(make([]byte, 0, labelBytes+len(content)), name.Before)
	labelled = append(binary.LittleEndian.AppendUint64(labelled, name.End.Sum), content...)
	object := lock.seal(labelled)
	name.Hash = HashOf(object)
	return name, object
}

func (s *Segment) named(hash Hash) SegmentName {
	return SegmentName{Cluster: s.Cluster, Epoch: s.Epoch, First: s.Items[0].Entry.Index, Before: s.Before, End: s.End(),
		Moment: s.Moment(), Hash: hash}
}

func (s *Segment) appendColumns(raw []byte) []byte {
	for i := range s.Items {
		raw = consensus.AppendEntry(raw, &s.Items[i].Entry)
	}
	at, revision := s.Items[0].Time, s.RevisionBefore
	for i := range s.Items {
		raw = binary.AppendUvarint(raw, uint64(s.Items[i].Time-at))
		at = s.Items[i].Time
	}
	for i := range s.Items {
		raw = binary.AppendUvarint(raw, uint64(s.Items[i].Revision-revision))
		revision = s.Items[i].Revision
	}
	for i := range s.Items {
		raw = binary.LittleEndian.AppendUint64(raw, s.Items[i].Sum)
	}
	return raw
}

// Unpack reads a segment in the clear that has a name. The items alias nothing of content.
func Unpack(name *SegmentName, content []byte) (*Segment, error) {
	return OpenSegment(name, content, nil)
}

// OpenSegment reads a segment that has a name, and decrypts it if it is encrypted.
func OpenSegment(name *SegmentName, content []byte, open Opener) (*Segment, error) {
	return OpenSegmentWithin(name, content, open, 0)
}

// OpenSegmentWithin is OpenSegment in so many bytes of memory, those of the content among them: TooLargeError. Zero: in what a
// segment takes at most.
func OpenSegmentWithin(name *SegmentName, content []byte, open Opener, most int64) (*Segment, error) {
	if HashOf(content) != name.Hash {
		return nil, fmt.Errorf("%w: the content has another hash than the name", ErrDamaged)
	}
	if name.Set == 0 {
		return unpackAs(name, content, most)
	}
	plain := int64(labelBytes + maxPlainBytes)
	if most > 0 {
		plain = min(plain, most)
	}
	content, err := unseal(content, plain, open)
	switch {
	case err != nil:
		return nil, err
	case len(content) < labelBytes || binary.LittleEndian.Uint64(content) != name.Before ||
		binary.LittleEndian.Uint64(content[8:]) != name.End.Sum:
		return nil, fmt.Errorf("%w: it holds other entries than its name says", ErrDamaged)
	}
	return unpackAs(name, content[labelBytes:], most)
}

// unpackAs reads a segment that is no more encrypted.
func unpackAs(name *SegmentName, content []byte, most int64) (*Segment, error) {
	if len(content) < segmentFixed || string(content[:8]) != segmentMagic {
		return nil, fmt.Errorf("%w: it is no segment", ErrDamaged)
	}
	switch version := binary.LittleEndian.Uint32(content[8:]); {
	case version > segmentVersion:
		return nil, fmt.Errorf("segment of version %d: %w", version, ErrLater)
	case version < segmentVersion:
		return nil, fmt.Errorf("%w: there is no version %d", ErrDamaged, version)
	}
	length := binary.LittleEndian.Uint32(content[12:])
	if length > maxHeadBytes || int(length) > len(content)-segmentFixed {
		return nil, fmt.Errorf("%w: a head of %d bytes", ErrDamaged, length)
	}
	s, rest, err := decodeHead(content[segmentFixed:segmentFixed+length], content[segmentFixed+length:], most)
	if err != nil {
		return nil, err
	}
	if err := s.decodeColumns(rest); err != nil {
		return nil, err
	}
	held := s.named(name.Hash)
	if held.Set = name.Set; name.Set != 0 { // the labels were compared
		held.Before, held.End.Sum = name.Before, name.End.Sum
	}
	if held != *name {
		return nil, fmt.Errorf("%w: it holds other entries than its name says", ErrDamaged)
	}
	return s, nil
}

// decodeHead returns a segment whose items have their times' and indexes' beginning, and the columns.
func decodeHead(head, frame []byte, most int64) (*Segment, []byte, error) {
	r := reader{rest: head}
	s := &Segment{Cluster: consensus.ClusterID(r.u64()), Member: consensus.MemberID(r.u64()), Before: r.u64()}
	copy(s.Predecessor[:], r.take(len(s.Predecessor)))
	s.Epoch = r.uvarint(maxNumber)
	s.Since = consensus.Index(r.uvarint(maxNumber))
	first, count := r.uvarint(maxNumber), r.uvarint(MaxItems)
	s.RevisionBefore = kv.Revision(r.uvarint(maxNumber))
	at, raw := r.uvarint(maxNumber), r.uvarint(MaxRawBytes)
	if r.bad || len(r.rest) > 0 || first == 0 || count == 0 || count*itemLeastBytes > raw {
		return nil, nil, fmt.Errorf("%w: head", ErrDamaged)
	}
	if bytes := int64(len(frame)) + int64(raw) + int64(count)*itemBytes; most > 0 && bytes > most {
		return nil, nil, &TooLargeError{bytes, most}
	}
	columns, err := unpack(frame, raw)
	if err != nil {
		return nil, nil, err
	}
	s.Items = make([]Item, count)
	s.Items[0].Entry.Index, s.Items[0].Time = consensus.Index(first), int64(at)
	return s, columns, nil
}

// leastUnpackBytes bounds what a frame may claim, however little it is to hold: a frame of few bytes has a window of more.
const leastUnpackBytes = 8 << 20

// unpack unpacks a frame to exactly raw bytes. It must name them, or be one block, of 128 KiB at most: no more is unpacked.
func unpack(frame []byte, raw uint64) ([]byte, error) {
	var header zstd.Header
	if err := header.Decode(frame); err != nil {
		return nil, fmt.Errorf("%w: frame: %w", ErrDamaged, err)
	}
	named := header.HasFCS && header.FrameContentSize == raw
	if !named && (header.HasFCS || !header.FirstBlock.OK || !header.FirstBlock.Last) {
		return nil, fmt.Errorf("%w: a frame that names %d bytes, and the head says %d", ErrDamaged, header.FrameContentSize,
			raw)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(max(raw, leastUnpackBytes)),
		zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	columns, err := decoder.DecodeAll(frame, nil)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: frame: %w", ErrDamaged, err)
	case uint64(len(columns)) != raw:
		return nil, fmt.Errorf("%w: a frame of %d bytes, and the head says %d", ErrDamaged, len(columns), raw)
	}
	return columns, nil
}

func (s *Segment) decodeColumns(columns []byte) (err error) {
	next, term := s.Items[0].Entry.Index, consensus.Term(0)
	at := s.Items[0].Time
	for i := range s.Items {
		e := &s.Items[i].Entry
		if *e, columns, err = consensus.DecodeEntry(columns); err != nil {
			return fmt.Errorf("%w: entry %d: %w", ErrDamaged, next, err)
		}
		if e.Index != next || e.Term < term {
			return fmt.Errorf("%w: entry %v where %d was to be", ErrDamaged, e.Position(), next)
		}
		next, term = next+1, e.Term
	}
	r := reader{rest: columns}
	for i := range s.Items {
		at += int64(r.uvarint(uint64(maxNumber - at)))
		s.Items[i].Time = at
	}
	revision := s.RevisionBefore
	for i := range s.Items {
		revision += kv.Revision(r.uvarint(uint64(maxNumber - revision)))
		s.Items[i].Revision = revision
	}
	for i := range s.Items {
		s.Items[i].Sum = r.u64()
	}
	if r.bad || len(r.rest) > 0 {
		return fmt.Errorf("%w: columns", ErrDamaged)
	}
	return nil
}

// reader takes numbers from bytes. Once something is absent or too large, it is bad.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) take(n int) []byte {
	if len(r.rest) < n {
		r.bad, r.rest = true, nil
		return make([]byte, n)
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) u64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }

func (r *reader) uvarint(most uint64) uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || v > most || most > math.MaxInt64 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}
