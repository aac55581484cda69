package check

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// quotas are the rules of limits in the model. It keeps no counts: what a prefix has is counted anew for each put. A refused
// command must have changed nothing, which the model sees like any other result.
type quotas struct {
	rules      map[string]*modelRule
	wants      map[string]*[2]int64 // by rule, the bytes and keys that the command which is being applied adds
	countBytes int64                // Suite.CountBytes
	refused    uint64               // commands
}

// modelRule is a rule, and the place of its count if it has a quota.
type modelRule struct {
	rule    kv.LimitRule
	counted bool
	next    string // the first key that is not counted
}

// limit executes a LimitOp. Those of the simulator are valid, and few.
func (m *Model) limit(op *kv.LimitOp) error {
	r, found := m.quotas.rules[op.Delete+op.Count]
	switch {
	case op.Set != nil:
		m.setRule(op.Set)
	case !found, op.Count != "" && !r.rule.Quota():
		return kv.ErrLimitNotFound
	case op.Delete != "":
		delete(m.quotas.rules, op.Delete)
	case !r.counted && r.next == string(op.From):
		m.count(r)
	}
	return nil
}

// setRule adds or replaces a rule. The count of the same prefix goes on.
func (m *Model) setRule(rule *kv.LimitRule) {
	next := modelRule{rule: *rule}
	next.rule.Prefix = bytes.Clone(rule.Prefix)
	former, found := m.quotas.rules[rule.Name]
	if found && former.rule.Quota() && rule.Quota() && bytes.Equal(former.rule.Prefix, rule.Prefix) {
		next.counted, next.next = former.counted, former.next
	} else if next.next = string(rule.Prefix); next.next == "" {
		next.next = "\x00"
	}
	m.quotas.rules[rule.Name] = &next
}

// count makes a step: it looks at keys, and at those that were deleted and whose history is kept, until it has looked enough.
func (m *Model) count(r *modelRule) {
	left := m.quotas.countBytes
	for _, key := range m.Keys() {
		if key < r.next || !strings.HasPrefix(key, string(r.rule.Prefix)) {
			continue
		}
		now, exists := m.now(key)
		if !exists && now.ModRevision <= m.Compacted {
			continue
		}
		if left <= 0 {
			r.next = key
			return
		}
		left -= kv.WalkKeyBytes
		if exists {
			left -= int64(len(now.Value))
		}
	}
	r.counted, r.next = true, ""
}

// has counts the keys with a prefix, and their bytes.
func (m *Model) has(prefix []byte) (keys, size int64) {
	for _, key := range m.live {
		if strings.HasPrefix(key, string(prefix)) {
			now, _ := m.now(key)
			keys, size = keys+1, size+int64(len(key)+len(now.Value))
		}
	}
	return keys, size
}

// checkPut rejects a put before it changes anything: for its lease, or because a quota would be exceeded by it, with the puts
// of the same command before it. A smaller value makes no room for them.
func (m *Model) checkPut(op *kv.PutOp) error {
	if op.Lease != 0 && !m.takes(op.Lease) {
		return kv.ErrLeaseNotFound
	}
	over := false
	for name, r := range m.quotas.rules {
		if !r.counted || op.IgnoreValue || !bytes.HasPrefix(op.Key, r.rule.Prefix) {
			continue
		}
		want := m.quotas.wants[name]
		if want == nil {
			want = &[2]int64{}
			m.quotas.wants[name] = want
		}
		if old, exists := m.now(string(op.Key)); exists {
			want[0] += max(0, int64(len(op.Value)-len(old.Value)))
		} else {
			want[0] += int64(len(op.Key) + len(op.Value))
			want[1]++
		}
		keys, size := m.has(r.rule.Prefix)
		mostBytes, mostKeys := r.rule.Bounds[kv.LimitQuotaBytes], r.rule.Bounds[kv.LimitQuotaKeys]
		over = over || mostBytes.Set && want[0] > 0 && size+want[0] > mostBytes.Most ||
			mostKeys.Set && want[1] > 0 && keys+want[1] > mostKeys.Most
	}
	if over {
		m.quotas.refused++
		return kv.ErrOverQuota
	}
	return nil
}

// Tight returns the rules with a quota below most, sorted by name.
func (m *Model) Tight(most int64) (rules []kv.LimitRule) {
	for _, name := range slices.Sorted(maps.Keys(m.quotas.rules)) {
		rule := &m.quotas.rules[name].rule
		if slices.ContainsFunc(rule.Bounds[:], func(b kv.Bound) bool { return b.Set && b.Most < most }) {
			rules = append(rules, *rule)
		}
	}
	return rules
}

// OverQuota returns how many commands quotas have refused.
func (s *Suite) OverQuota() uint64 { return s.machine.model.quotas.refused }

// Counted is what a member has counted for a quota.
type Counted struct {
	Name        string
	Keys, Bytes int64
	Done        bool
	Next        []byte
}

// Counted compares the quotas of a member that has applied the log up to an index with the model.
func (s *Suite) Counted(member consensus.MemberID, index consensus.Index, all []Counted) {
	if int(index) != len(s.machine.outcomes) {
		return
	}
	m, quotas := s.machine.model, 0
	for _, r := range m.quotas.rules {
		if r.rule.Quota() {
			quotas++
		}
	}
	if quotas != len(all) {
		s.report("quota", "member %v has %d quotas at index %d, the model %d", member, len(all), index, quotas)
	}
	for i := range all {
		c := &all[i]
		r := m.quotas.rules[c.Name]
		if r == nil || r.counted != c.Done || r.next != string(c.Next) {
			s.report("quota", "member %v counts %+v at index %d, the model %+v", member, *c, index, r)
			continue
		}
		if keys, size := m.has(r.rule.Prefix); c.Done && (keys != c.Keys || size != c.Bytes) {
			s.report("quota", "member %v counts %d keys of %d bytes for limit %s at index %d, and there are %d of %d", member,
				c.Keys, c.Bytes, c.Name, index, keys, size)
		}
	}
}
