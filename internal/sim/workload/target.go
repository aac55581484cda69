package workload

import (
	"time"

	"github.com/quorate/quorate/internal/clients"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/tally"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/watch"
)

// Target is a member as a client sees it. Callbacks come at most once, never from inside the call; a member that
// crashes calls nobody back, but Life changes.
type Target interface {
	// Life is zero while the member is down, and different after each start.
	Life() int
	Propose(command *kv.Command, done func(kv.Result, error)) (abandon func())
	// ProposeFor proposes for the native client that has shown a key, under the session and sequence that it gave, and
	// NextSession names the session to be opened after one that it had.
	ProposeFor(key []byte, session, sequence uint64, command *kv.Command, done func(kv.Result, error)) (abandon func())
	// Offer carries a native client's offer of a proposal to this member over the network, as its stream would: to the leader
	// of the termConfig, whose done is called once the log has said what became of it, and to any other voter as a record. What
	// they say about it is heard by whoever listens for the client.
	Offer(key []byte, session, sequence uint64, command *kv.Command, on TermConfig,
		done func(kv.Result, error)) (abandon func())
	TermConfig() TermConfig
	ID() consensus.MemberID
	NextSession(client consensus.MemberID, above uint64) consensus.SessionID
	Read(done func())
	Range(op *kv.RangeOp) (kv.RangeResult, kv.Revision, error)
	Renew(id kv.LeaseID, done func(ttlSeconds int64, err error))
	Hub() *watch.Hub
}

// World is what clients need of theirs.
type World interface {
	Now() time.Duration
	After(d time.Duration, f func())
	Targets() []Target
	// Listen makes hear be told what members say to a native client.
	Listen(client consensus.MemberID, hear func(m consensus.Message))
	// Operation and Answer are for the trace.
	Operation(client int, what string)
	Answer(client int, ok bool, revision kv.Revision)
}

// Mix says how many clients there are and what they like to do. The weights are relative.
type Mix struct {
	Clients, Tenants, Watchers int
	Natives                    int  // clients that name their writes themselves
	Thief                      bool // somebody writes in their sessions, and does not have their keys
	Owners                     clients.Faults
	Direct                     bool        // they offer their writes to all voters by themselves
	Tally                      tally.Rules // by which they count
	Readers                    int         // of the clients, those that only read and stay with their member
	Keys                       int
	Think                      time.Duration // mean pause between two operations
	Patience                   time.Duration
	Put, Get, Local            int // Local is a serializable read
	CAS, Delete, Txn, Range    int
	CompactEvery               time.Duration // zero: never
	LeaseTTL                   int64         // seconds, the shortest
	LoseEvents                 bool          // a negative control: watchers lose some
}
