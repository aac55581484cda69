package history

import (
	"strings"
	"testing"
)

// told is an operation of one client after another: what it asked and what it was told.
type told struct {
	op Operation
	a  Answer
}

// Ensure that a wrong answer is noticed, and that a write of unknown outcome is allowed to have happened or not.
func TestRecorder_Check(t *testing.T) {
	put := func(value string, a Answer) told { return told{Operation{Kind: 'p', Key: "k", Value: value}, a} }
	get := func(value string, revision int64) told {
		return told{Operation{Kind: 'g', Key: "k"}, Answer{Found: value != "", Value: value, Revision: revision}}
	}
	swap := func(value string, mod int64, a Answer) told {
		return told{Operation{Kind: 'c', Key: "k", Value: value, Mod: mod}, a}
	}
	at := func(revision int64) Answer { return Answer{Revision: revision} }
	swapped := func(revision int64) Answer { return Answer{Revision: revision, Swapped: true} }
	unknown := Answer{Unknown: true}
	for _, tc := range []struct {
		name    string
		history []told
		wrong   bool
	}{
		{"honest", []told{put("a", at(2)), get("a", 2), swap("b", 2, swapped(3)), get("b", 3)}, false},
		{"a lost write", []told{put("a", at(2)), get("", 0)}, true},
		{"a stale read", []told{put("a", at(2)), put("b", at(3)), get("a", 2)}, true},
		{"another revision", []told{put("a", at(2)), get("a", 3)}, true},
		{"revisions backwards", []told{put("a", at(3)), put("b", at(2))}, true},
		{"a swap that should not be", []told{put("a", at(3)), swap("b", 2, swapped(4))}, true},
		{"a swap that should be", []told{put("a", at(3)), swap("b", 3, at(3))}, true},
		{"a swap below what it replaces", []told{put("a", at(3)), swap("b", 3, swapped(2))}, true},
		{"an unknown write that happened", []told{put("a", unknown), get("a", 2)}, false},
		{"an unknown write that did not", []told{put("a", unknown), get("", 0)}, false},
		{"an unknown swap of an unknown write, both happened",
			[]told{put("a", unknown), swap("b", 2, unknown), get("b", 3)}, false},
		{"an unknown swap of an unknown write that did not happen",
			[]told{put("a", unknown), swap("b", 2, unknown), get("a", 2)}, false},
		{"an unknown swap that cannot have happened", []told{put("a", at(2)), swap("b", 7, unknown), get("b", 3)}, true},
		{"a value that nobody wrote", []told{put("a", unknown), swap("b", 2, unknown), get("c", 3)}, true},
		{"an unknown write seen, then not", []told{put("a", unknown), get("a", 2), get("", 0)}, true},
	} {
		r := NewRecorder()
		for _, step := range tc.history {
			r.Add(0, r.Since(), step.op, step.a)
		}
		wrong := r.Check(0)
		if strings.Contains(wrong, "not linearizable") != tc.wrong {
			t.Errorf("%s: got %q", tc.name, wrong)
		}
	}
}

// Ensure that a write counts as acknowledged where an answer that may be trusted says so, and nothing else does.
func TestRecorder_AckedWrites(t *testing.T) {
	r := NewRecorder()
	for revision, step := range []told{
		{Operation{Kind: 'p', Key: "a"}, Answer{}}, {Operation{Kind: 'p', Key: "b"}, Answer{}}, // acknowledged
		{Operation{Kind: 'c', Key: "a"}, Answer{Swapped: true}},
		{Operation{Kind: 'c', Key: "a"}, Answer{}}, {Operation{Kind: 'g', Key: "a"}, Answer{}},
		{Operation{Kind: 'p', Key: "a"}, Answer{Unknown: true}},
	} {
		step.a.Revision = int64(revision) + 2
		r.Add(0, r.Since(), step.op, step.a)
	}
	r.LosePower()
	r.Add(0, r.Since(), Operation{Kind: 'p', Key: "a"}, Answer{Revision: 9})
	if got := r.AckedWrites(); got != 3 {
		t.Errorf("%d writes were acknowledged, want 3", got)
	}
}
