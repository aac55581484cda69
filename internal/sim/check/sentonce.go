package check

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// SentOnce checks that what a leader sends to a member crosses the link once (ADR 0048). Entries are sent again in vain if the
// member has them in its log by then, or if a message with them is still on its way, which nothing has overtaken. In each
// life of a stream such bytes are at most a fifth of those that the member had to get: each entry once.
//
// A life of a stream ends with the leader's term and with that of the member's process. It also ends where the weather lets
// one message overtake another one of the same lane, which the transport never does. What is lost, refused, or dropped by the
// member must be sent again, and is not counted.
type SentOnce struct {
	Bytes, Again, InVain uint64 // bytes of entries: all, those that were sent before in the same term, and those in vain

	streams map[[2]consensus.MemberID]*stream
}

// stream is one life of the way from a leader to a member.
type stream struct {
	term           consensus.Term
	first, last    consensus.Index // what was sent; none if last is zero
	needed, inVain int             // bytes
	way            []span          // messages that neither arrived nor were lost
}

type span struct{ first, last consensus.Index }

// of returns the stream that a message with entries belongs to; nil if there is none, or it is of another term.
func (o *SentOnce) of(m *consensus.Message) *stream {
	if m.Kind != consensus.MsgAppend || len(m.Entries) == 0 {
		return nil
	}
	if st := o.streams[[2]consensus.MemberID{m.From, m.To}]; st != nil && st.term == m.Term {
		return st
	}
	return nil
}

// Leaves tells that a message sets out, to the member that it is meant for.
func (o *SentOnce) Leaves(s *Suite, m *consensus.Message) {
	if m.Kind != consensus.MsgAppend || len(m.Entries) == 0 {
		return
	}
	st := o.of(m)
	if st == nil {
		if o.streams == nil {
			o.streams = map[[2]consensus.MemberID]*stream{}
		}
		st = &stream{term: m.Term}
		o.streams[[2]consensus.MemberID{m.From, m.To}] = st
	}
	now := span{m.Entries[0].Index, m.Entries[len(m.Entries)-1].Index}
	for i := range m.Entries {
		e := &m.Entries[i]
		size := e.SizeBytes()
		o.Bytes += uint64(size)
		if st.last == 0 || e.Index < st.first || e.Index > st.last {
			st.needed += size
			continue
		}
		o.Again += uint64(size)
		if why := o.vain(s, st, m.To, e); why != "" {
			o.InVain += uint64(size)
			if st.inVain += size; 5*st.inVain > st.needed {
				s.report("sent-once", "leader %v of term %d sends entry %d to member %v, %s: %d bytes in vain, %d were needed",
					m.From, m.Term, e.Index, m.To, why, st.inVain, st.needed)
			}
		}
	}
	if st.last == 0 {
		st.first = now.first
	}
	st.first, st.last = min(st.first, now.first), max(st.last, now.last)
	st.way = append(st.way, now)
}

// vain says why a member does not need an entry that was sent before; nothing if it does.
func (o *SentOnce) vain(s *Suite, st *stream, to consensus.MemberID, e *consensus.Entry) string {
	w := s.logs.of(to)
	if term, ok := w.term(e.Index); e.Index <= w.base.Index || ok && term == e.Term {
		return "which has it"
	}
	for _, other := range st.way {
		if other.first <= e.Index && e.Index <= other.last {
			return "to which it is on its way"
		}
	}
	return ""
}

// Gone tells that a message has come to its member's core, or was lost.
func (o *SentOnce) Gone(m *consensus.Message) {
	st := o.of(m)
	if st == nil {
		return
	}
	ended := span{m.Entries[0].Index, m.Entries[len(m.Entries)-1].Index}
	if at := slices.Index(st.way, ended); at >= 0 {
		st.way = slices.Delete(st.way, at, at+1)
	}
}

// Overtaken tells that messages from one member to another, or answers to them, do not arrive in order.
func (o *SentOnce) Overtaken(from, to consensus.MemberID) {
	delete(o.streams, [2]consensus.MemberID{from, to})
	delete(o.streams, [2]consensus.MemberID{to, from})
}

// Started tells that a member's process has started: what was sent to the one before is lost.
func (o *SentOnce) Started(member consensus.MemberID) {
	for pair := range o.streams {
		if pair[1] == member {
			delete(o.streams, pair)
		}
	}
}
