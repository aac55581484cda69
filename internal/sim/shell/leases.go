package shell

import (
	"time"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/expiry"
)

// leases runs the revoker of leases, from time to time.
type leases struct {
	*Life
	revoker *expiry.Revoker
	propose func(command *kv.Command) error
	wake    func()
	early   time.Duration // a negative control: leases end this much too early
	scans   bool
}

func newLeases(life *Life, stores *datadir.Stores, o *Options, leads func() bool) *leases {
	l := &leases{Life: life, early: o.Early}
	l.revoker = expiry.New(expiry.Options{
		Stores: stores, Clock: clock{life, l.revokerTime}, Extend: o.Extend, Logger: discard,
		Leads: leads, Corrupt: func() bool { return false },
	})
	return l
}

// revokerTime is the time that the revoker goes by.
func (l *leases) revokerTime() time.Time {
	now := l.Clock()
	if l.scans {
		now = now.Add(l.early)
	}
	return now
}

// scan proposes the revocation of expired leases.
func (l *leases) scan() {
	l.After(expiry.ScanInterval, l.scan)
	l.scans = true
	due := l.revoker.Due()
	l.scans = false
	for i := range due {
		if err := l.propose(&kv.Command{LeaseRevoke: &due[i]}); err != nil {
			return
		}
	}
	if len(due) > 0 {
		l.wake()
	}
}
