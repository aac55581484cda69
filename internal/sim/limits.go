package sim

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/sim/dice"
)

// strikeLimits has an operator set, change, count or end a limit, through any member. The quotas are larger than any world: no
// write of a client is refused, and what is counted is compared with what exists.
func (w *World) strikeLimits() {
	rng, up := w.faults.rng, w.cluster.up()
	if len(up) == 0 {
		return
	}
	h := up[rng.IntN(len(up))]
	if !h.serves() || h.proc.Data.Machine.ActiveLevel() < level.Second {
		return
	}
	machine := h.proc.Data.Machine
	command := &kv.Command{By: machine.Users().ByMember()}
	name := dice.Pick(rng, "p", "q", "r")
	switch uses := machine.LimitUses(); {
	case len(uses) > 0 && dice.Chance(rng, 0.6):
		one := uses[rng.IntN(len(uses))]
		command.Limit = &kv.LimitOp{Count: one.Rule.Name, From: one.Next}
	case dice.Chance(rng, 0.2):
		command.Limit = &kv.LimitOp{Delete: name}
	default:
		rule := &kv.LimitRule{Name: name, Prefixed: true, Prefix: prefixOfKey(rng, h)}
		kind := dice.Pick(rng, kv.LimitQuotaBytes, kv.LimitQuotaKeys, kv.LimitWrites)
		rule.Bounds[kind] = kv.Bound{Set: true, Most: 1 << 40}
		command.Limit = &kv.LimitOp{Set: rule}
	}
	w.run.struck("limits", limitText(command.Limit))
	h.proc.Clients.Propose(command, func(kv.Result, error) {})
}

func limitText(op *kv.LimitOp) string {
	switch {
	case op.Set != nil:
		return fmt.Sprintf("set %s of %q", op.Set.Name, op.Set.Prefix)
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

// auditLimits compares what members have counted for quotas with what exists.
func (w *World) auditLimits() {
	for _, h := range w.cluster.members() {
		if !h.serves() {
			continue
		}
		machine := h.proc.Data.Machine
		for _, u := range machine.LimitUses() {
			key, end := kv.PrefixRange(u.Rule.Prefix)
			found, _, err := machine.Store().Range(&kv.RangeOp{Key: key, End: end})
			if err != nil {
				w.run.suite.Report("operating-error", err.Error())
				return
			}
			keys, size := int64(0), int64(0)
			for i := range found.KVs {
				if one := &found.KVs[i]; u.Counted || bytes.Compare(one.Key, u.Next) < 0 {
					keys, size = keys+1, size+int64(len(one.Key)+len(one.Value))
				}
			}
			if keys != u.Keys || size != u.Bytes {
				w.run.suite.Report("state-machine", fmt.Sprintf("%d counts %d keys of %d bytes for limit %s, and has %d of %d",
					h.slot, u.Keys, u.Bytes, u.Rule.Name, keys, size))
			}
		}
	}
}
