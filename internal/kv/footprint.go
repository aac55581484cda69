package kv

import (
	"github.com/quorate/quorate/internal/base/keyrange"
	"github.com/quorate/quorate/internal/consensus"
)

// FootprintOf returns the footprint of c. It aliases the keys of c.
func FootprintOf(c *Command) consensus.Footprint {
	var f consensus.Footprint
	switch {
	case c.Put != nil:
		addPut(&f, c.Put)
	case c.Delete != nil:
		f.Keys = append(f.Keys, keyrange.From(c.Delete.Key, c.Delete.End))
	case c.Txn != nil:
		addTxn(&f, c.Txn)
	case c.LeaseGrant != nil:
		f.Leases = append(f.Leases, int64(c.LeaseGrant.ID))
	case c.SessionOpen != nil:
		f.Owners = append(f.Owners, consensus.MemberID(c.SessionOpen.Member))
	case c.SessionRetire != nil:
		f.Owners = append(f.Owners, consensus.MemberID(c.SessionRetire.Member))
	case c.Moment != nil: // no other command reads or changes it
	default:
		// The end of a lease deletes the keys that are attached to it when it is applied. Earlier commands that are not applied
		// yet may change which those are: the command alone does not tell them.
		f.Barrier = true
	}
	return f
}

// Revises reports whether an encoded command may take a revision: every command that changes keys, and the end of a lease,
// which deletes some. A payload that does not decode counts as one.
func Revises(payload []byte) bool {
	switch kindOf(payload) {
	case commandSessionOpen, commandSessionRetire, commandLeaseGrant, commandCompact, commandAlarm, commandPublish, commandJob,
		commandAuth, commandRaise, commandLevelPolicy, commandSoak, commandLimit, commandAudit, commandMoment, commandBackup:
		return false
	}
	return true
}

func addPut(f *consensus.Footprint, op *PutOp) {
	f.Keys = append(f.Keys, keyrange.Single(op.Key))
	if op.Lease != 0 {
		f.Leases = append(f.Leases, int64(op.Lease))
	}
}

func addTxn(f *consensus.Footprint, op *TxnOp) {
	for i := range op.Compares {
		f.Keys = append(f.Keys, keyrange.From(op.Compares[i].Key, op.Compares[i].End))
	}
	for _, branch := range [...][]Op{op.Then, op.Else} {
		for i := range branch {
			switch o := &branch[i]; {
			case o.Range != nil:
				f.Keys = append(f.Keys, keyrange.From(o.Range.Key, o.Range.End))
			case o.Put != nil:
				addPut(f, o.Put)
			case o.Delete != nil:
				f.Keys = append(f.Keys, keyrange.From(o.Delete.Key, o.Delete.End))
			case o.Txn != nil:
				addTxn(f, o.Txn)
			}
		}
	}
}

// PayloadFootprint returns the footprint of an encoded command. One that does not decode, such as a command of a later version,
// conflicts with everything.
func PayloadFootprint(payload []byte) consensus.Footprint {
	c, err := DecodeCommand(payload)
	if err != nil {
		return consensus.Footprint{Barrier: true}
	}
	return FootprintOf(&c)
}

// ChangesKeys reports whether an encoded command is a put, a delete or a transaction.
func ChangesKeys(payload []byte) bool {
	kind := kindOf(payload)
	return kind == commandPut || kind == commandDelete || kind == commandTxn
}

// AsksForPairs reports whether the result of a command may hold keys and values, in any branch.
func AsksForPairs(c *Command) bool {
	switch {
	case c.Put != nil:
		return c.Put.PrevKV
	case c.Delete != nil:
		return c.Delete.PrevKV
	case c.Txn != nil:
		return txnAsks(c.Txn)
	}
	return false
}

func txnAsks(op *TxnOp) bool {
	for _, branch := range [...][]Op{op.Then, op.Else} {
		for i := range branch {
			switch o := &branch[i]; {
			case o.Range != nil, o.Put != nil && o.Put.PrevKV, o.Delete != nil && o.Delete.PrevKV,
				o.Txn != nil && txnAsks(o.Txn):
				return true
			}
		}
	}
	return false
}
