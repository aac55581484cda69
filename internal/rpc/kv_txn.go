package rpc

import (
	"bytes"
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/rpc/h2"
	"github.com/quorate/quorate/internal/rpc/split"
	"github.com/quorate/quorate/internal/rpc/timings"
	"github.com/quorate/quorate/internal/rpc/top"
	"github.com/quorate/quorate/internal/rpc/validate"
	"github.com/quorate/quorate/internal/rpc/wire"
)

func (s *kvService) txn(ctx context.Context, r *txnRequest) (h2.Message, error) {
	if !r.TooMany && validate.ReadOnly(&r.Op) {
		if err := r.admit(ctx, s, s.firstCheck(patiently)); err != nil {
			return nil, err
		}
		return s.readTxn(ctx, &r.TxnCall)
	}
	return s.writeBlocking(ctx, r)
}

// moreTxnParts bounds the comparisons and operations of nested transactions, beside three lists of --max-txn-ops.
const moreTxnParts = 16_384

// limitParts bounds the size of a decoded request, before any other check of it.
func (s *kvService) limitParts(request any) {
	if txn, ok := request.(*txnRequest); ok {
		txn.MaxParts = 3*s.options.MaxTxnOps + moreTxnParts
	}
}

// txnRequest is a Txn request.
type txnRequest struct{ wire.TxnCall }

// command implements writeRequest.
func (r *txnRequest) command() *kv.Command {
	r.Command.Txn = &r.Op
	return &r.Command
}

// admit implements writeRequest. A transaction that only reads is not proposed (readTxn), and waits for the leader.
func (r *txnRequest) admit(ctx context.Context, s *kvService, check growthCheck) error {
	if r.TooMany {
		return rpctypes.ErrGRPCTooManyOps
	}
	command := r.command()
	if err := s.checkGrowth(ctx, command, check); err != nil {
		return err
	}
	if err := validate.Txn(&r.Op, s.options.MaxTxnOps); err != nil {
		return err
	}
	// Only after the limits above is the request small enough for the search for overlaps.
	for _, list := range [2][]kv.Op{r.Op.Then, r.Op.Else} {
		if err := validate.Overlaps(list); err != nil {
			return err
		}
	}
	if validate.ReadOnly(&r.Op) {
		if check.patience == promptly {
			return errWaits
		}
		return nil
	}
	if err := validate.Size(r.Size, s.options.MaxRequestBytes); err != nil {
		return err
	}
	return s.checkKeys(ctx, command, check)
}

// respond implements writeRequest.
func (*txnRequest) respond(s *kvService, result *kv.Result) h2.Message {
	response := &wire.TxnResponse{Header: s.headerAt(result.Revision), Result: result.Txn, Memory: result.Memory}
	if response.Result == nil {
		response.Result = &kv.TxnResult{}
	}
	return response
}

// size implements writeRequest.
func (r *txnRequest) size() int { return r.Size }

func beginTxn(c asyncCall, message []byte) bool {
	w := &struct {
		asyncWrite
		txnRequest
	}{asyncWrite: asyncWrite{asyncCall: c}}
	c.kv.limitParts(&w.txnRequest)
	if w.DecodeWire(bytes.Clone(message)) != nil || c.front.HoldParts(w.PartBytes()) != nil {
		return false // a goroutine says why
	}
	return w.start(&w.txnRequest, len(message))
}

// readTxn serves a transaction that writes nothing and nests nothing, without the log. It is linearizable unless every range of
// it is serializable; one that only compares is always linearizable.
func (s *kvService) readTxn(ctx context.Context, call *wire.TxnCall) (_ h2.Message, err error) {
	begun := s.timings.Now()
	defer func() {
		s.timings.Request(timings.ReadonlyTxn, begun, &err)
		s.exemplify(ctx, timings.ReadonlyTxn, begun, err)
	}()
	if err := s.awaitState(ctx, call.Linearizable == 0 && call.Serializable > 0); err != nil {
		return nil, err
	}
	users, err := s.access.ReadTxn(ctx, &call.Op)
	if err != nil {
		return nil, err
	}
	limited, err := s.limitReadTxn(ctx, &call.Op)
	if err != nil {
		return nil, err
	}
	response := &wire.TxnResponse{}
	var took time.Duration
	err = s.options.Answers.Build(ctx, maxTxnAnswerBytes, func(account kv.Account) error {
		machine, release := s.options.Member.Machine()
		defer release()
		revision, begun := machine.Store().Revision(), s.timings.Now()
		defer func() { took = s.timings.Now().Sub(begun) }()
		result, err := readTxnAt(machine.Store(), &call.Op, revision, account)
		if result != nil {
			machine.Counts().Done(0, 0, uint64(len(result.Responses)))
		}
		response.Result, response.Header, response.Memory = result, s.headerAt(revision), account
		return err
	})
	if errors.Is(err, errOvertaken) {
		return s.readTxn(ctx, call)
	}
	if err != nil {
		return nil, s.unanswered(err)
	}
	if !s.access.Unchanged(users) {
		if _, err := s.access.ReadTxn(ctx, &call.Op); err != nil {
			response.Memory.Release()
			return nil, err
		}
	}
	split.Of(ctx).Read(took)
	limited.countAnswer(s.shared, response.SizeWire())
	s.tookRead(ctx, top.Txn, firstKey(&call.Op), took, response.SizeWire(), func() string { return s.access.NameNow(ctx) })
	uncompressed(ctx, response.Memory)
	return response, nil
}

// errOvertaken means that a compaction made the revision of a transaction unreadable while it was being read. The next attempt
// uses a newer one.
var errOvertaken = errors.New("rpc: revision compacted while it was read")

// readTxnAt evaluates a read-only transaction, all of it at one revision.
func readTxnAt(store *mvcc.Store, op *kv.TxnOp, revision kv.Revision, account kv.Account) (*kv.TxnResult, error) {
	result := &kv.TxnResult{Succeeded: true}
	for i := range op.Compares {
		holds, err := store.CheckAt(&op.Compares[i], revision, account, nil)
		if errors.Is(err, kv.ErrCompacted) {
			return nil, errOvertaken
		}
		if err != nil {
			return nil, err
		}
		if !holds {
			result.Succeeded = false
			break
		}
	}
	taken := op.Then
	if !result.Succeeded {
		taken = op.Else
	}
	for i := range taken { // as in etcd, before any read
		if err := store.CheckTxnRevision(taken[i].Range.Revision); err != nil {
			return nil, err
		}
	}
	result.Responses = make([]kv.OpResult, len(taken))
	for i := range taken {
		read := *taken[i].Range
		pinned := read.Revision <= 0
		if read.Revision < 0 && read.Revision < store.CompactRevision() {
			return nil, kv.ErrCompacted // as in etcd
		}
		if pinned {
			read.Revision = revision
		} else if read.Revision > revision {
			return nil, kv.ErrFutureRevision
		}
		answer, _, err := store.RangeWithin(&read, account)
		if errors.Is(err, kv.ErrCompacted) && pinned {
			return nil, errOvertaken
		}
		if err != nil {
			return nil, err
		}
		result.Responses[i] = kv.OpResult{Revision: revision, Range: &answer}
	}
	return result, nil
}
