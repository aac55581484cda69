package prose_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/console/prose"
)

func TestClauses(t *testing.T) {
	for _, row := range []struct {
		sentence, head string
		rest           []string
	}{
		{"m3 is down, for 65 s: http://10.0.0.3:2379 says no: really; its log says why; start it", "m3 is down, for 65 s",
			[]string{"http://10.0.0.3:2379 says no: really", "its log says why", "start it"}},
		{"members differ; `a; b: c` says how", "members differ", []string{"`a; b: c` says how"}},
		{"nothing to part", "nothing to part", nil},
		{"", "", nil},
		{": ; :", ": ", []string{":"}},
		{"a;", "a;", nil},
	} {
		head, rest := prose.Clauses(row.sentence)
		if head != row.head || !slices.Equal(rest, row.rest) {
			t.Errorf("%q: got %q, %q", row.sentence, head, rest)
		}
	}
}

// Ensure that no text is lost but the signs between clauses.
func FuzzClauses(f *testing.F) {
	for _, text := range []string{"a: b; c", "`;", ";;  ::", "ü; é: `x`", ": : "} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		head, rest := prose.Clauses(text)
		words := func(text string) string { return strings.NewReplacer(";", "", ":", "", " ", "").Replace(text) }
		if words(head+strings.Join(rest, "")) != words(text) {
			t.Errorf("%q became %q and %q", text, head, rest)
		}
	})
}

func TestOf(t *testing.T) {
	got := prose.Of("run `quorate status`, then `x")
	want := []prose.Piece{{"run ", false}, {"quorate status", true}, {", then ", false}, {"x", true}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
	if prose.Of("") != nil {
		t.Error("an empty sentence has pieces")
	}
}

func TestCapital(t *testing.T) {
	for text, want := range map[string]string{"m": "M", "": "", "über": "Über", "\xff": "\xff", "7 of": "7 of"} {
		if got := prose.Capital(text); got != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

// Ensure that a list has the parts between semicolons as they are, and that commands stay whole.
func TestList(t *testing.T) {
	got := ""
	for _, pieces := range prose.List("m1 and m4 vote; m2 may be switched off: it left; undo it by `a; b`") {
		for _, p := range pieces {
			if p.Code {
				got += "<" + p.Text + ">"
			} else {
				got += p.Text
			}
		}
		got += "|"
	}
	if want := "m1 and m4 vote|m2 may be switched off: it left|undo it by <a; b>|"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := prose.List(""); got != nil {
		t.Errorf("of nothing: %v", got)
	}
}
