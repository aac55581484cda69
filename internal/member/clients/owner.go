package clients

import (
	"encoding/binary"
	"errors"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
)

// ErrKey means that a client did not show a key of quoratepb.ClientKeyBytes bytes.
var ErrKey = errors.New("clients: the key of a client must have 32 bytes: send it in the first message of the stream")

// Owner is a native client as members know it: by the hash of the key that it has shown. The id is public, the key is not,
// so nobody else can propose in its sessions or ask what it was answered.
type Owner struct {
	ID consensus.MemberID
}

// Faults drop a rule, for negative controls.
type Faults struct {
	IDInKey bool // the id is read from the key: whoever knows an id can make a key for it
}

// OwnerOf returns the client to whom a key belongs. The error is ErrKey.
func OwnerOf(key []byte, faults Faults) (Owner, error) {
	if len(key) != quoratepb.ClientKeyBytes {
		return Owner{}, ErrKey
	}
	if faults.IDInKey {
		return Owner{consensus.MemberID(binary.BigEndian.Uint64(key))}, nil
	}
	return Owner{consensus.MemberID(quoratepb.ClientID(key))}, nil
}

// Session returns the session of the owner that has a number.
func (o Owner) Session(number uint64) consensus.SessionID {
	return consensus.SessionID{Member: o.ID, Number: number}
}

// Proposal returns the id of a proposal of the owner.
func (o Owner) Proposal(session, sequence uint64) consensus.ProposalID {
	return consensus.ProposalID{Session: o.Session(session), Sequence: sequence}
}
