package rpc

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate/internal/h2"
	"github.com/quorate/quorate/internal/rpc/front"
	"github.com/quorate/quorate/internal/rpc/gate"
)

// Calls of KV go one road, by whichever transport they come (package front, grpc-go, or inproc for JSON, locks and elections),
// and in whose name they come makes no difference:
//
//   - begin: the call passes the gate (gate.Method.Enter);
//   - admit: its request is checked, in etcd's order, and signed;
//   - propose (call_write.go) or read (call_read.go): the member is asked;
//   - finish: the end is counted, and the answer passes the gate (gate.Method.Leave).
//
// A call of front takes these steps without a goroutine as long as none has to wait. If one has to before the member was asked,
// nothing has been done yet, and the call takes them in a goroutine, which waits (direct in kv.go), as do the calls of other
// transports. A step is one function for both, which is told the patience of its caller.

// patience says whether a step of a call may wait.
type patience bool

const (
	// promptly: the step must not wait. It returns errWaits instead, and has changed nothing.
	promptly patience = false
	// patiently: the step may wait.
	patiently patience = true
)

// errWaits is returned by a step that must not wait, and might have to.
var errWaits = errors.New("rpc: a step of this call may have to wait")

// kvService is etcd's KV service.
type kvService struct {
	*shared
	gate *gate.Gate
}

// call is one without a goroutine.
type call struct {
	kv      *kvService
	front   *front.Call
	method  *gate.Method
	steps   steps
	begun   time.Time
	err     error       // of the member
	abandon func() bool // what the member was asked
}

// steps are those of a call that depend on what it asks for.
type steps interface {
	// finish answers, once the member has.
	finish()
	// ended counts what the member answered, or that the client has gone before, and returns the error for the client.
	ended() error
}

// begin counts the call, which is a steps, and has it pass the gate. received is the size of its message.
func (c *call) begin(s steps, received int) error {
	c.steps, c.begun = s, c.kv.options.Clock.Now()
	c.kv.stats.receivedBytes.Add(uint64(received))
	return c.method.Enter(c.kv.gate, c.front.Context(), false)
}

// refuse answers a call of which the member was not asked.
func (c *call) refuse(err error) {
	c.answer(nil, err)
	c.front.Flush()
}

// asked has the call finished, when the member has answered or the client has gone. With an error the member was not asked.
func (c *call) asked(abandon func() bool, err error) {
	if err != nil {
		c.err = err
		c.steps.finish()
		c.front.Flush()
		return
	}
	c.abandon = abandon
	c.front.OnLost(c.lost)
}

// lost is told that the client has gone.
func (c *call) lost() {
	if c.abandon() {
		c.err = context.Canceled
		_ = c.leave(c.steps.ended())
		c.front.Left()
	}
}

// leave passes the gate on the way back. It returns the error for the client.
func (c *call) leave(err error) error {
	return c.method.Leave(c.kv.gate, c.front.Context(), c.begun, err)
}

// answer ends the call. The answer is not flushed.
func (c *call) answer(message h2.Message, err error) {
	if err = c.leave(err); err == nil {
		c.kv.stats.sentBytes.Add(uint64(message.SizeWire()))
	}
	c.front.Answer(message, err)
}

// later finishes a call in a goroutine, where a step has to wait, or has memory that is counted. The call must have reserved it
// (front.Call.Reserve). The context of finish ends with the client or with the deadline of the call.
func (c *call) later(finish func(ctx context.Context) (h2.Message, error)) {
	c.front.Go(c.kv.options.Clock.Now().Sub(c.begun), func(ctx context.Context) {
		defer c.front.Flush()
		message, err := finish(ctx)
		if err = c.leave(err); err != nil {
			c.front.Answer(nil, err)
			return
		}
		c.front.AnswerCounted(message)
	})
}
