package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestStart_model(t *testing.T) {
	for _, tc := range []struct {
		name string
		args string
		code int
		want string
	}{
		{"no verb", "model", 2, "model mutate"},
		{"help", "model --help", 0, "-profile"},
		{"walks", "model walk --walks 300 --for 0", 0, "no law broken"},
		{"an unknown cluster", "model walk --clusters n9", 2, "n3learner"},
		{"a bound", "model search --bound least", 0, "complete"},
		{"an unknown bound", "model search --bound x", 2, "conflict2"},
		{"a change", "model change --to 0,1,3 --protocol joint-early", 0, "holds: complete"},
		{"a wrong way back", "model change --back old-elects", 1, "leader completeness"},
		{"no way back", "model change --back home", 2, "any-leader"},
		{"no voters", "model change --to a,b", 2, "such as 0,1,3"},
		{"one rule dropped", "model mutate --only superquorum-less --for 5s", 0, "BREAKS"},
		{"no such rule", "model mutate --only xyzzy", 2, "xyzzy"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out, diary bytes.Buffer
			code := start(strings.Fields(tc.args), &out, &diary)
			if text := out.String() + diary.String(); code != tc.code || !strings.Contains(text, tc.want) {
				t.Errorf("exit %d, want %d with %q in\n%s", code, tc.code, tc.want, text)
			}
		})
	}
}
