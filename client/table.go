package client

import (
	"cmp"
	"crypto/rand"
	"maps"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorate/quorate/api/quoratepb"
)

// Limits of what the client has sent without an answer. Members accept more; writes beyond wait in the client.
const (
	maxUnanswered  = 2048
	maxRefusals    = 20 // pauses in which voters may say that they do not hold what the leader refused
	maxBatchBytes  = 512 << 10
	maxBatchCount  = 512
	overheadBytes  = 64 // of a proposal beside its request, rounded up
	defaultMessage = 2 << 20
	defaultLength  = 4096
)

// call is one write on its way.
type call struct {
	kind     quoratepb.Proposal_Kind
	request  []byte
	order    uint64
	name     name
	session  *session     // whose it is; nil while it has no name
	attempts int          // how often it was sent under its id
	stream   *voterStream // to the leader, over which it was sent last; nil: the link
	term     uint64       // of the view on which it was sent over a voterStream
	race     *race        // if it was offered under its name
	refusals int          // of its only attempt, while voters may have held it
	told     bool         // its caller knows, by the verdicts of the voters, what the log has yet to say
	ended    bool         // answered or given up
	response []byte
	err      error
	done     chan struct{} // closed when it is answered
}

// name is a proposal id without the client's id: session and sequence number.
type name struct {
	session, sequence uint64
}

// session is one exactly-once session of the client.
type session struct {
	number     uint64
	named      uint64 // the last sequence given
	unresolved int    // calls that somebody waits for, or that were told before they were applied
	early      int    // the latter
}

// told reports whether some of its calls were told before they were applied: it must not end yet.
func (s *session) told() bool { return s.early > 0 }

// table gives the client's writes their ids and follows them until they are answered. It does not use streams: next returns
// what to send, the other methods take what was received. After a new stream was opened, restart must be called.
type table struct {
	mu       sync.Mutex
	key      []byte // proves the client's id to members
	client   uint64
	numbered uint64
	current  *session // new names come from here; nil until one is open
	previous *session // being finished
	above    uint64   // the last session that was given
	opening  bool     // asked for on this stream
	refused  bool     // the last opening was refused: the next one waits for retry
	queue    []*call  // to be sent, in order
	later    []*call  // to be sent after a pause
	sent     map[name]*call
	length   uint64 // how many writes a session may name
	message  int    // what a message may hold
	term     uint64 // the latest in which a leader was known
	stats    Stats
	closed   error
	wake     chan struct{}
}

func newTable() *table {
	t := &table{
		sent: map[name]*call{}, length: defaultLength, message: defaultMessage, wake: make(chan struct{}, 1),
	}
	t.draw()
	return t
}

// draw gives the client a random key, and the id that is derived from it.
func (t *table) draw() {
	t.above = 0
	t.key = make([]byte, quoratepb.ClientKeyBytes)
	_, _ = rand.Read(t.key) // never fails
	t.client = quoratepb.ClientID(t.key)
}

func (t *table) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// add queues a write.
func (t *table) add(kind quoratepb.Proposal_Kind, request []byte) (*call, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed != nil {
		return nil, t.closed
	}
	t.numbered++
	t.stats.Writes++
	c := &call{kind: kind, request: request, order: t.numbered, done: make(chan struct{})}
	t.queue = append(t.queue, c)
	t.signal()
	return c, nil
}

// abandon gives a call up. It is not sent again; what has left may still happen. False means that it has ended before.
func (t *table) abandon(c *call) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.ended || c.told {
		return false
	}
	t.end(c)
	return true
}

// end takes a call out of its session's account.
func (t *table) end(c *call) {
	c.ended, c.request = true, nil
	if c.session != nil {
		c.session.unresolved--
		if c.told {
			c.session.early--
		}
		if c.session.unresolved == 0 || c.told && c.session.early == 0 {
			t.signal() // to retire it
		}
	}
}

func (t *table) finish(c *call, response []byte, err error) {
	t.end(c)
	if c.told {
		return
	}
	c.response, c.err = response, err
	close(c.done)
}

// next returns the next message to send, nil if there is none.
func (t *table) next() *quoratepb.ProposeRequest {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &quoratepb.ProposeRequest{}
	t.turn(r)
	size := 0
	keep := t.queue[:0]
	for i, c := range t.queue {
		if c.ended || t.tooLarge(c) {
			continue
		}
		size += len(c.request) + overheadBytes
		full := len(r.Proposals) >= maxBatchCount || len(t.sent) >= maxUnanswered ||
			size > min(maxBatchBytes, t.message) && len(r.Proposals) > 0
		if full {
			keep = append(keep, t.queue[i:]...)
			break
		}
		if c.session == nil && !t.give(c) {
			keep = append(keep, c)
			continue
		}
		r.Proposals = append(r.Proposals, c.proposal())
		c.attempts++
		c.stream = nil
		t.sent[c.name] = c
	}
	clear(t.queue[len(keep):])
	t.queue = keep
	if r.Open == nil && len(r.Retire) == 0 && len(r.Proposals) == 0 {
		return nil
	}
	return r
}

// tooLarge ends a call that no message can hold.
func (t *table) tooLarge(c *call) bool {
	if len(c.request)+overheadBytes <= t.message {
		return false
	}
	t.finish(c, nil, c.doubt(rpctypes.ErrGRPCRequestTooLarge))
	return true
}

// alone reports whether the attempt that was just answered is the only one that may be applied.
func (c *call) alone() bool { return c.attempts == 1 && (c.race == nil || !c.race.mayOutlive()) }

// doubt is the error of a call of which another attempt may be applied.
func (c *call) doubt(err error) error {
	if c.attempts > 1 || c.race != nil && c.race.mayOutlive() {
		return &InDoubtError{Cause: err}
	}
	return err
}

// turn opens the first session, and the next one when half of the current one is used, so that the other half lasts
// until the next one is open. It retires the former session once all results in it are known.
func (t *table) turn(r *quoratepb.ProposeRequest) {
	if t.previous != nil && t.previous.unresolved == 0 && !t.opening {
		r.Retire = append(r.Retire, t.previous.number)
		t.previous = nil
	}
	wanted := t.current == nil && len(t.queue) > 0 ||
		t.current != nil && t.current.named > t.length/2 && t.previous == nil
	if !wanted || t.opening || t.refused {
		return
	}
	t.opening = true
	r.Open = &quoratepb.OpenSession{Above: t.above}
	for _, s := range []*session{t.current, t.previous} {
		if s != nil {
			r.Open.Keep = append(r.Open.Keep, s.number)
		}
	}
}

// give names a call.
func (t *table) give(c *call) bool {
	s := t.current
	if s == nil || s.named >= t.length {
		return false
	}
	s.named++
	s.unresolved++
	c.session, c.name = s, name{s.number, s.named}
	return true
}

// noteStatus takes the limits of the member that the stream is connected to.
func (t *table) noteStatus(status *quoratepb.MemberStatus) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if status.SessionLength > 0 {
		t.length = status.SessionLength
	}
	if status.MaxMessageBytes > 0 {
		t.message = int(status.MaxMessageBytes)
	}
}

// opened takes the answer to an opening. False means that the client has another id from now on, and needs a new stream.
func (t *table) opened(o *quoratepb.SessionOpened) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.opening = false
	switch {
	case o.Session > t.above:
		if t.current != nil {
			t.previous = t.current
		}
		t.current, t.above = &session{number: o.Session}, o.Session
		t.signal()
	case codes.Code(o.Code) == codes.AlreadyExists && t.current == nil && t.previous == nil:
		t.draw()
		return false
	default:
		t.refused = true
		t.signal()
	}
	return true
}

// pausing reports whether something waits for retry.
func (t *table) pausing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refused || len(t.later) > 0
}

// retry queues again the writes that had to pause.
func (t *table) retry() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue = append(t.later, t.queue...)
	t.later, t.refused = nil, false
}

// answer handles the answer of a member to a write.
func (t *table) answer(a *quoratepb.Answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := name{a.Session, a.Sequence}
	c := t.sent[id]
	if c == nil {
		return // told before
	}
	delete(t.sent, id)
	if len(t.sent) == maxUnanswered-1 {
		t.signal()
	}
	gone := a.Verdict == quoratepb.Answer_VERDICT_GONE || a.Verdict == quoratepb.Answer_VERDICT_LOST
	if gone {
		t.lose(a.Session)
	}
	if c.ended {
		return
	}
	told := status.Error(codes.Code(a.Code), a.Message) // nil if the code is OK
	switch {
	case a.Verdict == quoratepb.Answer_VERDICT_APPLIED:
		t.finish(c, a.Response, told)
	case (a.Verdict == quoratepb.Answer_VERDICT_REFUSED || a.Verdict == quoratepb.Answer_VERDICT_GONE) && c.mayBeHeld():
		t.later = append(t.later, c)
		t.signal()
	case a.Verdict == quoratepb.Answer_VERDICT_REFUSED:
		t.finish(c, nil, c.doubt(told))
	case c.told: // its session ended without our doing, and it was applied before: nobody else could have told so
		t.end(c)
	case a.Verdict == quoratepb.Answer_VERDICT_GONE && c.alone(), a.Verdict == quoratepb.Answer_VERDICT_ABORTED:
		// Nothing came of its only attempt, or of any, so it may have another name.
		c.session.unresolved--
		c.session, c.attempts, c.race, c.refusals = nil, 0, nil, 0
		t.queue = append(t.queue, c)
		t.signal()
	case gone:
		t.finish(c, nil, &InDoubtError{Cause: errSessionEnded})
	default:
		t.later = append(t.later, c)
		t.signal()
	}
}

// lose gives no more ids in a session that has ended.
func (t *table) lose(number uint64) {
	if t.current != nil && t.current.number == number {
		t.current = nil
	}
	if t.previous != nil && t.previous.number == number {
		t.previous = nil
	}
}

// restart queues the writes that the former stream left unanswered, in order.
func (t *table) restart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.opening, t.refused = false, false
	again := t.later
	for id, c := range t.sent {
		if c.stream != nil {
			continue // it may still be answered there
		}
		delete(t.sent, id)
		if !c.ended {
			again = append(again, c)
		}
	}
	slices.SortFunc(again, func(a, b *call) int { return cmp.Compare(a.order, b.order) })
	t.queue, t.later = append(again, t.queue...), nil
}

// waiting reports whether there is anything to be sent.
func (t *table) waiting() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.queue, func(c *call) bool { return !c.ended })
}

// id returns the client's id.
func (t *table) id() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.client
}

// identity returns the client's id and the key that proves it.
func (t *table) identity() (client uint64, key []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.client, t.key
}

// close makes later writes fail.
func (t *table) close(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed == nil {
		t.closed = why
	}
}

// fail ends the writes that were not sent and, if all is set, the others too.
func (t *table) fail(why error, all bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	calls := append(slices.Concat(t.queue, t.later), slices.Collect(maps.Values(t.sent))...)
	for _, c := range calls {
		switch {
		case c.ended, c.told:
		case c.attempts == 0 && c.race == nil:
			t.finish(c, nil, why)
		case all:
			t.finish(c, nil, &InDoubtError{Cause: errLeft})
		}
	}
}

// farewell returns the message that retires all sessions, nil if there are none.
func (t *table) farewell() *quoratepb.ProposeRequest {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &quoratepb.ProposeRequest{}
	for _, s := range []*session{t.current, t.previous} {
		if s != nil && !s.told() {
			r.Retire = append(r.Retire, s.number)
		}
	}
	t.current, t.previous = nil, nil
	if len(r.Retire) == 0 {
		return nil
	}
	return r
}
