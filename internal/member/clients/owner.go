package clients

import (
	"encoding/binary"
	"errors"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
)

// ErrKey means that a client did not show a key of quoratepb.ClientKeyBytes bytes.
var ErrKey = errors.New("clients: the key of a client must have 32 bytes: send it in the first message of the stream")

// Owner is a native client as members know it: by the hash of the key that it has shown. The id is public and the key is not,
// so no other client can propose in its sessions or ask for its results.
type Owner struct {
	ID consensus.MemberID
}

// Faults switch off a rule, for negative controls.
type Faults struct {
	IDInKey bool // the id is read from the key: any client that knows an id can make a key for it
}

// OwnerOf returns the client that a key belongs to. The error is ErrKey.
func OwnerOf(key []byte, faults Faults) (Owner, error) {
	if len(key) != quoratepb.ClientKeyBytes {
		return Owner{}, ErrKey
	}
	if faults.IDInKey {
		return Owner{consensus.MemberID(binary.BigEndian.Uint64(key))}, nil
	}
	return Owner{consensus.MemberID(quoratepb.ClientID(key))}, nil
}

// Session returns the id of the owner's session with a number.
func (o Owner) Session(number uint64) consensus.SessionID {
	return consensus.SessionID{Member: o.ID, Number: number}
}

// Proposal returns the id of a proposal of the owner.
func (o Owner) Proposal(session, sequence uint64) consensus.ProposalID {
	return consensus.ProposalID{Session: o.Session(session), Sequence: sequence}
}
