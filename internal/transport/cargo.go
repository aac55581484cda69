package transport

import "github.com/quorate/quorate/internal/consensus"

// Cargo is what messages are sent for, as far as it matters who asks why a link carries so much.
type Cargo int

// The cargo of messages between members. Snapshots have streams of their own.
const (
	CargoEntries   Cargo = iota // appends, with entries or without
	CargoProposals              // proposals for the leader, and records of the fast path
	CargoAnswers                // acknowledgements, verdicts, refusals
	CargoOther                  // heartbeats, elections, reads, control
	Cargos
)

func (c Cargo) String() string {
	return [...]string{"entries", "proposals", "answers", "other"}[c]
}

// cargoOf returns what a message is sent for.
func cargoOf(kind consensus.MessageKind) Cargo {
	switch kind {
	case consensus.MsgAppend:
		return CargoEntries
	case consensus.MsgPropose, consensus.MsgFastPropose, consensus.MsgRecord:
		return CargoProposals
	case consensus.MsgAppendReply, consensus.MsgProposeReply, consensus.MsgAcknowledged, consensus.MsgRecorded,
		consensus.MsgFast:
		return CargoAnswers
	}
	return CargoOther
}

// cargoBytes is the size of each cargo before it is packed.
type cargoBytes [Cargos]uint64
