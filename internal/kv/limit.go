package kv

import (
	"fmt"
	"math"
	"unicode/utf8"
)

// LimitKind is one of the things that a rule bounds. The numbers are in the log and on disk: append only.
type LimitKind uint8

const (
	LimitWrites     LimitKind = 0 // requests a second that write, of each member
	LimitWriteBytes LimitKind = 1 // their bytes a second, of each member
	LimitReads      LimitKind = 2 // requests a second that only read, of each member
	LimitReadBytes  LimitKind = 3 // bytes a second of their answers, of each member
	LimitValueBytes LimitKind = 4 // of one value
	LimitQuotaBytes LimitKind = 5 // keys and values that exist, in the cluster
	LimitQuotaKeys  LimitKind = 6 // keys that exist, in the cluster

	LimitKinds = 7
)

// Bound is one bound of a rule. Most may be zero: nothing passes then.
type Bound struct {
	Set  bool
	Most int64
}

// LimitRule bounds what one user may do, or what may be done to the keys with a prefix, or both: that user to these keys.
type LimitRule struct {
	Name     string // [a-z0-9._-], unique
	User     string // empty: every user
	Prefixed bool   // of the keys with Prefix, which may be empty: every key
	Prefix   []byte
	Bounds   [LimitKinds]Bound
}

// Bounds of rules. They belong to the format of commands: every member must have the same.
const (
	MaxLimitRules  = 256
	MaxLimitName   = 64
	MaxLimitUser   = 1 << 10
	MaxLimitPrefix = 512
)

// LimitCountBytes bounds what one LimitOp.Count looks at: WalkKeyBytes for a key, and its value, or for a key that was deleted
// after the compact revision. It belongs to the format of commands, too.
const LimitCountBytes = 4 << 20

// LimitOp changes the rules, or counts on behalf of one: exactly one of Set, Delete and Count is set.
type LimitOp struct {
	Set    *LimitRule // replaces the rule of that name
	Delete string     // the name of a rule
	// Count is the name of a rule with a quota whose keys are being counted: the next ones from From on are. From is where the
	// count stands; a count that stands elsewhere is not changed, so that several members may drive it.
	Count string
	From  []byte
}

// Quota reports whether the rule bounds how much there may be.
func (r *LimitRule) Quota() bool {
	return r.Bounds[LimitQuotaBytes].Set || r.Bounds[LimitQuotaKeys].Set
}

// Problem says what is wrong with a rule, in words for the operator who wrote it; empty: nothing is.
func (r *LimitRule) Problem() string {
	bounds := false
	for _, b := range r.Bounds {
		if b.Set && b.Most < 0 {
			return fmt.Sprintf("a bound of %d is negative: give 0 to refuse all, or a larger number", b.Most)
		}
		bounds = bounds || b.Set
	}
	switch {
	case !goodLimitName(r.Name):
		return fmt.Sprintf("the name of a limit has 1 to %d of the characters a-z, 0-9, '.', '_' and '-'", MaxLimitName)
	case r.User == "" && !r.Prefixed:
		return "the limit names neither a user nor a prefix: give one of them, or both (an empty prefix means every key)"
	case len(r.User) > MaxLimitUser || !utf8.ValidString(r.User):
		return fmt.Sprintf("the name of a user is UTF-8 text of at most %d bytes", MaxLimitUser)
	case len(r.Prefix) > MaxLimitPrefix:
		return fmt.Sprintf("the prefix has %d bytes, and may have %d", len(r.Prefix), MaxLimitPrefix)
	case len(r.Prefix) > 0 && !r.Prefixed:
		return "the limit has a prefix and says that it has none"
	case !bounds:
		return "the limit bounds nothing: give at least one bound"
	case r.Quota() && r.User != "":
		return "a quota counts the keys of a prefix, whoever wrote them: leave the user out, or set another limit for it"
	}
	return ""
}

func goodLimitName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return name != "" && len(name) <= MaxLimitName
}

// PrefixRange returns etcd's pair of key and end for the keys with a prefix. Keys are never empty.
func PrefixRange(prefix []byte) (key, end []byte) {
	if len(prefix) == 0 {
		return []byte{0}, []byte{0}
	}
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < math.MaxUint8 {
			end = append([]byte(nil), prefix[:i+1]...)
			end[i]++
			return prefix, end
		}
	}
	return prefix, []byte{0}
}
