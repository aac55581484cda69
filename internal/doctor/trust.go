package doctor

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quorate/quorate/internal/base/printable"
)

// Bounds of what is taken from an answer: any process may have sent it, or any person made the bundle.
const (
	// mostNumber is above whatever is counted or measured, and leaves room to compute with.
	mostNumber = 1 << 45
	// mostMillis bounds times in milliseconds, so that they are durations: 270 years. Unix times fit.
	mostMillis = 1 << 43
	mostText   = 400 // characters of a text
	mostList   = 128 // elements of a list, such as members or their peers
)

// shares are numbers from 0 to 1.
var shares = []protoreflect.Name{"pressure"}

// identifiers are numbers that name something, and are not computed with.
var identifiers = []protoreflect.Name{"id", "member_id", "cluster_id", "leader", "member", "by_member"}

// Trimmed returns a copy in which nothing exceeds a bound: no number is negative, infinite or none, no text is long or moves a
// cursor, no list is long.
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
		return protoreflect.ValueOfInt64(min(max(v.Int(), 0), mostOf(at)))
	case protoreflect.Uint64Kind:
		if !slices.Contains(identifiers, at.Name()) {
			return protoreflect.ValueOfUint64(min(v.Uint(), mostNumber))
		}
	case protoreflect.DoubleKind, protoreflect.FloatKind:
		return within(at, v.Float())
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(printable.Text(v.String(), mostText))
	}
	return v
}

// mostOf is the bound of a whole number.
func mostOf(at protoreflect.FieldDescriptor) int64 {
	if strings.HasSuffix(string(at.Name()), "_ms") {
		return mostMillis
	}
	return mostNumber
}

// within is a fraction within the bounds of its field. NaN, which min and max let pass, becomes zero.
func within(at protoreflect.FieldDescriptor, n float64) protoreflect.Value {
	most := float64(mostNumber)
	if slices.Contains(shares, at.Name()) {
		most = 1
	}
	if n = min(n, most); !(n > 0) {
		n = 0
	}
	if at.Kind() == protoreflect.FloatKind {
		return protoreflect.ValueOfFloat32(float32(n))
	}
	return protoreflect.ValueOfFloat64(n)
}
