package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestStart(t *testing.T) {
	for _, tc := range []struct {
		name string
		args string
		code int
		want string
	}{
		{"no command shows the help", "", 2, "quoratesim run"},
		{"help is not an error", "help", 0, "quoratesim run"},
		{"help of a command", "run --help", 0, "--nemesis"},
		{"an unknown command", "walk", 2, `unknown command "walk"`},
		{"an unknown flag", "run --speed 3", 2, "speed"},
		{"a bad number", "run --members many", 2, "members"},
		{"too many members", "run --members 70", 2, "1 to 7"},
		{"no workers", "run --workers 0", 2, "1 to 256"},
		{"a negative time", "run --for -1s", 2, "negative"},
		{"an unknown fault", "run --seed 1 --nemesis gremlin", 2, "gremlin"},
		{"an unknown load", "run --seed 1 --load songs", 2, "reads"},
		{"an unknown protocol", "run --seed 1 --protocol paxos", 2, "joint-early"},
		{"changes by one protocol", "run --seed 9 --members 3 --faults 9s --nemesis membership --protocol activate", 0, "activate="},
		{"a trace of many seeds", "run --for 1s --trace", 2, "one trace"},
		{"a replay without a seed", "replay", 2, "--seed"},
		{"a stray argument", "run now", 2, `"now"`},
		{"the list", "list", 0, "crash-all"},
		{"one seed", "run --seed 3 --members 1 --faults 2s --nemesis none", 0, "violations=0"},
		{"a broken law", "run --seed 1 --members 3 --nemesis crash --break ack-before-durable", 1, "--break ack"},
		{"a replay prints events", "replay --seed 3 --members 1 --faults 1s --nemesis none", 0, "became leader"},
	} {
		var out, diary bytes.Buffer
		code := start(strings.Fields(tc.args), &out, &diary)
		if text := out.String() + diary.String(); code != tc.code || !strings.Contains(text, tc.want) {
			t.Errorf("%s: exit %d, want %d with %q in\n%s", tc.name, code, tc.code, tc.want, text)
		}
		if tc.code == 2 && tc.args != "" && strings.Count(diary.String(), "\n") != 1 {
			t.Errorf("%s: want one line, got %q", tc.name, diary.String())
		}
	}
}
