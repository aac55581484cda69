package rpc

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate/internal/member/proposals"
	"github.com/quorate/quorate/internal/rpc/front"
	"github.com/quorate/quorate/internal/rpc/gate"
	"github.com/quorate/quorate/internal/rpc/h2"
)

// Calls of KV take the same steps on every transport (package front, grpc-go, or inproc for JSON, locks and elections), and for
// every user:
//
//   - begin: the call passes the gate (gate.Method.Enter);
//   - admit: the request is checked, in etcd's order, and signed;
//   - propose (call_write.go) or read (call_read.go): the call asks the member;
//   - finish: the outcome is counted, and the answer passes the gate (gate.Method.Leave).
//
// A call of front takes these steps without a goroutine (asyncCall) as long as no step has to wait. If a step has to wait
// before the call has asked the member, the call has changed nothing yet and begins again in a goroutine, which may wait
// (direct in kv.go), as do the calls of other transports.
//
// Both share the functions admit (of a request), makeRoom, complete, permit and show, which get the patience of their caller.
// Three parts exist twice: the sequence of the steps (asyncWrite and writeBlocking, asyncRead and rangeKeys), the way through
// the gate (asyncCall.begin and leave; gate.Pass), and the signature of a write (shared.sign; access.Control.Propose). For the
// member there is one request: Propose and ReadIndex wait for what ProposeAsync and ReadAsync ask. They also wait for Start,
// and raise the feature level if the command needs that: where this may happen, PromptFor is false.

// patience says whether a step of a call may wait.
type patience bool

const (
	// promptly: the step must not wait. If it would have to, it returns errWaits and changes nothing.
	promptly patience = false
	// patiently: the step may wait.
	patiently patience = true
)

// errWaits is returned by a step that must not wait and might have to.
var errWaits = errors.New("rpc: a step of this call may have to wait")

// kvService is etcd's KV service.
type kvService struct {
	*shared
	gate *gate.Gate
}

// asyncCall is a call that waits for the member without a goroutine.
type asyncCall struct {
	kv      *kvService
	front   *front.Call
	method  *gate.Method
	steps   steps
	begun   time.Time
	err     error       // of the member
	abandon func() bool // ends the wait for the member's answer
	passage proposals.Passage
	audited *audited
	note    *note // nil: the call is not counted, or is a read, which is counted when it is answered
}

// steps are the steps of an asyncCall that differ between a write and a read.
type steps interface {
	// finish answers the client once the member has answered.
	finish()
	// ended counts the member's answer, or the client's departure before it, and returns the error for the client.
	ended() error
	// revision is that of the outcome; zero: unknown.
	revision() int64
	// readFor is how long the call read the store.
	readFor() time.Duration
}

// begin counts the call and passes it through the gate. s are the steps of this call, received is the size of its message.
func (c *asyncCall) begin(s steps, received int) error {
	c.steps, c.begun = s, c.kv.options.Clock.Now()
	c.kv.stats.receivedBytes.Add(uint64(received))
	return c.method.Enter(c.kv.gate, c.front.Context(), false)
}

// refuse answers a call that has not asked the member.
func (c *asyncCall) refuse(err error) {
	c.answer(nil, err)
	c.front.Flush()
}

// asked takes the results of ProposeAsync or ReadAsync. With an error the member will not answer, and the call finishes now.
// Otherwise it finishes when the member has answered, or ends when the client has gone.
func (c *asyncCall) asked(abandon func() bool, err error) {
	if err != nil {
		c.err = err
		c.steps.finish()
		c.front.Flush()
		return
	}
	c.abandon = abandon
	c.front.OnLost(c.lost)
}

// lost ends the call because the client has gone.
func (c *asyncCall) lost() {
	if c.abandon() {
		c.err = context.Canceled
		_ = c.leave(c.steps.ended())
		c.front.Left()
	}
}

// leave passes the call out through the gate, and returns the error for the client.
func (c *asyncCall) leave(err error) error {
	err = c.method.Leave(c.kv.gate, c.front.Context(), c.begun, err, c)
	if c.audited != nil {
		c.kv.audits.end(c.front.Context(), c.audited, c.steps.revision(), err)
	}
	return err
}

// Inside implements gate.Insider.
func (c *asyncCall) Inside() (p proposals.Passage, read time.Duration) {
	return c.passage, c.steps.readFor()
}

// answer ends the call. The answer is not flushed.
func (c *asyncCall) answer(message h2.Message, err error) {
	size := 0
	if err = c.leave(err); err == nil {
		size = message.SizeWire()
		c.kv.stats.sentBytes.Add(uint64(size))
	}
	c.took(size)
	c.front.Answer(message, err)
}

// took counts a write.
func (c *asyncCall) took(sent int) {
	if c.note != nil {
		c.kv.took(c.front.Context(), c.note, c.note.User, sent)
		c.kv.splits.addSplit(c.kv.self, c.note.times, c.begun, c.kv.options.Clock.Now(), c.passage)
	}
}

// later finishes a call in a goroutine, if a step has to wait, or has memory that is counted. The call must have reserved it
// (front.Call.Reserve). The context of finish ends with the client or with the deadline of the call.
func (c *asyncCall) later(finish func(ctx context.Context) (h2.Message, error)) {
	c.front.Go(c.kv.options.Clock.Now().Sub(c.begun), func(ctx context.Context) {
		defer c.front.Flush()
		message, err := finish(ctx)
		c.took(sizeOf(message, err))
		if err = c.leave(err); err != nil {
			c.front.Answer(nil, err)
			return
		}
		c.front.AnswerCounted(message)
	})
}
