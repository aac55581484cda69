package apply

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/limits/rates"
	"github.com/quorate/quorate/internal/storage/engine"
)

// limitTable holds the rules that bound users and prefixes, and what exists of each prefix that has a quota: its use. The
// goroutine that calls Apply changes it; any goroutine may read the rules, and the uses.
//
// Invariants:
//  1. The use of a rule whose count is done is the number of keys with its prefix that exist, and their bytes, values
//     included. Before that it is that of the keys before the count's place.
//  2. No command takes a use beyond its quota that was within it: a put is refused that would, on all members alike. Keys
//     that exist when a rule is set stay.
//  3. Without rules nothing is looked up, and nothing is written.
type limitTable struct {
	present atomic.Pointer[rates.Set] // all rules; nil: there are none
	uses    atomic.Pointer[[]usedBy]  // of those that have a quota
	quotas  *rates.Set                // the rules that have a quota
	of      []*quotaUse               // by the index of quotas
	dirty   []*quotaUse               // changed by the batch under way
	fresh   []*quotaUse               // changed by the command under way
	asked   []*quotaUse               // which the command under way wants more of
	sum     uint64                    // of all rows, for the chain
	// Faults of that name.
	overQuota, evaluateQuota, deletedCounts bool
}

// quotaUse is what exists of the prefix of a rule.
type quotaUse struct {
	bytes, keys atomic.Int64
	counted     atomic.Bool
	next        atomic.Pointer[[]byte] // of a count that is not done: the first key that was not counted; replaced, not changed

	// Of the goroutine that calls Apply.
	rule                *kv.LimitRule
	moreBytes, moreKeys int64 // which the command under way wants
	dirty, fresh        bool
	digest              uint64 // what it adds to limitTable.sum
}

// usedBy is the use of a rule, for other goroutines.
type usedBy struct {
	rule *kv.LimitRule
	use  *quotaUse
}

// place returns the first key that was not counted.
func (u *quotaUse) place() []byte {
	if next := u.next.Load(); next != nil {
		return *next
	}
	return nil
}

// Rows of a rule: the form, and the binary form of the rule; and of its use: the form, whether it was counted, its keys, bytes,
// and the length of the place of its count, and the place.
const limitForm = 1

func limitRow(name string) []byte    { return append([]byte{tableState, rowLimit}, name...) }
func limitUseRow(name string) []byte { return append([]byte{tableState, rowLimitUse}, name...) }

func (u *quotaUse) encoded() []byte {
	row := []byte{limitForm, 0}
	if u.counted.Load() {
		row[1] = 1
	}
	row = binary.AppendVarint(binary.AppendVarint(row, u.keys.Load()), u.bytes.Load())
	return appendBytes(row, u.place())
}

// load reads a row of uses. A count that is done has no place, and another one has.
func (u *quotaUse) load(name, row []byte) error {
	rest, err := openRow("use of limit", name, row, limitForm)
	if err != nil {
		return err
	}
	switch {
	case len(rest) > 0 && rest[0] > 1:
		return fmt.Errorf("%w: use of limit %q", level.ErrLater, name)
	case len(rest) == 0 || !u.take(rest[0] == 1, rest[1:]):
		return fmt.Errorf("%w: use of limit %q: %x", ErrCorruptRow, name, row)
	}
	return nil
}

// take takes keys, bytes and the place from a row; false: that is none.
func (u *quotaUse) take(counted bool, row []byte) bool {
	keys, n := binary.Varint(row)
	if n <= 0 {
		return false
	}
	size, m := binary.Varint(row[n:])
	if m <= 0 {
		return false
	}
	next, ok := onlyBytes(row[n+m:])
	if !ok || counted != (len(next) == 0) {
		return false
	}
	u.counted.Swap(counted)
	u.keys.Swap(keys)
	u.bytes.Swap(size)
	if !counted {
		next = bytes.Clone(next)
		u.next.Swap(&next)
	}
	return true
}

func appendRule(dst []byte, rule *kv.LimitRule) []byte { return rule.Append(append(dst, limitForm)) }

func decodeRule(name, row []byte) (rule kv.LimitRule, err error) {
	rest, err := openRow("limit", name, row, limitForm)
	if err != nil {
		return rule, err
	}
	rule, err = kv.DecodeLimitRule(bytes.Clone(rest))
	switch {
	case errors.Is(err, level.ErrLater):
		return rule, fmt.Errorf("%w: limit %q", level.ErrLater, name)
	case err != nil || rule.Name != string(name) || rule.Problem() != "":
		return rule, fmt.Errorf("%w: limit %q: %x", ErrCorruptRow, name, row)
	}
	return rule, nil
}

func (t *limitTable) load(eng engine.Engine) error {
	var rules []kv.LimitRule
	err := scan(eng, []byte{tableState, rowLimit}, func(rest, value []byte) error {
		rule, err := decodeRule(rest, value)
		if err == nil {
			rules = append(rules, rule)
		}
		return err
	})
	if err != nil {
		return err
	}
	uses := map[string]*quotaUse{}
	err = scan(eng, []byte{tableState, rowLimitUse}, func(rest, value []byte) error {
		at := slices.IndexFunc(rules, func(r kv.LimitRule) bool { return r.Name == string(rest) })
		if at < 0 {
			return fmt.Errorf("%w: use of limit %q, which there is not", ErrCorruptRow, rest)
		}
		u := &quotaUse{rule: &rules[at]}
		uses[u.rule.Name] = u
		return u.load(rest, value)
	})
	if err != nil {
		return err
	}
	for i := range rules {
		if rules[i].Quota() && uses[rules[i].Name] == nil {
			return fmt.Errorf("%w: limit %q has no use", ErrCorruptRow, rules[i].Name)
		}
	}
	t.adopt(rules, uses)
	return nil
}

// adopt makes rules, and the uses of those that have a quota, the present ones.
func (t *limitTable) adopt(rules []kv.LimitRule, uses map[string]*quotaUse) {
	var quotas []kv.LimitRule
	for i := range rules {
		if rules[i].Quota() {
			quotas = append(quotas, rules[i])
		}
	}
	t.quotas, t.of, t.sum = rates.NewSet(quotas), nil, 0
	for i := range rules {
		t.sum ^= rowSum(limitRow(rules[i].Name), appendRule(nil, &rules[i]))
	}
	var shown []usedBy
	for i := range t.quotas.Len() {
		rule := &t.quotas.Rules[i]
		u := uses[rule.Name]
		u.rule = rule
		t.of = append(t.of, u)
		shown = append(shown, usedBy{rule, u})
		u.digest = u.hash()
		t.sum ^= u.digest
	}
	t.uses.Swap(&shown)
	t.present.Swap(rates.NewSet(rules))
}

// hash is a hash of the row of the use.
func (u *quotaUse) hash() uint64 { return rowSum(limitUseRow(u.rule.Name), u.encoded()) }

// step makes a step of the count of a rule, if the count stands where the step begins.
func (t *limitTable) step(w *mvcc.Writer, op *kv.LimitOp, most int64) error {
	at, found := t.quotas.Find(op.Count)
	if !found {
		return kv.ErrLimitNotFound
	}
	if u := t.of[at]; !u.counted.Load() && bytes.Equal(u.place(), op.From) {
		u.countOn(w, most)
		t.changed(u)
	}
	return nil
}

// setRule adds or replaces a rule. Its use stays if it bounds the same prefix as before.
func (t *limitTable) setRule(w rowWriter, op *kv.LimitRule) error {
	if op.Problem() != "" {
		return kv.ErrBadCommand
	}
	rules, former := t.rules(), kv.LimitRule{}
	rule := *op
	rule.Name, rule.User, rule.Prefix = op.Name, op.User, bytes.Clone(op.Prefix) // op aliases the entry
	at, found := t.present.Load().Find(rule.Name)
	switch {
	case found:
		former = rules[at]
		rules[at] = rule
	case len(rules) >= kv.MaxLimitRules:
		return kv.ErrTooManyLimits
	default:
		rules = slices.Insert(rules, at, rule)
	}
	uses := t.usesByName()
	switch {
	case !rule.Quota():
		delete(uses, rule.Name)
		w.DeleteRaw(limitUseRow(rule.Name))
	case uses[rule.Name] == nil || !bytes.Equal(former.Prefix, rule.Prefix):
		u := &quotaUse{rule: &rule}
		next, _ := kv.PrefixRange(rule.Prefix)
		u.next.Swap(&next)
		uses[rule.Name] = u
		w.Set(limitUseRow(rule.Name), u.encoded())
	}
	w.Set(limitRow(rule.Name), appendRule(nil, &rule))
	t.adopt(rules, uses)
	return nil
}

func (t *limitTable) deleteRule(w rowWriter, name string) error {
	at, found := t.present.Load().Find(name)
	if !found {
		return kv.ErrLimitNotFound
	}
	uses := t.usesByName()
	delete(uses, name)
	w.DeleteRaw(limitRow(name))
	w.DeleteRaw(limitUseRow(name))
	t.adopt(slices.Delete(t.rules(), at, at+1), uses)
	return nil
}

// rules returns a copy of the rules, sorted by name.
func (t *limitTable) rules() []kv.LimitRule {
	if s := t.present.Load(); s != nil {
		return slices.Clone(s.Rules)
	}
	return nil
}

func (t *limitTable) usesByName() map[string]*quotaUse {
	uses := make(map[string]*quotaUse, len(t.of))
	for _, u := range t.of {
		uses[u.rule.Name] = u
	}
	return uses
}

// count goes on with the count of a rule whose keys are not counted yet.
func (u *quotaUse) countOn(w *mvcc.Writer, most int64) {
	_, end := kv.PrefixRange(u.rule.Prefix)
	found := w.Measure(u.place(), end, most)
	u.keys.Add(found.Keys)
	u.bytes.Add(found.Bytes)
	u.next.Swap(&found.Next)
	u.counted.Swap(found.Next == nil)
}

// covers reports whether a quota bounds a key: then whether a put of it is refused depends on the changes before it.
func (t *limitTable) covers(key []byte) (covers bool) {
	if uses := t.uses.Load(); uses != nil {
		for _, u := range *uses {
			covers = covers || bytes.HasPrefix(key, u.rule.Prefix)
		}
	}
	return covers
}

// begin forgets what the last command wanted.
func (t *limitTable) begin() {
	for _, u := range t.asked {
		u.moreBytes, u.moreKeys = 0, 0
	}
	t.asked = t.asked[:0]
}

// admit refuses a put that would take the keys of a prefix beyond a quota, with the puts of the same command before it. How
// much a put adds is the difference to the version that is there before the command; one that makes a value smaller, and a
// deletion of the same command, make no room for it.
func (t *limitTable) admit(w *mvcc.Writer, op *kv.PutOp) (err error) {
	if t.quotas == nil || op.IgnoreValue || t.overQuota {
		return nil
	}
	size, exists := -1, false
	t.quotas.OfKey(op.Key, func(i int) {
		u := t.of[i]
		if err != nil || !u.counted.Load() {
			return
		}
		if size < 0 {
			size, exists = w.SizeOf(op.Key)
		}
		more, keys := int64(len(op.Value)-size), int64(0)
		if !exists {
			more, keys = int64(len(op.Key)+len(op.Value)), 1
		}
		if u.moreBytes == 0 && u.moreKeys == 0 {
			t.asked = append(t.asked, u)
		}
		u.moreBytes += max(0, more)
		u.moreKeys += keys
		if exceeds(u, kv.LimitQuotaBytes, u.bytes.Load(), u.moreBytes) ||
			exceeds(u, kv.LimitQuotaKeys, u.keys.Load(), u.moreKeys) {
			err = kv.ErrOverQuota
		}
	})
	return err
}

// exceeds reports whether more is wanted, and would be beyond a quota.
func exceeds(u *quotaUse, kind kv.LimitKind, has, more int64) bool {
	bound := u.rule.Bounds[kind]
	return bound.Set && more > 0 && has+more > bound.Most
}

// note brings the uses up to date with the changes of a command.
func (t *limitTable) note(events []kv.Event) {
	if t.quotas == nil {
		return
	}
	for i := range events {
		ev := &events[i]
		size, keys := int64(0), int64(0)
		if t.deletedCounts && ev.Kind == kv.EventDelete {
			continue
		}
		if ev.Kind == kv.EventPut {
			size, keys = int64(len(ev.KV.Key)+len(ev.KV.Value)), 1
		}
		if ev.Prev != nil {
			was := len(ev.Prev.Value)
			if ev.Bare {
				was = int(ev.PrevSize)
			}
			size, keys = size-int64(len(ev.KV.Key)+was), keys-1
		}
		if size == 0 && keys == 0 {
			continue
		}
		t.quotas.OfKey(ev.KV.Key, func(i int) {
			u := t.of[i]
			if !u.counted.Load() && bytes.Compare(ev.KV.Key, u.place()) >= 0 {
				return // it will be counted as it is
			}
			u.bytes.Add(size)
			u.keys.Add(keys)
			t.changed(u)
		})
	}
}

// changed notes that a use was changed.
func (t *limitTable) changed(u *quotaUse) {
	if !u.dirty {
		u.dirty = true
		t.dirty = append(t.dirty, u)
	}
	if !u.fresh {
		u.fresh = true
		t.fresh = append(t.fresh, u)
	}
}

// settle updates the sum of all rows after a command.
func (t *limitTable) settle() uint64 {
	for _, u := range t.fresh {
		digest := u.hash()
		t.sum ^= u.digest ^ digest
		u.digest, u.fresh = digest, false
	}
	t.fresh = t.fresh[:0]
	return t.sum
}

// flush writes the uses that the batch has changed.
func (t *limitTable) flush(w rowWriter) {
	for _, u := range t.dirty {
		u.dirty = false
		// Else its rule is gone, or counts another prefix.
		if at, found := t.quotas.Find(u.rule.Name); found && t.of[at] == u {
			w.Set(limitUseRow(u.rule.Name), u.encoded())
		}
	}
	t.dirty = t.dirty[:0]
}

// LimitUse is what exists of the prefix of a rule with a quota.
type LimitUse struct {
	Rule        *kv.LimitRule // must not be modified
	Keys, Bytes int64
	Counted     bool   // all of it is counted, and the quota holds
	Next        []byte // else: the first key that is not counted
}

// Full is how much of its quota a prefix has, by the bound that is nearer; 1: all of it.
func (u *LimitUse) Full() (full float64) {
	for kind, has := range map[kv.LimitKind]int64{kv.LimitQuotaBytes: u.Bytes, kv.LimitQuotaKeys: u.Keys} {
		if bound := u.Rule.Bounds[kind]; bound.Set {
			full = max(full, float64(has)/float64(max(bound.Most, 1)))
		}
	}
	return full
}

// shownUses returns the uses, sorted by name.
func (t *limitTable) shownUses() []LimitUse {
	var uses []LimitUse
	if of := t.uses.Load(); of != nil {
		for _, u := range *of {
			uses = append(uses, LimitUse{Rule: u.rule, Keys: u.use.keys.Load(), Bytes: u.use.bytes.Load(),
				Counted: u.use.counted.Load(), Next: u.use.place()})
		}
	}
	return uses
}
