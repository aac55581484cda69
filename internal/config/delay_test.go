package config_test

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// Ensure that delays are read for all and by name, and mean the same once they were printed.
func TestLoad_peerDelay(t *testing.T) {
	for _, row := range []struct {
		arg         string
		eu, unknown time.Duration
		printed     string
	}{
		{"", 0, 0, ""},
		{"25ms", 25 * time.Millisecond, 25 * time.Millisecond, "25ms"},
		{"eu=32.5ms, ap=74ms", 32500 * time.Microsecond, 0, "eu=32.5ms,ap=74ms"},
		{"25ms,eu=0s", 0, 25 * time.Millisecond, "25ms,eu=0s"},
	} {
		c := mustLoad(t, []string{"--peer-delay=" + row.arg})
		if c.PeerDelay("eu") != row.eu || c.PeerDelay("") != row.unknown {
			t.Errorf("%q: got %v for eu, %v for anybody; want %v, %v", row.arg, c.PeerDelay("eu"), c.PeerDelay(""), row.eu, row.unknown)
		}
		warned := strings.Contains(strings.Join(c.Warnings, "\n"), "--peer-delay="+row.printed+": everything")
		if warned != (row.arg != "") {
			t.Errorf("%q: got warnings %q", row.arg, c.Warnings)
		}
		var printed bytes.Buffer
		if err := c.WriteYAML(&printed); err != nil {
			t.Fatal(err)
		}
		again := mustLoad(t, []string{"--config-file", writeFile(t, printed.String())})
		if again.PeerDelay("eu") != row.eu || again.PeerDelay("") != row.unknown {
			t.Errorf("%q: printed and loaded again: got %v", row.arg, again.PeerDelays)
		}
	}
}

// Ensure that a name which the new cluster does not have is noticed, and one that an old one may have is not.
func TestLoad_peerDelayOfNonMembers(t *testing.T) {
	args := []string{"--name=m1", "--initial-cluster=m1=http://localhost:2380,m2=http://b:1", "--peer-delay=m2=1ms,m3=1ms"}
	all := strings.Join(mustLoad(t, args).Warnings, "\n")
	if !strings.Contains(all, "--peer-delay names m3, which --initial-cluster does not: its members are m1, m2") ||
		strings.Contains(all, "names m2") {
		t.Errorf("got warnings %q", all)
	}
}
