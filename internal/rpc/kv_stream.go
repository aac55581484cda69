package rpc

import (
	"context"
	"errors"
	"math"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/rpc/top"
	"github.com/quorate/quorate/internal/rpc/validate"
	"github.com/quorate/quorate/internal/rpc/wire"
)

// firstChunkKeys is the number of keys in the first message of a RangeStream; later ones grow or shrink towards
// MaxRequestBytes.
const firstChunkKeys = 10

func (s *kvService) serveRangeStream(_ any, stream grpc.ServerStream) error {
	call := new(wire.RangeCall)
	if err := stream.RecvMsg(call); err != nil {
		return err
	}
	if err := validate.RangeStream(&call.Op); err != nil {
		return err
	}
	ctx := stream.Context()
	if err := s.awaitState(ctx, call.Serializable); err != nil {
		return err
	}
	by, users, err := s.access.ReadBy(ctx, call.Op.Key, call.Op.End)
	if err != nil {
		return err
	}
	limited, err := s.limitRead(by, oneRange(call.Op.Key, call.Op.End))
	if err != nil {
		return err
	}
	sendPlain(ctx) // like large answers (uncompressed)
	begun, sent := s.timings.Now(), 0
	err = s.rangeStream(ctx, call.Op, func(chunk *wire.RangeChunk) (err error) {
		if !s.access.Unchanged(users) {
			if users, err = s.access.Read(ctx, call.Op.Key, call.Op.End); err != nil {
				return err
			}
		}
		sent += chunk.SizeWire()
		paused := s.timings.Now()
		err = stream.SendMsg(chunk)
		begun = begun.Add(s.timings.Now().Sub(paused))
		return err
	})
	limited.countAnswer(s.shared, sent)
	s.tookRead(ctx, top.Range, call.Op.Key, s.timings.Now().Sub(begun), sent, func() string { return by.User })
	return err
}

// rangeStream sends a range in chunks. Put together they are the response that Range would have given at the revision of the
// first chunk. Only the last chunk has a header, a count and the field More.
func (s *kvService) rangeStream(ctx context.Context, op kv.RangeOp, send func(*wire.RangeChunk) error) error {
	if op.CountOnly {
		return s.streamCount(ctx, op, send)
	}
	left := op.Limit
	if left <= 0 {
		left = math.MaxInt64
	}
	var head wire.Header
	var sent int64
	op.Limit = min(firstChunkKeys, left)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		chunk, page, err := s.readChunk(ctx, &op)
		if err != nil {
			return err
		}
		if head.Revision == 0 {
			head = s.headerAt(page.Revision)
			if op.Revision <= 0 {
				op.Revision = page.Revision
			}
		}
		found := page.Given + int64(len(page.Result.KVs))
		sent += found
		left -= found
		last := !page.Result.More || left == 0
		if page.Result.More {
			op.Key = append(page.Last, 0)
		}
		if last {
			if err := s.closeStream(ctx, &chunk.Response, op, head, sent, page.Result.More); err != nil {
				drop(&chunk.Response)
				return err
			}
		}
		size := chunk.SizeWire()
		if err := send(chunk); err != nil || last {
			return err
		}
		op.Limit = min(nextChunkKeys(op.Limit, size, s.options.MaxRequestBytes), left)
	}
}

// closeStream completes the last chunk. The keys beyond the limit are counted now: op begins behind the last key sent.
func (s *kvService) closeStream(
	ctx context.Context, r *wire.RangeResponse, op kv.RangeOp, head wire.Header, sent int64, more bool,
) error {
	r.Headless, r.Header = false, head
	r.Result.More, r.Result.Count = more, sent
	if !more {
		return nil
	}
	rest, _, err := s.count(ctx, &kv.RangeOp{Key: op.Key, End: op.End, Revision: op.Revision, CountOnly: true})
	r.Result.Count += rest
	return err
}

// streamCount answers a stream that only counts with its only message.
func (s *kvService) streamCount(ctx context.Context, op kv.RangeOp, send func(*wire.RangeChunk) error) error {
	found, revision, err := s.count(ctx, &op)
	if err != nil {
		return err
	}
	counted := wire.RangeResponse{Header: s.headerAt(revision), Result: kv.RangeResult{Count: found}}
	return send(&wire.RangeChunk{Response: counted})
}

// count counts the keys of a range. It ends with ctx.
func (s *kvService) count(ctx context.Context, op *kv.RangeOp) (found int64, revision kv.Revision, err error) {
	err = s.options.Answers.Build(ctx, maxChunkBytes, func(account kv.Account) error {
		machine, release := s.options.Member.Machine()
		defer release()
		result, current, err := machine.Store().RangeWithin(op, account)
		if err != nil {
			return err
		}
		account.Release()
		found, revision = result.Count, current
		return nil
	})
	return found, revision, s.unanswered(err)
}

// readChunk obeys a sort target without an order only if this chunk is all of the stream, as in etcd. Otherwise the stream is
// in the order of keys from then on: it continues behind the last key sent, and after a chunk in another order that would
// repeat keys and miss others.
func (s *kvService) readChunk(ctx context.Context, op *kv.RangeOp) (*wire.RangeChunk, mvcc.Page, error) {
	chunk, page, err := s.readUncounted(ctx, op)
	if err == nil && page.Result.More && op.Target != kv.SortByKey {
		drop(&chunk.Response)
		op.Target = kv.SortByKey
		return s.readUncounted(ctx, op)
	}
	return chunk, page, err
}

// readUncounted reads fewer keys than asked if they are larger than those before.
func (s *kvService) readUncounted(ctx context.Context, op *kv.RangeOp) (*wire.RangeChunk, mvcc.Page, error) {
	for {
		chunk := &wire.RangeChunk{Response: wire.RangeResponse{Headless: true}}
		var page mvcc.Page
		err := s.options.Answers.Build(ctx, maxChunkBytes, func(account kv.Account) (err error) {
			machine, release := s.options.Member.Machine()
			defer release()
			page, err = fill(&chunk.Response, account, machine.Store(), op, false)
			return err
		})
		if !errors.Is(err, kv.ErrAnswerTooLarge) || op.Limit <= 1 {
			chunk.Response.Result = kv.RangeResult{KVs: page.Result.KVs}
			return chunk, page, s.unanswered(err)
		}
		op.Limit = max(op.Limit/4, 1)
	}
}

// nextChunkKeys doubles or halves the number of keys only when the last chunk was far from the target, so that it does not
// oscillate. It is never zero, which would mean no limit.
func nextChunkKeys(last int64, sizeBytes, targetBytes int) int64 {
	switch {
	case sizeBytes < targetBytes/2:
		last *= 2
	case sizeBytes > targetBytes*2:
		last /= 2
	}
	return max(last, 1)
}
