package shell

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/member/expiry"
	"github.com/quorate/quorate/internal/member/logwriter"
	"github.com/quorate/quorate/internal/member/offers"
)

// Options configure a process.
type Options struct {
	Raft     raft.Options
	FastPath offers.Setting
	Delay    time.Duration // of commits, while more proposals may come
	Most     int64         // ticks in one step
	Extend   time.Duration // time that a new leader adds to every lease
	// RequestTimeout ends requests.
	RequestTimeout time.Duration
	Natives        Natives

	// Revokes is called before the end of a lease is proposed. renewing says that a renewal of it has waited for long.
	Revokes func(id kv.LeaseID, renewing bool)
	// TellHeard tells the leader which native clients this process heard from.
	TellHeard func(leader consensus.MemberID, heard []consensus.MemberID) error
	Silent    func(session consensus.SessionID) // called before the session of a silent client is retired
	Mute      func() bool                       // the core gets no ticks
	Stepped   func()                            // called after each step
	Observe   func(event raft.Event)            // called with each event
	Configure func(inForce raft.ConfigInForce)  // called with the configuration in force
	Carry     func(t *Transfer)                 // carries a snapshot to a member
	Feed      member.Feed                       // takes what is applied; nil: nothing does

	// Negative controls.
	Offers  offers.Faults
	Log     logwriter.Faults
	Leases  expiry.Faults
	Altered func(batch []consensus.Entry) []consensus.Entry // the entries that are applied in place of a batch; nil: the batch
}
