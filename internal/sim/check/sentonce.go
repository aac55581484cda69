package check

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// SentOnce checks that entries of a leader cross the link to a member once (ADR 0048). Entries are sent again in vain if the
// member has them in its log by then, or if a message with them is still under way, which no other message has overtaken. In
// each life of a stream such bytes are at most a fifth of those that the member had to get: each entry once.
//
// A life of a stream ends with the leader's term and with that of the member's process. If the weather lets one message
// overtake another one of the same stream, which the transport never does, the leader may conclude, maybe much later, that all
// messages under way were lost. So in such a life an entry may be sent in vain once, and once more for each overtaking, of
// messages or of answers, since it was sent first. Entries that are lost, refused, or dropped by the member must be sent again,
// and are not counted: not even if the member had them before, from an earlier life of the stream, because its leader cannot
// know that.
type SentOnce struct {
	Bytes, Again, InVain uint64 // bytes of entries: all, those that were sent before in the same term, and those in vain

	streams map[[2]consensus.MemberID]*stream
}

// stream is one life of the connection from a leader to a member.
type stream struct {
	term           consensus.Term
	first, last    consensus.Index // indexes that were sent; none if last is zero
	needed, inVain int             // bytes
	overtaken      int             // how often messages, or answers to them, came in another order
	way            []span          // messages that neither arrived nor were lost
	lost           []span          // lost messages, without the entries that were sent again
	repeats        map[consensus.Index]repeats
}

// repeats counts the repetitions of an entry in a stream in which messages overtook each other.
type repeats struct {
	overtaken int // overtakings in its stream when it was sent first
	inVain    int // how often it was sent in vain
}

// excused reports whether an entry may be sent in vain once more, and counts it.
func (st *stream) excused(at consensus.Index) bool {
	if st.overtaken == 0 {
		return false
	}
	of := st.repeats[at]
	of.inVain++
	st.note(at, of)
	return of.inVain <= 1+st.overtaken-of.overtaken
}

func (st *stream) note(at consensus.Index, of repeats) {
	if st.repeats == nil {
		st.repeats = map[consensus.Index]repeats{}
	}
	st.repeats[at] = of
}

type span struct{ first, last consensus.Index }

func spanOf(entries []consensus.Entry) span {
	return span{entries[0].Index, entries[len(entries)-1].Index}
}

func covers(spans []span, at consensus.Index) bool {
	return slices.ContainsFunc(spans, func(s span) bool { return s.first <= at && at <= s.last })
}

// without returns spans without the indexes of one.
func without(spans []span, one span) (left []span) {
	for _, s := range spans {
		if s.first < one.first {
			left = append(left, span{s.first, min(s.last, one.first-1)})
		}
		if s.last > one.last {
			left = append(left, span{max(s.first, one.last+1), s.last})
		}
	}
	return left
}

// of returns the stream of a message with entries; nil if there is none, or if the message is of another term.
func (o *SentOnce) of(m *consensus.Message) *stream {
	if m.Kind != consensus.MsgAppend || len(m.Entries) == 0 {
		return nil
	}
	if st := o.streams[[2]consensus.MemberID{m.From, m.To}]; st != nil && st.term == m.Term {
		return st
	}
	return nil
}

// Leaves records that a message is sent to the member that it is meant for.
func (o *SentOnce) Leaves(s *Suite, m *consensus.Message) {
	if m.Kind != consensus.MsgAppend || len(m.Entries) == 0 {
		return
	}
	st := o.of(m)
	if st == nil {
		st = o.open([2]consensus.MemberID{m.From, m.To}, &stream{term: m.Term})
	}
	now := spanOf(m.Entries)
	for i := range m.Entries {
		e := &m.Entries[i]
		size := e.SizeBytes()
		o.Bytes += uint64(size)
		if st.last == 0 || e.Index < st.first || e.Index > st.last {
			if st.needed += size; st.overtaken > 0 {
				st.note(e.Index, repeats{overtaken: st.overtaken})
			}
			continue
		}
		o.Again += uint64(size)
		if why := o.vain(s, st, m.To, e); why != "" {
			o.InVain += uint64(size)
			if st.excused(e.Index) {
				continue
			}
			if st.inVain += size; 5*st.inVain > st.needed {
				s.report("sent-once", "leader %v of term %d sends entry %d to member %v, %s: %d bytes in vain, "+
					"%d were needed, messages came in another order %d times", m.From, m.Term, e.Index, m.To, why, st.inVain,
					st.needed, st.overtaken)
			}
		}
	}
	if st.last == 0 {
		st.first = now.first
	}
	st.first, st.last = min(st.first, now.first), max(st.last, now.last)
	st.way = append(st.way, now)
	st.lost = without(st.lost, now)
}

// vain says why a member does not need an entry that was sent before; empty: it does.
func (o *SentOnce) vain(s *Suite, st *stream, to consensus.MemberID, e *consensus.Entry) string {
	if covers(st.lost, e.Index) {
		return ""
	}
	w := s.logs.of(to)
	if term, ok := w.term(e.Index); e.Index <= w.base.Index || ok && term == e.Term {
		return "which has it"
	}
	if covers(st.way, e.Index) {
		return "to which it is on its way"
	}
	return ""
}

// Came records that a message has reached its member's core.
func (o *SentOnce) Came(m *consensus.Message) {
	if st := o.of(m); st != nil {
		st.gone(spanOf(m.Entries))
	}
}

// Lost records that a message will not arrive. A second call for a message changes nothing.
func (o *SentOnce) Lost(m *consensus.Message) {
	if st := o.of(m); st != nil && st.gone(spanOf(m.Entries)) {
		st.lost = append(st.lost, spanOf(m.Entries))
	}
}

// gone removes a message from those under way, and reports whether it was among them.
func (st *stream) gone(ended span) bool {
	at := slices.Index(st.way, ended)
	if at >= 0 {
		st.way = slices.Delete(st.way, at, at+1)
	}
	return at >= 0
}

// Overtaken records that messages of a term from one member to another, or answers to them, arrive out of order.
func (o *SentOnce) Overtaken(from, to consensus.MemberID, term consensus.Term) {
	for _, pair := range [][2]consensus.MemberID{{from, to}, {to, from}} {
		st := o.streams[pair]
		if st == nil || st.term < term {
			st = o.open(pair, &stream{term: term})
		}
		if st.term == term {
			st.overtaken++
		}
	}
}

func (o *SentOnce) open(pair [2]consensus.MemberID, st *stream) *stream {
	if o.streams == nil {
		o.streams = map[[2]consensus.MemberID]*stream{}
	}
	o.streams[pair] = st
	return st
}

// Started records that a member's process has started: messages to the earlier process are lost.
func (o *SentOnce) Started(member consensus.MemberID) {
	for pair := range o.streams {
		if pair[1] == member {
			delete(o.streams, pair)
		}
	}
}
