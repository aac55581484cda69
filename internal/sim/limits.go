package sim

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/sim/check"
	"github.com/quorate/quorate/internal/sim/dice"
)

// ample is a bound that is larger than any world.
const ample = 1 << 40

// strikeLimits has an operator set, change, count or end a limit, through any member. In most worlds the quotas are about as
// large as what there is, so that writes are refused.
func (w *World) strikeLimits() {
	rng, h := w.faults.rng, w.operated()
	if h == nil {
		return
	}
	w.auditLimitsOf(h)
	machine := h.proc.Data.Machine
	var op *kv.LimitOp
	name := dice.Pick(rng, "p", "q", "r")
	switch uses := machine.LimitUses(); {
	case len(uses) > 0 && dice.Chance(rng, 0.6):
		one := uses[rng.IntN(len(uses))]
		op = &kv.LimitOp{Count: one.Rule.Name, From: one.Next}
	case dice.Chance(rng, 0.2):
		op = &kv.LimitOp{Delete: name}
	default:
		rule := &kv.LimitRule{Name: name, Prefixed: true, Prefix: prefixOfKey(rng, h)}
		kind := dice.Pick(rng, kv.LimitQuotaBytes, kv.LimitQuotaKeys, kv.LimitWrites)
		rule.Bounds[kind] = kv.Bound{Set: true, Most: ample}
		if w.run.plan.Refuses {
			rule.Bounds[kind].Most = about(rng, kind, h, rule.Prefix)
		}
		op = &kv.LimitOp{Set: rule}
	}
	w.proposeLimit(h, op)
}

// operated draws a member through which an operator acts, at the level that knows limits and the audit; nil: there is none.
func (w *World) operated() *host {
	up := w.cluster.up()
	if len(up) == 0 {
		return nil
	}
	h := up[w.faults.rng.IntN(len(up))]
	if !h.serves() || h.proc.Data.Machine.ActiveLevel() < level.Second {
		return nil
	}
	return h
}

func (w *World) proposeLimit(h *host, op *kv.LimitOp) {
	w.run.struck("limits", limitText(op))
	command := &kv.Command{Limit: op, By: h.proc.Data.Machine.Users().ByMember()}
	h.proc.Clients.Propose(command, func(kv.Result, error) {})
}

func limitText(op *kv.LimitOp) string {
	switch {
	case op.Set != nil:
		return fmt.Sprintf("set %s of %q to %v", op.Set.Name, op.Set.Prefix, op.Set.Bounds)
	case op.Delete != "":
		return "delete " + op.Delete
	}
	return fmt.Sprintf("count %s from %q", op.Count, op.From)
}

// prefixOfKey draws the begin of a key that exists, or nothing.
func prefixOfKey(rng *rand.Rand, h *host) []byte {
	found, _, err := h.proc.Data.Machine.Store().Range(&kv.RangeOp{Key: []byte{0}, End: []byte{0}, KeysOnly: true})
	if err != nil || len(found.KVs) == 0 || dice.Chance(rng, 0.3) {
		return nil
	}
	key := found.KVs[rng.IntN(len(found.KVs))].Key
	return bytes.Clone(key[:rng.IntN(len(key)+1)])
}

// about draws a bound that is about what a member has of a prefix: a little more or less.
func about(rng *rand.Rand, kind kv.LimitKind, h *host, prefix []byte) int64 {
	has := recounted(h, prefix)
	switch kind {
	case kv.LimitQuotaBytes:
		return max(0, has[1]+rng.Int64N(200)-40)
	case kv.LimitQuotaKeys:
		return max(0, has[0]+rng.Int64N(5)-1)
	}
	return ample // no client of the simulator is bound by a rate
}

// recounted counts the keys with a prefix in the store of a member, and their bytes.
func recounted(h *host, prefix []byte) (has [2]int64) {
	return recountedTo(h, prefix, nil)
}

// recountedTo counts only the keys before a place; nil: all.
func recountedTo(h *host, prefix, place []byte) (has [2]int64) {
	key, end := kv.PrefixRange(prefix)
	found, _, err := h.proc.Data.Machine.Store().Range(&kv.RangeOp{Key: key, End: end})
	if err != nil {
		h.suite.Report("operating-error", err.Error())
		return has
	}
	for i := range found.KVs {
		if one := &found.KVs[i]; place == nil || bytes.Compare(one.Key, place) < 0 {
			has[0]++
			has[1] += int64(len(one.Key) + len(one.Value))
		}
	}
	return has
}

// liftScan is how often an operator looks for quotas that may refuse, once the faults are over.
const liftScan = 100 * time.Millisecond

// liftQuotas makes all quotas ample, also those that an operator had asked for before, and that come late.
func (w *World) liftQuotas() {
	if !w.run.plan.Refuses {
		return
	}
	if h := w.operated(); h != nil {
		for _, rule := range w.run.suite.Model().Tight(ample) {
			for kind := range rule.Bounds {
				rule.Bounds[kind].Most = max(rule.Bounds[kind].Most, ample)
			}
			w.proposeLimit(h, &kv.LimitOp{Set: &rule})
		}
	}
	w.run.After(liftScan, w.liftQuotas)
}

// auditLimits compares what members have counted for quotas with what exists, and with the model.
func (w *World) auditLimits() {
	for _, h := range w.cluster.members() {
		if h.serves() {
			w.auditLimitsOf(h)
		}
	}
}

func (w *World) auditLimitsOf(h *host) {
	machine := h.proc.Data.Machine
	var all []check.Counted
	for _, u := range machine.LimitUses() {
		all = append(all, check.Counted{Name: u.Rule.Name, Keys: u.Keys, Bytes: u.Bytes, Done: u.Counted, Next: u.Next})
		place := u.Next
		if u.Counted {
			place = nil
		}
		if has := recountedTo(h, u.Rule.Prefix, place); has != [2]int64{u.Keys, u.Bytes} {
			w.run.suite.Report("quota", fmt.Sprintf("%d counts %d keys of %d bytes for limit %s, and has %d of %d",
				h.slot, u.Keys, u.Bytes, u.Rule.Name, has[0], has[1]))
		}
	}
	w.run.suite.Counted(h.id, machine.Applied().Index, all)
}
