package history

import (
	"strings"
	"testing"
)

// Ensure that each kind of violation is noticed, and an honest history is not.
func TestLists_Check(t *testing.T) {
	for _, tc := range []struct {
		name, final, want string
		appends           []appended
		reads             []listRead
	}{
		{"honest", "a,b,c", "",
			[]appended{{"a", 0, 10, 2, false}, {"b", 5, 15, 3, false}, {"c", 20, 30, 0, true}, {"d", 20, 30, 0, true}},
			[]listRead{{[]string{"a"}, 11, 12}, {[]string{"a", "b"}, 16, 17}}},
		{"lost", "a", "b was acknowledged at revision 3 and is lost",
			[]appended{{"a", 0, 10, 2, false}, {"b", 5, 15, 3, false}}, nil},
		{"doubled", "a,b,a", "a was appended twice", []appended{{"a", 0, 10, 2, false}, {"b", 0, 15, 3, false}}, nil},
		{"invented", "a,x", "x was appended by nobody", []appended{{"a", 0, 10, 2, false}}, nil},
		{"against time", "b,a", "b stands before a", []appended{{"a", 0, 10, 0, false}, {"b", 11, 15, 0, false}}, nil},
		{"against revisions", "a,b", "a has revision 3, the next one 2",
			[]appended{{"a", 0, 10, 3, false}, {"b", 5, 15, 2, false}}, nil},
		{"a read of what is gone", "a,b", "no beginning of the list",
			[]appended{{"a", 0, 10, 2, false}, {"b", 5, 15, 3, false}}, []listRead{{[]string{"b"}, 1, 2}}},
		{"a stale read after a write", "a,b", "saw 1 elements after 2",
			[]appended{{"a", 0, 10, 2, false}, {"b", 5, 15, 3, false}}, []listRead{{[]string{"a"}, 16, 17}}},
		{"a stale read after a read", "a,b", "saw 0 elements after 1",
			[]appended{{"a", 0, 90, 2, false}, {"b", 5, 95, 3, false}},
			[]listRead{{[]string{"a"}, 1, 2}, {nil, 3, 4}}},
	} {
		l := NewLists()
		l.appends["k"], l.reads["k"] = tc.appends, tc.reads
		got := strings.Join(l.Check(map[string]string{"k": tc.final}), "; ")
		if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

// Ensure that what is answered after the power was lost promises nothing, until an operation begins after it is back.
func TestLists_LosePower(t *testing.T) {
	l := NewLists()
	l.addAppend("k", "a", l.since(), 2, false)
	begin := l.since()
	l.LosePower()
	l.addAppend("k", "b", begin, 3, false)
	l.addRead("k", "a,b", begin)
	l.PowerBack()
	l.addAppend("k", "c", begin, 4, false)
	l.addAppend("k", "d", l.since(), 5, false)
	if wrong := l.Check(map[string]string{"k": "a,d"}); len(wrong) > 0 || l.Acked() != 2 {
		t.Errorf("%d acknowledged, %v", l.Acked(), wrong)
	}
}
