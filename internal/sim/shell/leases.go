package shell

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/kv"
)

const leaseScan = 500 * time.Millisecond

// Leases ends the leases of clients while this member leads.
type Leases struct {
	*Life
	data   *datadir.Data
	extend time.Duration // what a new leader adds to every lease
	early  time.Duration // a negative control: leases end so much too early
	// propose proposes what ends a lease.
	propose func(command *kv.Command) error
	wake    func()
	leads   bool
	term    consensus.Term // in which the deadlines began
}

// Elected notes the term in which this member leads.
func (l *Leases) Elected(term consensus.Term) {
	l.term = term
	l.Lead(true)
}

// Lead notes whether this member leads.
func (l *Leases) Lead(leads bool) {
	if leads == l.leads {
		return
	}
	l.leads = leads
	if leads {
		l.resume()
	} else {
		l.data.Machine.Leases().Demote()
	}
}

// resume begins all deadlines anew.
func (l *Leases) resume() { l.data.Machine.Leases().Promote(l.Clock(), l.extend) }

// scan proposes the end of what has expired.
func (l *Leases) scan() {
	l.After(leaseScan, l.scan)
	if !l.leads {
		return
	}
	for _, id := range l.data.Machine.Leases().Expired(l.Clock().Add(l.early), 500) {
		command := kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: id, Term: uint64(l.term)}}
		if err := l.propose(&command); err != nil {
			return
		}
	}
	l.wake()
}

// renew renews a lease, if this member leads.
func (l *Leases) renew(id kv.LeaseID, done func(ttlSeconds int64, err error)) {
	if !l.leads {
		return
	}
	ttl, err := l.data.Machine.Leases().Renew(id, l.Clock())
	done(ttl, err)
}
