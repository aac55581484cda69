package consensus

import "encoding/binary"

// Attempt names one try of a proposal to get one revision. Records, answers, recovery and forgetting go by attempt; only
// results go by proposal: two attempts of one proposal must never be taken for each other.
type Attempt struct {
	Proposal ProposalID
	Revision uint64
}

// Record is a proposal that a voter keeps in its witness pool, durably, until its outcome is known: the voter promised that
// nothing which it accepts later comes before it (CURP, NSDI 2019, section 3.2.2).
type Record struct {
	Attempt
	Term    Term     // in which it was accepted
	Config  ConfigID // in force when it was accepted
	Payload []byte
}

// RecordChange adds a record to the pool on disk, or takes it out.
type RecordChange struct {
	Record Record // of one that is forgotten only the attempt counts
	Forget bool
}

// Verdict is what a member says of one proposal of the fast path: the revision at which it has it, or none.
type Verdict struct {
	Attempt         // Revision is zero if it was not accepted
	Refusal Refused // why not
	Reply   []byte  // the leader's: the encoded result
}

// Refused says why a proposal was not accepted on the fast path. It goes the slow way then.
type Refused uint8

// The reasons, for the metrics.
const (
	RefusedNot       Refused = 0
	RefusedTerm      Refused = 1 // the proposer believes in another term, or this member follows nobody
	RefusedConfig    Refused = 2 // in another configuration, or one is on its way
	RefusedConflict  Refused = 3 // something that is not applied yet touches the same keys, or everything
	RefusedFull      Refused = 4 // the pool is full, or too much is not applied yet
	RefusedKnown     Refused = 5 // the proposal is in the log already, or was applied
	RefusedClosed    Refused = 6 // the leader is new, or hands over
	RefusedNoSession Refused = 7 // its session is not open, as far as is applied here
	RefusedWide      Refused = 8 // it touches ranges, or more keys than a record may
)

// RefusedReasons is how many reasons there are, with RefusedNot.
const RefusedReasons = 9

var refusedTexts = [RefusedReasons]string{"none", "term", "config", "conflict", "full", "known", "closed", "strange", "wide"}

func (r Refused) String() string {
	if int(r) < len(refusedTexts) {
		return refusedTexts[r]
	}
	return "unknown"
}

const (
	recordMinBytes  = 23 // proposal id 17, revision, term, configuration id 3, length
	verdictMinBytes = 20
)

// AppendRecord encodes r after dst.
func AppendRecord(dst []byte, r *Record) []byte {
	dst = appendProposalID(dst, r.Proposal)
	dst = binary.AppendUvarint(dst, r.Revision)
	dst = binary.AppendUvarint(dst, uint64(r.Term))
	dst = appendConfigID(dst, r.Config)
	return appendBlob(dst, r.Payload)
}

// DecodeRecord reads what AppendRecord wrote. The payload aliases src.
func DecodeRecord(src []byte) (record Record, rest []byte, err error) {
	r := reader{src: src}
	record = r.record()
	rest, err = r.end()
	return record, rest, err
}

func (r *reader) record() Record {
	return Record{
		Attempt: Attempt{Proposal: r.proposalID(), Revision: r.uvarint()},
		Term:    Term(r.uvarint()), Config: r.configID(), Payload: r.blob(),
	}
}

func appendVerdict(dst []byte, v *Verdict) []byte {
	dst = appendProposalID(dst, v.Proposal)
	dst = binary.AppendUvarint(dst, v.Revision)
	dst = append(dst, byte(v.Refusal))
	return appendBlob(dst, v.Reply)
}

func (r *reader) verdict() Verdict {
	return Verdict{
		Attempt: Attempt{Proposal: r.proposalID(), Revision: r.uvarint()},
		Refusal: Refused(r.octet()), Reply: r.blob(),
	}
}
