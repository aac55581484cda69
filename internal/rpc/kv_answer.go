package rpc

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/limits/answers"
	"github.com/quorate/quorate/internal/rpc/metrics"
	"github.com/quorate/quorate/internal/rpc/wire"
)

const (
	// maxTxnAnswerBytes bounds the answer to a transaction, a put or a deletion. A transaction can ask for the same keys again
	// and again, so that a small store can have large answers.
	maxTxnAnswerBytes = 64 << 20
	// maxChunkBytes bounds a message of a RangeStream.
	maxChunkBytes = 16 << 20
)

// uncompressed turns off compression for large answers: gRPC's compressed copy would not be counted. Calls from inside are not
// compressed anyway.
func uncompressed(ctx context.Context, account kv.Account) {
	if a, ok := account.(*answers.Account); ok && a.Counted() {
		sendPlain(ctx)
	}
}

// counted reports whether the answer with a result is large.
func counted(result *kv.Result) bool {
	a, ok := result.Memory.(*answers.Account)
	return ok && a.Counted()
}

// address sets the call that the answer to a write is for.
func address(ctx context.Context, result *kv.Result) {
	if a, ok := result.Memory.(*answers.Account); ok {
		a.Address(ctx)
		uncompressed(ctx, a)
	}
}

// complete reads the pairs that a result lacks because they were left out of it when it was applied. Promptly, it returns
// errWaits if some are left out or memory is counted.
func (s *shared) complete(ctx context.Context, command *kv.Command, result *kv.Result, p patience) error {
	if p == promptly {
		if result.Left != nil || counted(result) {
			return errWaits
		}
		return nil
	}
	defer address(ctx, result)
	if result.Left == nil {
		return nil
	}
	err := s.options.Answers.Build(ctx, maxTxnAnswerBytes, func(account kv.Account) error {
		machine, release := s.options.Member.Machine()
		defer release()
		return machine.Recall(command, result, account)
	})
	switch {
	case errors.Is(err, kv.ErrAnswerTooLarge):
		return status.Errorf(codes.ResourceExhausted, "etcdserver: the request was executed at revision %d, but its "+
			"response is larger than %d bytes: read what it asked for in parts", result.Revision, maxTxnAnswerBytes)
	case errors.Is(err, kv.ErrAnswersBusy):
		return executedUnanswered(result)
	case errors.Is(err, kv.ErrResultGone):
		return status.Errorf(codes.OutOfRange, "etcdserver: the request was executed at revision %d, but its response is "+
			"no longer kept, because the history was compacted meanwhile", result.Revision)
	}
	return err
}

// executedUnanswered is the error of a command that was executed, and for whose answer there is no room.
func executedUnanswered(result *kv.Result) error {
	return status.Errorf(codes.ResourceExhausted, "etcdserver: the request was executed at revision %d, but too many large "+
		"responses are being sent: read what it asked for later", result.Revision)
}

// fill reads a range into a response, encoded pair by pair. counted asks for the number of keys beyond the limit.
func fill(
	r *wire.RangeResponse, account kv.Account, store *mvcc.Store, op *kv.RangeOp, counted bool,
) (mvcc.Page, error) {
	if a, ok := account.(*answers.Account); ok && len(op.End) > 0 {
		a.Encoded()
	}
	r.Memory, r.Pairs.Account = account, account
	page, err := store.RangeInto(op, counted, account, &r.Pairs)
	r.Result = page.Result
	if err != nil {
		r.Pairs.Reset()
	}
	return page, err
}

// drop releases the memory of a response that is not sent.
func drop(r *wire.RangeResponse) {
	r.Pairs.Reset()
	r.Memory.Release()
}

// unanswered returns the error of a read, or of a proposal that was not made, for lack of memory.
func (s *shared) unanswered(err error) error {
	switch {
	case errors.Is(err, kv.ErrAnswerTooLarge):
		return status.Errorf(codes.ResourceExhausted, "etcdserver: the response is larger than %d bytes, or %d for a "+
			"transaction: use a limit, or RangeStream", s.options.Answers.MostBytes(), maxTxnAnswerBytes)
	case errors.Is(err, kv.ErrAnswersBusy):
		return status.Error(codes.ResourceExhausted,
			"etcdserver: too many large responses are being sent: try again later, or ask for less at once")
	}
	return err
}

// collectAnswers shows the memory of answers.
func (s *shared) collectAnswers(e *metrics.Emitter) {
	stats := s.options.Answers.Stats()
	e.Gauge("quorate_answer_memory_bytes", "Memory of answers that are being built and sent.", float64(stats.UsedBytes))
	e.Gauge("quorate_answer_memory_host_bytes", "Memory of answers to the client host that has most of it.",
		float64(stats.MostHostBytes))
	e.Gauge("quorate_answers_waiting", "Calls that wait for memory for their answers.", float64(stats.Waiting))
	e.Counter("quorate_answers_refused_total",
		"Answers that were too large, or found no memory before their time ran out or their clients left.",
		float64(stats.Refused))
	e.Counter("quorate_answers_unread_total", "Answers that were given up with their connections because nobody read them.",
		float64(stats.Unread))
	machine, release := s.options.Member.Machine()
	defer release()
	e.Gauge("quorate_result_table_bytes", "What the results of proposals take in the store.",
		float64(machine.ResultBytes()))
}

// sendPlain turns off compression for the answer of a call.
func sendPlain(ctx context.Context) {
	if s, ok := grpc.ServerTransportStreamFromContext(ctx).(interface{ SetSendCompress(name string) error }); ok {
		_ = s.SetSendCompress(encoding.Identity) // it fails only after a message was sent
	}
}
