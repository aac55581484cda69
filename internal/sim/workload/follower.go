package workload

import (
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/nativeclient"
)

// follower keeps the members' endpoints for a native client: it does in events what package client does in goroutines.
// nativeclient.Book makes all decisions. At its start it knows the endpoints of the present members; it learns later members
// only from lists of members.
type follower struct {
	writer *writer
	book   *nativeclient.Book
	// The voters as the members last reported them, since when, and which of them the client must find from then on.
	voters      []uint64
	votersSince time.Duration
	chance      map[consensus.MemberID]bool
	asking      bool
	plans       int // number of planned looks: only the last one counts
	planned     bool
	turn        int
}

func newFollower(w *writer) *follower {
	f := &follower{writer: w}
	var endpoints []string
	for _, t := range w.load.world.Targets() {
		if t.ID() != consensus.NoMember {
			endpoints = append(endpoints, t.Endpoint())
		}
	}
	f.book = nativeclient.NewBook(endpoints)
	f.book.Stays = w.load.mix.Stays
	return f
}

// knows reports whether the client may connect to an endpoint.
func (f *follower) knows(endpoint string) bool {
	first, others := f.book.Writes()
	return slices.Contains(first, endpoint) || slices.Contains(others, endpoint)
}

// next returns a member at an endpoint that the client knows, or nil. Each call begins with another endpoint.
func (f *follower) next() Target {
	first, others := f.book.Writes()
	all := slices.Concat(first, others)
	for range all {
		f.turn++
		if t := f.writer.load.world.At(all[f.turn%len(all)]); t != nil && t.Life() != 0 {
			return t
		}
	}
	return nil
}

// member returns a running member by its id, if the client knows its endpoint.
func (f *follower) member(id uint64) Target {
	for _, endpoint := range f.book.ToMember(id, true) {
		if t := f.writer.load.world.At(endpoint); t != nil && t.Life() != 0 && uint64(t.ID()) == id {
			return t
		}
	}
	return nil
}

// look lists the members if that is due, and else schedules the next look.
func (f *follower) look() {
	if f.writer.over || f.asking {
		return
	}
	wait := f.book.Wait(f.writer.clock())
	if wait == 0 {
		f.refresh()
		return
	}
	if !f.planned {
		f.planned = true
		f.plans++
		plan := f.plans
		f.writer.load.world.After(wait, func() {
			if plan == f.plans {
				f.planned = false
				f.look()
			}
		})
	}
}

// broken notes that a connection has ended.
func (f *follower) broken() {
	f.book.Broken()
	f.planned = false // it may be due earlier now
	f.look()
}

func (f *follower) refresh() {
	f.asking = true
	f.book.Ask(f.writer.clock())
	endpoints := f.book.Open()
	if link := f.writer.link; link != nil && link.up && !link.over {
		endpoints = slices.Insert(endpoints, 0, link.endpoint) // as package client does: open connections first
	}
	f.ask(endpoints, true)
}

// ask asks at one endpoint after another: each member first for a list that a quorum confirms, then for its own.
func (f *follower) ask(endpoints []string, linearizable bool) {
	if f.writer.over {
		return
	}
	if len(endpoints) == 0 {
		f.book.Unlisted()
		f.done()
		return
	}
	t := f.writer.load.world.At(endpoints[0])
	if t == nil || t.Life() == 0 {
		f.ask(endpoints[1:], true) // refused at once
		return
	}
	over := false
	once := func(then func()) func() {
		return func() {
			if !over {
				over = true
				then()
			}
		}
	}
	t.List(linearizable, func(cluster uint64, members []nativeclient.Place) {
		once(func() { f.listed(cluster, members, linearizable) })()
	})
	f.writer.load.world.After(nativeclient.ListPatience/4, once(func() {
		if linearizable {
			f.ask(endpoints, false)
		} else {
			f.ask(endpoints[1:], true)
		}
	}))
}

func (f *follower) listed(cluster uint64, members []nativeclient.Place, confirmed bool) {
	if f.book.Listed(cluster, members, confirmed) != nil {
		f.book.Unlisted()
	} else {
		f.examine(cluster, f.book.Settle())
		f.examine(cluster, f.book.Successors())
	}
	f.done()
	f.writer.wake()
}

func (f *follower) examine(cluster uint64, endpoints []string) {
	for _, endpoint := range endpoints {
		if t := f.writer.load.world.At(endpoint); t == nil || t.Life() == 0 ||
			f.book.Heard(endpoint, cluster, uint64(t.ID())) != nil {
			f.book.Silent(endpoint)
		}
	}
}

func (f *follower) done() {
	f.asking = false
	f.look()
}

// chanceTakes is how long a client must have a connection, while the voters do not change, to learn their endpoints.
const chanceTakes = 5 * time.Second

// heard notes the voters that a member reports, and which of them the client had time to learn: those that run.
func (f *follower) heard(voters []uint64, upSince time.Duration) {
	now := f.writer.load.world.Now()
	if !slices.Equal(voters, f.voters) {
		f.voters, f.votersSince = slices.Clone(voters), now
	}
	if now-max(upSince, f.votersSince) < chanceTakes {
		return
	}
	f.chance = map[consensus.MemberID]bool{}
	for _, t := range f.writer.load.world.Targets() {
		if t.Life() != 0 && slices.Contains(f.voters, uint64(t.ID())) {
			f.chance[t.ID()] = true
		}
	}
}

// Adrift reports whether a native client has no connection to a member, although a member serves whose endpoint it had time to
// learn. A client whose known members were all replaced in the meantime cannot find one: its user must give it other endpoints.
// One whose login failed is let in by none.
func (l *Load) Adrift() bool {
	return slices.ContainsFunc(l.natives, func(n *native) bool {
		return !n.lies && !n.by.Barred() && !n.writer.connected() && n.writer.mayConnect()
	})
}
