package shell

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/member/clients"
	"github.com/quorate/quorate/internal/member/clients/streams"
	"github.com/quorate/quorate/internal/sim/dice"
)

// Stream drives the stream of a native client in events, as package writerapi does in goroutines.
type Stream struct {
	*natives
	key    []byte
	caller Caller
	ctx    context.Context // of the caller
	leave  func()          // ends the stream
	send   func(r *quoratepb.ProposeResponse)
	stream *streams.Stream // nil until the client was let in

	received []*quoratepb.ProposeRequest
	taking   bool // a message is being taken
	busy     bool // it goes on, or the caller waits
	waits    bool // for a turn, or for the budget of offers
	full     bool // it waits for room
	room     bool // and was told of some
	over     bool // it takes no more
	planned  bool // to send
	closed   bool
}

func newStream(
	n *natives, key []byte, caller Caller, send func(r *quoratepb.ProposeResponse), leave func(),
) *Stream {
	s := &Stream{
		natives: n, key: key, caller: caller, send: send, leave: leave,
		ctx: context.WithValue(n.ctx, callerKey{}, caller),
	}
	s.goOn()
	return s
}

// Close ends the stream: nobody waits for its answers any more.
func (s *Stream) Close() {
	s.closed = true
	if s.stream != nil {
		s.stream.Close()
	}
}

// Look tells the client how the cluster is, if that has changed.
func (s *Stream) Look() { s.Ready() }

// Take does what the client asks, when it has done what it asked for before.
func (s *Stream) Take(r *quoratepb.ProposeRequest) {
	s.received = append(s.received, r)
	s.goOn()
}

func (s *Stream) goOn() {
	if s.busy || s.waits || s.over || s.closed || s.full && !s.room {
		return
	}
	s.busy, s.full, s.room = true, false, false
	s.caller.InTurn(func() {
		s.work()
		s.busy = false
	})
}

// work takes what was received, as far as it gets.
func (s *Stream) work() {
	if s.stream == nil && !s.enter() {
		return
	}
	for !s.closed && !s.waits {
		if !s.taking {
			if len(s.received) == 0 {
				return
			}
			s.taking = true
			s.stream.Take(s.received[0])
			s.received = s.received[1:]
		}
		switch s.stream.Go(s.ctx) {
		case streams.Done:
			s.taking = false
		case streams.Turn:
			s.turn()
		case streams.Offer:
			if s.waits = !s.offer(s.stream.Owner().ID, s.stream.Offering(), s.resume); s.waits {
				s.Counts.Waited++
			}
		case streams.Room:
			if s.room {
				s.room = false
				continue
			}
			s.Counts.Waited++
			s.full = true
			return
		default:
			s.over = true
			return
		}
	}
}

// enter lets the client in.
func (s *Stream) enter() bool {
	stream, err := s.streams.Begin(s.ctx, s.key, hostOf(s.key), s)
	switch {
	case err != nil && !s.closed:
		s.over = true
		s.leave()
		return false
	case err != nil:
		return false
	case s.closed:
		stream.Close()
		return false
	}
	s.stream = stream
	s.Ready()
	return true
}

// hostOf is the host of a client: they are on two.
func hostOf(key []byte) admission.Caller {
	name := string('a' + rune(key[7]%2))
	return admission.Caller{Host: name, Address: name}
}

// resume goes on after a wait.
func (s *Stream) resume() {
	s.waits = false
	s.goOn()
}

// turn gives most commands their turn at once. Others wait.
func (s *Stream) turn() {
	if !dice.Chance(s.Rng, costly) {
		s.stream.Turned(nil, nil)
		return
	}
	s.waits = true
	s.Counts.Waited++
	wait := func() {
		s.turns.enter(func(leave func()) {
			s.stream.Turned(leave, nil)
			s.resume()
		})
	}
	if s.offer(s.stream.Owner().ID, s.stream.Yield(), wait) {
		wait()
	}
}

const (
	// slowReads is the share of times that a client does not read at once, but so much later on average.
	slowReads   = 1.0 / 30
	slowReading = 20 * time.Millisecond
)

// Ready implements streams.Driver.
func (s *Stream) Ready() {
	if s.planned || s.closed {
		return
	}
	s.planned = true
	later := time.Duration(0)
	if dice.Chance(s.Rng, slowReads) {
		later = dice.Exponential(s.Rng, slowReading)
	}
	s.After(later, s.deliver)
}

// deliver sends what there is to send.
func (s *Stream) deliver() {
	s.planned = false
	for !s.closed && s.stream != nil {
		r, ended, why := s.stream.Next(s.ctx, s.Clock())
		switch {
		case r != nil:
			s.send(r)
		case ended:
			if status.Code(why) == codes.ResourceExhausted {
				s.Counts.SentAway++
			}
			s.leave()
			s.planned = true // nothing follows
			return
		default:
			return
		}
	}
}

// Room implements streams.Driver.
func (s *Stream) Room() {
	s.room = true
	s.After(0, s.goOn)
}

// Open implements streams.Driver.
func (s *Stream) Open(above uint64, keep []uint64) {
	s.After(0, func() {
		client := s.stream.Owner().ID
		s.try(s.clients.Opening(client, above, keep, s.streams.NeighboursOf(client)))
	})
}

// try opens a session under the next number.
func (s *Stream) try(opening *clients.Opening) {
	id, command, err := opening.Next()
	if err == nil {
		err = s.clients.ProposeFor(id, command, &Answer{Tell: func(result kv.Result, err error) {
			s.After(0, func() { s.tried(opening, result, err) })
		}})
	}
	if err != nil {
		s.stream.Opened(consensus.SessionID{}, err)
	}
}

func (s *Stream) tried(opening *clients.Opening, result kv.Result, err error) {
	if session, again, err := opening.Ended(result, err); !again {
		s.stream.Opened(session, err)
	} else if !s.closed {
		s.try(opening)
	}
}
