package kv

import (
	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/level"
)

// Check returns level.ErrLater if a value of the command is one that this build does not know, and would not decode: such a
// command must not be proposed.
func (c *Command) Check() error {
	ok := true
	switch {
	case c.Txn != nil:
		ok = c.Txn.known()
	case c.Alarm != nil:
		ok = c.Alarm.Kind.known()
	case c.Auth != nil:
		ok = knownChange(c.Auth)
	case c.LevelPolicy != nil:
		ok = c.LevelPolicy.Policy.Kind <= level.PolicyHold
	case c.Audit != nil:
		ok = c.Audit.Kind.known()
	case c.Backup != nil:
		ok = c.Backup.Kind.known()
	}
	if !ok {
		return level.ErrLater
	}
	return nil
}

func knownChange(c *auth.Change) bool { return c.Kind.Valid() && c.Permission.Access <= auth.ReadWrite }

func (k AlarmKind) known() bool { return k <= AlarmCorrupt }

func (op *RangeOp) known() bool { return op.Order <= SortDescend && op.Target <= SortByValue }

func (c *Compare) known() bool {
	return (c.Target <= CompareLease || c.Target == CompareNoTarget) &&
		(c.Result <= CompareNotEqual || c.Result == CompareNoResult)
}

func (op *TxnOp) known() bool {
	for i := range op.Compares {
		if !op.Compares[i].known() {
			return false
		}
	}
	for _, branch := range [...][]Op{op.Then, op.Else} {
		for i := range branch {
			if o := &branch[i]; o.Range != nil && !o.Range.known() || o.Txn != nil && !o.Txn.known() {
				return false
			}
		}
	}
	return true
}
