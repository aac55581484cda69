package sim

import (
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/transport"
)

// parcel is messages from one host to another that travel together, as a frame does.
type parcel struct {
	from, to *host
	link     *link
	stream   *stream
	inputs   []raft.Input
	life     int         // of the receiver, when they were sent
	sent     credentials // of the sender, when they were sent
	left     int         // remaining work of a narrow link: bytes times nanoseconds of a second
	bytes    int         // as encoded; known only on narrow links
}

// stream is one of the two streams from a member to another one. Messages on a stream stay in order.
type stream struct {
	last    time.Duration // when the last parcel arrives
	waiting []*parcel     // for a narrow link
	count   int           // number of waiting messages
	bytes   int           // bytes of waiting messages
}

// pipe makes a link narrow: a rate, and a queue before each stream. The ordered stream waits while the express stream has
// messages.
type pipe struct {
	run     *run
	travel  func(*parcel)       // called with each parcel that has passed the link
	drop    func(...raft.Input) // called with the messages that are dropped
	rate    int                 // bytes a second
	crowded int                 // bytes on the ordered stream beyond which express kinds take the express stream
	since   time.Duration       // time up to which the link has worked
	planned int                 // number of the event for the next arrival that counts
	buffer  []byte              // for the sizes of messages

	ordered, express *stream
}

// put queues a parcel. Express kinds overtake if the ordered stream is crowded, and messages that find their queue full are
// dropped, as in package transport.
func (p *pipe) put(whole *parcel) {
	p.work()
	head := p.head()
	var last *parcel
	for _, input := range whole.inputs {
		m := input.(raft.Receive).Message
		l := p.ordered
		if l.bytes > p.crowded && transport.IsExpress(&m) {
			l = p.express
		}
		p.buffer = consensus.AppendMessage(p.buffer[:0], &m)
		size, room := len(p.buffer), &p.run.plan.Queue
		if l.count > 0 && (l.count >= room.Messages || l.bytes+size > room.Bytes) {
			p.drop(input)
			p.run.counts.Overflowed++
			continue
		}
		if last == nil || last.stream != l {
			part := *whole
			part.stream, part.inputs = l, nil
			last = &part
			l.waiting = append(l.waiting, last)
		}
		last.inputs, last.bytes = append(last.inputs, input), last.bytes+size
		last.left += size * int(time.Second)
		l.count, l.bytes = l.count+1, l.bytes+size
	}
	if p.head() != head {
		p.wakeNext()
	}
}

// head returns the parcel that the link carries now; nil if none waits.
func (p *pipe) head() *parcel {
	for _, l := range []*stream{p.express, p.ordered} {
		if len(l.waiting) > 0 {
			return l.waiting[0]
		}
	}
	return nil
}

// work makes the link carry as much as its rate allows for the time that has passed.
func (p *pipe) work() {
	now := p.run.Now()
	done := p.rate * int(now-p.since)
	p.since = now
	for head := p.head(); head != nil; head = p.head() {
		if head.left > done {
			head.left -= done
			return
		}
		done -= head.left
		p.take(head.stream)
		p.travel(head)
	}
}

// take removes the first parcel of a stream.
func (p *pipe) take(l *stream) {
	first := l.waiting[0]
	l.waiting = slices.Delete(l.waiting, 0, 1)
	l.count, l.bytes = l.count-len(first.inputs), l.bytes-first.bytes
}

// wakeNext schedules the next work of the link for the time when the next parcel has passed it.
func (p *pipe) wakeNext() {
	p.planned++
	head, planned := p.head(), p.planned
	if head == nil {
		return
	}
	p.run.After(time.Duration((head.left+p.rate-1)/p.rate), func() {
		if p.planned == planned {
			p.work()
			p.wakeNext()
		}
	})
}

// flush delivers all waiting parcels.
func (p *pipe) flush() {
	for head := p.head(); head != nil; head = p.head() {
		p.take(head.stream)
		p.travel(head)
	}
	p.wakeNext()
}

// lose drops all waiting parcels: the connection is lost.
func (p *pipe) lose() {
	for _, l := range []*stream{p.express, p.ordered} {
		for len(l.waiting) > 0 {
			p.drop(l.waiting[0].inputs...)
			p.take(l)
		}
	}
	p.wakeNext()
}
