package shell

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/expiry"
	"github.com/quorate/quorate/internal/member/lanes"
	"github.com/quorate/quorate/internal/member/proposals"
)

// longRenewal is how long a renewal may wait at a leader before the leader may no longer end the lease: much longer than the
// clock of leases runs on while renewals wait, and than batches of renewals take.
const longRenewal = 3 * time.Second

// newRevoker makes the part that revokes expired leases, as a member does.
func newRevoker(life *Life, stores *datadir.Stores, o *Options, leads func() bool, clients *Clients) *expiry.Revoker {
	return expiry.New(expiry.Options{
		Stores: stores, Clock: clock{life, life.Clock}, Extend: o.Extend, Logger: discard,
		Leads: leads, Corrupt: func() bool { return false },
		Requests: revocations{clients.requests, clients}, Faults: o.Leases,
	})
}

// revocations are the requests of the revoker, which a law judges.
type revocations struct {
	*lanes.Requests
	clients *Clients
}

// Propose implements expiry.Requests.
func (r revocations) Propose(command *kv.Command, done proposals.Completion) (abandon func() bool, err error) {
	id := command.LeaseRevoke.ID
	for _, waiting := range r.clients.asked[id] {
		r.clients.ends(id, waiting, consensus.Term(command.LeaseRevoke.Term))
	}
	return r.Requests.Propose(command, done)
}
