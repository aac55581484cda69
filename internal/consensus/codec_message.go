package consensus

import (
	"encoding/binary"
	"math"

	"github.com/quorate/quorate/internal/base/level"
)

// A message is: kind (1 byte), present fields (varint, a bit each), from, to (8 bytes each), term (varint), then the
// present fields in the order of their bits. Absent fields are zero.
const (
	hasConfig = 1 << iota
	hasCommit
	hasDurable
	hasRound
	hasPrev
	hasMatch
	hasReceived
	hasEntries
	hasProposals
	hasVerdicts
	hasDue
	hasReads
	hasQuery
	hasRefusals
	hasLast
	hasReject // the bit is the value
	hasRefused
	hasHint
	hasCommitted
	hasForce // the bit is the value
	hasTarget
	hasSnapshot
	hasRecords
	hasUnlogged // the bit is the value
	hasPatience
	hasWaitedFor
	hasDiskTook
	hasAllTook
	pastFields // no bit from here on
)

func (m *Message) fields() uint64 {
	var f uint64
	set := func(present bool, bit uint64) {
		if present {
			f |= bit
		}
	}
	set(m.Config != ConfigID{}, hasConfig)
	set(m.Commit != 0, hasCommit)
	set(m.Durable != 0, hasDurable)
	set(m.Round != 0, hasRound)
	set(m.Prev != Position{}, hasPrev)
	set(m.Match != Position{}, hasMatch)
	set(m.Received != 0, hasReceived)
	set(len(m.Entries) > 0, hasEntries)
	set(len(m.Proposals) > 0, hasProposals)
	set(len(m.Verdicts) > 0, hasVerdicts)
	set(m.Due != 0, hasDue)
	set(len(m.Reads) > 0, hasReads)
	set(m.Query != 0, hasQuery)
	set(len(m.Refusals) > 0, hasRefusals)
	set(m.Last != Position{}, hasLast)
	set(m.Reject, hasReject)
	set(m.Refused != Position{}, hasRefused)
	set(m.Hint != Position{}, hasHint)
	set(m.Committed != Position{}, hasCommitted)
	set(m.Force, hasForce)
	set(m.Target != NoMember, hasTarget)
	set(m.Snapshot != nil, hasSnapshot)
	set(len(m.Records) > 0, hasRecords)
	set(m.Unlogged, hasUnlogged)
	set(m.Patience != 0, hasPatience)
	set(m.WaitedFor != NoMember, hasWaitedFor)
	set(m.DiskTook != 0, hasDiskTook)
	set(m.AllTook != 0, hasAllTook)
	return f
}

// AppendMessage encodes m after dst.
func AppendMessage(dst []byte, m *Message) []byte {
	f := m.fields()
	dst = append(dst, byte(m.Kind))
	dst = binary.AppendUvarint(dst, f)
	dst = appendMember(dst, m.From)
	dst = appendMember(dst, m.To)
	dst = binary.AppendUvarint(dst, uint64(m.Term))
	dst = m.appendNumbers(dst, f)
	dst = m.appendPositions(dst, f)
	return m.appendLists(dst, f)
}

func (m *Message) appendNumbers(dst []byte, f uint64) []byte {
	if f&hasConfig != 0 {
		dst = appendConfigID(dst, m.Config)
	}
	for _, field := range []struct {
		bit   uint64
		value uint64
	}{
		{hasCommit, uint64(m.Commit)}, {hasDurable, uint64(m.Durable)}, {hasRound, m.Round},
		{hasReceived, uint64(m.Received)}, {hasDue, m.Due}, {hasQuery, m.Query}, {hasPatience, m.Patience},
		{hasDiskTook, uint64(m.DiskTook)}, {hasAllTook, uint64(m.AllTook)},
	} {
		if f&field.bit != 0 {
			dst = binary.AppendUvarint(dst, field.value)
		}
	}
	if f&hasTarget != 0 {
		dst = appendMember(dst, m.Target)
	}
	if f&hasWaitedFor != 0 {
		dst = appendMember(dst, m.WaitedFor)
	}
	return dst
}

func (m *Message) appendPositions(dst []byte, f uint64) []byte {
	for _, field := range []struct {
		bit      uint64
		position *Position
	}{
		{hasPrev, &m.Prev}, {hasMatch, &m.Match}, {hasLast, &m.Last}, {hasRefused, &m.Refused}, {hasHint, &m.Hint},
		{hasCommitted, &m.Committed},
	} {
		if f&field.bit != 0 {
			dst = appendPosition(dst, *field.position)
		}
	}
	return dst
}

func (m *Message) appendLists(dst []byte, f uint64) []byte {
	if f&hasEntries != 0 {
		dst = binary.AppendUvarint(dst, uint64(len(m.Entries)))
		for i := range m.Entries {
			dst = AppendEntry(dst, &m.Entries[i])
		}
	}
	if f&hasProposals != 0 {
		dst = binary.AppendUvarint(dst, uint64(len(m.Proposals)))
		for i := range m.Proposals {
			dst = appendProposal(dst, &m.Proposals[i])
		}
	}
	if f&hasRefusals != 0 {
		dst = binary.AppendUvarint(dst, uint64(len(m.Refusals)))
		for i := range m.Refusals {
			dst = appendProposalID(dst, m.Refusals[i].ID)
			dst = append(dst, byte(m.Refusals[i].Reason))
			dst = appendConfigID(dst, m.Refusals[i].Config)
		}
	}
	if f&hasReads != 0 {
		dst = binary.AppendUvarint(dst, uint64(len(m.Reads)))
		for i := range m.Reads {
			dst = binary.AppendUvarint(dst, m.Reads[i].ID)
			dst = binary.AppendUvarint(dst, uint64(m.Reads[i].Index))
		}
	}
	if f&hasSnapshot != 0 {
		dst = AppendSnapshotMeta(dst, m.Snapshot)
	}
	if f&hasRecords != 0 {
		dst = binary.AppendUvarint(dst, uint64(len(m.Records)))
		for i := range m.Records {
			dst = AppendRecord(dst, &m.Records[i])
		}
	}
	if f&hasVerdicts != 0 {
		dst = binary.AppendUvarint(dst, uint64(len(m.Verdicts)))
		for i := range m.Verdicts {
			dst = appendVerdict(dst, &m.Verdicts[i])
		}
	}
	return dst
}

// DecodeMessage reads what AppendMessage wrote. Payloads alias src.
func DecodeMessage(src []byte) (m Message, rest []byte, err error) {
	m, rest, _, err = decodeMessage(reader{src: src})
	return m, rest, err
}

// DecodeMessageWithin is DecodeMessage for what is not trusted: the message, with its lists, takes at most room bytes of memory
// beside src, or is corrupt. left is what is left of room.
func DecodeMessageWithin(src []byte, room int) (m Message, rest []byte, left int, err error) {
	return decodeMessage(reader{src: src, bounded: true, room: room - MessageSize})
}

func decodeMessage(r reader) (m Message, rest []byte, left int, err error) {
	m.Kind = known(&r, MessageKind(r.octet()), lastMessage)
	f := r.uvarint()
	if f >= pastFields {
		r.unknown()
	}
	m.From, m.To, m.Term = r.member(), r.member(), Term(r.uvarint())
	r.numbers(&m, f)
	r.positions(&m, f)
	m.Reject, m.Force, m.Unlogged = f&hasReject != 0, f&hasForce != 0, f&hasUnlogged != 0
	r.lists(&m, f)
	if rest, err = r.end(); err == nil && r.bounded && r.room < 0 {
		err = ErrCorrupt
	}
	if err != nil {
		return Message{}, nil, 0, err
	}
	return m, rest, r.room, nil
}

func (r *reader) numbers(m *Message, f uint64) {
	if f&hasConfig != 0 {
		m.Config = r.configID()
	}
	if f&hasCommit != 0 {
		m.Commit = Index(r.uvarint())
	}
	if f&hasDurable != 0 {
		m.Durable = Index(r.uvarint())
	}
	if f&hasRound != 0 {
		m.Round = r.uvarint()
	}
	if f&hasReceived != 0 {
		m.Received = Index(r.uvarint())
	}
	if f&hasDue != 0 {
		m.Due = r.uvarint()
	}
	if f&hasQuery != 0 {
		m.Query = r.uvarint()
	}
	if f&hasPatience != 0 {
		m.Patience = r.uvarint()
	}
	if f&hasDiskTook != 0 {
		m.DiskTook = r.micros()
	}
	if f&hasAllTook != 0 {
		m.AllTook = r.micros()
	}
	if f&hasTarget != 0 {
		m.Target = r.member()
	}
	if f&hasWaitedFor != 0 {
		m.WaitedFor = r.member()
	}
}

// micros reads a time of a Waited.
func (r *reader) micros() uint32 {
	n := r.uvarint()
	if n > math.MaxUint32 {
		r.fail()
	}
	return uint32(n)
}

func (r *reader) positions(m *Message, f uint64) {
	if f&hasPrev != 0 {
		m.Prev = r.position()
	}
	if f&hasMatch != 0 {
		m.Match = r.position()
	}
	if f&hasLast != 0 {
		m.Last = r.position()
	}
	if f&hasRefused != 0 {
		m.Refused = r.position()
	}
	if f&hasHint != 0 {
		m.Hint = r.position()
	}
	if f&hasCommitted != 0 {
		m.Committed = r.position()
	}
}

// followed refuses an entry that this build cannot follow: a member must not acknowledge it.
func (r *reader) followed(e *Entry) {
	if r.bad || e.Kind == EntryCommand {
		return
	}
	switch err := CheckEntry(e); {
	case err == level.ErrLater:
		r.unknown()
	case err != nil:
		r.fail()
	}
}

func (r *reader) lists(m *Message, f uint64) {
	if f&hasEntries != 0 {
		if n := r.count(entryMinBytes, entrySize); n > 0 {
			m.Entries = make([]Entry, n)
			for i := 0; i < n && !r.bad; i++ {
				r.entry(&m.Entries[i])
				r.followed(&m.Entries[i])
			}
		}
	}
	if f&hasProposals != 0 {
		if n := r.count(proposalMinBytes, proposalSize); n > 0 {
			m.Proposals = make([]Proposal, n)
			for i := 0; i < n && !r.bad; i++ {
				r.proposal(&m.Proposals[i])
			}
		}
	}
	if f&hasRefusals != 0 {
		if n := r.count(refusalMinBytes, refusalSize); n > 0 {
			m.Refusals = make([]Refusal, n)
			for i := range m.Refusals {
				m.Refusals[i] = Refusal{
					ID: r.proposalID(), Reason: known(r, RefusalReason(r.octet()), lastReason), Config: r.configID(),
				}
			}
		}
	}
	if f&hasReads != 0 {
		if n := r.count(readMinBytes, readSize); n > 0 {
			m.Reads = make([]ReadIndex, n)
			for i := range m.Reads {
				m.Reads[i] = ReadIndex{ID: r.uvarint(), Index: Index(r.uvarint())}
			}
		}
	}
	if f&hasSnapshot != 0 {
		meta := r.snapshotMeta()
		m.Snapshot = &meta
	}
	if f&hasRecords != 0 {
		if n := r.count(recordMinBytes, recordSize); n > 0 {
			m.Records = make([]Record, n)
			for i := 0; i < n && !r.bad; i++ {
				m.Records[i] = r.record()
			}
		}
	}
	if f&hasVerdicts != 0 {
		if n := r.count(verdictMinBytes, verdictSize); n > 0 {
			m.Verdicts = make([]Verdict, n)
			for i := 0; i < n && !r.bad; i++ {
				m.Verdicts[i] = r.verdict()
			}
		}
	}
}

// appendProposal shares the head byte and its flags with entries.
func appendProposal(dst []byte, p *Proposal) []byte {
	head := byte(p.Kind) & entryKindMask
	if !p.ID.IsZero() {
		head |= entryHasProposal
	}
	switch {
	case p.Proposer != NoMember && p.Proposer == p.ID.Session.Member:
		head |= entryProposerIsOwn
	case p.Proposer != NoMember:
		head |= entryHasProposer
	}
	dst = append(dst, head)
	if head&entryHasProposal != 0 {
		dst = appendProposalID(dst, p.ID)
	}
	if head&entryHasProposer != 0 {
		dst = appendMember(dst, p.Proposer)
	}
	return appendBlob(dst, p.Payload)
}

func (r *reader) proposal(p *Proposal) {
	head := r.flags(entryKindMask | entryHasProposal | entryHasProposer | entryProposerIsOwn)
	p.Kind = known(r, EntryKind(head&entryKindMask), EntryAbort)
	p.ID, p.Proposer = r.proposed(head)
	p.Payload = r.blob()
}
