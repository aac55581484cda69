package workload

import (
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/nativeclient"
)

// follower knows where the members are for a native client: it does in events what that of package client does in goroutines.
// Everything is decided by nativeclient.Book. At its start it knows where the members are that there are then; whoever comes
// later it knows from lists of members alone.
type follower struct {
	writer *writer
	book   *nativeclient.Book
	// What the members say of the voters, since when, and which of them the client must find from then on.
	voters      []uint64
	votersSince time.Duration
	chance      map[consensus.MemberID]bool
	asking      bool
	plans       int // looks that were planned so far: only the last one counts
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

// next returns a member at an endpoint that the client knows, or nil. Each call begins with another one.
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

// member returns a member that is up, by its id, if the client knows where it is.
func (f *follower) member(id uint64) Target {
	for _, endpoint := range f.book.ToMember(id, true) {
		if t := f.writer.load.world.At(endpoint); t != nil && t.Life() != 0 && uint64(t.ID()) == id {
			return t
		}
	}
	return nil
}

// look lists the members if they are due, and else when they are.
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

// ask asks at one endpoint after the other: each member first for what a quorum confirms, then for what it knows itself.
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

// chanceTakes is for how long a client has to have a connection, while nothing changes, to learn where the members are.
const chanceTakes = 5 * time.Second

// heard notes what a member says of the voters, and which of them the client had time to learn of: those that are up.
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

// Adrift returns whether a native client has no connection to a member, although one serves that it had time to learn of. One
// whose members were all replaced in the meantime can find nobody: its user has to give it others.
func (l *Load) Adrift() bool {
	return slices.ContainsFunc(l.natives, func(n *native) bool {
		return !n.lies && !n.writer.connected() && n.writer.mayConnect()
	})
}
