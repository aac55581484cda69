package consensus

import "encoding/binary"

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
	Attempt         // Revision and Digest are zero if it was not accepted
	Refusal Refused // why not
	Reply   []byte  // the leader's: the encoded result
}

// Refused says why a proposal was not accepted on the fast path. It goes the slow way then.
type Refused uint8

// The reasons, for the metrics.
const (
	RefusedNot       Refused = 0
	RefusedTerm      Refused = 1 // the proposer believes in another term, or this member follows no leader
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

// DecodeRecord reads what AppendRecord wrote, and nothing after it. The payload aliases src.
func DecodeRecord(src []byte) (Record, error) {
	r := reader{src: src}
	record := r.record()
	return record, r.alone()
}

func (r *reader) record() Record {
	id, revision := r.proposalID(), r.uvarint()
	record := Record{Term: Term(r.uvarint()), Config: r.configID(), Payload: r.blob()}
	if r.bad {
		return Record{}
	}
	record.Attempt = AttemptOf(id, revision, record.Payload)
	return record
}

// verdictHasDigest is set in the octet of the refusal if a digest follows: only for native clients, and so never between
// members. A member of an earlier release that got it would take it for a refusal that it does not know.
const verdictHasDigest = 0x80

func appendVerdict(dst []byte, v *Verdict) []byte {
	dst = appendProposalID(dst, v.Proposal)
	dst = binary.AppendUvarint(dst, v.Revision)
	if v.Digest == (Digest{}) {
		dst = append(dst, byte(v.Refusal))
	} else {
		dst = append(append(dst, byte(v.Refusal)|verdictHasDigest), v.Digest[:]...)
	}
	return appendBlob(dst, v.Reply)
}

func (r *reader) verdict() Verdict {
	v := Verdict{Attempt: Attempt{Proposal: r.proposalID(), Revision: r.uvarint()}}
	head := r.octet()
	v.Refusal = known(r, Refused(head&^verdictHasDigest), RefusedReasons-1)
	if head&verdictHasDigest != 0 {
		v.Digest = r.digest()
		r.bad = r.bad || v.Digest == (Digest{})
	}
	v.Reply = r.blob()
	return v
}

func (r *reader) digest() (d Digest) {
	if len(r.src) < len(d) {
		r.fail()
		return d
	}
	r.src = r.src[copy(d[:], r.src):]
	return d
}
