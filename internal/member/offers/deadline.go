package offers

import (
	"cmp"
	"container/heap"
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

// maxWait bounds how long an offer waits for its stamp. A stamp further ahead comes from a clock that is wrong.
const maxWait = 250 * time.Millisecond

// Queue is a deadline queue: offers wait in it until they are due, so that all members handle the offers of several
// proposers in the order of their stamps and choose the same revisions. If clocks disagree, fewer offers are decided on
// the fast path, and an offer is delayed by up to maxWait; safety does not depend on clocks.
type Queue struct {
	waiting waitingMessages
	arrived uint64 // messages so far
	taken   int64  // when Take was called last, by the clock, in nanoseconds of Unix time
}

// HasStamp reports whether a message says when it is due.
func HasStamp(m *consensus.Message) bool { return m.Due != 0 && isOffer(m) }

// tooFarAhead reports whether a stamp is not to be waited for. In the queue its message would be behind all others.
func tooFarAhead(due uint64, now time.Time) bool { return due > uint64(now.Add(maxWait).UnixNano()) }

// Put adds a message that has a stamp which is not too far ahead.
func (q *Queue) Put(message consensus.Message) {
	q.arrived++
	heap.Push(&q.waiting, waitingMessage{message, q.arrived})
}

// Take appends the messages that are due to dst, in the order of their stamps. If the clock was put back, nothing waits for
// what it showed before, also behind messages that came since.
func (q *Queue) Take(dst []consensus.Message, now time.Time) []consensus.Message {
	back := now.UnixNano() < q.taken
	q.taken = now.UnixNano()
	if back {
		dst = q.takeFarAhead(dst, now)
	}
	return q.take(dst, now, maxWait)
}

// takeFarAhead appends all messages to dst whose stamps are not to be waited for any more, in the order of their stamps.
func (q *Queue) takeFarAhead(dst []consensus.Message, now time.Time) []consensus.Message {
	var near waitingMessages
	for len(q.waiting) > 0 {
		if m := heap.Pop(&q.waiting).(waitingMessage); tooFarAhead(m.Due, now) {
			dst = append(dst, m.Message)
		} else {
			near = append(near, m)
		}
	}
	q.waiting = near // sorted, and so a heap
	return dst
}

func (q *Queue) take(dst []consensus.Message, now time.Time, most time.Duration) []consensus.Message {
	for {
		due, some := q.Next()
		if wait := due.Sub(now); !some || wait > 0 && wait <= most {
			return dst
		}
		dst = append(dst, heap.Pop(&q.waiting).(waitingMessage).Message)
	}
}

// Next returns when the next message is due; false if none waits.
func (q *Queue) Next() (time.Time, bool) {
	if len(q.waiting) == 0 {
		return time.Time{}, false
	}
	return time.Unix(0, int64(q.waiting[0].Due)), true
}

// waitingMessage is a message and when it came, as a count.
type waitingMessage struct {
	consensus.Message
	arrival uint64
}

// waitingMessages is a heap by stamp, then proposer, then arrival: those of one proposer stay in their order.
type waitingMessages []waitingMessage

func (w waitingMessages) Len() int { return len(w) }

func (w waitingMessages) Less(i, j int) bool {
	a, b := &w[i], &w[j]
	return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.From, b.From), cmp.Compare(a.arrival, b.arrival)) < 0
}

func (w waitingMessages) Swap(i, j int) { w[i], w[j] = w[j], w[i] }

// Push implements heap.Interface.
func (w *waitingMessages) Push(m any) { *w = append(*w, m.(waitingMessage)) }

// Pop implements heap.Interface.
func (w *waitingMessages) Pop() any {
	last := (*w)[len(*w)-1]
	(*w)[len(*w)-1] = waitingMessage{}
	*w = (*w)[:len(*w)-1]
	return last
}
