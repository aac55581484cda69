package wire

import (
	"github.com/quorate/quorate/internal/kv"
)

// PutCall is a PutRequest on its way to becoming a command. The command and its op are one allocation.
// Reading one takes 150 ns and 1 allocation, with the generated code 390 ns and 4.
type PutCall struct {
	Command kv.Command
	Op      kv.PutOp
	Size    int // as it came
}

// DecodeWire implements Decoder.
func (c *PutCall) DecodeWire(src []byte) error {
	c.Size = len(src)
	return decodePut(&c.Op, src)
}

// decodePut reads PutRequest: key=1 value=2 lease=3 prev_kv=4 ignore_value=5 ignore_lease=6.
func decodePut(op *kv.PutOp, src []byte) error {
	for len(src) > 0 {
		f, rest, err := readField(src)
		if err != nil {
			return err
		}
		src = rest
		if f.isBytes() {
			switch f.number {
			case 1:
				op.Key = f.bytes
			case 2:
				op.Value = f.bytes
			}
		}
		if f.isVarint() {
			switch f.number {
			case 3:
				op.Lease = kv.LeaseID(f.varint)
			case 4:
				op.PrevKV = f.varint != 0
			case 5:
				op.IgnoreValue = f.varint != 0
			case 6:
				op.IgnoreLease = f.varint != 0
			}
		}
	}
	return nil
}

// DeleteCall is a DeleteRangeRequest on its way to becoming a command.
// Reading one takes 100 ns and 1 allocation, with the generated code 250 ns and 3.
type DeleteCall struct {
	Command kv.Command
	Op      kv.DeleteOp
	Size    int // as it came
}

// DecodeWire implements Decoder.
func (c *DeleteCall) DecodeWire(src []byte) error {
	c.Size = len(src)
	return decodeDelete(&c.Op, src)
}

// decodeDelete reads DeleteRangeRequest: key=1 range_end=2 prev_kv=3.
func decodeDelete(op *kv.DeleteOp, src []byte) error {
	for len(src) > 0 {
		f, rest, err := readField(src)
		if err != nil {
			return err
		}
		src = rest
		switch {
		case f.number == 1 && f.isBytes():
			op.Key = f.bytes
		case f.number == 2 && f.isBytes():
			op.End = f.bytes
		case f.number == 3 && f.isVarint():
			op.PrevKV = f.varint != 0
		}
	}
	return nil
}

// RangeCall is a RangeRequest.
// Reading one takes 200 ns and 1 allocation, with the generated code 390 ns and 4.
type RangeCall struct {
	Op           kv.RangeOp
	Serializable bool
}

// DecodeWire implements Decoder.
func (c *RangeCall) DecodeWire(src []byte) error { return decodeRange(&c.Op, &c.Serializable, src) }

// Enum values that etcd does not know are kept apart from those that it knows: validation refuses these. See also
// kv.CompareNoTarget.
const (
	UnknownSortOrder  = kv.SortOrder(255)
	UnknownSortTarget = kv.SortTarget(255)
)

// decodeRange reads RangeRequest: key=1 range_end=2 limit=3 revision=4 sort_order=5 sort_target=6 serializable=7
// keys_only=8 count_only=9 min_mod_revision=10 max_mod_revision=11 min_create_revision=12 max_create_revision=13.
func decodeRange(op *kv.RangeOp, serializable *bool, src []byte) error {
	for len(src) > 0 {
		f, rest, err := readField(src)
		if err != nil {
			return err
		}
		src = rest
		if f.isBytes() {
			switch f.number {
			case 1:
				op.Key = f.bytes
			case 2:
				op.End = f.bytes
			}
		}
		if f.isVarint() {
			if f.number == 7 {
				*serializable = f.varint != 0
				continue
			}
			setRangeNumber(op, &f)
		}
	}
	return nil
}

// setRangeNumber stores one varint field of a RangeRequest.
func setRangeNumber(op *kv.RangeOp, f *field) {
	switch f.number {
	case 3:
		op.Limit = int64(f.varint)
	case 4:
		op.Revision = kv.Revision(f.varint)
	case 5:
		op.Order = UnknownSortOrder
		if v := int32(f.varint); v >= 0 && v <= int32(kv.SortDescend) {
			op.Order = kv.SortOrder(v)
		}
	case 6:
		op.Target = UnknownSortTarget
		if v := int32(f.varint); v >= 0 && v <= int32(kv.SortByValue) {
			op.Target = kv.SortTarget(v)
		}
	case 8:
		op.KeysOnly = f.varint != 0
	case 9:
		op.CountOnly = f.varint != 0
	case 10:
		op.MinMod = kv.Revision(f.varint)
	case 11:
		op.MaxMod = kv.Revision(f.varint)
	case 12:
		op.MinCreate = kv.Revision(f.varint)
	case 13:
		op.MaxCreate = kv.Revision(f.varint)
	}
}
