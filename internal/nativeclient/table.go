package nativeclient

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus/tally"
	"github.com/quorate/quorate/internal/member/offers"
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

// The causes of writes in doubt.
var (
	errSessionEnded = errors.New("its session ended, because no member heard the client for too long")
	errLeft         = errors.New("the client was closed before the answer came")
)

// Call is one write on its way.
type Call struct {
	kind     quoratepb.Proposal_Kind
	request  []byte
	order    uint64
	name     name
	session  *session // whose it is; nil while it has no name
	attempts int      // how often it was sent under its id
	stream   uint64   // the leader's, over which it was sent last; zero: the link
	term     uint64   // of the view on which it was offered
	race     *race    // if it was offered under its name
	refusals int      // of its only attempt, while voters may have held it
	told     bool     // its caller knows, by the verdicts of the voters, what the log has yet to say
	ended    bool     // answered or given up
	done     func()   // called once it is answered

	// The answer.
	Response []byte
	Err      error
	InDoubt  bool // Err is why it is not known whether it was applied
	Decided  *Decided
}

// Decided is how voters decided a write.
type Decided struct {
	tally.Decision
	Leader uint64 // whose response it is
}

// name is a proposal id without the client's id: session and sequence number.
type name struct {
	session, sequence uint64
}

// session is one exactly-once session of the client.
type session struct {
	number     uint64
	named      uint64 // the last sequence given
	unresolved int    // calls that a caller waits for, or that were told before they were applied
	early      int    // the latter
}

// told reports whether some of its calls were told before they were applied: it must not end yet.
func (s *session) told() bool { return s.early > 0 }

// Options say how a client decides.
type Options struct {
	Key   func() []byte // draws a key, from which members derive the client's id
	Wake  func()        // there may be something to send; nothing else may be called from it
	Tally tally.Rules   // negative controls
}

// Table gives the client's writes their ids and follows them until they are answered. The link is the stream to one member
// through which writes go the ordinary way. After it was opened anew, Restart must be called.
type Table struct {
	options  Options
	view     View
	policy   offers.Policy
	stamps   offers.Stamps
	key      []byte // proves the client's id to members
	client   uint64
	numbered uint64
	current  *session // new names come from here; nil until one is open
	previous *session // being finished
	above    uint64   // the last session that was given
	opening  bool     // asked for on this stream
	refused  bool     // the last opening was refused: the next one waits for retry
	queue    []*Call  // to be sent, in order
	later    []*Call  // to be sent after a pause
	sent     map[name]*Call
	length   uint64 // how many writes a session may name
	message  int    // what a message may hold
	term     uint64 // the latest in which a leader was known
	stats    Stats
	closed   error
}

// New returns the table of a client that has written nothing.
func New(o Options) *Table {
	t := &Table{options: o, sent: map[name]*Call{}, length: defaultLength, message: defaultMessage}
	t.draw()
	return t
}

// draw gives the client a key, and the id that is derived from it.
func (t *Table) draw() {
	t.above = 0
	t.key = t.options.Key()
	t.client = quoratepb.ClientID(t.key)
}

func (t *Table) signal() { t.options.Wake() }

// Add queues a write. It calls done once the write is answered, from inside another method: done must not call the table.
// The error is that of Close.
func (t *Table) Add(kind quoratepb.Proposal_Kind, request []byte, done func()) (*Call, error) {
	if t.closed != nil {
		return nil, t.closed
	}
	t.numbered++
	t.stats.Writes++
	c := &Call{kind: kind, request: request, order: t.numbered, done: done}
	t.queue = append(t.queue, c)
	t.signal()
	return c, nil
}

// Abandon gives a call up. It is not sent again; what has left may still happen. False means that it has ended before.
func (t *Table) Abandon(c *Call) bool {
	if c.ended || c.told {
		return false
	}
	t.end(c)
	return true
}

// end takes a call out of its session's account.
func (t *Table) end(c *Call) {
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

func (t *Table) finish(c *Call, response []byte, err error) {
	t.end(c)
	if c.told {
		return
	}
	c.Response, c.Err = response, err
	c.done()
}

// doubt ends a call of which it is not known whether it was applied.
func (t *Table) doubt(c *Call, cause error) {
	c.InDoubt = !c.told
	t.finish(c, nil, cause)
}

// refuse ends a call whose last attempt did nothing.
func (t *Table) refuse(c *Call, why error) {
	if c.attempts > 1 || c.race != nil && c.race.mayOutlive() {
		t.doubt(c, why)
	} else {
		t.finish(c, nil, why)
	}
}

// Next returns the next message to send, nil if there is none.
func (t *Table) Next() *quoratepb.ProposeRequest {
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
		c.stream = 0
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
func (t *Table) tooLarge(c *Call) bool {
	if len(c.request)+overheadBytes <= t.message {
		return false
	}
	t.refuse(c, rpctypes.ErrGRPCRequestTooLarge)
	return true
}

// alone reports whether the attempt that was just answered is the only one that may be applied.
func (c *Call) alone() bool { return c.attempts == 1 && (c.race == nil || !c.race.mayOutlive()) }

// turn opens the first session, and the next one when half of the current one is used, so that the other half lasts
// until the next one is open. It retires the former session once all results in it are known.
func (t *Table) turn(r *quoratepb.ProposeRequest) {
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
func (t *Table) give(c *Call) bool {
	s := t.current
	if s == nil || s.named >= t.length {
		return false
	}
	s.named++
	s.unresolved++
	c.session, c.name = s, name{s.number, s.named}
	return true
}

// NoteStatus takes what a member says of itself and of the cluster.
func (t *Table) NoteStatus(status *quoratepb.MemberStatus) {
	t.NoteView(status)
	if status.SessionLength > 0 {
		t.length = status.SessionLength
	}
	if status.MaxMessageBytes > 0 {
		t.message = int(status.MaxMessageBytes)
	}
	if status.Leader != 0 {
		t.newTerm(status.Term)
	}
}

// Opened takes the answer to an opening. False means that the client has another id from now on, and needs a new stream.
func (t *Table) Opened(o *quoratepb.SessionOpened) bool {
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

// Pausing reports whether something waits for retry.
func (t *Table) Pausing() bool {
	return t.refused || len(t.later) > 0
}

// Retry queues again the writes that had to pause.
func (t *Table) Retry() {
	t.queue = append(t.later, t.queue...)
	t.later, t.refused = nil, false
}

// Answer handles the answer of a member to a write.
func (t *Table) Answer(a *quoratepb.Answer) {
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
	case c.told && a.Verdict == quoratepb.Answer_VERDICT_REFUSED:
		t.askRefused(c)
	case (a.Verdict == quoratepb.Answer_VERDICT_REFUSED || a.Verdict == quoratepb.Answer_VERDICT_GONE) && c.mayBeHeld():
		t.later = append(t.later, c)
		t.signal()
	case a.Verdict == quoratepb.Answer_VERDICT_REFUSED:
		t.refuse(c, told)
	case c.told: // its session ended without our doing, and it was applied before: no other could have told so
		t.end(c)
	case a.Verdict == quoratepb.Answer_VERDICT_GONE && c.alone(), a.Verdict == quoratepb.Answer_VERDICT_ABORTED:
		// Nothing came of its only attempt, or of any, so it may have another name.
		c.session.unresolved--
		c.session, c.attempts, c.race, c.refusals = nil, 0, nil, 0
		t.queue = append(t.queue, c)
		t.signal()
	case gone:
		t.doubt(c, errSessionEnded)
	default:
		t.later = append(t.later, c)
		t.signal()
	}
}

// askRefused deals with a refusal of a write that the voters decided: its caller knows, and a refusal says nothing of what was
// decided before. It is asked for again after a pause, so that its session stays open until a member says that it was applied.
// A write that is refused again and again, to a user who may not write any more, is given up: it would hold back the end of
// the session, and so the next session, for ever. That end comes behind it in every log that has both.
func (t *Table) askRefused(c *Call) {
	if c.refusals >= maxRefusals {
		t.end(c)
		return
	}
	c.refusals++
	t.later = append(t.later, c)
	t.signal()
}

// lose gives no more ids in a session that has ended.
func (t *Table) lose(number uint64) {
	if t.current != nil && t.current.number == number {
		t.current = nil
	}
	if t.previous != nil && t.previous.number == number {
		t.previous = nil
	}
}

// Restart queues the writes that the former stream left unanswered, in order.
func (t *Table) Restart() {
	t.opening, t.refused = false, false
	again := t.later
	for id, c := range t.sent {
		if c.stream != 0 {
			continue // it may still be answered there
		}
		delete(t.sent, id)
		if !c.ended {
			again = append(again, c)
		}
	}
	slices.SortFunc(again, func(a, b *Call) int { return cmp.Compare(a.order, b.order) })
	t.queue, t.later = append(again, t.queue...), nil
}

// Waiting reports whether there is anything to be sent.
func (t *Table) Waiting() bool {
	return slices.ContainsFunc(t.queue, func(c *Call) bool { return !c.ended })
}

// ID returns the client's id.
func (t *Table) ID() uint64 {
	return t.client
}

// Identity returns the client's id and the key that proves it.
func (t *Table) Identity() (client uint64, key []byte) {
	return t.client, t.key
}

// Close makes later writes fail.
func (t *Table) Close(why error) {
	if t.closed == nil {
		t.closed = why
	}
}

// Fail ends the writes that were not sent and, if all is set, the others too.
func (t *Table) Fail(why error, all bool) {
	sent := slices.SortedFunc(maps.Values(t.sent), func(a, b *Call) int { return cmp.Compare(a.order, b.order) })
	calls := slices.Concat(t.queue, t.later, sent)
	for _, c := range calls {
		switch {
		case c.ended, c.told:
		case c.attempts == 0 && c.race == nil:
			t.finish(c, nil, why)
		case all:
			t.doubt(c, errLeft)
		}
	}
}

// Farewell returns the message that retires all sessions, nil if there are none.
func (t *Table) Farewell() *quoratepb.ProposeRequest {
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
