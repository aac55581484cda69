package workload

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/nativeclient"
	"github.com/quorate/quorate/internal/sim/users"
)

// One offer in so many is lost on the way to the leader, or to a voter, with the stream.
const leaderMissed, voterMissed = 12, 30

// writer has the streams of a native client: it does in events what package client does in goroutines. nativeclient.Table makes
// all decisions.
type writer struct {
	load   *Load
	by     *users.Person // nil in a world without users
	logIn  func(at Target, then func())
	table  *nativeclient.Table
	clock  func() time.Time
	far    time.Duration // round trip from which on it offers writes itself
	follow *follower
	link   *memberStream            // nil while there is none
	voters map[uint64]*memberStream // by member
	opened uint64                   // streams to voters so far
	// twist returns the offer that a voter gets in place of the real one, or nil; nil: the client is honest.
	twist func(r *quoratepb.ProposeRequest) *quoratepb.ProposeRequest

	planned, retries, over bool
	enters                 bool                // logs in
	last                   *quoratepb.Proposal // the last one sent
}

// memberStream is a stream to one member: the link, or a stream for offers to a voter.
type memberStream struct {
	w          *writer
	id         uint64 // id in the table; zero: the link
	member     uint64
	endpoint   string
	since      time.Duration // when it was opened
	client     uint64        // the client's id
	conn       Stream
	target     Target
	life       int // of the target, when it was opened
	up, over   bool
	roundTrip  nativeclient.RoundTrip
	heard      time.Duration // last contact
	leaderless time.Duration // since when the member knows no leader; zero: it knows one
}

func newWriter(
	l *Load, by *users.Person, logIn func(at Target, then func()), key []byte, clock func() time.Time, far time.Duration,
) *writer {
	w := &writer{load: l, by: by, logIn: logIn, clock: clock, far: far, voters: map[uint64]*memberStream{}}
	w.table = nativeclient.New(nativeclient.Options{
		Key: func() []byte { return key }, Wake: w.wake, Tally: l.mix.Tally,
	})
	w.follow = newFollower(w)
	w.follow.look()
	return w
}

// wake makes the writer look soon for writes to send.
func (w *writer) wake() {
	if !w.planned && !w.over {
		w.planned = true
		w.load.world.After(time.Duration(w.load.rng.IntN(200))*time.Microsecond, w.pass)
	}
}

// pass sends the pending writes: as offers to all voters where possible, and the others over the link.
func (w *writer) pass() {
	w.planned = false
	switch {
	case w.over:
		return
	case w.link == nil:
		w.connect()
		return
	case !w.link.up:
		return
	}
	w.update()
	for o := w.table.Offer(w.clock(), w.present()); o != nil; o = w.table.Offer(w.clock(), w.present()) {
		w.offer(o)
	}
	for r := w.table.Next(); r != nil; r = w.table.Next() {
		w.note(r.Proposals)
		w.link.conn.Send(r)
	}
	if w.table.Pausing() && !w.retries {
		w.retries = true
		w.load.world.After(nativeclient.RetryPause, func() {
			w.retries = false
			w.table.Retry()
			w.wake()
		})
	}
}

// connect opens the link to any member that the client knows. A client whose token was refused logs in first.
func (w *writer) connect() {
	t := w.load.target()
	if t != nil && !w.follow.knows(t.Endpoint()) {
		t = w.follow.next()
	}
	switch {
	case w.enters:
		return
	case t != nil && w.by.MustLogin():
		w.enters = true
		w.logIn(t, func() {
			w.enters = false
			w.wake()
		})
		return
	case t != nil:
		w.link = w.open(t, 0)
		return
	}
	w.follow.broken()
	w.load.world.After(nativeclient.MaxBackoff, w.wake) // no member runs
}

func (w *writer) open(t Target, id uint64) *memberStream {
	client, key := w.table.Identity()
	s := &memberStream{w: w, id: id, member: uint64(t.ID()), endpoint: t.Endpoint(), client: client,
		since: w.load.world.Now(), heard: w.load.world.Now(), target: t, life: t.Life()}
	s.conn = t.Stream(w.by, key, s.hear, s.lost)
	w.load.world.After(nativeclient.PingInterval, s.tick)
	return s
}

// update opens streams to the voters that are to get offers, and closes the others.
func (w *writer) update() {
	wanted := w.table.Voters(w.link.roundTrip.Distance(), w.far)
	for _, id := range slices.Sorted(maps.Keys(w.voters)) {
		if !slices.Contains(wanted, id) {
			w.voters[id].lost()
			delete(w.voters, id)
		}
	}
	for _, id := range wanted {
		if w.voters[id] != nil {
			continue
		}
		if t := w.follow.member(id); t != nil {
			w.opened++
			w.voters[id] = w.open(t, w.opened)
		}
	}
}

// present is the state of the streams to voters.
func (w *writer) present() map[uint64]nativeclient.Stream {
	streams := map[uint64]nativeclient.Stream{}
	for id, s := range w.voters {
		streams[id] = nativeclient.Stream{
			ID: s.id, Open: s.up && !s.over && s.client == w.table.ID(), RoundTrip: s.roundTrip,
		}
	}
	return streams
}

// offer sends an offer, parts of which may be lost.
func (w *writer) offer(o *nativeclient.Offer) {
	w.note(o.Proposals.Proposals)
	for _, id := range o.Others {
		records := o.Records
		if w.twist != nil && records != nil {
			if records = w.twist(records); records == nil {
				continue
			}
		}
		if s := w.voters[id]; w.load.rng.IntN(voterMissed) == 0 {
			s.lost()
		} else {
			s.conn.Send(records)
		}
	}
	if leader := w.voters[o.Leader]; w.load.rng.IntN(leaderMissed) == 0 {
		leader.lost()
	} else {
		leader.conn.Send(o.Proposals)
	}
}

func (w *writer) note(proposals []*quoratepb.Proposal) {
	if len(proposals) > 0 {
		w.last = proposals[len(proposals)-1]
	}
}

// hear handles a message of the member.
func (s *memberStream) hear(r *quoratepb.ProposeResponse) {
	w := s.w
	if s.over || w.over {
		return
	}
	s.heard = w.load.world.Now()
	if !s.up {
		s.up = true
		w.by.LetIn()
		if s.id == 0 {
			w.table.Restart()
		}
		s.ping()
	}
	if r.Status != nil {
		s.roundTrip.Answered(w.clock(), r.Status.Ping, r.Status.Clock)
		if w.follow.book.NoteStatus(s.endpoint, r.Status) != nil {
			s.lost() // of another cluster
			return
		}
		if s.id == 0 {
			w.follow.heard(r.Status.Voters, s.since)
		}
		w.follow.look()
		w.table.NoteStatus(r.Status)
		switch {
		case r.Status.Leader != 0:
			s.leaderless = 0
		case s.leaderless == 0:
			s.leaderless = s.heard
		}
	}
	for _, v := range r.Verdicts {
		w.table.Verdicts(s.member, v)
	}
	for _, a := range r.Answers {
		w.table.Answer(a)
	}
	if r.Opened != nil && !w.table.Opened(r.Opened) {
		s.lost()
	}
	w.wake()
}

func (s *memberStream) ping() {
	s.conn.Send(&quoratepb.ProposeRequest{Ping: s.roundTrip.Ping(s.w.clock())})
}

// tick pings, or gives up a stream that is dead, or a link to a member that has lost its leader.
func (s *memberStream) tick() {
	if s.over || s.w.over {
		return
	}
	now := s.w.load.world.Now()
	leaderless := s.id == 0 && s.leaderless != 0 && now-s.leaderless > nativeclient.LeaderlessAfter
	if now-s.heard > nativeclient.DeafAfter {
		s.judgeDeaf()
	}
	if leaderless || now-s.heard > nativeclient.DeafAfter {
		s.lost()
		return
	}
	s.ping()
	s.w.load.world.After(nativeclient.PingInterval, s.tick)
}

// judgeDeaf reports a member that said nothing, on a stream that it has served all the time since the faults were over. Where
// clients act in users' names it may ask its leader about each message.
func (s *memberStream) judgeDeaf() {
	l := s.w.load
	if l.expects && s.heard >= l.expected && s.up && s.w.by == nil && s.target.Life() == s.life && s.life != 0 {
		l.suite.Report("client-answer", fmt.Sprintf("member %d says nothing to a native client since %v", s.member, s.heard))
	}
}

// lost ends a stream. Another one is opened after a while.
func (s *memberStream) lost() {
	w := s.w
	if s.over {
		return
	}
	s.over = true
	s.conn.Close()
	w.follow.broken()
	if s.id != 0 {
		w.table.StreamLost(s.id)
	}
	backoff := nativeclient.FirstBackoff << w.load.rng.IntN(6)
	w.load.world.After(backoff, func() {
		for id, other := range w.voters {
			if other == s {
				delete(w.voters, id)
			}
		}
		if w.link == s {
			w.link = nil
		}
		w.wake()
	})
}

// close ends the client. With farewell, the client retires its sessions.
func (w *writer) close(farewell bool) {
	if farewell && w.link != nil && w.link.up && !w.link.over {
		if r := w.table.Farewell(); r != nil {
			w.link.conn.Send(r)
		}
	}
	w.over = true
	for _, id := range slices.Sorted(maps.Keys(w.voters)) {
		w.voters[id].lost()
	}
	if w.link != nil {
		w.link.lost()
	}
}

// connected reports whether it has a connection to a member, or needs none any more.
func (w *writer) connected() bool { return w.over || w.link != nil && w.link.up && !w.link.over }

// mayConnect reports whether a member serves that it had time to learn of.
func (w *writer) mayConnect() bool {
	return slices.ContainsFunc(w.load.world.Targets(), func(t Target) bool { return t.Life() != 0 && w.follow.chance[t.ID()] })
}
