package rpc

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/rpc/metrics"
)

const (
	// maxTxnAnswerBytes bounds the answer to a transaction, a put or a deletion. A transaction can ask for the same
	// keys again and again, so that a small store has large answers.
	maxTxnAnswerBytes = 64 << 20
	// maxChunkBytes bounds a message of a RangeStream.
	maxChunkBytes = 16 << 20
)

// complete reads what a result needs beside what was kept of it, or could be read while it was applied.
func (s *shared) complete(ctx context.Context, command *kv.Command, result *kv.Result) error {
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
		return status.Errorf(codes.ResourceExhausted, "etcdserver: the request was executed at revision %d, but too many "+
			"large responses are being sent: read what it asked for later", result.Revision)
	case errors.Is(err, kv.ErrResultGone):
		return status.Errorf(codes.OutOfRange, "etcdserver: the request was executed at revision %d, but its response is "+
			"no longer kept, because the history was compacted meanwhile", result.Revision)
	}
	return err
}

// unanswered is why nothing was read, or proposed.
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

// collectAnswers shows what answers take.
func (s *shared) collectAnswers(e *metrics.Emitter) {
	e.Gauge("quorate_answer_memory_bytes", "Memory of answers that are being built and sent.",
		float64(s.options.Answers.UsedBytes()))
	e.Counter("quorate_answers_refused_total", "Answers that were too large, or found no memory in time.",
		float64(s.options.Answers.Refused()))
	machine, release := s.options.Member.Machine()
	defer release()
	e.Gauge("quorate_result_table_bytes", "What the results of proposals take in the store.",
		float64(machine.ResultBytes()))
}
