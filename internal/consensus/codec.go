package consensus

import (
	"encoding/binary"

	"github.com/quorate/quorate/internal/base/level"
)

// The encoding of the words is our own: little-endian, unsigned varints for numbers that are small in practice (indexes,
// terms, lengths), eight fixed bytes for ids, which are random. Every AppendX writes into a buffer of the caller; every
// DecodeX returns what follows the value, and the byte slices inside the value alias the source, which therefore must never be
// written to again. Decoders never panic, and they allocate no more than a small multiple of the source: a count is believed
// only if that many of the smallest elements could still follow. A number, a kind or a flag that this build does not know is
// level.ErrLater, all else that no encoder writes is ErrCorrupt. A value that stands alone, as the payload of an entry, takes
// every byte.

// reader consumes src. After the first fault all reads return zero, so that decoders check once, at the end.
type reader struct {
	src     []byte
	bad     bool
	later   bool // the first fault is something of a later build
	bounded bool // what is made of src may take room bytes more
	room    int
}

func (r *reader) fail() {
	r.src, r.bad = nil, true
}

// unknown is fail for what a later build may have written.
func (r *reader) unknown() {
	r.later = r.later || !r.bad
	r.fail()
}

// known returns v if this build knows it: it is at most last.
func known[T ~uint8](r *reader, v, last T) T {
	if v > last {
		r.unknown()
		return 0
	}
	return v
}

// flags returns a byte of booleans, of which this build knows those of mask.
func (r *reader) flags(mask byte) byte {
	b := r.octet()
	if b&^mask != 0 {
		r.unknown()
		return 0
	}
	return b
}

// form reads the number at the front of a form of which this build knows one.
func (r *reader) form(own byte) {
	switch n := r.octet(); {
	case n > own:
		r.unknown()
	case n < own:
		r.fail()
	}
}

func (r *reader) uvarint() uint64 {
	// Most numbers fit in one byte: spare them the call.
	if len(r.src) > 0 && r.src[0] < 0x80 {
		v := uint64(r.src[0])
		r.src = r.src[1:]
		return v
	}
	v, n := binary.Uvarint(r.src)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.src = r.src[n:]
	return v
}

func (r *reader) octet() byte {
	if len(r.src) == 0 {
		r.fail()
		return 0
	}
	b := r.src[0]
	r.src = r.src[1:]
	return b
}

func (r *reader) fixed() uint64 {
	if len(r.src) < 8 {
		r.fail()
		return 0
	}
	v := binary.LittleEndian.Uint64(r.src)
	r.src = r.src[8:]
	return v
}

// blob returns the next length-prefixed bytes, nil if there are none, aliasing the source.
func (r *reader) blob() []byte {
	n := r.uvarint()
	if n > uint64(len(r.src)) {
		r.fail()
		return nil
	}
	if n == 0 {
		return nil
	}
	b := r.src[:n:n]
	r.src = r.src[n:]
	return b
}

// count returns the next number if so many elements of at least minBytes each can still follow, and there is room for them:
// each takes size bytes of memory, beside what it aliases.
func (r *reader) count(minBytes, size int) int {
	n := r.uvarint()
	if n > uint64(len(r.src)/minBytes) {
		r.fail()
		return 0
	}
	r.room -= int(n) * size
	if r.bounded && r.room < 0 {
		r.fail()
		return 0
	}
	return int(n)
}

// Sizes of the elements of lists in memory, in bytes, without what they alias. A test compares them with the types.
const (
	idSize       = 8
	textSize     = 16 // and its bytes, which are copied
	memberSize   = 104
	stepSize     = 112
	entrySize    = 96
	proposalSize = 64
	refusalSize  = 56
	readSize     = 16
	recordSize   = 120
	verdictSize  = 96
)

// MessageSize is what a Message takes in memory, without its lists.
const MessageSize = 408

// end returns what a decoder of a value that others follow returns beside it.
func (r *reader) end() (rest []byte, err error) {
	switch {
	case r.later:
		return nil, level.ErrLater
	case r.bad:
		return nil, ErrCorrupt
	}
	return r.src, nil
}

// alone is end for a value that nothing may follow.
func (r *reader) alone() error {
	rest, err := r.end()
	if err == nil && len(rest) > 0 {
		return ErrCorrupt
	}
	return err
}

func (r *reader) member() MemberID { return MemberID(r.fixed()) }

func (r *reader) storage() (id StorageID) {
	if len(r.src) < len(id) {
		r.fail()
		return id
	}
	copy(id[:], r.src)
	r.src = r.src[len(id):]
	return id
}

func (r *reader) position() Position {
	return Position{Index: Index(r.uvarint()), Term: Term(r.uvarint())}
}

func (r *reader) configID() ConfigID {
	return ConfigID{Index: Index(r.uvarint()), Term: Term(r.uvarint()), Stage: known(r, r.octet(), lastStage)}
}

func (r *reader) proposalID() ProposalID {
	return ProposalID{
		Session:  SessionID{Member: r.member(), Number: r.fixed()},
		Sequence: r.uvarint(),
	}
}

func appendMember(dst []byte, id MemberID) []byte {
	return binary.LittleEndian.AppendUint64(dst, uint64(id))
}

func appendPosition(dst []byte, m Position) []byte {
	dst = binary.AppendUvarint(dst, uint64(m.Index))
	return binary.AppendUvarint(dst, uint64(m.Term))
}

func appendConfigID(dst []byte, id ConfigID) []byte {
	dst = binary.AppendUvarint(dst, uint64(id.Index))
	dst = binary.AppendUvarint(dst, uint64(id.Term))
	return append(dst, id.Stage)
}

func appendProposalID(dst []byte, id ProposalID) []byte {
	dst = appendMember(dst, id.Session.Member)
	dst = binary.LittleEndian.AppendUint64(dst, id.Session.Number)
	return binary.AppendUvarint(dst, id.Sequence)
}

func appendBlob(dst, b []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

// hardHasPromise is set in the commit index, which is never so great, if a promise follows, as it does with leader leases.
const hardHasPromise = 1 << 63

// AppendHardState encodes h after dst.
func AppendHardState(dst []byte, h *HardState) []byte {
	dst = binary.AppendUvarint(dst, uint64(h.Term))
	dst = appendMember(dst, h.Vote)
	if h.Promise == 0 {
		return binary.AppendUvarint(dst, uint64(h.Commit))
	}
	dst = binary.AppendUvarint(dst, uint64(h.Commit)|hardHasPromise)
	return binary.AppendUvarint(dst, h.Promise)
}

// DecodeHardState reads what AppendHardState wrote.
func DecodeHardState(src []byte) (h HardState, rest []byte, err error) {
	r := reader{src: src}
	h = HardState{Term: Term(r.uvarint()), Vote: r.member(), Commit: Index(r.uvarint())}
	if h.Commit&hardHasPromise != 0 {
		h.Commit, h.Promise = h.Commit&^hardHasPromise, r.uvarint()
		r.bad = r.bad || h.Promise == 0
	}
	rest, err = r.end()
	return h, rest, err
}

// An entry, byte by byte; the fields in brackets are present if the flag in the upper bits of head says so:
//
//	+------+-------+------+-----------------------+------------+------------+---------+-----+---------+
//	| head | index | term | [proposal: 8, 8, seq] | [proposer] | [answered] | [exact] | len | payload |
//	| 1    | 1..10 | 1..10| 17..26                | 8          | 8          | 1..10   | 1.. | len     |
//	+------+-------+------+-----------------------+------------+------------+---------+-----+---------+
const (
	entryKindMask      = 0x07
	entryHasProposal   = 0x08
	entryHasProposer   = 0x10
	entryHasAnswered   = 0x20
	entryHasExact      = 0x40
	entryProposerIsOwn = 0x80 // the proposer is the member that owns the session: the usual case, no bytes spent

	entryMinBytes    = 4
	proposalMinBytes = 2
	refusalMinBytes  = 21
	readMinBytes     = 2
	memberMinBytes   = 10
)

// AppendEntry encodes e after dst.
func AppendEntry(dst []byte, e *Entry) []byte {
	head := byte(e.Kind) & entryKindMask
	ownProposer := e.Proposer != NoMember && e.Proposer == e.Proposal.Session.Member
	if !e.Proposal.IsZero() {
		head |= entryHasProposal
	}
	switch {
	case ownProposer:
		head |= entryProposerIsOwn
	case e.Proposer != NoMember:
		head |= entryHasProposer
	}
	if e.Answered != NoMember {
		head |= entryHasAnswered
	}
	if e.ExactRevision != 0 {
		head |= entryHasExact
	}
	dst = append(dst, head)
	dst = binary.AppendUvarint(dst, uint64(e.Index))
	dst = binary.AppendUvarint(dst, uint64(e.Term))
	if head&entryHasProposal != 0 {
		dst = appendProposalID(dst, e.Proposal)
	}
	if head&entryHasProposer != 0 {
		dst = appendMember(dst, e.Proposer)
	}
	if head&entryHasAnswered != 0 {
		dst = appendMember(dst, e.Answered)
	}
	if head&entryHasExact != 0 {
		dst = binary.AppendUvarint(dst, e.ExactRevision)
	}
	return appendBlob(dst, e.Payload)
}

// DecodeEntry reads what AppendEntry wrote. The payload aliases src.
func DecodeEntry(src []byte) (e Entry, rest []byte, err error) {
	r := reader{src: src}
	r.entry(&e)
	rest, err = r.end()
	return e, rest, err
}

// entry decodes in place: an Entry is large, and appends carry hundreds.
func (r *reader) entry(e *Entry) {
	head := r.octet()
	e.Kind = known(r, EntryKind(head&entryKindMask), EntryAbort)
	e.Index = Index(r.uvarint())
	e.Term = Term(r.uvarint())
	e.Proposal, e.Proposer = r.proposed(head)
	if head&entryHasAnswered != 0 {
		e.Answered = r.member()
	}
	if head&entryHasExact != 0 {
		e.ExactRevision = r.uvarint()
	}
	if head&entryHasAnswered != 0 && e.Answered == NoMember || head&entryHasExact != 0 && e.ExactRevision == 0 {
		r.fail() // no encoder writes a zero
	}
	e.Payload = r.blob()
}

// proposed reads what the heads of entries and of proposals announce alike.
func (r *reader) proposed(head byte) (id ProposalID, proposer MemberID) {
	if head&entryHasProposal != 0 {
		id = r.proposalID()
	}
	switch head & (entryHasProposer | entryProposerIsOwn) {
	case 0:
		proposer = NoMember
	case entryHasProposer:
		if proposer = r.member(); proposer == NoMember || proposer == id.Session.Member {
			r.fail()
		}
	case entryProposerIsOwn:
		if proposer = id.Session.Member; proposer == NoMember {
			r.fail()
		}
	default:
		r.fail()
	}
	if head&entryHasProposal != 0 && id.IsZero() {
		r.fail()
	}
	return id, proposer
}
