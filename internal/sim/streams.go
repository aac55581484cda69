package sim

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/invariant"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/sim/shell"
	"github.com/quorate/quorate/internal/sim/users"
	"github.com/quorate/quorate/internal/sim/workload"
)

const (
	resent     = 200 * time.Millisecond // delay of a message that TCP must send again
	streamLook = 100 * time.Millisecond // mean time in which either end notices what happened to the other one
)

// clientStream carries the messages of a native client and a member, in order, until it breaks. No nemesis reaches clients, but
// a message that is lost under way comes late or breaks the stream.
type clientStream struct {
	net    *network
	h      *host
	life   int
	member *shell.Stream // the end on the member; nil until the member knows of the stream
	hear   func(*quoratepb.ProposeResponse)
	broke  func()
	broken bool
	// Arrival of the last message on the member, and on the client.
	there, back time.Duration
}

// Stream implements workload.Target.
func (t target) Stream(
	by *users.Person, key []byte, hear func(*quoratepb.ProposeResponse), broke func(),
) workload.Stream {
	s := &clientStream{net: t.h.cluster.net, h: t.h, life: t.h.life, hear: hear, broke: broke}
	s.atMember(func() {
		var caller shell.Caller = shell.Anybody{}
		if by != nil {
			caller = s.h.gate.Caller(by)
		}
		s.member = s.h.proc.NewStream(key, caller, s.answer, s.fail)
	})
	s.look()
	return s
}

// Send implements workload.Stream.
func (s *clientStream) Send(r *quoratepb.ProposeRequest) {
	r = encoded(s.net, r, &quoratepb.ProposeRequest{})
	s.atMember(func() {
		if s.member != nil {
			s.member.Take(r)
		}
	})
}

func (s *clientStream) answer(r *quoratepb.ProposeResponse) {
	r = encoded(s.net, r, &quoratepb.ProposeResponse{})
	s.carry(&s.back, func() { s.hear(r) })
}

// encoded sends some messages through their encoding, so that nothing is shared that a wire would not share.
func encoded[M proto.Message](n *network, m, empty M) M {
	if !dice.Chance(n.rng, n.weather.CodecChecks) {
		return m
	}
	bytes, err := proto.Marshal(m)
	if err == nil {
		err = proto.Unmarshal(bytes, empty)
	}
	invariant.True(err == nil, "message %v does not survive its encoding: %v", m, err)
	return empty
}

// atMember calls do on the member, after all messages that were sent before.
func (s *clientStream) atMember(do func()) {
	s.carry(&s.there, func() {
		if s.h.alive && s.h.life == s.life {
			s.h.after(0, do)
		}
	})
}

// carry calls do on the other end, unless the stream breaks before.
func (s *clientStream) carry(last *time.Duration, do func()) {
	n := s.net
	if s.broken {
		return
	}
	delay := n.delay()
	if dice.Chance(n.rng, n.weather.Loss) {
		if delay += resent; dice.Chance(n.rng, 0.05) {
			s.fail()
			return
		}
	}
	*last = max(*last, n.run.Now()+delay)
	n.run.After(*last-n.run.Now(), func() {
		if !s.broken {
			do()
		}
	})
}

// Close implements workload.Stream. The member notices it later.
func (s *clientStream) Close() {
	if s.broken {
		return
	}
	s.broken = true
	if s.h.alive && s.h.life == s.life {
		s.h.after(dice.Exponential(s.net.rng, 5*streamLook), func() {
			if s.member != nil {
				s.member.Close()
			}
		})
	}
}

// fail breaks the stream, which both ends notice later.
func (s *clientStream) fail() {
	s.Close()
	s.net.run.After(dice.Exponential(s.net.rng, streamLook), s.broke)
}

// look lets each end notice what has happened to the other one.
func (s *clientStream) look() {
	s.net.run.After(dice.Exponential(s.net.rng, streamLook), func() {
		switch {
		case s.broken:
		case target{s.h}.Life() == s.life:
			if s.member != nil {
				s.h.after(0, s.member.Look)
			}
			s.look()
		case dice.Chance(s.net.rng, 0.7):
			s.fail()
		default: // the client waits for a machine that has vanished
		}
	})
}
