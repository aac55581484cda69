package consensus

import "crypto/sha256"

// Digest names the payload of a native client's proposal: SHA-256 of it. Each member computes it from the payload that it holds
// and takes it from no message, so it is neither on disk nor sent with a payload. It is that of no payload, zero, in attempts
// of members: a member makes one payload for an id, as it keeps the other rules of the protocol (ADR 54).
type Digest [sha256.Size]byte

// Attempt names one try of a proposal to get one revision, with one payload. Records, answers, recovery and forgetting go by
// attempt; only results go by proposal: two attempts of one proposal must never be taken for each other. A native client that
// lies makes attempts of one proposal that differ in the payload alone.
type Attempt struct {
	Proposal ProposalID
	Revision uint64
	Digest   Digest
}

// AttemptOf returns the attempt of a proposal with that payload, at a revision. That of a slow entry has revision zero, and no
// digest: the entry decides the proposal, whatever its payload is.
func AttemptOf(id ProposalID, revision uint64, payload []byte) Attempt {
	a := Attempt{Proposal: id, Revision: revision}
	if revision != 0 && id.Session.OfClient() {
		a.Digest = sha256.Sum256(payload)
	}
	return a
}
