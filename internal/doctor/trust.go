package doctor

import (
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quorate/quorate/internal/base/printable"
)

// Bounds of what is taken from an answer: any process may have sent it, or any person made the bundle.
const (
	// mostNumber is above whatever is counted or measured, and leaves room to compute with. Unix times in milliseconds fit.
	mostNumber = 1 << 45
	mostText   = 400 // characters of a text
	mostList   = 128 // elements of a list, such as members or their peers
)

// identifiers are numbers that name something, and are not computed with.
var identifiers = []protoreflect.Name{"id", "member_id", "cluster_id", "leader", "member", "by_member"}

// Trimmed returns a copy in which nothing exceeds a bound: no number is negative, no text is long or moves a cursor, no list is
// long.
func Trimmed[M proto.Message](m M) M {
	m = proto.CloneOf(m)
	trim(m.ProtoReflect())
	return m
}

// Decode reads what a member has sent, of which only what fits the bounds stays. Two bytes of it become a message of hundreds:
// a caller that asks several members decodes one answer at a time. The error is that of package proto.
func Decode(data []byte, into proto.Message) error {
	whole := into.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(data, whole); err != nil {
		return err
	}
	proto.Reset(into)
	proto.Merge(into, Trimmed(whole)) // a copy, since the list that was cut has its room yet
	return nil
}

func trim(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		at := fields.Get(i)
		switch {
		case !m.Has(at):
		case at.IsList():
			trimList(m.Mutable(at).List(), at)
		case at.Kind() == protoreflect.MessageKind:
			trim(m.Mutable(at).Message())
		default:
			m.Set(at, trimmed(at, m.Get(at)))
		}
	}
	m.SetUnknown(nil)
}

func trimList(l protoreflect.List, at protoreflect.FieldDescriptor) {
	l.Truncate(min(l.Len(), mostList))
	for i := range l.Len() {
		if at.Kind() == protoreflect.MessageKind {
			trim(l.Get(i).Message())
		} else {
			l.Set(i, trimmed(at, l.Get(i)))
		}
	}
}

// trimmed is a value within its bounds.
func trimmed(at protoreflect.FieldDescriptor, v protoreflect.Value) protoreflect.Value {
	switch at.Kind() {
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(min(max(v.Int(), 0), mostNumber))
	case protoreflect.Uint64Kind:
		if !slices.Contains(identifiers, at.Name()) {
			return protoreflect.ValueOfUint64(min(v.Uint(), mostNumber))
		}
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(min(max(v.Float(), 0), mostNumber))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(printable.Text(v.String(), mostText))
	}
	return v
}
