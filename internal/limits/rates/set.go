package rates

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/quorate/quorate/internal/base/keyrange"
	"github.com/quorate/quorate/internal/kv"
)

// Set is a list of rules with an index.
type Set struct {
	Rules []kv.LimitRule // sorted by name

	lengths    []int // of the prefixes, ascending, each once
	byPrefix   map[string][]int
	unprefixed []int
	readBytes  bool // a rule bounds the bytes of answers
}

// NewSet returns the set of some rules, which must not be changed any more; nil if there are none.
func NewSet(rules []kv.LimitRule) *Set {
	if len(rules) == 0 {
		return nil
	}
	s := &Set{Rules: slices.Clone(rules), byPrefix: map[string][]int{}}
	slices.SortFunc(s.Rules, func(a, b kv.LimitRule) int { return cmp.Compare(a.Name, b.Name) })
	for i := range s.Rules {
		r := &s.Rules[i]
		s.readBytes = s.readBytes || r.Bounds[kv.LimitReadBytes].Set
		if !r.Prefixed {
			s.unprefixed = append(s.unprefixed, i)
			continue
		}
		s.byPrefix[string(r.Prefix)] = append(s.byPrefix[string(r.Prefix)], i)
		if at, found := slices.BinarySearch(s.lengths, len(r.Prefix)); !found {
			s.lengths = slices.Insert(s.lengths, at, len(r.Prefix))
		}
	}
	return s
}

// OfKey calls visit with the index of each rule whose prefix the key has. It costs a lookup for each length of a prefix.
func (s *Set) OfKey(key []byte, visit func(i int)) {
	for _, n := range s.lengths {
		if n > len(key) {
			return
		}
		for _, i := range s.byPrefix[string(key[:n])] {
			visit(i)
		}
	}
}

// OfRange calls visit with the index of each rule whose prefix a key of a range may have: etcd's pair of key and end.
func (s *Set) OfRange(key, end []byte, visit func(i int)) {
	if len(end) == 0 {
		s.OfKey(key, visit)
		return
	}
	r := keyrange.From(key, end)
	if len(r.End) > 0 && bytes.Compare(r.Start, r.End) >= 0 {
		return
	}
	for i := range s.Rules {
		rule := &s.Rules[i]
		if !rule.Prefixed {
			continue
		}
		of := keyrange.From(kv.PrefixRange(rule.Prefix))
		if (len(of.End) == 0 || bytes.Compare(r.Start, of.End) < 0) && (len(r.End) == 0 || bytes.Compare(of.Start, r.End) < 0) {
			visit(i)
		}
	}
}

// Find returns the index of the rule of a name.
func (s *Set) Find(name string) (int, bool) {
	if s == nil {
		return 0, false
	}
	return slices.BinarySearchFunc(s.Rules, name, func(r kv.LimitRule, name string) int { return cmp.Compare(r.Name, name) })
}

// Len returns the number of rules.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.Rules)
}
