package costly

import "github.com/quorate/quorate/internal/kv"

// freeLookups is how many comparisons of single keys whose values are read a transaction may have that is not looked at.
const freeLookups = 2

// freePuts is how many puts a transaction may have that is not looked at. The value that a put replaces is read when it is
// applied: for a few puts that is little.
const freePuts = 8

// MayBe reports whether a command may cost much, by its form.
func MayBe(command *kv.Command) bool {
	switch {
	case command.Put != nil:
		return command.Put.IgnoreValue
	case command.Delete != nil:
		return len(command.Delete.End) > 0
	case command.Txn != nil:
		lookups, puts := 0, 0
		return comparesMuch(command.Txn, &lookups) || AnyOp(command.Txn, func(op *kv.Op) bool {
			if op.Put != nil {
				puts++
			}
			return puts > freePuts || op.Put != nil && op.Put.IgnoreValue || op.Delete != nil && len(op.Delete.End) > 0 ||
				op.Txn != nil && comparesMuch(op.Txn, &lookups)
		})
	}
	return command.LeaseRevoke != nil
}

// comparesMuch looks at the comparisons of one transaction, and not at those nested in it.
func comparesMuch(op *kv.TxnOp, lookups *int) bool {
	for i := range op.Compares {
		c := &op.Compares[i]
		if c.Target != kv.CompareMod {
			*lookups++
		}
		if len(c.End) > 0 || *lookups > freeLookups {
			return true
		}
	}
	return false
}

// AnyOp reports whether found holds for an operation of a transaction, of nested ones too.
func AnyOp(op *kv.TxnOp, found func(*kv.Op) bool) bool {
	for _, list := range [2][]kv.Op{op.Then, op.Else} {
		for i := range list {
			if found(&list[i]) || list[i].Txn != nil && AnyOp(list[i].Txn, found) {
				return true
			}
		}
	}
	return false
}
