package rpc

import (
	"bytes"
	"context"
	"time"

	"github.com/quorate/quorate/internal/h2"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/proposals"
	"github.com/quorate/quorate/internal/rpc/costly"
	"github.com/quorate/quorate/internal/rpc/front"
	"github.com/quorate/quorate/internal/rpc/gate"
	"github.com/quorate/quorate/internal/rpc/validate"
	"github.com/quorate/quorate/internal/rpc/wire"
)

// prompt is a Backend that can be asked without waiting: *member.Member.
type prompt interface {
	Prompt() bool
	ReadAsync(done proposals.Completion) (abandon func() bool, err error)
	ProposeAsync(command *kv.Command, done proposals.Completion) (abandon func() bool, err error)
}

// hotKV serves writes that wait for nothing but their commit, and linearizable ranges of one key, without a goroutine for each.
type hotKV struct {
	*kvService
	member            prompt
	put, txn, oneRead *gate.Method
}

// declines reports whether a command may wait before it is proposed.
func (h *hotKV) declines(command *kv.Command) bool {
	return !h.member.Prompt() || h.diskLow() || !h.withinQuota(growth(command)) || costly.MayBe(command) ||
		h.access.State().Enabled() && permitsLong(command)
}

// maxPermitted is of how many operations and comparisons the permission is looked up before a goroutine is made.
const maxPermitted = 16

// permitsLong reports whether it may take long to see that a command is permitted: it has many parts, or attaches keys to
// leases, whose other keys count, too, or its keys are so long that admitPut asks again.
func permitsLong(command *kv.Command) bool {
	if txn := command.Txn; txn != nil && (len(txn.Compares)+len(txn.Then)+len(txn.Else) > maxPermitted ||
		costly.AnyOp(txn, func(op *kv.Op) bool { return op.Txn != nil })) {
		return true
	}
	return attachesKeys(command) || putsLongKey(command)
}

// noCheck stands for checkQuota after declines.
func noCheck(context.Context, *kv.Command) error { return nil }

func (h *hotKV) afterDeclines() growthCheck {
	return growthCheck{noCheck, h.options.DeletionBytes, costly.MaxPassed}
}

// hotWrite is a command on its way.
type hotWrite struct {
	*hotKV
	call    *front.Call
	method  *gate.Method
	begun   time.Time
	command *kv.Command
	result  kv.Result
	err     error
	abandon func() bool
}

// hotPut is a put on its way.
type hotPut struct {
	hotWrite
	wire.PutCall
}

func (h *hotKV) servePut(c *front.Call, message []byte) bool {
	p := &hotPut{}
	if p.DecodeWire(message) != nil { // it aliases the message, which is over once it was proposed
		return false
	}
	p.Command.Put = &p.Op
	if kv.AsksForPairs(&p.Command) || h.declines(&p.Command) || !h.access.SignNow(c.Context(), &p.Command) {
		return false
	}
	p.begin(h, c, h.put, &p.Command, len(message))
	if p.enters() {
		p.propose(h.admitPut(c.Context(), &p.PutCall, h.afterDeclines()))
	}
	return true
}

// hotTxn is a transaction on its way.
type hotTxn struct {
	hotWrite
	wire.TxnCall
}

func (h *hotKV) serveTxn(c *front.Call, message []byte) bool {
	p := &hotTxn{}
	h.limitParts(&p.TxnCall)
	if p.DecodeWire(bytes.Clone(message)) != nil || p.TooMany || validate.ReadOnly(&p.Op) {
		return false
	}
	p.Command.Txn = &p.Op
	if h.declines(&p.Command) || kv.AsksForPairs(&p.Command) && !h.options.Answers.ReadyNow(c.Context()) ||
		!h.access.SignNow(c.Context(), &p.Command) {
		return false
	}
	p.begin(h, c, h.txn, &p.Command, len(message))
	if p.enters() {
		p.propose(h.admitTxn(c.Context(), &p.TxnCall, h.afterDeclines()))
	}
	return true
}

func (w *hotWrite) begin(h *hotKV, c *front.Call, method *gate.Method, command *kv.Command, received int) {
	w.hotKV, w.call, w.method, w.command, w.begun = h, c, method, command, h.options.Clock.Now()
	h.stats.receivedBytes.Add(uint64(received))
}

// enters passes the gate, or answers the call.
func (w *hotWrite) enters() bool {
	err := w.method.Enter(w.gate, w.call.Context(), false)
	if err != nil {
		w.refuse(err)
	}
	return err == nil
}

// refuse answers a command that was not proposed.
func (w *hotWrite) refuse(err error) {
	w.call.Answer(nil, w.method.Leave(w.gate, w.call.Context(), w.begun, err))
	w.call.Flush()
}

// propose replicates the command, unless it was refused.
func (w *hotWrite) propose(refused error) {
	if refused != nil {
		w.refuse(refused)
		return
	}
	w.stats.pending.Add(1)
	w.call.Finish = w.finish
	abandon, err := w.member.ProposeAsync(w.command, w)
	if err != nil {
		w.err = err
		w.finish()
		w.call.Flush()
		return
	}
	w.abandon = abandon
	w.call.OnLost(w.lost)
}

// lost is told that the client has gone.
func (w *hotWrite) lost() {
	if w.abandon() {
		w.ended(context.Canceled)
		_ = w.method.Leave(w.gate, w.call.Context(), w.begun, context.Canceled)
		w.call.Left()
	}
}

// Complete implements proposals.Completion.
func (w *hotWrite) Complete(result kv.Result, err error) {
	w.result, w.err = result, err
	w.call.Done()
}

// ended counts a command that was proposed.
func (w *hotWrite) ended(err error) {
	w.stats.pending.Add(-1)
	w.timings.Command(w.command, w.begun, err)
	if err != nil {
		w.stats.failedProposals.Add(1)
	}
}

func (w *hotWrite) finish() {
	w.ended(w.err)
	switch {
	case w.err != nil:
		w.answer(writeTimeout(w.err))
	case w.result.Err != nil:
		w.answer(w.result.Err)
	case w.result.Left != nil || counted(&w.result):
		w.noteOwn(w.result.Revision)
		go w.answerCounted()
	default:
		w.noteOwn(w.result.Revision)
		w.answer(nil)
	}
}

// answerCounted answers with what may have to be read from the store, and has memory that is counted.
func (w *hotWrite) answerCounted() {
	defer w.call.Flush()
	err := w.complete(w.call.Context(), w.command, &w.result)
	if err = w.method.Leave(w.gate, w.call.Context(), w.begun, err); err != nil {
		w.call.Answer(nil, err)
		return
	}
	w.call.AnswerCounted(w.response())
}

func (w *hotWrite) response() h2.Message {
	if w.command.Txn != nil {
		return w.txnResponse(&w.result)
	}
	return w.putResponse(&w.result)
}

func (w *hotWrite) answer(err error) {
	if err = w.method.Leave(w.gate, w.call.Context(), w.begun, err); err != nil {
		w.call.Answer(nil, err)
		return
	}
	answer := w.response()
	w.stats.sentBytes.Add(uint64(answer.SizeWire()))
	w.call.Answer(answer, nil)
}
