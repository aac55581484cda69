package rpc

import (
	"bytes"
	"context"
	"time"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/answers"
	"github.com/quorate/quorate/internal/rpc/front"
	"github.com/quorate/quorate/internal/rpc/timings"
	"github.com/quorate/quorate/internal/rpc/validate"
	"github.com/quorate/quorate/internal/rpc/wire"
)

// hotRange is a linearizable range of one key on its way.
type hotRange struct {
	*hotKV
	wire.RangeCall
	call     *front.Call
	begun    time.Time
	users    *auth.State // by which it is permitted
	response wire.RangeResponse
	memory   answers.Small
	err      error // why the state here shows too little
	abandon  func() bool
}

// serveRange declines all that may be large or has nothing to wait for, and calls of users whom this member may not know yet:
// those have a goroutine.
func (h *hotKV) serveRange(c *front.Call, message []byte) bool {
	r := &hotRange{hotKV: h, call: c}
	if r.DecodeWire(bytes.Clone(message)) != nil || r.Serializable || len(r.Op.End) > 0 || validate.Range(&r.Op) != nil {
		return false
	}
	if !h.member.Prompt() {
		return false
	}
	var permitted bool
	if r.users, permitted = h.access.ReadNow(c.Context(), r.Op.Key, nil); !permitted {
		return false
	}
	r.begun = h.options.Clock.Now()
	h.stats.receivedBytes.Add(uint64(len(message)))
	err := h.oneRead.Enter(h.gate, c.Context(), false)
	if err == nil {
		c.Finish = r.finish
		r.abandon, err = h.member.ReadAsync(r)
		err = readTimeout(err)
	}
	if err != nil {
		r.answer(err)
		c.Flush()
		return true
	}
	c.OnLost(r.lost)
	return true
}

// lost is told that the client has gone.
func (r *hotRange) lost() {
	if r.abandon() {
		r.ended(context.Canceled)
		_ = r.oneRead.Leave(r.gate, r.call.Context(), r.begun, context.Canceled)
		r.call.Left()
	}
}

// Complete implements proposals.Completion.
func (r *hotRange) Complete(_ kv.Result, err error) {
	r.err = err
	r.call.DoneButRead()
}

// ended times a range.
func (r *hotRange) ended(err error) { r.timings.Request(timings.Range, r.begun, &err) }

// finish reads the key. Values that are too large for here, and calls while users or roles change, have a goroutine from now
// on.
func (r *hotRange) finish() {
	r.timings.Read(r.call.Context(), r.begun, r.err)
	if r.err != nil {
		r.answer(readTimeout(r.err))
		return
	}
	err := r.readInto(&r.response, &r.RangeCall, &r.memory)
	if r.memory.Exceeded || !r.access.Unchanged(r.users) {
		go r.readAgain()
		return
	}
	r.answer(err)
}

// readAgain reads the key as any other range.
func (r *hotRange) readAgain() {
	defer r.call.Flush()
	response, err := r.readKeys(r.call.Context(), &r.RangeCall)
	r.ended(err)
	if err = r.oneRead.Leave(r.gate, r.call.Context(), r.begun, err); err != nil {
		r.call.Answer(nil, err)
		return
	}
	r.call.AnswerCounted(response)
}

func (r *hotRange) answer(err error) {
	r.ended(err)
	if err = r.oneRead.Leave(r.gate, r.call.Context(), r.begun, err); err != nil {
		r.call.Answer(nil, err)
		return
	}
	r.stats.sentBytes.Add(uint64(r.response.SizeWire()))
	r.call.Answer(&r.response, nil)
}
