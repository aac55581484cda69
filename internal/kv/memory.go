package kv

import "unsafe"

// Bytes is about how much memory a decoded transaction takes, nested ones included, beside its keys and values: two bytes of a
// request may make a hundred.
func (op *TxnOp) Bytes() int {
	size := cap(op.Compares) * int(unsafe.Sizeof(Compare{}))
	for _, list := range [...][]Op{op.Then, op.Else} {
		size += cap(list) * int(unsafe.Sizeof(Op{}))
		for i := range list {
			switch o := &list[i]; {
			case o.Range != nil:
				size += int(unsafe.Sizeof(*o.Range))
			case o.Put != nil:
				size += int(unsafe.Sizeof(*o.Put))
			case o.Delete != nil:
				size += int(unsafe.Sizeof(*o.Delete))
			case o.Txn != nil:
				size += int(unsafe.Sizeof(*o.Txn)) + o.Txn.Bytes()
			}
		}
	}
	return size
}
