package rpc

import (
	"bytes"
	"context"
	"fmt"

	"google.golang.org/grpc/codes"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/limits/rates"
)

// Limits of users and prefixes (package rates). A request is asked for after its permission, so that a caller without one
// takes nothing from those who have it, and before it is proposed. Users with the role root, members, and whatever renews or
// ends leases pass in any case. Quotas are the state machine's: here they only get their words.

// limitWrite refuses a signed command that a rule does not let pass now.
func (s *shared) limitWrite(by auth.Credentials, command *kv.Command) error {
	return limitError(s.writeRefusal(by, command))
}

// writeRefusal is limitWrite with what the rule says; nil: the command passes.
func (s *shared) writeRefusal(by auth.Credentials, command *kv.Command) *rates.Refusal {
	set := s.options.Member.Limits()
	if set == nil || s.unlimited(by) {
		return nil
	}
	return s.limiter.Write(set, rates.Call{User: by.User, Now: s.timings.Now()}, command)
}

func (s *shared) unlimited(by auth.Credentials) bool {
	state := s.access.State()
	check := state.Check(by)
	return by.Member || state.Enabled() && check.Free()
}

// limitError is the error of a refusal, nil if there is none.
func limitError(r *rates.Refusal) error {
	switch {
	case r == nil:
		return nil
	case r.Kind == kv.LimitValueBytes:
		return refusedf(codes.InvalidArgument, "etcdserver: request is too large: %v", r)
	}
	return refusedf(codes.ResourceExhausted, "etcdserver: too many requests: %v", r)
}

// limitedRead is a read that rules bound. The zero value is one that none bounds.
type limitedRead struct {
	set  *rates.Set
	user string
	each func(read func(key, end []byte))
}

// limitRead refuses a read of one who may do it, if a rule does not let it pass now. The bytes of its answer are counted by
// countAnswer.
func (s *shared) limitRead(by auth.Credentials, each func(read func(key, end []byte))) (limitedRead, error) {
	set := s.options.Member.Limits()
	if set == nil || s.unlimited(by) {
		return limitedRead{}, nil
	}
	r := limitedRead{set: set, user: by.User, each: each}
	return r, limitError(s.limiter.ReadAll(set, r.asks(s), each))
}

func (r *limitedRead) asks(s *shared) rates.Call {
	return rates.Call{User: r.user, Now: s.timings.Now()}
}

// countAnswer counts the bytes of an answer, for which the next reads wait.
func (r *limitedRead) countAnswer(s *shared, bytes int) {
	if r.set != nil {
		s.limiter.Answered(r.set, r.asks(s), bytes, r.each)
	}
}

// hasLimits reports whether there are rules.
func (s *shared) hasLimits() bool { return s.options.Member.Limits() != nil }

func oneRange(key, end []byte) func(read func(key, end []byte)) {
	return func(read func(key, end []byte)) { read(key, end) }
}

// rangesOf are the ranges that a transaction reads, in both branches, and compares.
func rangesOf(op *kv.TxnOp) func(read func(key, end []byte)) {
	return func(read func(key, end []byte)) {
		for i := range op.Compares {
			read(op.Compares[i].Key, op.Compares[i].End)
		}
		for _, branch := range [...][]kv.Op{op.Then, op.Else} {
			for i := range branch {
				if branch[i].Range != nil {
					read(branch[i].Range.Key, branch[i].Range.End)
				}
			}
		}
	}
}

// overQuota says which quota a command would exceed, as far as this member knows, and counts the refusal.
func (s *shared) overQuota(command *kv.Command) error {
	machine, release := s.options.Member.Machine()
	uses := machine.LimitUses()
	release()
	best, most := -1, 0.0
	for i := range uses {
		if full := uses[i].Full(); full >= most && putsBelow(command, uses[i].Rule.Prefix) {
			best, most = i, full
		}
	}
	if best < 0 { // the rule was deleted meanwhile
		return refusedf(codes.ResourceExhausted, "etcdserver: the quota of a prefix is reached: try again")
	}
	u := &uses[best]
	s.limiter.RefusedBy(s.options.Member.Limits(), u.Rule.Name)
	return refusedf(codes.ResourceExhausted, "etcdserver: limit %q allows %s with the prefix %q, and there are %d keys "+
		"of %d bytes: delete some, or ask an operator", u.Rule.Name, quotaWords(u.Rule), u.Rule.Prefix, u.Keys, u.Bytes)
}

func quotaWords(rule *kv.LimitRule) (words string) {
	if b := rule.Bounds[kv.LimitQuotaKeys]; b.Set {
		words = fmt.Sprintf("%d keys", b.Most)
	}
	if b := rule.Bounds[kv.LimitQuotaBytes]; b.Set {
		if words != "" {
			words += " and "
		}
		words += fmt.Sprintf("%d bytes of keys and values", b.Most)
	}
	return words
}

// putsBelow reports whether a command puts a key with a prefix.
func putsBelow(command *kv.Command, prefix []byte) bool {
	if command.Put != nil {
		return bytes.HasPrefix(command.Put.Key, prefix)
	}
	return command.Txn != nil && txnPutsBelow(command.Txn, prefix)
}

func txnPutsBelow(op *kv.TxnOp, prefix []byte) bool {
	for _, branch := range [...][]kv.Op{op.Then, op.Else} {
		for i := range branch {
			o := &branch[i]
			if o.Put != nil && bytes.HasPrefix(o.Put.Key, prefix) || o.Txn != nil && txnPutsBelow(o.Txn, prefix) {
				return true
			}
		}
	}
	return false
}

// limitReadTxn is limitRead for a transaction that only reads.
func (s *shared) limitReadTxn(ctx context.Context, op *kv.TxnOp) (limitedRead, error) {
	if !s.hasLimits() {
		return limitedRead{}, nil
	}
	by, err := s.access.Caller(ctx)
	if err != nil {
		return limitedRead{}, err
	}
	return s.limitRead(by, rangesOf(op))
}
