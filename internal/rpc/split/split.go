package split

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/proposals"
	"github.com/quorate/quorate/internal/server/tracing"
)

// Part is the part of a member that was waited for.
type Part string

// The parts. None is named if the leader does not say for whom it waited.
const (
	Disk Part = "disk"
	Link Part = "link"
)

// Split is how the time of a call was spent. Its parts follow one another, but for Sync, which is a part of the time between
// the first two and the apply.
type Split struct {
	Queue   time.Duration // until the request left this member, or was in the log of a leader
	Network time.Duration // until the outcome was known, without Sync
	Sync    time.Duration // the disk that was waited for, and this member's own after that
	Apply   time.Duration // until it was applied here, and answered
	Read    time.Duration // of the store
	// Member is the one that was waited for longest, NoMember if that is not known, and Part its disk, or the link to it.
	Member consensus.MemberID
	Part   Part

	begun, left, known, ready, ended time.Time
}

// New splits the time of a call of a member. It returns false if nothing is known but the time as a whole.
func New(self consensus.MemberID, begun, ended time.Time, p proposals.Passage, read time.Duration) (s Split, known bool) {
	s = Split{Read: read, begun: begun, ended: ended}
	if p.Left.IsZero() || p.Known.IsZero() {
		return s, read > 0
	}
	s.left = later(p.Left, begun) // reads may join a question that left before
	s.known = later(p.Known, s.left)
	s.ready = later(p.Ready, s.known)
	s.Queue = s.left.Sub(begun)
	wait, own := s.known.Sub(s.left), s.ready.Sub(s.known)
	disk := min(micros(p.Waited.DiskTook), wait)
	s.Network, s.Sync = wait-disk, disk+own
	s.Apply = max(0, ended.Sub(s.ready)-read)
	s.blame(self, &p, wait, disk, own)
	return s, true
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func micros(n uint32) time.Duration { return time.Duration(n) * time.Microsecond }

// blame names the member for whose disk or link the call waited longest.
func (s *Split) blame(self consensus.MemberID, p *proposals.Passage, wait, disk, own time.Duration) {
	by, longest := p.Waited.WaitedFor, time.Duration(0)
	name := func(member consensus.MemberID, part Part, took time.Duration) {
		if took > longest && member != consensus.NoMember {
			s.Member, s.Part, longest = member, part, took
		}
	}
	if by == consensus.NoMember && p.Leader != self {
		name(p.Leader, "", wait)
	}
	name(by, Disk, disk)
	switch far := min(micros(p.Waited.AllTook), wait); {
	case by == consensus.NoMember:
	case p.Leader == self || far == 0: // this member waited for the other one itself
		s.link(self, by, p.Leader, wait-disk, name)
	default: // the leader did, and this member for the leader
		s.link(self, by, p.Leader, far-min(far, disk), name)
		name(p.Leader, Link, wait-far)
	}
	name(self, Disk, own)
}

// link names the other end of the link on which a member's word came. Between this member and itself there is none.
func (s *Split) link(
	self, by, leader consensus.MemberID, took time.Duration, name func(consensus.MemberID, Part, time.Duration),
) {
	switch {
	case by != self:
		name(by, Link, took)
	case leader != self:
		name(leader, Link, took)
	}
}

// Log returns the split as attributes of a line of the log. nameOf returns the name of a member.
func (s *Split) Log(nameOf func(consensus.MemberID) string) []any {
	var attributes []any
	if !s.left.IsZero() {
		attributes = append(attributes, "queue", s.Queue, "network", s.Network, "sync", s.Sync, "apply", s.Apply)
	}
	if s.Read > 0 {
		attributes = append(attributes, "read", s.Read)
	}
	if s.Member != consensus.NoMember {
		attributes = append(attributes, "waited for", nameOf(s.Member), "member", s.Member.String())
	}
	if s.Part != "" {
		attributes = append(attributes, "part", string(s.Part))
	}
	return attributes
}

// Spans returns the split as spans. Of a disk that another member waited for only the time is known: its span lies in the
// middle of that of the network.
func (s *Split) Spans(nameOf func(consensus.MemberID) string) []tracing.Span {
	var spans []tracing.Span
	add := func(name string, begun, ended time.Time) *tracing.Span {
		spans = append(spans, tracing.Span{Name: name, Begun: begun, Ended: ended})
		return &spans[len(spans)-1]
	}
	reads := s.ended.Add(-s.Read)
	if !s.left.IsZero() {
		add("queue", s.begun, s.left)
		network := add("network", s.left, s.known)
		if s.Member != consensus.NoMember {
			network.Say("quorate.waited_for", nameOf(s.Member))
			network.Say("quorate.waited_for.id", s.Member.String())
		}
		if s.Part != "" {
			network.Say("quorate.waited_for.part", string(s.Part))
		}
		own := s.ready.Sub(s.known)
		if disk := s.Sync - own; disk > 0 {
			begun := s.left.Add(s.Network / 2)
			network.Inside = append(network.Inside, tracing.Span{Name: "sync", Begun: begun, Ended: begun.Add(disk)})
		}
		if own > 0 {
			add("sync", s.known, s.ready)
		}
		if reads.Before(s.ready) {
			reads = s.ready
		}
		add("apply", s.ready, reads)
	}
	if s.Read > 0 {
		add("read", reads, s.ended)
	}
	return spans
}
