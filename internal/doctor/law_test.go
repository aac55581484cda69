package doctor_test

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quorate/quorate/internal/doctor"
)

// leaf is one field of an observation, with the message that holds it.
type leaf struct {
	path string
	in   protoreflect.Message
	at   protoreflect.FieldDescriptor
}

// leaves lists all scalar fields below a message, those of the messages of its lists, too.
func leaves(path string, m protoreflect.Message) (all []leaf) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		at := fields.Get(i)
		here := path + "." + string(at.Name())
		switch {
		case at.IsList() && at.Kind() == protoreflect.MessageKind:
			for k := range m.Get(at).List().Len() {
				all = append(all, leaves(fmt.Sprintf("%s[%d]", here, k), m.Get(at).List().Get(k).Message())...)
			}
		case at.IsList():
		case at.Kind() == protoreflect.MessageKind:
			if m.Has(at) {
				all = append(all, leaves(here, m.Get(at).Message())...)
			}
		default:
			all = append(all, leaf{here, m, at})
		}
	}
	return all
}

// values are what a field is degraded to.
func values(at protoreflect.FieldDescriptor) (all []protoreflect.Value) {
	switch at.Kind() {
	case protoreflect.BoolKind:
		return []protoreflect.Value{protoreflect.ValueOfBool(false), protoreflect.ValueOfBool(true)}
	case protoreflect.StringKind:
		return []protoreflect.Value{protoreflect.ValueOfString(""), protoreflect.ValueOfString("odd words")}
	case protoreflect.Int64Kind:
		for _, v := range []int64{0, 1, 1 << 30, 1 << 50, -1, -1 << 50, -1 << 63, 1<<63 - 1} {
			all = append(all, protoreflect.ValueOfInt64(v))
		}
	case protoreflect.Uint64Kind:
		for _, v := range []uint64{0, 1, 1 << 30, 1 << 50, 1<<64 - 1} {
			all = append(all, protoreflect.ValueOfUint64(v))
		}
	case protoreflect.Uint32Kind:
		for _, v := range []uint32{0, 1, 1 << 30, 1<<32 - 1} {
			all = append(all, protoreflect.ValueOfUint32(v))
		}
	case protoreflect.DoubleKind:
		for _, v := range []float64{0, 0.99, 1, 1e300} {
			all = append(all, protoreflect.ValueOfFloat64(v))
		}
	default:
		panic(at.Kind())
	}
	return all
}

// several are fields of which one wrong value tells of more than one thing, and why.
var several = map[string]string{
	"m1.election_ms": "all bounds are shares of it",
}

// Ensure that whatever one field of one member's answer says, no more than one thing is found to be wrong, beside what that
// explains: an answer may be false, and a finding must not drag in others.
func TestJudge_oneField(t *testing.T) {
	tried, found := 0, map[doctor.Code]bool{}
	for _, n := range []int{1, 2} {
		h := hospital{healthy(3)}
		name := fmt.Sprintf("m%d", n)
		for i, l := range leaves(name, h.of(n).ProtoReflect()) {
			for _, v := range values(l.at) {
				ill := hospital{healthy(3)}
				same := leaves(name, ill.of(n).ProtoReflect())[i]
				same.in.Set(same.at, v)
				tried++
				var roots []doctor.Code
				for _, f := range doctor.Judge(ill.Collected) {
					if f.Because == "" {
						roots = append(roots, f.Code)
					}
					found[f.Code] = true
				}
				if roots = slices.Compact(roots); len(roots) > 1 && several[l.path] == "" {
					t.Errorf("%s = %v: %v", l.path, v, roots)
				}
			}
		}
	}
	if tried < 1000 || len(found) < 25 {
		t.Errorf("%d values were tried, and %d codes found", tried, len(found))
	}
}
