package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestStart_operators(t *testing.T) {
	for _, tc := range []struct {
		name string
		args string
		code int
		want string
	}{
		{"no verb", "operators", 2, "operators mutate"},
		{"help", "operators --help", 0, "-voters"},
		{"a stray argument", "operators explore now", 2, `"now"`},
		{"too few voters", "operators explore --voters 1", 2, "3 to 7"},
		{"every rule", "operators explore --depth 1", 0, "no law broken"},
		{"a rule dropped", "operators mutate --only announce", 2, "announce"},
		{"members that moved", "operators mutate --only moved", 0, "BREAKS addresses"},
	} {
		var out, diary bytes.Buffer
		code := start(strings.Fields(tc.args), &out, &diary)
		if text := out.String() + diary.String(); code != tc.code || !strings.Contains(text, tc.want) {
			t.Errorf("%s: exit %d, want %d with %q in\n%s", tc.name, code, tc.code, tc.want, text)
		}
	}
}
