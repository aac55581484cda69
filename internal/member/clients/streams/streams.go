package streams

import (
	"sync/atomic"

	"github.com/quorate/quorate/internal/consensus"
)

// Streams are the streams of native clients at one member.
type Streams struct {
	options  Options
	register register
	unread   atomic.Uint64 // streams that ended because the client did not read the answers
}

// New makes the streams of a member, none yet.
func New(options Options) *Streams {
	all := &Streams{options: options}
	all.register.init(options.Clock, options.Clients)
	return all
}

// NeighboursOf returns a function that reports whether a client is of the same host as this one, as far as both are known here.
func (all *Streams) NeighboursOf(client consensus.MemberID) func(consensus.MemberID) bool {
	return all.register.neighboursOf(client)
}

// Counts are numbers of clients and streams.
type Counts struct {
	Registered int    // clients that have a stream, or had one a moment ago
	Refused    uint64 // streams of too many clients
	Unread     uint64 // streams that ended because nobody read the answers
}

// Counts returns them.
func (all *Streams) Counts() Counts {
	registered, refused := all.register.counts()
	return Counts{Registered: registered, Refused: refused, Unread: all.unread.Load()}
}
