package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/sim/lab"
)

func TestStart_reconfig(t *testing.T) {
	for _, tc := range []struct {
		name string
		args string
		code int
		want string
	}{
		{"help names the faults", "--help", 0, "leader-restart@WHEN+TIME"},
		{"help names the stages", "--help", 0, "nobody else knows"},
		{"help names the rules", "--help", 0, "union-of-joint"},
		{"help names the stories", "--help", 0, "etcd-12359"},
		{"without flags", "", 0, "from 3 voters to 5 by auto"},
		{"one voter more", "--protocol single --from 3 --to 4", 0, "violations  none"},
		{"the leader leaves", "--protocol activate --from 3 --remove 1 --quiet", 0, "new configuration"},
		{"a crash", "--protocol joint --fault leader-crash@1 --seed 7", 0, "1 crashes (leader-crash@1)"},
		{"two faults", "--fault partition@1:1,2|3,4,5 --fault heal@300ms", 0, "network healed"},
		{"a demotion", "--from 3 --demote 3 --quiet", 0, "{1,2 +3}"},
		{"everything drawn", "--from 1 --add 1 --verbose", 0, "heartbeat's echo"},
		{"a rule broken", "--protocol activate --from 3 --to 3 --remove 1,2,3 --break off-before-settled", 1, "VIOLATION"},
		{"a story", "--story two-leaders", 0, "a committed entry differs"},
		{"a story with its rule", "--story two-leaders --safe", 0, "violations  none"},
		{"the stories of a rule", "--break direct-switch", 0, "a leader lacks a committed entry"},
		{"the stories of a rule, kept", "--break direct-switch --safe", 0, "violations  none"},
		{"two stories of a rule", "--break change-in-old-term --quiet", 0, "a change that was done is taken back"},
		{"a broken rule and a change", "--break direct-switch --to 5 --fault partition@0:1,4,5|2,3 --fault heal@400ms", 1,
			"VIOLATION"},
		{"the experiment", "--protocol activate-switched --from 3 --remove 1 --add 1", 0, "by activate-switched"},
		{"the experiment's story", "--break activate-switched", 0, "the cluster cannot go on"},
		{"the fast path", "--from 5 --add 1 --fast --quiet", 0, "writes decided by a superquorum"},
		{"the list", "--list", 0, "quoratesim reconfig --story fast-join --safe"},
		{"the list with flags", "--list --from 3", 2, "--list"},
		{"all stories", "--story all --quiet", 0, "With the rule (--safe shows it): no violation"},
		{"no such protocol", "--protocol paxos", 2, "joint-early"},
		{"no such fault", "--fault flood@1", 2, "lag:M"},
		{"no such rule", "--break gravity", 2, "two-changes"},
		{"no such story", "--story cinderella", 2, "removed-leader-counts-itself"},
		{"a bad member", "--remove 1,x", 2, `"x" is no member`},
		{"a bad size", "--from 30", 2, "1 to 9"},
		{"nothing to change", "--from 3 --to 3", 2, "nothing to change"},
		{"a story with flags", "--story abort --from 3", 2, "only --safe"},
		{"safe without a story", "--safe", 2, "--story"},
		{"quiet and verbose", "--quiet --verbose", 2, "exclude"},
		{"all stories in one file", "--story all --svg all.svg", 2, "--svg-dir"},
		{"a stray argument", "now", 2, `"now"`},
	} {
		var out, diary bytes.Buffer
		code := start(append([]string{"reconfig"}, strings.Fields(tc.args)...), &out, &diary)
		if text := out.String() + diary.String(); code != tc.code || !strings.Contains(text, tc.want) {
			t.Errorf("%s: exit %d, want %d with %q in\n%s", tc.name, code, tc.code, tc.want, text)
		}
		if tc.code == 2 && strings.Count(diary.String(), "\n") != 1 {
			t.Errorf("%s: want one line, got %q", tc.name, diary.String())
		}
	}
}

func TestStart_reconfigPictures(t *testing.T) {
	dir := t.TempDir()
	one := filepath.Join(dir, "one.svg")
	for _, args := range [][]string{
		{"reconfig", "--svg", one, "--quiet"},
		{"reconfig", "--story", "all", "--svg-dir", dir, "--quiet"},
	} {
		var out, diary bytes.Buffer
		if code := start(args, &out, &diary); code != 0 {
			t.Fatalf("%v: exit %d: %s", args, code, diary.String())
		}
	}
	names := []string{"one.svg"}
	for _, s := range lab.Stories() {
		names = append(names, s.Name+".svg", s.Name+"-safe.svg")
	}
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.HasPrefix(content, []byte("<svg ")) {
			t.Errorf("%s: %v, %d bytes", name, err, len(content))
		}
	}
	var out, diary bytes.Buffer
	if code := start([]string{"reconfig", "--svg", filepath.Join(dir, "no", "where.svg")}, &out, &diary); code != 2 {
		t.Errorf("a file that cannot be written: exit %d", code)
	}
}
