package kv

import (
	"encoding/binary"
	"errors"
	"math"
)

// The binary form of a LimitOp begins with its inner kind. That of a rule is its name, user, flags and prefix, and a byte whose
// bits say which bounds follow, in the order of LimitKind.
const (
	limitSet    = 1
	limitDelete = 2
	limitCount  = 3
)

const limitPrefixed = 1

func (op *LimitOp) append(dst []byte) []byte {
	switch {
	case op.Set != nil:
		return op.Set.Append(append(dst, limitSet))
	case op.Delete != "":
		return appendText(append(dst, limitDelete), op.Delete)
	}
	return appendBytes(appendText(append(dst, limitCount), op.Count), op.From)
}

func (r *reader) limit() *LimitOp {
	op := &LimitOp{}
	switch kind := r.byte(); kind {
	case limitSet:
		op.Set = r.limitRule()
	case limitDelete:
		op.Delete = string(r.bytes())
		r.shown(op.Delete != "")
	case limitCount:
		op.Count, op.From = string(r.bytes()), r.bytes()
		r.shown(op.Count != "")
	default:
		r.known(kind <= limitCount)
		r.fail()
	}
	return op
}

// Append appends the binary form of a rule, which is also in the store.
func (l *LimitRule) Append(dst []byte) []byte {
	dst = appendText(appendText(dst, l.Name), l.User)
	dst = appendBytes(append(dst, flag(l.Prefixed, limitPrefixed)), l.Prefix)
	bits := byte(0)
	for kind, b := range l.Bounds {
		bits |= flag(b.Set, 1<<kind)
	}
	dst = append(dst, bits)
	for _, b := range l.Bounds {
		if b.Set {
			dst = binary.AppendUvarint(dst, uint64(max(b.Most, 0)))
		}
	}
	return dst
}

func (r *reader) limitRule() *LimitRule {
	l := &LimitRule{Name: string(r.bytes()), User: string(r.bytes()), Prefixed: r.flags(limitPrefixed) != 0, Prefix: r.bytes()}
	bits := r.flags(1<<LimitKinds - 1)
	for kind := range l.Bounds {
		if bits&(1<<kind) == 0 {
			continue
		}
		most := r.uvarint()
		if most > math.MaxInt64 {
			r.fail()
			most = 0
		}
		l.Bounds[kind] = Bound{Set: true, Most: int64(most)}
	}
	return l
}

// ErrBadLimit is an operating error: a stored rule does not decode.
var ErrBadLimit = errors.New("kv: rule does not decode")

// DecodeLimitRule reads the binary form of a rule. Its prefix aliases src.
func DecodeLimitRule(src []byte) (LimitRule, error) {
	r := reader{src: src}
	rule := r.limitRule()
	if err := r.finish(); err != nil {
		return LimitRule{}, errors.Join(ErrBadLimit, err)
	}
	return *rule, nil
}
