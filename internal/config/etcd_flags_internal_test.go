package config

import (
	"os"
	"strings"
	"testing"
)

// ourDefaults are the defaults that differ from etcd's on purpose.
var ourDefaults = map[string]string{
	"max-concurrent-streams": "a client that opens four billion streams takes all memory: docs/limits.md",
}

// Ensure that every flag of etcd 3.7.3 is in the table, with etcd's default. The file has the flags and defaults that etcd's own
// help shows; a default that etcd derives from other flags is empty there.
func TestSettings_haveEtcdsFlags(t *testing.T) {
	text, err := os.ReadFile("testdata/etcd-flags.txt")
	if err != nil {
		t.Fatal(err)
	}
	flags := 0
	for line := range strings.Lines(string(text)) {
		name, def, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		s := find(name)
		switch {
		case s == nil:
			t.Errorf("etcd has --%s, and the table has not", name)
		case s.def == def && ourDefaults[name] != "":
			t.Errorf("--%s has etcd's default: it is no exception", name)
		case s.def != def && ourDefaults[name] == "":
			t.Errorf("--%s is %q by default, in etcd %q", name, s.def, def)
		}
		flags++
	}
	if flags < 110 {
		t.Errorf("the file has %d flags: it was cut", flags)
	}
}

// Ensure that a row that does nothing says why, and that a row in effect has a field to be read.
func TestSettings_sayWhatTheyDo(t *testing.T) {
	for i := range settings {
		s := &settings[i]
		_, unread := s.value.(named)
		switch {
		case s.effect == inEffect && (unread || s.help == ""):
			t.Errorf("--%s is in effect, but has no field or no help", s.name)
		case s.effect != inEffect && (!unread || s.reason == ""):
			t.Errorf("--%s is not in effect, but has a field, or no reason", s.name)
		}
	}
}
