package consensus

import "encoding/binary"

// A message is: kind (1 byte), present fields (2 bytes, a bit each), from, to (8 bytes each), term (varint), then the
// present fields in the order of their bits. Absent fields are zero.
const (
	hasMark = 1 << iota
	hasCommit
	hasDurable
	hasRound
	hasReject // the bit is the value
	hasHint
	hasForce // the bit is the value
	hasTarget
	hasConfig
	hasEntries
	hasProposals
	hasRefusals
	hasReads
	hasSnapshot
	hasRecords
	hasVerdicts // the last bit there is room for
)

func (m *Message) fields() uint16 {
	var f uint16
	set := func(present bool, bit uint16) {
		if present {
			f |= bit
		}
	}
	set(m.Mark != Mark{}, hasMark)
	set(m.Commit != 0, hasCommit)
	set(m.Durable != 0, hasDurable)
	set(m.Round != 0, hasRound)
	set(m.Reject, hasReject)
	set(m.Hint != Mark{}, hasHint)
	set(m.Force, hasForce)
	set(m.Target != NoMember, hasTarget)
	set(m.Config != ConfigID{}, hasConfig)
	set(len(m.Entries) > 0, hasEntries)
	set(len(m.Proposals) > 0, hasProposals)
	set(len(m.Refusals) > 0, hasRefusals)
	set(len(m.Reads) > 0, hasReads)
	set(m.Snapshot != nil, hasSnapshot)
	set(len(m.Records) > 0, hasRecords)
	set(len(m.Verdicts) > 0, hasVerdicts)
	return f
}

// AppendMessage encodes m after dst.
func AppendMessage(dst []byte, m *Message) []byte {
	f := m.fields()
	dst = append(dst, byte(m.Kind))
	dst = binary.LittleEndian.AppendUint16(dst, f)
	dst = appendMember(dst, m.From)
	dst = appendMember(dst, m.To)
	dst = binary.AppendUvarint(dst, uint64(m.Term))
	if f&hasMark != 0 {
		dst = appendMark(dst, m.Mark)
	}
	if f&hasCommit != 0 {
		dst = binary.AppendUvarint(dst, uint64(m.Commit))
	}
	if f&hasDurable != 0 {
		dst = binary.AppendUvarint(dst, uint64(m.Durable))
	}
	if f&hasRound != 0 {
		dst = binary.AppendUvarint(dst, m.Round)
	}
	if f&hasHint != 0 {
		dst = appendMark(dst, m.Hint)
	}
	if f&hasTarget != 0 {
		dst = appendMember(dst, m.Target)
	}
	if f&hasConfig != 0 {
		dst = appendConfigID(dst, m.Config)
	}
	return m.appendLists(dst, f)
}

func (m *Message) appendLists(dst []byte, f uint16) []byte {
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
	r := reader{src: src}
	m.Kind = MessageKind(r.octet())
	f := uint16(r.octet()) | uint16(r.octet())<<8
	m.From, m.To, m.Term = r.member(), r.member(), Term(r.uvarint())
	if f&hasMark != 0 {
		m.Mark = r.mark()
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
	m.Reject = f&hasReject != 0
	if f&hasHint != 0 {
		m.Hint = r.mark()
	}
	m.Force = f&hasForce != 0
	if f&hasTarget != 0 {
		m.Target = r.member()
	}
	if f&hasConfig != 0 {
		m.Config = r.configID()
	}
	r.lists(&m, f)
	if rest, err = r.end(); err != nil {
		return Message{}, nil, err
	}
	return m, rest, nil
}

func (r *reader) lists(m *Message, f uint16) {
	if f&hasEntries != 0 {
		if n := r.count(entryMinBytes); n > 0 {
			m.Entries = make([]Entry, n)
			for i := 0; i < n && !r.bad; i++ {
				r.entry(&m.Entries[i])
			}
		}
	}
	if f&hasProposals != 0 {
		if n := r.count(proposalMinBytes); n > 0 {
			m.Proposals = make([]Proposal, n)
			for i := 0; i < n && !r.bad; i++ {
				r.proposal(&m.Proposals[i])
			}
		}
	}
	if f&hasRefusals != 0 {
		if n := r.count(refusalMinBytes); n > 0 {
			m.Refusals = make([]Refusal, n)
			for i := range m.Refusals {
				m.Refusals[i] = Refusal{ID: r.proposalID(), Reason: RefusalReason(r.octet()), Config: r.configID()}
			}
		}
	}
	if f&hasReads != 0 {
		if n := r.count(readMinBytes); n > 0 {
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
		if n := r.count(recordMinBytes); n > 0 {
			m.Records = make([]Record, n)
			for i := 0; i < n && !r.bad; i++ {
				m.Records[i] = r.record()
			}
		}
	}
	if f&hasVerdicts != 0 {
		if n := r.count(verdictMinBytes); n > 0 {
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
	head := r.octet()
	p.Kind = EntryKind(head & entryKindMask)
	if head&entryHasProposal != 0 {
		p.ID = r.proposalID()
	}
	if head&entryHasProposer != 0 {
		p.Proposer = r.member()
	}
	if head&entryProposerIsOwn != 0 {
		p.Proposer = p.ID.Session.Member
	}
	p.Payload = r.blob()
}
