package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// Ensure that the specification allows what the cores do under faults, and refuses what a broken rule leads to.
func TestStart_checkTrace(t *testing.T) {
	for _, tc := range []struct{ name, seed, control, want string }{
		{"five members under faults", "3", "", "all allowed"},
		{"another five", "5", "", "all allowed"},
		{"a vote that changes", "3", "vote-twice", "its vote in term"},
		{"an entry of an old term", "14", "commit-old-term", "no leader's majority holds"},
		{"an acknowledgement before the disk", "1", "ack-before-durable", "its log ends at"},
		{"a superquorum one lower", "2", "superquorum-less", "no leader and superquorum"},
		{"revisions that differ", "2", "proposer-any-attempt", "no leader and superquorum"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "actions.json")
			args := strings.Fields("replay --members 5 --faults 8s --nemesis crash,partition,crash-all,torn,loss --seed " + tc.seed)
			args = append(args, "--actions", file)
			if tc.control != "" {
				args = append(args, "--break", tc.control)
			}
			var out, diary bytes.Buffer
			if code := start(args, &out, &diary); code == 2 {
				t.Fatal(diary.String())
			}
			out.Reset()
			code := start([]string{"check-trace", file}, &out, &diary)
			refused := strings.Contains(out.String(), "REFUSED")
			if !strings.Contains(out.String(), tc.want) || refused != (tc.control != "") || (code == 1) != refused {
				t.Errorf("exit %d, want %q in %s", code, tc.want, &out)
			}
		})
	}
}
