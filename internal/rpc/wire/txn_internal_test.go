package wire

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// Ensure that of a transaction with too many parts, in one list or nested, no more are read than may be.
func TestTxnCall_DecodeWire_tooMany(t *testing.T) {
	const most = 10
	field := func(number protowire.Number, value []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
	}
	nested := field(2, field(4, bytes.Repeat(field(1, nil), 3))) // an operation that is a transaction with three comparisons
	for _, row := range []struct {
		name    string
		src     []byte
		tooMany bool
	}{
		{"as many as may be", bytes.Repeat(field(1, nil), most), false},
		{"one more", bytes.Repeat(field(1, nil), most+1), true},
		{"many more", bytes.Repeat(field(2, nil), 1<<20), true},
		{"nested", bytes.Repeat(nested, 2), false},
		{"nested, one more", bytes.Repeat(nested, 3), true},
	} {
		c := TxnCall{MaxParts: most}
		if err := c.DecodeWire(row.src); err != nil || c.TooMany != row.tooMany {
			t.Errorf("%s: got %v, too many: %v", row.name, err, c.TooMany)
		}
		if kept := len(c.Op.Compares) + len(c.Op.Then) + len(c.Op.Else); kept > most {
			t.Errorf("%s: %d are kept", row.name, kept)
		}
		if c = (TxnCall{}); c.DecodeWire(row.src) != nil || c.TooMany {
			t.Errorf("%s, without a bound: refused", row.name)
		}
	}
}
